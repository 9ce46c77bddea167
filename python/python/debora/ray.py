"""Replications and comparisons on more machines: shares of a job as tasks of Ray.

A share's result depends on its number alone, so a task that Ray runs again, after a worker or a machine is lost, gives
the same bytes, and the merged result is the one of :func:`debora.replicate` and :func:`debora.compare`, byte for byte.

Ray is told where to work in its own ways: ``ray.init(address=...)`` beforehand, or ``RAY_ADDRESS``. Without either it
starts on this machine. The other machines need this package, in the same version.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from debora._debora import Error, Job, Spec
from debora._lab import Progress, comparison, merge
from debora._results import Comparison, Replication

try:
    import ray
except ImportError:
    raise ImportError("ray is not there; install it, or the extra: pip install 'debora[ray]'") from None

__all__ = ["compare", "replicate"]

SHARD_SECONDS = 2.0
"""What a shard should last on one core: long beside what a task costs, short beside the work one would mind losing."""

SHARDS_MAX = 10_000
"""One driver keeps track of so many tasks with ease; a sweep of more than some hours on one core has longer shards."""

PILOT_SECONDS = 0.25
"""What a pilot must last for its clock to be believed."""

RETRIES = 100
"""How often a shard is begun again after its worker or machine is lost. Far more than machines that come and go need,
yet an end for a shard that no worker survives."""


def replicate(
    spec: Spec,
    *,
    pairs: int = 1000,
    shards: int | None = None,
    simulator: Literal["epochs", "rounds"] = "epochs",
    other: Spec | None = None,
    progress: Progress | None = None,
) -> Replication:
    """Many pairs of runs, one key and fresh data: the result of :func:`debora.replicate`, from a cluster.

    Without ``shards`` a few pairs are measured here first, and their time chooses the number. ``progress`` is told
    after each shard. Ctrl-C cancels the tasks.
    """
    job = Job.replicate(spec, pairs=pairs, simulator=simulator, other=other)
    return cast(Replication, _measure(job, _shipped(job, spec, other), shards, progress))


def compare(
    spec: Spec,
    *,
    players: Sequence[str] | None = None,
    pairs: int = 200,
    shards: int | None = None,
    simulator: Literal["epochs", "rounds"] = "epochs",
    progress: Progress | None = None,
) -> Comparison:
    """The policy beside its rivals on the same worlds: the result of :func:`debora.compare`, from a cluster.

    ``shards`` and ``progress`` are those of :func:`replicate`.
    """
    job = comparison(spec, players, pairs, simulator)
    return cast(Comparison, _measure(job, _shipped(job, spec, None), shards, progress))


def _measure(job: Job, table: bytes | None, shards: int | None, progress: Progress | None) -> Replication | Comparison:
    if shards is None:
        shards = _shards(job)
    if not 1 <= shards <= job.pairs:
        raise Error(f"shards is {shards}; give at least 1 and at most one for each of the {job.pairs} pairs, or None")
    sent = ray.put((job, table))
    # Of errors only lost workers and machines are worth another try: the rest would be the same again.
    task = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(_measure_shard)
    total, waiting, parts = job.pairs * len(job.players), list[Any](), list[bytes]()
    try:
        for number in range(1, shards + 1):
            waiting.append(task.remote(sent, (number, shards)))
        while waiting:
            ready, waiting = ray.wait(waiting)
            parts += ray.get(ready)
            if progress is not None:
                _report(progress, total * (len(parts) - len(ready)) // shards, total * len(parts) // shards, total)
    finally:
        # Ray interrupts them, and a measurement stops at once when interrupted.
        for reference in waiting:
            ray.cancel(reference)
    return merge(parts)


def _measure_shard(sent: tuple[Job, bytes | None], shard: tuple[int, int]) -> bytes:
    """Where the task runs. One thread, as Ray gives it one core."""
    job, table = sent
    if table is None:
        return job.measure(shard, threads=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_bytes(table)
        moved = _moved(job, path)
        # Only the file's place differs from the job that was asked for, and a part begins with its job.
        return moved.measure(shard, threads=1).replace(_text(moved).encode(), _text(job).encode(), 1)


def _shards(job: Job) -> int:
    """How many shards of the wanted length the job has, by the clock of a growing share measured here."""
    pairs = 1
    while True:
        of = max(1, job.pairs // pairs)
        begun = time.perf_counter()
        # The last share: the first also tells the story of a run.
        job.measure((of, of), threads=1)
        seconds = time.perf_counter() - begun
        if seconds >= PILOT_SECONDS or of == 1:
            return min(max(1, round(of * seconds / SHARD_SECONDS)), job.pairs, SHARDS_MAX)
        pairs *= 4


def _shipped(job: Job, spec: Spec, other: Spec | None) -> bytes | None:
    """The rows of a world that is a table, as other machines do not have the file."""
    if other is not None and other.world is not None and other.world.kind == "table":
        raise Error(
            f"the other world, {other.file}, is a table, whose file other machines do not have; measure on this "
            "machine with debora.replicate, or with shards of the program where the file is"
        )
    if spec.world is None or spec.world.kind != "table":
        return None
    return (Path(spec.file).parent / _table(job)).read_bytes()


def _table(job: Job) -> str:
    """The file a table is read from: what was last said about it counts."""
    try:
        import tomllib
    except ImportError:
        raise ImportError("a world that is a table is sent to other machines by Python 3.11 or newer only") from None
    said = json.loads(_text(job))
    file = tomllib.loads(said["text"]).get("world", {}).get("file")
    for path, value in said["overrides"]:
        if path == "world.file":
            file = tomllib.loads(f"file = {value}")["file"]
        elif path == "world":
            file = tomllib.loads(f"world = {value}")["world"]["file"]
    return cast(str, file)


def _moved(job: Job, table: Path) -> Job:
    """The same job with its table elsewhere."""
    said = json.loads(_text(job))
    said["overrides"].append(["world.file", json.dumps(str(table))])
    return Job._restore(json.dumps(said), job.left_out)


def _text(job: Job) -> str:
    """A job as it stands at the beginning of its parts."""
    text: str = job.__reduce__()[1][0]
    return text


def _report(progress: Any, told: int, done: int, total: int) -> None:
    """``progress(done, total)``, or a bar with ``update`` and ``total``, as the measurements on one machine have it."""
    if not hasattr(progress, "update"):
        progress(done, total)
        return
    if told == 0:
        progress.total = total
    progress.update(done - told)
