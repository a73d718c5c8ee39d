"""A benchmark run: its order, its measurements, the oracle and the projections."""
