"""The speculative baselines AS2D is compared with: serial, coupled and following drafts."""
