"""From words to segments, subtitles and every output format.

Words become segments in `segments`, segments become cues in `subtitles`, `formats` writes them.

It may import `domain` only.
"""
