"""The values and errors that every package shares.

It may import numpy, and nothing of as2d.
"""
