"""The values and errors that every package shares.

It imports numpy and nothing of as2d.
"""
