"""Runs, replications and comparisons: the program's verbs on a spec, with the program's numbers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from debora._answer import sentence
from debora._debora import Error, Grid, Measurement, Part, Problem, Spec, simulate
from debora._results import Comparison, Replication, RunResult, Sweep

Progress: TypeAlias = Callable[[int, int], object] | Any
"""Called with the pairs done and in all; or a bar with ``update`` and ``total``, such as tqdm's."""

CallableWorld: TypeAlias = Callable[[int, int], "float | tuple[float, Any]"]
"""What an action (its number) gives in a round: a reward, or a reward and costs."""


def run(
    spec: Spec | Problem,
    *,
    key: int | str | None = None,
    world: CallableWorld | None = None,
    simulator: Literal["epochs", "rounds"] = "epochs",
) -> RunResult:
    """One simulated run, pair 0's first member: the same as ``debora run``.

    With ``world``, a function of action and round, each round is played by calling it.

    >>> import debora
    >>> problem = debora.Problem(actions=["a", "b"], horizon=1e9, rho=0.1)
    >>> spec = debora.Spec(problem, key=42, world=debora.worlds.bernoulli(reward=[0.4, 0.6]))
    >>> result = debora.run(spec)
    >>> result.counts.sum(), result.final_strategy
    (np.uint64(1000000000), array([0., 1.]))
    >>> short = debora.Problem(actions=["a", "b"], horizon=20_000, rho=0.5)
    >>> debora.run(short, key=42, world=lambda action, round: [0.25, 0.75][action]).final_strategy
    array([0., 1.])
    """
    if isinstance(spec, Problem):
        spec = Spec(spec, key=0 if key is None else key)
    elif key is not None:
        spec = spec.replace(key=key)
    if world is None:
        return RunResult(**simulate(spec, simulator=simulator))
    return _play(spec, world)


def _play(spec: Spec, world: CallableWorld) -> RunResult:
    """Round by round on a function. What needs the world's true means is ``None``."""
    engine, trace = spec.engine(), list[dict[str, Any]]()
    engine.on_epoch = lambda record: trace.append(record.to_dict())
    total = 0.0
    for decision in engine:
        answer = world(decision.action, decision.round)
        reward, costs = answer if isinstance(answer, tuple) else (answer, ())
        engine.tell(decision.round, reward, costs)
        total += float(reward)
    problem, plan = spec.problem, spec.plan()
    document: dict[str, Any] = {
        "name": spec.name,
        "policy": problem.policy,
        "horizon": problem.horizon,
        "rounds": problem.horizon,
        "epochs": len(trace),
        "regret": None,
        "violation": None,
        "violations": None,
        "signed_violation": None,
        "unsafe_rounds": None,
        "infeasible_epochs": sum(record["kind"] == "infeasible" for record in trace),
        "committed_at": next((record["first_round"] for record in trace if record["kind"] == "commit"), None),
        "reward_mean": total / problem.horizon,
        "counts": engine.counts.tolist(),
        "final_strategy": engine.strategy.tolist(),
        "digest": engine.digest,
        "simulator": "rounds",
        "blind": plan.blind,
        "warnings": plan.warnings,
        "values_version": plan.to_dict()["values_version"],
    }
    mean = f"average {problem.reward} {total / problem.horizon:.4g}"
    words = f"{problem.horizon:,} rounds in {len(trace):,} epochs, {mean}."
    said = [*plan.warnings, words]
    empty = np.empty(0)
    return RunResult(
        document=document,
        answer=[*({"paragraph": [sentence(one)]} for one in said), {"note": f"decisions {engine.digest}"}],
        trace=trace,
        checkpoints=np.empty(0, dtype=np.uint64),
        regret_curve=empty,
        violation_curve=empty,
        first_rounds=np.array([record["first_round"] for record in trace], dtype=np.uint64),
        strategies=np.array([record["strategy"] for record in trace]),
    )


