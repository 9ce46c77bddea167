"""The README's commands, as they stand there; its Python lines are run by test_docs, its Rust lines by Cargo."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path

from conftest import ROOT, binary, program

PAGE = (ROOT / "README.md").read_text()


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) < 130


def test_the_first_commands_answer_as_shown() -> None:
    commands = re.findall(r"`cargo run --release -- (.*?)`", PAGE)
    assert [command.split()[0] for command in commands] == ["replicate", "serve", "compare"]
    shown = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    # Behind the answer stands how long it took.
    assert program(*commands[0].split()).startswith(shown[0])
    # Shorter than for a user: the program was built without optimisation.
    quick = commands[2].replace("1e6", "1e5").replace("50", "2")
    assert quick != commands[2]
    assert "debora is identical in" in program(*quick.split())


def test_a_live_experiment_from_the_shell(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (lines,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    script = "set -euo pipefail; trap 'kill $(jobs -p)' EXIT\n" + lines.replace("localhost:8080", address)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = os.environ | {"PATH": f"{binary().parent}:{os.environ['PATH']}", "DEBORA_LISTEN": address}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"probability":0.5' in done.stdout
    assert "recorded" in done.stdout
    assert "1 decision" in done.stdout
