"""Target and drafter in processes of their own.

Callers use `engine`. It starts a `pair` of processes, through which a `scheduler` takes one run of windows.
`processes` are their handles in the main process; inside run `target_worker` and `drafter_worker`, which
share `worker`. `messages` and `slots` go between. `results` puts together what became of a window,
`comparison` decodes windows both ways.

It may import `models`, `audio`, `decoding`, `system` and `domain`.
"""
