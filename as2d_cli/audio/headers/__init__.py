"""What media files state about themselves that the libraries misread: WAV sizes, encryption.

It may import nothing of as2d.
"""
