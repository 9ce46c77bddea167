"""Replications, comparisons and sweeps on more machines: parts of a measurement as tasks of Ray.

A part's result depends only on its number, so a task that Ray runs again, after a worker or a machine is lost, gives
the same bytes, and the merged result is the one of :func:`debora.replicate` and :func:`debora.compare`, byte for byte.

Ray is told where to work in its own ways: ``ray.init(address=...)`` beforehand, or ``RAY_ADDRESS``. Without either it
starts on this machine. The other machines need this package, in the same version. Players and worlds that are code
(:func:`debora.player`, :func:`debora.worlds.function`) are sent along, pickled by Ray.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from debora._debora import Error, Measurement, Part, Spec
from debora._lab import Progress, as_function, comparison, merge, on_grid, report, warn_if_blind
from debora._players import Player, as_players
from debora._results import Comparison, Replication, Sweep
from debora.worlds import Function

try:
    import ray
except ImportError:
    raise ImportError("ray is not installed; install it, or the extra: pip install 'debora[ray]'") from None

__all__ = ["compare", "replicate", "sweep"]

SHARD_SECONDS = 2.0
"""What a shard should last on one core: long beside what a task costs, short beside the work one would mind losing."""

SHARDS_MAX = 10_000
"""One driver keeps track of this many tasks with ease; a sweep of more than some hours on one core has longer parts."""

PILOT_SECONDS = 0.25
"""What a pilot must last for its clock to be believed."""

RETRIES = 100
"""How often a shard is begun again after its worker or machine is lost. Far more than machines that come and go need,
yet an end for a shard that no worker survives."""

Sent: TypeAlias = tuple[Measurement, dict[Path, bytes]]
"""A measurement, and the tables that it needs by their paths."""


def replicate(
    spec: Spec,
    *,
    pairs: float = 1000,
    shards: int | None = None,
    simulator: Literal["epochs", "rounds"] = "epochs",
    other: Spec | None = None,
    player: str | Player | None = None,
    world: Function | None = None,
    progress: Progress | None = None,
) -> Replication:
    """Many pairs of runs, one key and fresh data: the result of :func:`debora.replicate`, from a cluster.

    Without ``shards`` a few pairs are measured here first, and their time chooses the number. ``progress`` is told
    after each shard. Ctrl-C cancels the tasks.
    """
    # The plan is debora's.
    if player is None:
        warn_if_blind(spec)
    as_players(None if player is None else [player])
    measurement = Measurement.replicate(
        spec, pairs=pairs, simulator=simulator, other=other, player=player, world=as_function(world)
    )
    return cast(Replication, _measure(measurement, shards, progress))


def compare(
    spec: Spec,
    *,
    players: str | Sequence[str | Player] | None = None,
    pairs: float = 200,
    shards: int | None = None,
    simulator: Literal["epochs", "rounds"] = "epochs",
    world: Function | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """The policy beside its rivals on the same worlds: the result of :func:`debora.compare`, from a cluster.

    ``shards`` and ``progress`` are those of :func:`replicate`.
    """
    measurement = comparison(spec, players, pairs, simulator, world)
    return cast(Comparison, _measure(measurement, shards, progress))


def sweep(
    spec: Spec | Sequence[Spec],
    *,
    over: Mapping[str, Iterable[Any]],
    players: str | Sequence[str | Player] | None = None,
    pairs: float = 200,
    shards: int | None = None,
    simulator: Literal["epochs", "rounds"] = "epochs",
    world: Function | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """A measurement at every point of a grid: the result of :func:`debora.sweep`, from a cluster.

    ``shards``, of each point, and ``progress`` are those of :func:`replicate`.
    """
    grid, measurements = on_grid(spec, over, players, pairs, simulator, world)
    return Sweep(grid, [Part.merge(parts) for parts in _measure_all(measurements, shards, progress)])


def _measure(measurement: Measurement, shards: int | None, progress: Progress | None) -> Replication | Comparison:
    return merge(_measure_all([measurement], shards, progress)[0])


def _measure_all(
    measurements: Sequence[Measurement], shards: int | None, progress: Progress | None
) -> list[list[bytes]]:
    """The parts of each. All tasks are handed out at once: no core waits for the last part of another measurement."""
    # Of errors only lost workers and machines are worth another try: the rest would be the same again.
    task = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(_measure_shard)
    total = sum(one.pairs * len(one.players) for one in measurements)
    # The measurement of each task, and how many tasks it has.
    of, waiting, told, done = dict[Any, tuple[int, int]](), list[Any](), 0, 0.0
    parts: list[list[bytes]] = [[] for _ in measurements]
    try:
        for place, measurement in enumerate(measurements):
            count = _checked(measurement, shards)
            sent = ray.put(_sent(measurement))
            for number in range(1, count + 1):
                waiting.append(task.remote(sent, (number, count)))
                of[waiting[-1]] = (place, count)
        while waiting:
            ready, waiting = ray.wait(waiting)
            for reference in ready:
                place, count = of[reference]
                parts[place].append(ray.get(reference))
                done += measurements[place].pairs * len(measurements[place].players) / count
            if progress is not None:
                # Sums of shares are off by a rounding error, which must not cost a pair.
                now = int(done + 1e-6)
                report(progress, told, now, total)
                told = now
    finally:
        # Ray interrupts them, and a measurement stops at once when interrupted.
        for reference in waiting:
            ray.cancel(reference)
    return parts


def _checked(measurement: Measurement, shards: int | None) -> int:
    if shards is None:
        shards = _shards(measurement)
    if not 1 <= shards <= measurement.pairs:
        raise Error(
            f"shards is {shards}; give at least 1 and at most one for each of the {measurement.pairs} pairs, or None"
        )
    return shards


def _sent(measurement: Measurement) -> Sent:
    """A measurement with the rows of its tables, as other machines do not have the files."""
    return measurement, {path: path.read_bytes() for path in measurement._tables}


def _measure_shard(sent: Sent, shard: tuple[int, int]) -> bytes:
    """Where the task runs. One thread, as Ray gives it one core."""
    measurement, tables = sent
    return measurement._measure(shard, 1, None, tables).to_bytes()


def _shards(measurement: Measurement) -> int:
    """How many shards of the wanted length the measurement has, by the clock of a growing part measured here."""
    pairs = 1
    while True:
        of = max(1, measurement.pairs // pairs)
        begun = time.perf_counter()
        # The last part: the first also has a run that is watched.
        measurement.measure((of, of), threads=1)
        seconds = time.perf_counter() - begun
        if seconds >= PILOT_SECONDS or of == 1:
            return min(max(1, round(of * seconds / SHARD_SECONDS)), measurement.pairs, SHARDS_MAX)
        pairs *= 4
