"""On Ray: two nodes in one machine give the bytes of one machine, whatever is lost on the way."""

from __future__ import annotations

import builtins
import importlib
import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
import ray
from ray.cluster_utils import Cluster
from tqdm import tqdm

import debora
import debora.ray
import pages
from conftest import ROOT

STORE_BYTES = 100_000_000
T = TypeVar("T")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two nodes of one core each; all that was started is ended."""
    quiet = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=quiet)
    try:
        cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.usefixtures("cluster")
@pytest.mark.filterwarnings("ignore:BLIND")
def test_players_and_worlds_that_are_code_are_sent_along() -> None:
    class Follow:
        """Plays what paid last."""

        def __init__(self, problem: debora.Problem, key: int) -> None:
            self.next = key % 2

        def strategy(self) -> list[float]:
            return [1.0 - self.next, float(self.next)]

        def tell(self, actions: list[int], rewards: list[float], costs: list[list[float]]) -> None:
            self.next = actions[0] if rewards[0] > 0.5 else 1 - actions[0]

    problem = debora.Problem(actions=["a", "b"], horizon=50, rho=0.5)
    world = debora.worlds.function(
        lambda action, count, chance: chance.random(count) ** (2 - action), reward=[1 / 3, 0.5]
    )
    mine = debora.player("mine", Follow)
    spec = debora.Spec(problem, key=42)
    spread = debora.ray.compare(spec, players=["thompson", mine], pairs=7, shards=3, world=world)
    assert spread.to_bytes() == debora.compare(spec, players=["thompson", mine], pairs=7, world=world).to_bytes()
    alone = debora.ray.replicate(spec, player=mine, pairs=7, shards=2, world=world)
    assert alone.to_bytes() == debora.replicate(spec, player=mine, pairs=7, world=world).to_bytes()
    over = {"horizon": [20, 50]}
    swept = debora.ray.sweep(spec, over=over, players=["thompson", mine], pairs=7, shards=2, world=world)
    assert swept.to_dict() == debora.sweep(spec, over=over, players=["thompson", mine], pairs=7, world=world).to_dict()


def test_sweeps_are_those_of_one_machine(routing: debora.Spec) -> None:
    told: list[tuple[int, int]] = []
    over = {"rho": [0.1, 0.3], "horizon": [1e5, 1e6]}
    spread = debora.ray.sweep(routing, over=over, pairs=7, shards=3, progress=lambda *pairs: told.append(pairs))
    alone = debora.sweep(routing, over=over, pairs=7)
    assert spread.to_dict() == alone.to_dict() and spread.to_latex() == alone.to_latex()
    assert [one.to_bytes() for one in spread.results] == [one.to_bytes() for one in alone.results]
    assert told[-1] == (28, 28) and told == sorted(told)


@pytest.mark.usefixtures("cluster")
def test_replications_and_comparisons_are_those_of_one_machine(routing: debora.Spec) -> None:
    told: list[tuple[int, int]] = []
    spread = debora.ray.replicate(routing, pairs=61, shards=4, progress=lambda *pairs: told.append(pairs))
    assert spread.to_bytes() == debora.replicate(routing, pairs=61).to_bytes()
    assert spread.to_dict() == debora.replicate(routing, pairs=61).to_dict()
    assert told == [(15, 61), (30, 61), (45, 61), (61, 61)]
    short = routing.replace(horizon=50_000)
    with open(os.devnull, "w") as nowhere, tqdm(file=nowhere) as bar:
        compared = debora.ray.compare(short, pairs=8, shards=3, progress=bar)
        assert (bar.n, bar.total) == (24, 24)
    assert compared.to_bytes() == debora.compare(short, pairs=8).to_bytes()
    with pytest.warns(UserWarning, match="primal-dual left out") as warned:
        debora.ray.compare(routing, pairs=2, shards=1)
    assert warned[0].filename == __file__


@pytest.mark.usefixtures("cluster")
def test_the_number_of_shards_is_found(routing: debora.Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    # A sixth of a second of work: some thirty shards here, and more than one on a machine ten times as fast.
    monkeypatch.setattr("debora.ray.SHARD_SECONDS", 0.005)
    spread = debora.ray.replicate(routing, pairs=2000, progress=lambda done, total: told.append(done))
    assert spread.to_bytes() == debora.replicate(routing, pairs=2000).to_bytes()
    assert 1 < len(told) < 2000, "some shards, of more than one pair each"
    measurement = debora.Measurement.replicate(routing, pairs=3)
    for seconds, shards in [(1e-9, 3), (1e9, 1)]:
        monkeypatch.setattr("debora.ray.SHARD_SECONDS", seconds)
        assert debora.ray._shards(measurement) == shards
    for shards in (0, 4):
        with pytest.raises(debora.Error, match=f"shards is {shards}; .* 3 pairs"):
            debora.ray.replicate(routing, pairs=3, shards=shards)


@pytest.mark.usefixtures("cluster")
def test_tables_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    spec = debora.Spec.from_toml("examples/recorded.toml")
    assert debora.ray.replicate(spec, pairs=6, shards=2).to_bytes() == debora.replicate(spec, pairs=6).to_bytes()
    # As on another machine: the same share when the file is gone, here with a file that a keyword named.
    rows = tmp_path / "elsewhere.csv"
    rows.write_bytes((ROOT / "examples/recorded.csv").read_bytes())
    for keywords in ({"world.file": str(rows)}, {"world": debora.worlds.table(rows)}):
        moved = spec.replace(**keywords)
        measurement = debora.Measurement.replicate(moved, pairs=6)
        here, sent = measurement.measure((2, 3)), pickle.dumps(debora.ray._sent(measurement))
        table = rows.read_bytes()
        rows.unlink()
        assert debora.ray._measure_shard(pickle.loads(sent), (2, 3)) == here
        rows.write_bytes(table)
    both = debora.ray.replicate(spec, pairs=6, shards=2, other=spec)
    assert both.to_bytes() == debora.replicate(spec, pairs=6, other=spec).to_bytes()


@pytest.mark.usefixtures("cluster")
def test_errors_of_a_shard_are_the_librarys(routing: debora.Spec) -> None:
    costs = {"price": [0.001, 0.001, 0.001], "latency": [1.0, 1.0, 1.0]}
    slow = debora.Spec(routing.problem, world=debora.worlds.beta(reward=[0.1, 0.2, 0.3], costs=costs))
    with pytest.raises(debora.Error) as refused:
        debora.replicate(slow.replace(horizon=1e12), pairs=2)
    with pytest.raises(debora.Error) as lost:
        debora.ray.replicate(slow.replace(horizon=1e12), pairs=2, shards=2)
    assert str(refused.value) in str(lost.value)


@pytest.mark.usefixtures("cluster")
def test_ctrl_c_cancels_the_tasks(routing: debora.Spec) -> None:
    """Each shard would last hours; both cores are busy, and soon free again."""

    def free_cores() -> float:
        return float(ray.available_resources().get("CPU", 0))

    def interrupt() -> None:
        until(lambda: free_cores() == 0)
        signal.raise_signal(signal.SIGINT)

    # Before the first message of the nodes no core is free either.
    until(lambda: free_cores() == 2)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        debora.ray.replicate(routing.replace(horizon=1e12), pairs=50, shards=10, simulator="rounds")
    thread.join()
    until(lambda: free_cores() == 2)


def test_the_page(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    pages.check("docs/sweeps.md")


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "ray":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "debora.ray")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"debora\[ray\]"):
        importlib.import_module("debora.ray")


class Line(NamedTuple):
    """What a worker wrote down when it began a shard, or had it."""

    what: str
    shard: int
    pid: int
    node: str


class Diary:
    """A file in which workers write when they begin and end a shard."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, real = path, debora.ray._measure_shard
        path.touch()

        def noted(sent: debora.ray.Sent, shard: tuple[int, int]) -> bytes:
            def note(what: str) -> None:
                with path.open("a") as file:
                    file.write(f"{what} {shard[0]} {os.getpid()} {ray.get_runtime_context().get_node_id()}\n")

            note("began")
            part = real(sent, shard)
            note("ended")
            return part

        monkeypatch.setattr("debora.ray._measure_shard", noted)

    def lines(self) -> list[Line]:
        words = (line.split() for line in self.path.read_text().splitlines())
        return [Line(what, int(shard), int(pid), node) for what, shard, pid, node in words]

    def running(self, node: str | None = None) -> Line | None:
        """The shard that was begun last, if on this node, and has not ended."""
        last = [line for line in self.lines() if node in (None, line.node)][-1:]
        return last[0] if last and last[0].what == "began" else None


