"""The client against a real server: the same decisions as an engine, whatever happens to the connection."""

from __future__ import annotations

import http.server
import json
import math
import os
import pickle
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import debora
from conftest import Server, binary
from debora.client import Behind, Client, Served, ServiceError

KEY = "70000000000000000000000000000007"

SPEC = """
policy = "soft"
horizon = 3000
rho = 0.9
delta = 0.4
growth = 2
actions = ["a", "b", "c"]
[[cost]]
name = "price"
range = [0, 2]
threshold = 1
"""


def outcome(round: int, action: int) -> tuple[float, float]:
    """A fixed world."""
    return float((round * (action + 2)) % 3 == 0), 2.0 * ((round + action) % 2)


def engine() -> debora.Engine:
    spec = debora.Spec.from_toml(SPEC)
    return debora.Engine(spec.problem, KEY)


def test_it_decides_as_an_engine_does(server: Server) -> None:
    client = Client.create(server.url, SPEC, key=KEY, blind=True)
    local = engine()
    for number, decision in enumerate(client):
        expected = local.ask()
        assert expected is not None
        assert (decision.round, decision.action, decision.name) == (expected.round, expected.action, expected.name)
        assert (decision.epoch, decision.probability) == (expected.epoch, expected.probability)
        reward, price = outcome(expected.round, expected.action)
        local.tell(expected.round, reward, [price])
        told = decision if number % 2 else expected.round
        assert client.tell(told, reward, {"price": price} if number % 3 else [price]) == "recorded"
        if number == 200:
            break
    decisions = client.ask_many(10_000)
    assert [one.action for one in decisions] == list(local.ask_many(10_000).actions)
    with pytest.raises(debora.Waiting) as waiting:
        client.ask()
    assert waiting.value.outstanding == len(decisions)
    feedback = [outcome(one.round or 0, one.action) for one in decisions]
    receipts = client.tell_many(decisions, [reward for reward, _ in feedback], [[cost] for _, cost in feedback])
    assert receipts == ["recorded"] * len(decisions)
    assert client.state()["epoch"] == decisions[0].epoch + 1


def test_what_is_not_answered_is_repeated(server: Server) -> None:
    client = Client.create(server.url, SPEC, key=KEY, blind=True)
    stop = threading.Event()

    def disturb() -> None:
        while not stop.wait(0.3):
            server.restart()

    trouble = threading.Thread(target=disturb)
    trouble.start()
    try:
        local = engine()
        for decision in client:
            assert decision.round is not None
            reward, price = outcome(decision.round, decision.action)
            assert client.tell(decision, reward, [price]) in ("recorded", "repeated")
            expected = local.ask()
            assert expected is not None and expected.action == decision.action
            local.tell(expected.round, reward, [price])
            if decision.round == 500:
                break
    finally:
        stop.set()
        trouble.join()
    assert client.state()["digest"] == local.digest


def test_an_experiment_ends_with_a_certificate_and_an_audited_log(server: Server, tmp_path: Path) -> None:
    client = Client.create(server.url, SPEC, id="trial", key=KEY, blind=True)
    with pytest.raises(ServiceError) as early:
        client.certificate()
    assert early.value.status == 409
    seal = client.seal()
    assert seal["head"] == client.head()["head"] == client.publish("a journal")
    while decisions := client.ask_many(1000):
        feedback = [outcome(one.round or 0, one.action) for one in decisions]
        client.tell_many(decisions, [reward for reward, _ in feedback], [[cost] for _, cost in feedback])
    assert client.ask() is None
    assert client.certificate()["key"] == KEY
    assert client.certificate()["key_hash"] == seal["key_hash"]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in client.log()))
    audit = subprocess.run([binary(), "audit", log], capture_output=True, text=True, check=True)
    assert "all equal" in audit.stdout


def test_what_is_asked_to_come_back_does() -> None:
    """A server that is over a limit of the caller's, then over one of its own, and then answers."""
    statuses = [429, 503, 200]

    class Limited(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = statuses.pop(0)
            body = json.dumps({"code": "busy", "detail": "d", "message": "m", "status": status}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/problem+json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Limited) as limited:
        thread = threading.Thread(target=limited.serve_forever)
        thread.start()
        try:
            assert Client(f"http://127.0.0.1:{limited.server_port}", "e").state()["status"] == 200
        finally:
            limited.shutdown()
            thread.join()
    assert statuses == []


def test_refusals_have_a_code_and_a_sentence(server: Server) -> None:
    client = Client.create(server.url, SPEC, key=KEY, blind=True)
    first = client.ask(request_key="mine")
    assert first is not None and client.ask(request_key="mine") == first
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: client.tell(first, 0.5), "outcome"),
        (lambda: client.tell(first, 7.0, [0.0]), "outcome"),
        (lambda: client.tell(2999, 0.5, 0.0), "no_such_round"),
        (lambda: client.ask_many(0), "rounds"),
        (lambda: Client(server.url, "another").ask(), "no_experiment"),
    ]
    for refused, code in cases:
        with pytest.raises(ServiceError) as error:
            refused()
        assert error.value.code == code, error.value
        copy = pickle.loads(pickle.dumps(error.value))
        assert (copy.code, str(copy)) == (code, str(error.value))
    with pytest.raises(ValueError):
        client.tell(first, math.nan, [0.0])
    assert client.tell(first, 0.5, [0.0]) == "recorded"
    assert client.tell(first, 0.5, [0.0]) == "repeated"
    with pytest.raises(debora.Conflict):
        client.tell(first, 0.25, [0.0])
    client.pause()
    with pytest.raises(ServiceError, match="paused"):
        client.ask()
    client.resume()
    client.close_experiment()
    with pytest.raises(ServiceError, match="closed"):
        client.ask()


