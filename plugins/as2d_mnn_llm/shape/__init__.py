"""Models that are all shape: random weights in the dimensions of a real model, to measure what it costs."""
