"""What the operating system offers: files, addresses, processes, signals, streams, this device.

It may import `domain` only.
"""
