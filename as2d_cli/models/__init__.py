"""Models and the plugins they come from: registry, download, cache, conversion, loading.

It may import `decoding` for the protocols, `system` and `domain`.
"""
