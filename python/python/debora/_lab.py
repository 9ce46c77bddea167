"""Runs, replications and comparisons: the program's verbs on a spec, with the program's numbers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from debora._answer import sentence
from debora._debora import Error, Grid, Measurement, Part, Problem, Spec, simulate
from debora._players import Player, as_players
from debora._results import Comparison, Replication, RunResult, Sweep
from debora.worlds import Function

Progress: TypeAlias = Callable[[int, int], object] | Any
"""Called with the pairs done and in all; or a bar with ``update`` and ``total``, such as tqdm's."""

CallableWorld: TypeAlias = Callable[[int, int], "float | tuple[float, Any]"]
"""What an action (its number) gives in a round: a reward, or a reward and costs."""


def run(
    spec: Spec | Problem,
    *,
    key: int | str | None = None,
    world: Mapping[str, Any] | CallableWorld | None = None,
    simulator: Literal["epochs", "rounds"] = "epochs",
    pair: float = 0,
    member: Literal[0, 1] = 0,
) -> RunResult:
    """One simulated run: the same as ``debora run``. Without ``pair`` and ``member`` it is pair 0's first.

    ``world`` is one of :mod:`debora.worlds`, in place of the spec's; or a function of action and round, which is called
    in each round and needs no pair's data.

    >>> import debora
    >>> problem = debora.Problem(actions=["a", "b"], horizon=1e9, rho=0.1)
    >>> spec = debora.Spec(problem, key=42, world=debora.worlds.bernoulli(reward=[0.4, 0.6]))
    >>> result = debora.run(spec)
    >>> result.counts.sum(), result.final_strategy
    (np.uint64(1000000000), array([0., 1.]))
    >>> debora.run(problem, key=42, world=debora.worlds.bernoulli(reward=[0.4, 0.6])).digest == result.digest
    True
    >>> short = debora.Problem(actions=["a", "b"], horizon=20_000, rho=0.5)
    >>> debora.run(short, key=42, world=lambda action, round: [0.25, 0.75][action]).final_strategy
    array([0., 1.])
    """
    if isinstance(spec, Problem):
        spec = Spec(spec, key=0 if key is None else key)
    elif key is not None:
        spec = spec.replace(key=key)
    if isinstance(world, Mapping):
        spec = spec.replace(world=dict(world))
    elif isinstance(world, Function):
        raise Error("world draws many rounds at once; use debora.replicate(spec, pairs=1, world=world)")
    elif world is not None:
        if (pair, member) != (0, 0):
            raise Error(f"pair {pair}, member {member}: a function has no other pair's data; leave them out")
        return _play(spec, world)
    warn_if_blind(spec)
    return RunResult(**simulate(spec, simulator=simulator, pair=pair, member=member))


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
    decided = next((record for record in trace if record["kind"] in ("commit", "pick")), None)
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
        "decided_by": decided["kind"] if decided else None,
        "decided_at": decided["first_round"] if decided else None,
        "lost_at_most": None,
        "reward_mean": total / problem.horizon,
        "counts": engine.counts.tolist(),
        "final_strategy": engine.strategy.tolist(),
        "digest": engine.digest,
        "simulator": "rounds",
        "blind": plan.blind,
        "warnings": plan.warnings,
        "gaps": [],
        "pair": 0,
        "member": 0,
        "values_version": plan.values_version,
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
        actions=list(problem.actions),
        first_rounds=np.array([record["first_round"] for record in trace], dtype=np.uint64),
        strategies=np.array([record["strategy"] for record in trace]),
    )


def replicate(
    spec: Spec,
    *,
    pairs: float = 1000,
    simulator: Literal["epochs", "rounds"] = "epochs",
    other: Spec | None = None,
    player: str | Player | None = None,
    world: Function | None = None,
    threads: float | None = None,
    progress: Progress | None = None,
) -> Replication:
    """Many pairs of runs, one key and fresh data: the same as ``debora replicate``.

    ``other`` is a spec whose world the second run of each pair has. ``player`` is a rival's name or a
    :func:`debora.player`, which plays instead of debora: it promises nothing, so no promise is checked. ``world`` is a
    :func:`debora.worlds.function` in place of the spec's world. Ctrl-C stops it.

    >>> import debora
    >>> problem = debora.Problem(actions=["a", "b"], horizon=1e9, rho=0.1)
    >>> spec = debora.Spec(problem, key=42, world=debora.worlds.bernoulli(reward=[0.4, 0.6]), name="two")
    >>> result = debora.replicate(spec, pairs=100)
    >>> result.identical_rate >= result.promised
    True
    >>> result.regret.shape, result.regret_curves.shape[:2]
    ((100, 2), (100, 2))
    """
    # The plan is debora's.
    if player is None:
        warn_if_blind(spec)
    as_players(None if player is None else [player])
    measurement = Measurement.replicate(
        spec, pairs=pairs, simulator=simulator, other=other, player=player, world=as_function(world)
    )
    return Replication(measurement._measure(None, threads, progress))


