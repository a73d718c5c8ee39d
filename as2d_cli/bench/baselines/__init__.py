"""The published ways to draft that AS2D is compared with, and the processes that run them.

`serial` and `async_coupled` are the algorithms, `coupled` is the drafter of both; `pair_process` and
`drafter_process` run them.
"""
