"""Webhooks against the library that receivers use: its verdict on what is sent, and the receiver of docs/alerts.md."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from conftest import ROOT, Server


def post(url: str, body: object) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def play(url: str) -> None:
    """An experiment with a few short epochs and a name that needs escaping."""
    spec = "policy = 'free'\nhorizon = 16\nrho = 0.9\nprofile = 'paper'\nactions = ['é', '\"b\" <c>']\n"
    post(f"{url}/v1/experiments", {"id": "e", "spec": spec, "blind": True})
    rounds = 0
    while rounds < 16:
        decisions = post(f"{url}/v1/experiments/e/decisions", {"n": 16})["decisions"]
        post(f"{url}/v1/experiments/e/outcomes", [{"round": one["round"], "reward": 1} for one in decisions])
        rounds += len(decisions)


def test_the_library_believes_every_message_and_none_that_was_changed(server: Server) -> None:
    messages: list[tuple[bytes, dict[str, str]]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.append((self.rfile.read(int(self.headers["content-length"])), dict(self.headers)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    hook = {"name": "ops", "url": f"http://127.0.0.1:{receiver.server_port}/"}
    webhook = Webhook(post(f"{server.url}/v1/webhooks", hook)["secret"])
    play(server.url)
    # In any order: one for each epoch, and one for the end.
    with urllib.request.urlopen(f"{server.url}/v1/experiments/e/epochs?limit=100", timeout=10) as answer:
        epochs = json.load(answer)["epochs"]
    until = time.monotonic() + 20
    while len(messages) < len(epochs) + 1:
        assert time.monotonic() < until, messages
        time.sleep(0.05)
    receiver.shutdown()
    receiver.server_close()
    assert len(messages) > 3
    for body, headers in messages:
        assert webhook.verify(body, headers)["data"]["experiment"] == "e"
    body, headers = messages[0]
    headers = {name.lower(): value for name, value in headers.items()}
    for place in range(len(body)):
        # One that JSON has room for, and that stays UTF-8.
        changed = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        with pytest.raises((WebhookVerificationError, UnicodeDecodeError)):
            webhook.verify(changed, headers)
    timestamp = str(int(headers["webhook-timestamp"]) - 1)
    for name, other in {"webhook-id": "msg_0", "webhook-timestamp": timestamp}.items():
        with pytest.raises(WebhookVerificationError):
            webhook.verify(body, headers | {name: other})
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + "A" * 43 + "=").verify(body, headers)


def test_the_receiver_of_the_page_takes_what_is_signed_and_nothing_else(server: Server, tmp_path: Path) -> None:
    block = re.search(r"```python\n(.*?)```", (ROOT / "docs/alerts.md").read_text(), re.S)
    assert block is not None
    (tmp_path / "receiver.py").write_text(block[1])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    secret = post(f"{server.url}/v1/webhooks", {"name": "ops", "url": url})["secret"]
    environment = os.environ | {"WEBHOOK_SECRET": secret, "PORT": str(port)}
    # Not started yet: the first attempts may fail, and what they were for comes all the same.
    play(server.url)
    receiver = subprocess.Popen(
        [sys.executable, "receiver.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    # If nothing is believed, nothing is said, and its end is the end of its lines.
    late = threading.Timer(30, receiver.kill)
    late.start()
    try:
        assert receiver.stdout is not None
        said = []
        for line in receiver.stdout:
            said.append(line)
            if line.startswith("experiment.done The experiment is done: all 16 rounds have their outcomes."):
                break
        assert said and said[-1].startswith("experiment.done"), said
        forged = urllib.request.Request(
            url, b"{}", {"webhook-id": "x", "webhook-timestamp": "0", "webhook-signature": "v1,AA=="}
        )
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(forged, timeout=10)
        assert len(set(said)) == len(said)
    finally:
        late.cancel()
        receiver.kill()
        receiver.wait()
        if receiver.stdout is not None:
            receiver.stdout.close()
