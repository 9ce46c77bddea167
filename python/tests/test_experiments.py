"""The notebook of the paper's experiments, and the page whose tables and figures a script makes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from conftest import ROOT, binary, program

PAIRS = 10


def executed(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that its cells show, cell by cell; an exception in a cell is raised here."""
    monkeypatch.setenv("PAIRS", str(PAIRS))
    here = {"metadata": {"path": str(ROOT / "examples")}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=here).execute()
    shown = list[str]()
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        warned = [output.text for output in outputs if output.get("name") == "stderr"]
        assert not warned, f"a cell warns:\n{cell.source}\n{warned}"
        shown.append("\n".join(output.get("text", output.get("data", {}).get("text/plain", "")) for output in outputs))
    return shown


def test_the_notebook_shows_the_programs_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(ROOT / "examples/paper.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are made anew by whoever runs it"
    shown = executed(notebook, monkeypatch)
    line = f"sweep examples/experiments/free.toml --over rho=0.1,0.5 --pairs {PAIRS} --quiet --json"
    points = json.loads(program(*line.split()))["points"]
    (table,) = (text for text in shown if "promised" in text)
    for point in points:
        rho, regret = point["values"]["rho"], point["measured"]["regret"]["mean"]
        (row,) = (line for line in table.splitlines() if line.startswith(f"{rho:.2f}"))
        assert row.endswith(f"{regret:.6f}"), (row, regret)
    assert f"unsafe runs: 0 of {2 * PAIRS * 15}" in "".join(shown)


@pytest.mark.parametrize("line", ["raise ValueError", "import warnings; warnings.warn('look here')"])
def test_a_notebook_that_fails_or_warns_is_noticed(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(line)])
    with pytest.raises((nbclient.exceptions.CellExecutionError, AssertionError), match=r"ValueError|look here"):
        executed(notebook, monkeypatch)


def checked(root: Path) -> subprocess.CompletedProcess[str]:
    """The script on the page of a folder: one table and its figures."""
    variables = os.environ | {"DEBORA_PROGRAM": str(binary())}
    command = [str(root / "scripts/experiments"), "--check", "constants"]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_the_page_is_what_its_commands_make(tmp_path: Path) -> None:
    done = checked(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("examples", "README.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    # A copy, as the script finds its page beside itself.
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/experiments", tmp_path / "scripts")
    page = (ROOT / "docs/experiments.md").read_text()
    (tmp_path / "docs/figures").mkdir(parents=True)
    digit = page.index("paper", page.index("--out constants\n```\n\n```text")) + 60
    wrong = page[:digit] + page[digit:].replace("1", "2", 1)
    (tmp_path / "docs/experiments.md").write_text(wrong)
    differs = checked(tmp_path)
    assert differs.returncode == 1
    assert "docs/experiments.md differs" in differs.stdout and "constants-regret.svg differs" in differs.stdout