def compare(
    spec: Spec,
    *,
    players: str | Sequence[str | Player] | None = None,
    pairs: float = 200,
    simulator: Literal["epochs", "rounds"] = "epochs",
    world: Function | None = None,
    threads: float | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """The policy beside its rivals on the same worlds: the same as ``debora compare``.

    Without ``players``, all rivals play that can do so in reasonable time; a warning names those left out. A player is
    a rival's name or a :func:`debora.player`; names may also come as one text, with commas. ``world`` is a
    :func:`debora.worlds.function` in place of the spec's.
    """
    measurement = comparison(spec, players, pairs, simulator, world)
    return Comparison(measurement._measure(None, threads, progress))


def comparison(
    spec: Spec,
    players: str | Sequence[str | Player] | None,
    pairs: float,
    simulator: Literal["epochs", "rounds"],
    world: Function | None,
) -> Measurement:
    """What a comparison measures, for a function that the user calls; warns of the rivals left out."""
    warn_if_blind(spec, stacklevel=4)
    wanted = as_players(players)
    measurement = Measurement.compare(spec, players=wanted, pairs=pairs, simulator=simulator, world=as_function(world))
    if measurement.left_out:
        warnings.warn(
            f"{', '.join(measurement.left_out)} left out, as deciding every round anew would take too long; "
            "use a shorter horizon to include them",
            # The warning is about the line that called replicate or compare.
            stacklevel=3,
        )
    return measurement


def warn_if_blind(spec: Spec, *, stacklevel: int = 3) -> None:
    """Decisions that ignore the data look replicable, so that a blind plan must not go unnoticed in a loop."""
    plan = spec.problem.plan()
    if plan.blind:
        # The warning is about the line that called run, replicate or compare.
        warnings.warn(plan.warnings[0], stacklevel=stacklevel)


def as_function(world: object) -> Function | None:
    """A world that is code draws many rounds at once, from a key; a function of action and round cannot."""
    if world is None or isinstance(world, Function):
        return world
    raise Error(f"world is {world!r}; give debora.worlds.function(draw, reward=means), or a spec with a world")


def sweep(
    spec: Spec | Sequence[Spec],
    *,
    over: Mapping[str, Iterable[Any]],
    players: str | Sequence[str | Player] | None = None,
    pairs: float = 200,
    simulator: Literal["epochs", "rounds"] = "epochs",
    world: Function | None = None,
    threads: float | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """A measurement at every point of a grid, with the same keys, worlds and pairs: the same as ``debora sweep``.

    ``over`` has the values of each parameter, a list or a text as the program takes it; the last changes first.
    Without ``players`` only debora plays, as in :func:`replicate`; players and ``world`` are those of :func:`compare`.

    >>> import debora
    >>> problem = debora.Problem(actions=3, horizon=1e5, rho=0.1)
    >>> spec = debora.Spec(problem, key=42, world=debora.worlds.random("gap", gap=0.4, worlds=10))
    >>> result = debora.sweep(spec, over={"rho": [0.1, 0.3], "horizon": "1e5..1e6"}, pairs=10)
    >>> len(result.points), result.points[-1]
    (4, {'rho': 0.3, 'horizon': 1000000})
    """
    grid, measurements = on_grid(spec, over, players, pairs, simulator, world)
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
    players: str | Sequence[str | Player] | None,
    pairs: float,
    simulator: Literal["epochs", "rounds"],
    world: Function | None,
) -> tuple[Grid, list[Measurement]]:
    """A grid, and what is measured at each of its points, for a function that the user calls."""
    for name, values in over.items():
        if not isinstance(values, Iterable):
            raise Error(f"over has {values!r} for {name}; give a list of values, or a text such as '0.05,0.1,0.3'")
    grid = Grid([spec] if isinstance(spec, Spec) else list(spec), dict(over))
    wanted, drawn = as_players(players), as_function(world)
    _warn_if_some_are_blind(grid.specs)
    if not wanted:
        single = partial(Measurement.replicate, pairs=pairs, simulator=simulator, world=drawn)
        return grid, [single(one) for one in grid.specs]
    race = partial(Measurement.compare, players=wanted, pairs=pairs, simulator=simulator, world=drawn)
    return grid, [race(one) for one in grid.specs]


def _warn_if_some_are_blind(specs: Sequence[Spec]) -> None:
    """One warning for all points: a sweep over horizons often begins with blind ones."""
    blind = [one.problem for one in specs if one.problem.plan().blind]
    if blind:
        first = f"the first with horizon {blind[0].horizon:,} and rho {blind[0].rho:g}"
        warnings.warn(
            f"BLIND at {len(blind)} of {len(specs)} points, {first}: decisions ignore the data there. Use longer "
            "horizons or a larger rho; Problem.plan() says which.",
            # The warning is about the line that called sweep.
            stacklevel=4,
        )


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
    given = list(parts)
    if not given:
        raise Error("there are no parts to merge; give all of them")
    names = [f"part {number}" if isinstance(part, bytes) else str(part) for number, part in enumerate(given, 1)]
    whole = Part.merge([part if isinstance(part, bytes) else Path(part).read_bytes() for part in given], names)
    return Comparison(whole) if whole.verb == "compare" else Replication(whole)
