"""What media files state about themselves that the libraries misread: sizes, encryption.

It may import nothing else of as2d.
"""
