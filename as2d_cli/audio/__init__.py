"""From the bytes of a file to the windows and log-mel features that a model sees.

It may import `system` and `domain`.
"""
