"""The engines that a Whisper runs on: each compiles `network` in its own way and keeps its own cache.

What they share is the protocol in `backend`; `choice` says which one a model gets. The rest of the plugin
knows no engine.
"""
