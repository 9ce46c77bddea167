"""The shell lines of docs/sweeps.md, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import debora
from conftest import ROOT, binary

LINES = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/sweeps.md").read_text(), flags=re.DOTALL)

# What Slurm does with these options: the wrapped line once for each number of the array, with the number in a variable.
SBATCH = """#!/bin/sh
[ "$1 $2 $3 $4" = "--wait --array=1-8 --cpus-per-task=1 --wrap" ] || exit 9
for SLURM_ARRAY_TASK_ID in 1 2 3 4 5 6 7 8; do export SLURM_ARRAY_TASK_ID; sh -c "$5" || exit; done
"""


@pytest.mark.parametrize("lines", LINES, ids=["xargs", "Slurm"])
def test_shards_from_the_shell_merge_to_the_whole(
    lines: str, tmp_path: Path, routing: debora.Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "debora").symlink_to(binary())
    (tools / "sbatch").write_text(SBATCH)
    (tools / "sbatch").chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", lines], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "parts").iterdir())) == 8
    merged = debora.merge((tmp_path / "parts").iterdir())
    whole = debora.replicate(routing, pairs=400)
    assert merged.to_bytes() == whole.to_bytes()
    assert (tmp_path / "report/report.html").exists()
