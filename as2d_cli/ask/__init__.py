"""Questions about recordings, answered from a transcript by a reader or by a model that listens.

It may import `batch` and everything below it.
"""
