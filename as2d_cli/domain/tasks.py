"""What a model can be asked to do. Apart from `types`, because the registry is read without numpy."""

from typing import Literal

Task = Literal["transcribe", "translate", "ask"]
