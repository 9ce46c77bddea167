"""The shell lines of docs/sweeps.md, as they stand there."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import debora
from conftest import ROOT, binary

PAGE = (ROOT / "docs/sweeps.md").read_text()
GRID, XARGS, SLURM = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)

# What Slurm does with these options: the wrapped line once for each number of the array, with the number in a variable.
SBATCH = """#!/bin/sh
[ "$1 $2 $3 $4" = "--wait --array=1-8 --cpus-per-task=1 --wrap" ] || exit 9
for SLURM_ARRAY_TASK_ID in 1 2 3 4 5 6 7 8; do export SLURM_ARRAY_TASK_ID; sh -c "$5" || exit; done
"""


def ran(lines: str, folder: Path) -> str:
    """What shell lines print in a folder that has the examples and the program."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / "debora").symlink_to(binary())
    (tools / "sbatch").write_text(SBATCH)
    (tools / "sbatch").chmod(0o755)
    (folder / "examples").symlink_to(ROOT / "examples")
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", lines], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_grid_prints_what_the_page_shows(tmp_path: Path) -> None:
    printed = ran(GRID, tmp_path)
    shown = PAGE.split(GRID)[1].split("```text\n")[1].split("```")[0]
    # Behind the table there are the seconds, and where the report is.
    assert printed.startswith(shown), printed
    names = {path.name for path in (tmp_path / "grid").iterdir()}
    assert names == {
        *("grid.json", "points", "sweep.csv", "sweep.json", "curves.csv", "report.html"),
        *("regret.svg", "regret.pdf", "identical.svg", "identical.pdf"),
    }


def test_shards_of_a_sweep_from_the_shell_merge_to_the_whole(tmp_path: Path, routing: debora.Spec) -> None:
    ran(XARGS, tmp_path)
    assert len(list((tmp_path / "parts/points").iterdir())) == 16
    whole = debora.sweep(routing, over={"rho": [0.1, 0.3]}, pairs=400)
    assert json.loads((tmp_path / "report/sweep.json").read_text()) == whole.to_dict()


def test_shards_of_a_replication_from_the_shell_merge_to_the_whole(tmp_path: Path, routing: debora.Spec) -> None:
    ran(SLURM, tmp_path)
    assert len(list((tmp_path / "parts").iterdir())) == 8
    merged = debora.merge((tmp_path / "parts").iterdir())
    assert merged.to_bytes() == debora.replicate(routing, pairs=400).to_bytes()
    assert (tmp_path / "report/report.html").exists()