def replicate(
    spec: Spec,
    *,
    pairs: int = 1000,
    simulator: Literal["epochs", "rounds"] = "epochs",
    other: Spec | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Replication:
    """Many pairs of runs, one key and fresh data: the same as ``debora replicate``.

    ``other`` is a spec whose world the second run of each pair has. Ctrl-C stops it.

    >>> import debora
    >>> problem = debora.Problem(actions=["a", "b"], horizon=1e9, rho=0.1)
    >>> spec = debora.Spec(problem, key=42, world=debora.worlds.bernoulli(reward=[0.4, 0.6]), name="two")
    >>> result = debora.replicate(spec, pairs=100)
    >>> result.identical_rate >= result.promised
    True
    >>> result.regret.shape, result.regret_curves.shape[:2]
    ((100, 2), (100, 2))
    """
    measurement = Measurement.replicate(spec, pairs=pairs, simulator=simulator, other=other)
    return Replication(measurement._measure(None, threads, progress))


def compare(
    spec: Spec,
    *,
    players: Sequence[str] | None = None,
    pairs: int = 200,
    simulator: Literal["epochs", "rounds"] = "epochs",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """The policy beside its rivals on the same worlds: the same as ``debora compare``.

    Without ``players``, all rivals play that can do so in reasonable time; a warning names those left out.
    """
    measurement = comparison(spec, players, pairs, simulator)
    return Comparison(measurement._measure(None, threads, progress))


def comparison(
    spec: Spec, players: Sequence[str] | None, pairs: int, simulator: Literal["epochs", "rounds"]
) -> Measurement:
    """What a comparison measures, for a function that the user calls; warns of the rivals left out."""
    wanted = None if players is None else list(players)
    measurement = Measurement.compare(spec, players=wanted, pairs=pairs, simulator=simulator)
    if measurement.left_out:
        warnings.warn(
            f"{', '.join(measurement.left_out)} left out, as deciding every round anew would take too long; "
            "use a shorter horizon to include them",
            # The warning is about the line that called replicate or compare.
            stacklevel=3,
        )
    return measurement


def sweep(
    spec: Spec | Sequence[Spec],
    *,
    over: Mapping[str, Iterable[Any]],
    players: Sequence[str] | None = None,
    pairs: int = 200,
    simulator: Literal["epochs", "rounds"] = "epochs",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """A measurement at every point of a grid, with the same keys, worlds and pairs: the same as ``debora sweep``.

    ``over`` has the values of each parameter, a list or a text as the program takes it; the last changes first.
    Without ``players`` debora plays alone, as in :func:`replicate`.

    >>> import debora
    >>> problem = debora.Problem(actions=3, horizon=1e5, rho=0.1)
    >>> spec = debora.Spec(problem, key=42, world=debora.worlds.random("gap", gap=0.4, worlds=10))
    >>> result = debora.sweep(spec, over={"rho": [0.1, 0.3], "horizon": "1e4..1e6"}, pairs=10)
    >>> len(result.points), result.points[-1]
    (6, {'rho': 0.3, 'horizon': 1000000})
    """
    grid, measurements = on_grid(spec, over, players, pairs, simulator)
    total = sum(one.pairs * len(one.players) for one in measurements)
    parts, done = list[Part](), 0
    for measurement in measurements:
        before = done

        def tell(now: int, _: int, before: int = before) -> None:
            nonlocal done
            report(progress, done, before + now, total)
            done = before + now

        parts.append(measurement._measure(None, threads, None if progress is None else tell))
        done = before + measurement.pairs * len(measurement.players)
    return Sweep(grid, parts)


def on_grid(
    spec: Spec | Sequence[Spec],
    over: Mapping[str, Iterable[Any]],
    players: Sequence[str] | None,
    pairs: int,
    simulator: Literal["epochs", "rounds"],
) -> tuple[Grid, list[Measurement]]:
    """A grid, and what is measured at each of its points."""
    grid = Grid([spec] if isinstance(spec, Spec) else list(spec), dict(over))
    if not players:
        return grid, [Measurement.replicate(one, pairs=pairs, simulator=simulator) for one in grid.specs]
    return grid, [comparison(one, players, pairs, simulator) for one in grid.specs]


def report(progress: Any, told: int, done: int, total: int) -> None:
    """``progress(done, total)``, or a bar with ``update`` and ``total``, as a single measurement has it."""
    if not hasattr(progress, "update"):
        progress(done, total)
        return
    if told == 0:
        progress.total = total
    progress.update(done - told)


def merge(parts: Iterable[bytes | str | os.PathLike[str]]) -> Replication | Comparison:
    """Parts, from :meth:`Measurement.measure` or the program's ``--shard``, put together: bytes, or paths to files.

    The result is that of the whole, in any order and wherever they were measured.
    """
    read = [part if isinstance(part, bytes) else Path(part).read_bytes() for part in parts]
    if not read:
        raise Error("there are no parts to merge; give all of them")
    whole = Part.merge(read)
    return Comparison(whole) if whole.verb == "compare" else Replication(whole)
