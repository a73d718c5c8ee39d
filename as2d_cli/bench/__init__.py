"""`as2d bench`: every way to decode, side by side on the same windows, and the best choice in hindsight.

Its parts share the modes, the trials that a run leaves, the drafts that `--shape` replays and the
projection made of them.

It may import `profile`, `engine` and everything below them; nothing but `cli` imports it.
"""
