"""`as2d bench`: every way to decode, side by side on the same windows, and the best choice in hindsight.

It may import `profile`, `engine` and everything below them; nothing but `cli` imports it.
"""
