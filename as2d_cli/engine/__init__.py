"""Target and drafter in processes of their own: shared memory, messages, scheduling, measurement.

It may import `models`, `audio`, `decoding`, `system` and `domain`.
"""
