"""Whether drafts are worth it on this device: the measured profile, the plan made from it, the guard.

It may import `engine`, `models` and everything below them.
"""
