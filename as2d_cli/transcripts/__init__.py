"""From words to segments, subtitles and every output format.

It may import `domain` only.
"""
