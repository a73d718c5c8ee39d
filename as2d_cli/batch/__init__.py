"""A run over many files: from a request through inputs, windows and transcripts to outputs and a report.

It may import `profile`, `engine`, `models`, `audio`, `transcripts` and the packages below them.
"""
