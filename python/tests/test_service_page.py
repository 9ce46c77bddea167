"""docs/service.md, run as it stands: its shell blocks in one shell, its Python block where it comes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import ROOT, binary


def run(page: str, tmp_path: Path) -> list[tuple[str, str]]:
    """Each block of a page with what it said."""
    blocks = re.findall(r"```(sh|python)\n(.*?)```", (ROOT / page).read_text(), re.S)
    script = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for number, (language, text) in enumerate(blocks):
        if language == "python":
            (tmp_path / f"{number}.py").write_text(text)
            text = f"{sys.executable} {number}.py"
        script += [f"echo '--- {number}'", text]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = os.environ | {"PATH": f"{binary().parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    said = dict(re.findall(r"--- (\d+)\n(.*?)(?=\n?--- |\Z)", done.stdout, re.S))
    assert done.returncode == 0, done.stdout + done.stderr
    return [(text, said[str(number)]) for number, (_, text) in enumerate(blocks)]


def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    said = run("docs/service.md", tmp_path)
    decisions = [answer for _, answer in said if '"decisions":[' in answer]
    assert len(decisions) == 1
    first, second = re.findall(r'\{"epoch".*?\]\}', decisions[0])
    assert first == second
    audits = " ".join(answer for block, answer in said if "debora audit" in block)
    assert len(re.findall(r"20,000 decisions in \d+ epochs recomputed, all\s+equal", audits)) == 3, audits
