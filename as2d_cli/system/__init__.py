"""What the operating system offers: local and remote files, processes, signals, streams, this device.

It may import `domain` only.
"""
