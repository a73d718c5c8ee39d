"""`as2d profile`: what this device makes of a pair of models."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from as2d_cli.cli.commands.catalog import group
from as2d_cli.cli.output.messages import tell
from as2d_cli.domain.errors import RequestError
from as2d_cli.system.printable import printable

if TYPE_CHECKING:
    from as2d_cli.engine.measure import TargetCosts

app = group("profile")

_Pair = Annotated[str | None, typer.Option("--pair", metavar="NAME", help="A pair of models.toml.")]
_Threads = Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads of the target.")]


@app.command()
def run(pair: _Pair = None, threads: _Threads = None) -> None:
    """Measure a pair now and keep the result.

    It takes about 20 s. Nothing is kept if other programs keep the machine busy meanwhile.
    """
    from as2d_cli.cli.output.fetch_progress import fetched
    from as2d_cli.engine.engine import Engine, EngineSettings
    from as2d_cli.models.registry import load_registry
    from as2d_cli.profile.choice import DraftChoice

    registry = load_registry()
    chosen = registry.pair(pair)
    target, (drafter,) = fetched(registry.model(chosen.target), [registry.model(chosen.drafter)], threads)
    settings = EngineSettings(target, drafter)
    choice = DraftChoice(settings, note=tell)
    with Engine(settings, note=tell) as engine:
        plan = choice.by_measurement(engine)
    typer.echo(f"{chosen.name}: {plan.reason}")


@app.command()
def show(
    as_json: Annotated[bool, typer.Option("--json", help="Print everything, as JSON lines.")] = False,
) -> None:
    """Show the stored profiles."""
    from as2d_cli.profile import store

    paths = sorted(store.profiles_folder().glob("*.json"))
    if not paths:
        tell("no profile yet; as2d profile run measures one")
    for path in paths:
        try:
            stored = store.read(path)
        except store.DAMAGE:
            tell(f"{path}: damaged; it will be measured anew")
            continue
        if as_json:
            typer.echo(json.dumps(stored.as_dict()))
            continue
        costs = stored.costs[0]
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(stored.measured_at))
        key = {name: printable(value) for name, value in stored.key.items()}
        typer.echo(f"{key['target']} + {key['drafter']}, threads {key['threads']}")
        runtimes = [f", {name} {version}" for name, version in key.items() if name not in store.KEY]
        typer.echo(f"  measured {day} on {key['device']}{''.join(runtimes)}")
        typer.echo(f"  target: window {costs.target.encode_ms:.0f} ms, step {_row(costs.target.step_ms())}")
        typer.echo(f"  rows decided together and one by one: {_difference(costs.target)}")
        typer.echo(
            f"  drafter: window {costs.drafter.encode_ms:.0f} ms, token {costs.drafter.token_ms:.1f} ms"
        )
        for own in stored.costs:
            typer.echo(
                f"  both at once, target's passes on {own.decode_threads} threads: "
                f"window {own.target_busy.encode_ms / costs.target.encode_ms:.2f}x the time, "
                f"step {_row(own.target_busy.step_ms())}, drafter "
                f"{own.drafter_busy.encode_ms / costs.drafter.encode_ms:.2f}x"
            )
        for name, seen in sorted(stored.seen.items()):
            right = sum(seen.counts[len(seen.counts) // 2 :]) / seen.trials
            typer.echo(f"  seen at {printable(name)}: {right:.0%} of {seen.trials:.0f} draft tokens right")
        work = store.Work(windows=store.USUAL_WINDOWS)
        typer.echo(f"  for {work.windows} windows: {printable(stored.plan(work).reason)}")


def _difference(costs: TargetCosts) -> str:
    tokens = "the same tokens" if costs.row_invariant else "other tokens"
    if costs.row_epsilon is None:
        return tokens
    apart = f"{costs.row_epsilon:.2g} apart at most" if costs.row_epsilon else "equal in every bit"
    return f"{tokens}, logits {apart}"


def _row(table: dict[int, float]) -> str:
    return (
        ", ".join(f"{rows}: {table[rows]:.1f}" for rows in (2, 5, 8, 16, 24) if rows in table) + " ms by rows"
    )


@app.command()
def clear() -> None:
    """Forget all profiles. They are measured anew when needed."""
    from as2d_cli.profile import store

    paths = list(store.profiles_folder().glob("*.json"))
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise RequestError(f"{path}: cannot be removed: {error}") from error
    typer.echo(f"removed {len(paths)} profile{'' if len(paths) == 1 else 's'}")
