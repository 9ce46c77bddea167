"""What the tests share."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import debora

ROOT = Path(__file__).resolve().parents[2]

# When it is imported, here or in a program that a test starts, LiteLLM would look for newer prices in the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

# A shell that runs the tests in the background may have switched Ctrl-C off, for them and for all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def free() -> debora.Problem:
    """Two actions, no limits, short enough to play by hand."""
    return debora.Problem(actions=["a", "b"], horizon=20_000, rho=0.5)


@pytest.fixture
def soft() -> debora.Problem:
    """Three actions and two limits, one of them not on the unit scale."""
    return debora.Problem(
        policy="soft",
        actions=["small", "medium", "large"],
        horizon=30_000,
        rho=0.9,
        delta=0.4,
        costs={"price": {"range": (0, 2), "threshold": 0.9}, "wait": {"threshold": 0.5}},
    )


@pytest.fixture
def routing(monkeypatch: pytest.MonkeyPatch) -> debora.Spec:
    """The README's experiment, by the path under which the program reads it."""
    monkeypatch.chdir(ROOT)
    return debora.Spec.from_toml("examples/model-routing.toml")


def binary() -> Path:
    """The program, which ``./check`` has built."""
    path = Path(os.environ.get("DEBORA_PROGRAM", ROOT / "target/debug/debora"))
    if not path.exists():
        pytest.fail(f"{path} does not exist; cargo build makes it")
    return path


def program(*arguments: str) -> str:
    """Standard output of the program; it may find a promise broken."""
    done = subprocess.run([binary(), *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


class Server:
    """A server that can be killed and started again at the same address."""

    def __init__(self, store: Path | str) -> None:
        self.store = store
        self.url = ""
        self.start("127.0.0.1:0")

    def start(self, listen: str) -> None:
        command = [str(binary()), "serve", "--store", str(self.store), "--listen", listen, "--log", "error"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = "http://" + self.process.stdout.readline().split("http://")[1].split(",")[0].strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.forget()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(10) == 0
        self.forget()

    def forget(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()

    def restart(self) -> None:
        self.kill()
        self.start(self.url.removeprefix("http://"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "store.db")
    yield server
    server.stop()
