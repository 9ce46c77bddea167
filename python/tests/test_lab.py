"""Simulation: the program's numbers, byte for byte, and what Python adds to them."""

from __future__ import annotations

import builtins
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

import debora
from conftest import ROOT, program
from debora import _figures

# A live experiment's world is real: there is nothing to simulate.
SIMULATED = [path for path in (ROOT / "examples").glob("*.toml") if "\n[world]" in path.read_text()]
EXAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in SIMULATED)


@pytest.mark.parametrize("example", EXAMPLES)
def test_runs_and_plans_are_the_programs(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    spec = debora.Spec.from_toml(example)
    run = debora.run(spec)
    assert run.to_dict() == json.loads(program("run", example, "--json"))
    assert repr(run) == program("run", example).rstrip()
    gap = spec.plan(gap=0.1)
    assert gap.to_dict() == json.loads(program("plan", example, "--json", "--gap", "0.1"))
    assert repr(spec.plan()) == program("plan", example).rstrip()
    assert len(run.trace) == run.epochs == len(run.strategies)


def test_replications_are_the_programs(routing: debora.Spec, tmp_path: Path) -> None:
    result = debora.replicate(routing, pairs=60)
    program("replicate", routing.file, "--pairs", "60", "--quiet", "--out", str(tmp_path))
    assert result.to_dict() == json.loads((tmp_path / "summary.json").read_text())
    said = program("replicate", routing.file, "--pairs", "60").rstrip()
    assert said.startswith(repr(result))
    assert result.identical == result.identical_pairs.sum() and result.pairs == 60
    assert result.regret.shape == result.violation.shape == (60, 2)
    assert result.regret_curves.shape == result.violation_curves.shape == (60, 2, len(result.checkpoints))
    assert np.array_equal(result.regret_curves[:, :, -1], result.regret)
    assert result.seconds is not None and result.seconds > 0


def test_comparisons_are_the_programs(routing: debora.Spec, tmp_path: Path) -> None:
    short = routing.replace(horizon=100_000)
    result = debora.compare(short, pairs=4)
    program("compare", routing.file, "--pairs", "4", "--horizon", "100000", "--quiet", "--out", str(tmp_path))
    assert result.to_dict() == json.loads((tmp_path / "summary.json").read_text())
    assert result.players == ["debora", "optimistic-lp", "primal-dual"]
    assert result.regret_curves("primal-dual").shape == (8, len(result.checkpoints))
    assert result.violation_curves("debora").shape == (8, len(result.checkpoints))
    assert set(result.columns("debora")) >= {"pair", "identical", "regret_1"}
    with pytest.raises(debora.Error, match="no player 'ucb1'"):
        result.regret_curves("ucb1")


def test_left_out_rivals_are_named(routing: debora.Spec) -> None:
    with pytest.warns(UserWarning, match="primal-dual left out"):
        result = debora.compare(routing, pairs=2)
    assert "primal-dual" not in result.players


def test_shards_are_the_programs_bytes(routing: debora.Spec, tmp_path: Path) -> None:
    measurement = pickle.loads(pickle.dumps(debora.Measurement.replicate(routing, pairs=30)))
    assert measurement == debora.Measurement.replicate(routing, pairs=30)
    flags = ("--pairs", "30", "--quiet", "--out", str(tmp_path))
    program("replicate", routing.file, "--shard", "1/3", *flags)
    assert measurement.measure((1, 3)) == (tmp_path / "shard-1-of-3.json").read_bytes()
    # One shard from the program, two from here: put together by either they are the whole.
    for number in (2, 3):
        (tmp_path / f"shard-{number}-of-3.json").write_bytes(measurement.measure((number, 3), threads=1))
    paths = [tmp_path / f"shard-{number}-of-3.json" for number in (3, 1, 2)]
    whole = debora.replicate(routing, pairs=30)
    merged = debora.merge(paths)
    assert merged.to_dict() == whole.to_dict() and merged.to_bytes() == whole.to_bytes() and merged.seconds is None
    document = json.loads(program("merge", str(tmp_path), "--json"))
    assert document.pop("seconds") is None and document == whole.to_dict()


def test_compared_shards_merge(routing: debora.Spec) -> None:
    short = routing.replace(horizon=50_000)
    measurement = debora.Measurement.compare(short, pairs=3)
    merged = debora.merge([measurement.measure((number, 3)) for number in (1, 2, 3)])
    assert isinstance(merged, debora.Comparison)
    assert merged.to_dict() == debora.compare(short, pairs=3).to_dict()


def test_the_number_of_threads_changes_nothing(routing: debora.Spec) -> None:
    assert debora.replicate(routing, pairs=20, threads=1).to_bytes() == debora.replicate(routing, pairs=20).to_bytes()


def test_another_world_for_the_second_run(routing: debora.Spec) -> None:
    world = debora.worlds.bernoulli(reward=[1, 0, 0], costs={"price": [0, 0, 0], "latency": [0, 0, 0]})
    assert debora.replicate(routing, pairs=10, other=debora.Spec(routing.problem, world=world)).identical == 0
    with pytest.raises(debora.Error, match="write them into its text"):
        debora.replicate(routing, pairs=10, other=routing.replace(rho=0.2))


def test_the_engine_of_a_run_gives_its_digest(free: debora.Problem) -> None:
    """The same draws, fed by hand through a function: Python's loop, the lab and the program agree."""
    spec = debora.Spec(free, key=5, world=debora.worlds.bernoulli(reward=[0.25, 0.75]))
    lab = debora.run(spec, simulator="rounds")
    world, pulls = spec.world, [0, 0]
    assert world is not None

    def pull(action: int, round: int) -> float:
        pulls[action] += 1
        return world.pull(action, pulls[action] - 1)[0]

    played = debora.run(spec, world=pull)
    assert played.digest == lab.digest and played.counts.tolist() == lab.counts.tolist() == pulls
    assert played.reward_mean == pytest.approx(lab.reward_mean, abs=1e-12)
    assert played.trace == lab.trace and played.regret is None
    assert debora.run(free, key=5, world=lambda action, _: [0.25, 0.75][action]).rounds == free.horizon


def test_functions_may_give_costs(soft: debora.Problem) -> None:
    def world(action: int, round: int) -> tuple[float, tuple[float, float]]:
        return 0.5, (0.25, 0.5)

    assert debora.run(soft, key=1, world=world).counts.sum() == soft.horizon


def test_the_golden_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The literal digest of the guide's first run: a change of values shows here as in Rust."""
    monkeypatch.chdir(ROOT)
    digest = debora.run(debora.Spec.from_toml("examples/model-routing.toml")).digest
    assert digest == "d262d01ca07cc72de3e9ab17900c5dc3687ebb45c37780d12a2b7025493ad167"
    assert debora.VALUES_VERSION == 3


def test_all_kinds_of_worlds(free: debora.Problem, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("action,reward\na,0.25\nb,0.75\nb,0.5\n")
    law = ([0.0, 0.5], [0.5, 0.5])
    worlds = {
        "bernoulli": debora.worlds.bernoulli(reward={"b": 0.75, "a": 0.25}, key=3),
        "beta": debora.worlds.beta(reward=[0.25, 0.625], concentration=5),
        "discrete": debora.worlds.discrete(reward={"a": law, "b": ([0.625], [1])}),
        "table": debora.worlds.table(rows),
    }
    for kind, given in worlds.items():
        spec = pickle.loads(pickle.dumps(debora.Spec(free, key=1, world=given, name=kind)))
        assert spec.world.kind == kind and spec.name == kind and spec.key == 1
        assert debora.run(spec).rounds == free.horizon
        assert spec.world.means.tolist() == [[0.25, 0.75 if kind == "bernoulli" else 0.625]]
    assert debora.Spec(free, world=worlds["bernoulli"]).world.key == 3  # type: ignore[union-attr]


def test_problems_are_written_and_pickled(soft: debora.Problem) -> None:
    hard = debora.Problem(
        policy="hard",
        actions=["a", "b"],
        horizon=1e9,
        rho=0.1,
        reward={"name": "sales", "range": (0, 10)},
        costs={"price": {"threshold": 0.5}},
        safe={"strategy": [0.75, 0.25], "margin": {"price": 0.1}},
        outside="clip",
    )
    for problem in (soft, hard):
        assert pickle.loads(pickle.dumps(problem)) == problem
        assert debora.Problem.from_toml(problem.to_toml()) == problem
    assert hard.ranges == {"sales": (0.0, 10.0), "price": (0.0, 1.0)} and hard.thresholds == {"price": 0.5}
    assert soft != hard


def test_results_are_pickled(routing: debora.Spec) -> None:
    result = debora.replicate(routing, pairs=5)
    again = pickle.loads(pickle.dumps(result))
    assert again.to_dict() == result.to_dict() and np.array_equal(again.regret_curves, result.regret_curves)


def test_progress_is_told(routing: debora.Spec) -> None:
    seen: list[tuple[int, int]] = []
    debora.replicate(routing, pairs=200, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (200, 200) and [done for done, _ in seen] == sorted({done for done, _ in seen})
    with open(os.devnull, "w") as nowhere, tqdm(file=nowhere) as bar:
        debora.compare(routing.replace(horizon=50_000), pairs=10, players=["optimistic-lp"], progress=bar)
        assert (bar.n, bar.total) == (20, 20)


def test_what_progress_raises_stops_the_work(routing: debora.Spec) -> None:
    def stop(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        debora.replicate(routing, pairs=10_000_000, progress=stop)


def test_the_interpreter_is_free_meanwhile(routing: debora.Spec) -> None:
    ticks, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    result = debora.replicate(routing, pairs=500, threads=1)
    stop.set()
    thread.join()
    assert result.pairs == 500 and ticks[0] > 5


@pytest.mark.parametrize("call", ["replicate(spec, pairs=10**9)", "run(spec.replace(horizon=1e9), simulator='rounds')"])
def test_ctrl_c_is_honoured_at_once(call: str) -> None:
    code = f"import debora; spec = debora.Spec.from_toml('examples/free.toml'); print('on', flush=True); debora.{call}"
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline() == "on\n"
    time.sleep(0.3)
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert said.rstrip().endswith("KeyboardInterrupt") and child.returncode != 0
    assert time.monotonic() - begun < 3, "0.1 s and the interpreter's end, on a busy machine"


def test_tables(routing: debora.Spec) -> None:
    table = debora.replicate(routing, pairs=5).to_pandas()
    assert len(table) == 5 and table["pair"].tolist() == list(range(5))
    rows = debora.compare(routing.replace(horizon=50_000), pairs=2).to_pandas()
    assert rows.index[0] == "debora" and rows["regret.mean"].notna().all()
    stretches = debora.run(routing).to_pandas()
    assert stretches["first_round"].iloc[0] == 1 and np.allclose(stretches[["small", "medium", "large"]].sum(axis=1), 1)


def test_figures(routing: debora.Spec) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    replication, comparison = (
        debora.replicate(routing, pairs=20),
        debora.compare(routing.replace(horizon=50_000), pairs=2),
    )
    axes = [replication.plot(kind) for kind in ("regret", "violation", "identical", "strategy")]
    axes += [comparison.plot(kind) for kind in ("regret", "violation", "identical")]
    axes += [debora.run(routing).plot()]
    for one in axes:
        one.figure.canvas.draw()
        assert one.lines or one.collections
    middle, *_ = np.quantile(replication.regret_curves.reshape(40, -1), [0.5], axis=0)
    assert np.allclose(axes[0].lines[0].get_ydata(), middle, rtol=1e-12)
    assert axes[0].get_yscale() == "symlog" and axes[0].lines[0].get_color() == "#0072b2"
    assert replication.plot(ax=axes[0]) is axes[0]
    with pytest.raises(debora.Error, match="kind is 'reward'"):
        replication.plot("reward")  # type: ignore[arg-type]
    pyplot.close("all")


def test_figures_have_the_colours_of_the_program() -> None:
    ink = (Path(__file__).parents[2] / "app/src/chart/ink.rs").read_text()
    places = [ink.index(colour) for colour in _figures.COLOURS]
    assert places == sorted(places)


@pytest.mark.parametrize(("module", "extra"), [("pandas", "pandas"), ("matplotlib", "plot")])
def test_what_is_missing_is_named(
    routing: debora.Spec, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == module:
            raise ImportError(name)
        return real(name, *rest, **more)

    result = debora.replicate(routing, pairs=2)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=rf"debora\[{extra}\]"):
        result.to_pandas() if module == "pandas" else result.plot()


def test_notebooks_show_the_answer(routing: debora.Spec) -> None:
    for shown in (routing.plan(), debora.run(routing), debora.replicate(routing, pairs=2)):
        page = shown._repr_html_()
        assert page.startswith("<div>model routing") and "<pre>" in page and page.count("<pre>") == page.count("</pre>")
