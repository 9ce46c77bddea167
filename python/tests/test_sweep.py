"""Sweeps and random worlds: the program's numbers, its figures' points, its table for papers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot

import debora
from conftest import program

# Few rounds are quick, and blindness is tested by itself.
pytestmark = pytest.mark.filterwarnings("ignore:BLIND")

TEXT = """
policy = "soft"
horizon = 1e5
rho = 0.1
key = 42
actions = 4
[[cost]]
name = "price"
threshold = 0.5
[world]
kind = "random"
law = "gap"
gap = 0.4
worlds = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The spec, in a file that both read."""
    path = tmp_path / "spec.toml"
    path.write_text(TEXT)
    return path


def test_a_sweep_is_the_programs(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    over = ("--over", "rho=0.1,0.3", "--over", "horizon=1e4..1e6", "--over", "profile=tight")
    flags = ("--players", "optimistic-lp", "--pairs", "4", "--quiet", "--latex", "--out", str(out))
    program("sweep", str(file), *over, *flags)
    result = debora.sweep(
        debora.Spec.from_toml(file),
        over={"rho": np.array([0.1, 0.3]), "horizon": [1e4, 100_000, 1e6], "profile": ["tight"]},
        players=["optimistic-lp"],
        pairs=4,
    )
    assert result.to_dict() == json.loads((out / "sweep.json").read_text())
    assert result.to_latex() == (out / "table.tex").read_text()
    for number, one in enumerate(result.results, start=1):
        assert one.to_bytes() == (out / f"points/{number:04}.json").read_bytes()
    assert result.points[1] == {"rho": 0.1, "horizon": 100_000, "profile": "tight"}
    text = debora.sweep(
        debora.Spec.from_toml(file),
        over={"rho": "0.1,0.3", "horizon": "1e4..1e6", "profile": "tight"},
        players=["optimistic-lp"],
        pairs=4,
    )
    assert text.to_dict() == result.to_dict()


def test_points_are_single_measurements(file: Path) -> None:
    spec = debora.Spec.from_toml(file)
    told: list[tuple[int, int]] = []
    result = debora.sweep(spec, over={"gap": [0.2, 0.6], "K": [3, 5]}, pairs=6, progress=lambda *now: told.append(now))
    assert told[-1] == (24, 24) and told == sorted(told)
    for values, one in zip(result.points, result.results, strict=True):
        single = debora.replicate(spec.replace(**{"world.gap": values["gap"], "actions": values["K"]}), pairs=6)
        assert one.to_dict() == single.to_dict()
    frame = result.to_pandas()
    assert frame.index.names == ["gap", "K", "player"]
    assert frame.loc[(0.6, 5, "debora"), "regret.mean"] == result.results[3].to_dict()["regret"]["mean"]
    assert "4 points of 6 pairs each" in repr(result)
    assert "4 points of 6 pairs each" in result._repr_html_()


def test_a_saved_figure_has_its_whole_legend_and_no_room_below_zero() -> None:
    world = debora.worlds.random(law="gap", gap=0.2, worlds=5)
    spec = debora.Spec(debora.Problem(actions=3, horizon=2_000, rho=0.3), key=7, world=world)
    over: dict[str, list[float]] = {"rho": [0.1, 0.3, 0.5], "horizon": [2_000, 20_000]}
    result = debora.sweep(spec, over=over, players=["esfandiari-2-proved", "rse", "rec"], pairs=2)
    for axes in (result.plot("regret"), result.plot("identical"), result.results[0].plot()):
        figure = axes.figure
        figure.canvas.draw()
        legend = axes.get_legend()
        assert legend is not None
        has, whole = legend.get_window_extent(), figure.bbox
        assert has.x0 >= 0 and has.y0 >= 0 and has.x1 <= whole.x1 and has.y1 <= whole.y1, (has, whole)
        assert axes.get_ylim()[0] == 0
        assert axes.get_window_extent().height > whole.height / 3
    pyplot.close("all")


def test_a_spec_without_a_name_is_called_unnamed() -> None:
    world = debora.worlds.bernoulli(reward=[0.4, 0.6])
    spec = debora.Spec(debora.Problem(actions=2, horizon=20_000, rho=0.5), key=7, world=world)
    assert repr(debora.replicate(spec, pairs=2)).startswith("unnamed: identical in")


def test_figures_have_the_programs_points(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    program("sweep", str(file), "--over", "horizon=1e4..1e6", "--pairs", "4", "--quiet", "--out", str(out))
    with (out / "curves.csv").open() as rows:
        drawn = [row for row in csv.DictReader(rows) if row["figure"] == "regret"]
    result = debora.sweep(debora.Spec.from_toml(file), over={"horizon": [1e4, 1e5, 1e6]}, pairs=4)
    axes = result.plot("regret")
    assert axes.get_xlabel() == "horizon" and axes.get_xscale() == "log" and axes.get_ylabel() == "regret (reward)"
    points = np.array(axes.lines[0].get_xydata())
    assert points.tolist() == [[float(row["x"]), float(row["y"])] for row in drawn]
    identical = result.plot("identical")
    assert "promised" in [str(line.get_label()) for line in identical.lines]
    assert result.plot("violation").get_ylabel() == "violation"
    # Profile paper is blind here, and a figure against words needs no more.
    with pytest.warns(UserWarning, match="BLIND at 1 of 2 points"):
        words = debora.sweep(
            debora.Spec.from_toml(file), over={"profile": ["tight", "paper"], "delta": [0.04]}, pairs=2
        )
    assert [tick.get_text() for tick in words.plot().get_xticklabels()] == ["tight", "paper"]
    assert all(line.get_linestyle() == "None" for line in words.plot().lines)
    many = debora.sweep(debora.Spec.from_toml(file), over={"rho": [0.1, 0.2, 0.3, 0.4], "K": [2, 3, 4, 5, 6]}, pairs=2)
    uprights = many.plot().collections
    assert len(uprights) == 4 and {len(one.get_paths()) for one in uprights} == {5}
    assert [tick.get_text() for tick in many.plot().get_xticklabels()] == ["2", "3", "4", "5", "6"]
    pyplot.close("all")
    with pytest.raises(debora.Error, match="kind is 'sum'; choose regret, violation or identical"):
        result.plot("sum")  # type: ignore[arg-type]
    free = debora.Spec(debora.Problem(actions=2, horizon=1000, rho=0.5), world=debora.worlds.random("uniform"))
    with pytest.raises(debora.Error, match="there is no violation to plot: there are no costs"):
        debora.sweep(free, over={"rho": [0.5]}, pairs=1).plot("violation")


def test_small_results_beside_large_ones_do_not_look_like_zero() -> None:
    problem = debora.Problem(actions=2, horizon=1e10, rho=0.3)
    spec = debora.Spec(problem, key=1, world=debora.worlds.bernoulli(reward=[0.2, 0.8]))
    result = debora.sweep(spec, over={"horizon": [1e5, 1e10]}, players=["esfandiari-1", "ucb-doubling"], pairs=3)
    axes = result.plot("regret")
    regret = result.to_pandas()["regret.mean"]
    assert regret.max() > 1e5 * regret.min(), "or there is nothing to see"

    def place(value: float) -> float:
        return float(axes.transAxes.inverted().transform(axes.transData.transform((1e5, value)))[1])

    assert place(0.0) < 0.1, "nothing is below zero, so that nothing has room there"
    assert place(regret.min()) - place(0.0) > 0.05
    assert place(regret.max()) > 0.8
    pyplot.close("all")


def test_several_specs_share_a_figure(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(TEXT.replace("0.4", "0.8"))
    result = debora.sweep([debora.Spec.from_toml(path) for path in (file, other)], over={"rho": [0.1, 0.3]}, pairs=2)
    assert [point["spec"] for point in result.points] == [file.name] * 2 + [other.name] * 2
    assert [str(line.get_label()) for line in result.plot().lines[::2]] == [file.name, other.name]
    pyplot.close("all")


def test_comparisons_have_a_table_for_papers(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    flags = ("--players", "optimistic-lp", "--pairs", "4", "--quiet", "--latex", "--out", str(out))
    program("compare", str(file), *flags)
    result = debora.compare(debora.Spec.from_toml(file), players=["optimistic-lp"], pairs=4)
    assert result.to_latex() == (out / "table.tex").read_text()
    assert "\\begin{tabular}" in result.to_latex()


def test_wrong_parameters_are_named() -> None:
    spec = debora.Spec.from_toml(TEXT)
    for over, message in (
        ({"rho": []}, "rho=: a value is empty"),
        ({"rho": 0.3}, "over has 0.3 for rho; give a list of values"),
        ({"rho": [0.1, 0.1]}, "the value 0.1 is there twice"),
        ({"roh": [0.1]}, "unknown key"),
        ({"horizon": "1e6..1e4"}, "must not end before it begins"),
        ({"gap": [0.1], "world.gap": [0.2]}, "it is there twice"),
    ):
        with pytest.raises(debora.Error, match=message):
            debora.sweep(spec, over=over, pairs=1)  # type: ignore[arg-type]


def test_actions_may_be_a_number() -> None:
    problem = debora.Problem(
        policy="hard",
        actions=3,
        horizon=1e6,
        rho=0.3,
        costs={"price": {"threshold": 0.5}},
        safe={"strategy": [0.5, 0, 0.5], "margin": {"price": 0.2}},
    )
    assert problem.actions == ("a1", "a2", "a3")
    spec = debora.Spec(problem, key=1, world=debora.worlds.random("sparse", gap=0.2))
    assert spec.world is not None
    cost = spec.world.means[1]
    assert cost[0] <= 0.3 and cost[2] <= 0.3


def test_random_worlds_are_drawn_by_philox() -> None:
    """numpy's own generator, at the counters that the key's table names: world, quantity, action and label 11."""

    def uniform(world: int, quantity: int, action: int) -> float:
        # numpy counts up before it draws, and its last word may be anything: the first is the one before.
        counter = [world, quantity, action, 11]
        below = sum(word << (64 * place) for place, word in enumerate(counter)) - 1
        words = np.random.Philox(counter=below % 2**256, key=7)
        return float(words.random_raw() >> 11) * 2.0**-53

    problem = debora.Problem(actions=5, horizon=1e6, rho=0.1, reward={"range": (-1, 3)})
    for index in (0, 3):
        spec = debora.Spec(problem, world=debora.worlds.random("uniform", index=index, key=7))
        assert spec.world is not None
        drawn = [-1 + 4 * uniform(index, 0, action) for action in range(5)]
        assert spec.world.means[0].tolist() == pytest.approx(drawn, abs=1e-12)