def until(look: Callable[[], T | None]) -> T:
    """Waits for something, a minute at most."""
    begun = time.monotonic()
    while not (seen := look()):
        assert time.monotonic() - begun < 60, "waited for a minute"
        time.sleep(0.02)
    return seen


def interrupted(spec: debora.Spec, diary: Diary, node: str | None, lose: Callable[[Line], None]) -> Line:
    """Measures, loses a worker or a node in the middle of a shard, and checks that nothing else is different."""
    lost: list[Line] = []

    def after_a_shard(done: int, total: int) -> None:
        if not lost:
            assert done < total
            running = until(lambda: diary.running(node))
            lose(running)
            lost.append(running)

    # Eight shards of a second each, on a core of their own.
    long = spec.replace(horizon=2e6)
    spread = debora.ray.replicate(long, pairs=32, shards=8, simulator="rounds", progress=after_a_shard)
    assert spread.to_bytes() == debora.replicate(long, pairs=32, simulator="rounds").to_bytes()
    (line,) = lost
    lines = diary.lines()
    assert line.pid != os.getpid() and line._replace(what="ended") not in lines, "it was in the middle"
    again = [other for other in lines if other.what == "began" and other.shard == line.shard]
    assert len(again) == 2 and again[0] == line and again[1].pid != line.pid
    return again[1]


@pytest.mark.long
@pytest.mark.usefixtures("cluster")
def test_a_worker_killed_in_the_middle_changes_nothing(
    routing: debora.Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diary = Diary(tmp_path / "diary", monkeypatch)
    interrupted(routing, diary, None, lambda line: os.kill(line.pid, signal.SIGKILL))


@pytest.mark.long
def test_a_node_removed_in_the_middle_changes_nothing(
    routing: debora.Spec, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comes last: it leaves one node."""
    diary = Diary(tmp_path / "diary", monkeypatch)
    (second,) = (node for node in cluster.list_all_nodes() if not node.is_head())
    again = interrupted(routing, diary, second.node_id, lambda line: cluster.remove_node(second))
    assert again.node != second.node_id
    assert [node["Alive"] for node in ray.nodes()].count(True) == 1