def test_a_store_behind_what_the_client_has_seen_gives_nothing_out(server: Server, tmp_path: Path) -> None:
    client = Client.create(server.url, SPEC, id="trial", key=KEY, blind=True)

    def play() -> None:
        decision = client.ask()
        assert decision is not None
        reward, price = outcome(decision.round or 0, decision.action)
        client.tell(decision, reward, [price])

    play()
    copy = tmp_path / "copy.db"
    subprocess.run([binary(), "backup", "--store", server.store, copy], check=True)
    for _ in range(3):
        play()
    assert client.seen == 4
    server.kill()
    server.store = copy
    server.start(server.url.removeprefix("http://"))
    with pytest.raises(Behind, match=r"round 4 .* has decided 1: .* restored or a copy") as behind:
        client.ask()
    assert (behind.value.status, behind.value.code) == (409, "behind")
    assert isinstance(pickle.loads(pickle.dumps(behind.value)), Behind)
    assert client.state()["decided"] == 1
    # Its pickles know what it has seen, and one that has seen nothing cannot tell.
    with pytest.raises(debora.Behind):
        pickle.loads(pickle.dumps(client)).ask()
    ahead = Client(server.url, "trial").ask()
    assert ahead is not None and ahead.round == 2


def test_a_weak_key_is_refused_with_the_remedy(server: Server) -> None:
    for key in ("7", f"{7:032x}", 7):
        with pytest.raises(ServiceError, match="openssl rand -hex 16") as refused:
            Client.create(server.url, SPEC, key=key, blind=True)  # type: ignore[arg-type]
        assert refused.value.status == 422


def test_threads_processes_and_pickles_share_an_experiment(server: Server) -> None:
    client = Client.create(server.url, SPEC + '[service]\non_wait = "serve"\n', key=KEY, blind=True)
    copy = pickle.loads(pickle.dumps(client))
    assert copy.ask() is not None and client.ask() is not None
    taken: list[Served] = []
    threads = [threading.Thread(target=lambda: taken.extend(client.ask_many(1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    child = os.fork()
    if child == 0:
        os._exit(0 if client.ask() is not None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len({(decision.epoch, decision.round, decision.overtime) for decision in taken}) == len(taken) == 8


def test_who_is_held_back_stays_outside_and_is_told_apart(server: Server) -> None:
    held_back = '[service]\nholdback = { share = 0.4, action = "b" }\n'
    client = Client.create(server.url, SPEC + held_back, key=KEY, blind=True)
    local = engine()
    outside = 0
    for user in range(60):
        decision = client.ask(request_key=f"user-{user}")
        assert decision is not None and client.ask(request_key=f"user-{user}") == decision
        if decision.holdback is not None:
            outside += 1
            assert (decision.round, decision.name, decision.probability) == (None, "b", 1.0)
            assert client.tell(decision, 0.5, [1.0]) == "holdback"
            assert client.tell(decision, 0.5, [1.0]) == "repeated"
            with pytest.raises(debora.Conflict):
                client.tell(decision, 0.75, [1.0])
            continue
        # The others are the experiment, as if nobody were held back.
        expected = local.ask()
        assert expected is not None and (decision.round, decision.action) == (expected.round, expected.action)
        assert client.tell(decision, *outcome(expected.round, expected.action)) == "recorded"
    state = client.state()["holdback"]
    assert (state["decided"], state["told"], state["lifts"][0]["holdback"]["mean"]) == (outside, outside, 0.5)
    assert 5 < outside < 45


def test_nobody_there_is_an_error_after_its_patience() -> None:
    with pytest.raises(ConnectionError, match=r"http://127.0.0.1:9 did not answer within 0.2 seconds .*refused"):
        Client("http://127.0.0.1:9", "x", patience=0.2).ask()
    with pytest.raises(debora.Error, match="not the address of a service"):
        Client("127.0.0.1:8080", "x")
