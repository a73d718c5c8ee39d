"""as2d: transcribe audio on your own machine; a drafter runs ahead, the target verifies."""

__version__ = "0.1.0"
