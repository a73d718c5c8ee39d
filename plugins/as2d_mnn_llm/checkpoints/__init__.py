"""Checkpoints and exports of audio language models as hubs have them: converted, taken over, exported."""
