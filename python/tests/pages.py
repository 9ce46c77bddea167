"""Runs the Python lines of a page and compares what they print with what it shows: ``python pages.py README.md``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", flags=re.DOTALL)


def check(page: str) -> None:
    """The blocks of a page make one program, run from the root; a text block after one is its output."""
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert blocks, f"{page} has no Python lines"
    code = "\nprint('====')\n".join(block for block, _ in blocks)
    # LiteLLM would look for newer prices in the network.
    environment = os.environ | {"MPLBACKEND": "agg", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for (_, shown), printed in zip(blocks, done.stdout.split("====\n"), strict=True):
        assert not shown or printed.rstrip() == shown.rstrip(), f"{page} shows\n{shown}\nbut its lines print\n{printed}"


if __name__ == "__main__":
    check(sys.argv[1])
