"""Whether drafts are worth it on this device.

`measure_pair` times a pair, `trust` judges the figures, `store` keeps them as a profile, `plan` predicts from
it whether drafts pay. `choice` decides what a run begins with, and answers why there are no drafts; `guard`
watches whether they still pay.

It may import `engine`, `models` and everything below them.
"""
