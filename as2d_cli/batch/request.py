"""What a run over many files is asked for, and what it answers for each of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from as2d_cli.audio.tracks import AudioChoice
from as2d_cli.batch.inputs import Input
from as2d_cli.batch.resume import recipe_of
from as2d_cli.domain.types import Request, Task
from as2d_cli.engine.messages import DecodeSettings
from as2d_cli.models import loader, weights
from as2d_cli.models.registry import ModelEntry
from as2d_cli.system.device import usable_cpus
from as2d_cli.transcripts.formats import SCHEMA_VERSION, SUBTITLES
from as2d_cli.transcripts.subtitles import Layout

WORD_FORMATS = frozenset({"json", "jsonl"})
"""Formats that hold the times of words, if those are asked for."""
RECIPE = 2
"""Raised when the same model and options come to give another text, so that older outputs are made anew."""
_WITHOUT_INFLUENCE = frozenset(
    {
        *("inputs", "asks", "folder", "overwrite", "fail_fast"),
        *("drafter", "compare", "threads", "decode", "auto_budget"),
        *("others", "memory_limit_bytes", "cluster"),
        *("target", "timed", "word_timestamps", "formats", "layout"),
    }
)
"""Parts of a request that change no output, or are accounted for apart."""


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """A Ray cluster to run on."""

    address: str | None = None
    """Of its head; None: one of this machine alone, begun and ended with the run."""
    threads: int | None = None
    """Of each engine's target; None: as each node's cores have it."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """All that a run is asked for."""

    inputs: tuple[Input, ...]
    target: ModelEntry
    drafter: ModelEntry | None = None
    language: str | None = None
    """Whisper language code, or None to detect it in each file."""
    asks: bool = False
    """Whether questions are asked about the recordings, which the target answers by ear."""
    translate_to: str | None = None
    """Code of the language to write in; None: in the one that is spoken."""
    prompt: str | None = None
    """Text that every window is taken to follow."""
    timed: bool = False
    """Whether segments are wanted with times."""
    word_timestamps: bool = False
    """Whether segments keep their words and those their times."""
    layout: Layout = field(default_factory=Layout)
    """How subtitles are to look."""
    formats: tuple[str, ...] = ()
    """Files to write for each source; none: no files."""
    folder: Path | None = None
    """Where to write them; None: beside the source."""
    overwrite: bool = False
    """Whether to make all files anew, whoever made those that exist."""
    fail_fast: bool = False
    """Whether the first failure ends the run."""
    compare: bool = False
    auto_budget: bool = False
    """Whether this device's profile decides if the drafter is used, and how much."""
    others: tuple[ModelEntry, ...] = ()
    """Further drafters of this target, used where this device's profile says that they are better."""
    memory_limit_bytes: int | None = None
    """Most memory that all processes may take together with a drafter; None: as much as there is."""
    audio_track: str | None = None
    channel: str | None = None
    """What to hear of each file, as in `AudioChoice`."""
    vad: bool = True
    """Whether windows in which nobody speaks are left out."""
    threads: int = field(default_factory=usable_cpus)
    """Of the target; the drafter has one."""
    cluster: ClusterChoice | None = None
    """Where to run it, if not on this machine alone."""
    decode: DecodeSettings = field(default_factory=DecodeSettings)

    @property
    def task(self) -> Task:
        """What the target is to do."""
        if self.asks:
            return "ask"
        return "translate" if self.translate_to else "transcribe"

    @property
    def audio_choice(self) -> AudioChoice:
        """What to hear of each file."""
        return AudioChoice(self.audio_track, self.channel)

    @property
    def compares(self) -> bool:
        """Whether windows are decoded both ways: there must be a drafter that can do what is asked for."""
        return self.compare and bool(self.able_drafters)

    @property
    def able_drafters(self) -> tuple[ModelEntry, ...]:
        """The drafter and the others, but those that are known to be unable to do what is asked for."""
        task = Request(self.task, to=self.translate_to or "").in_language(self.language).task
        return tuple(one for one in (self.drafter, *self.others) if one and one.does(task))

    def recipes(self) -> dict[str, str]:
        """Return, for each format, a digest of what decides the content of its files, apart from the input.

        Options that are not known to be without influence count as having some. Raises `ModelError` or
        `PluginError` if the model cannot be told apart from others.
        """
        options = {
            name: getattr(self, name) for name in BatchRequest.__slots__ if name not in _WITHOUT_INFLUENCE
        }
        if loader.changes_bits(self.target.plugin, "threads"):
            options["threads"] = self.cluster.threads if self.cluster else self.threads
        options |= {"recipe": RECIPE, "schema": SCHEMA_VERSION, "model": weights.identity(self.target)}
        return {
            name: recipe_of(
                {
                    **options,
                    "word_timestamps": self.word_timestamps and name in WORD_FORMATS,
                    "layout": asdict(self.layout) if name in SUBTITLES else None,
                }
            )
            for name in self.formats
        }
