"""The examples, run as a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

EXAMPLES = ROOT / "python/examples"


def said(example: str, *arguments: str | Path, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / example, *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_function_of_ones_own() -> None:
    first, recommended = said("own_function.py").splitlines()
    assert first == "same decisions in all 400000 rounds: True"
    assert "9 euros" in recommended and "15 euros" not in recommended, "15 euros bring less and more complaints"


def test_a_player_of_ones_own() -> None:
    shown = said("own_player.py")
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if "%" in line and line.startswith("  ")}
    assert list(rows) == ["debora", "thompson", "ucb1", "mine"], shown


def test_an_environment_with_gymnasium_and_without(tmp_path: Path) -> None:
    (tmp_path / "gymnasium.py").write_text("raise ImportError")
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    without = said("gymnasium_environment.py", PYTHONPATH=paths)
    assert without == said("gymnasium_environment.py")
    assert "push" in without and "none" not in without


def test_the_environment_is_one_of_gymnasiums(monkeypatch: pytest.MonkeyPatch) -> None:
    checker = pytest.importorskip("gymnasium.utils.env_checker")
    monkeypatch.syspath_prepend(EXAMPLES)
    from gymnasium_environment import Notifications

    checker.check_env(Notifications(), skip_render_check=True)


def test_a_pandas_data_set() -> None:
    lines = said("pandas_data.py").splitlines()
    assert lines[-1].startswith("Recommendation(push 1.0000; reward 0.9"), "best on average, and within the limit"
    assert lines[3].split()[:4] == ["push", "1.05", "0.050", "1.0"]


@pytest.mark.parametrize("spec", ["model-routing", "free"])
def test_figures(spec: str, tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    said("figures.py", ROOT / f"examples/{spec}.toml", folder)
    limits = set() if spec == "free" else {"violation", "estimates"}
    assert {path.stem for path in folder.iterdir()} == {"regret", "identical", "strategy"} | limits
    assert all(path.stat().st_size > 10_000 for path in folder.iterdir()), "an empty figure has less"
