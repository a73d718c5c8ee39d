"""What a model can be asked to do. Apart from `types`, which needs numpy: the registry is read without it."""

from typing import Literal

Task = Literal["transcribe", "translate", "ask"]
