raise RuntimeError("no such device\nsecond line")
