"""The same run on a Ray cluster: an executor that hands files and windows to engines on many nodes.

Optional: only this package imports Ray. It may import `batch` and everything below it.
"""
