"""Target and drafter in processes of their own.

Callers use `engine`. It starts a `pair` of processes, through which a `scheduler` takes one run of windows.
The main process sees its workers as `processes` and `worker_handle`; in them run `worker_main`,
`target_worker`, `inner_drafts` and `measure`; `messages` and `slots` go between. `results` puts together what
became of a window, `comparison` decodes windows both ways.

It may import `models`, `audio`, `decoding`, `system` and `domain`.
"""
