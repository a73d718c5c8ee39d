"""Measuring: `benchmark` runs all modes on all windows and replays them, `shape` measures a model's shape."""
