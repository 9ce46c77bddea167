"""Experiments as feature flags, by OpenFeature's own SDK and its OFREP provider, with kills in between."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import FlagEvaluationDetails, Reason

import debora
from conftest import ROOT, Server, program
from debora.client import Client, ServiceError
from test_client import KEY
from test_service_page import run

SPEC = """
policy = "soft"
horizon = 20_000
rho = 0.9
delta = 0.4
growth = 2
actions = ["a", "b", "c"]
[[cost]]
name = "price"
threshold = 0.5
"""


@pytest.fixture
def flags(server: Server) -> Iterator[OpenFeatureClient]:
    """The SDK, as an application sets it up."""
    Client.create(server.url, SPEC, id="routing", key=KEY, blind=True)
    api.set_provider(OFREPProvider(server.url, timeout=20))
    yield api.get_client()
    api.shutdown()


def flag(flags: OpenFeatureClient, user: str, name: str = "routing") -> FlagEvaluationDetails[str]:
    return flags.get_string_details(name, "fallback", EvaluationContext(user, {"plan": "premium", "age": 42}))


def test_the_sdk_reads_a_flag_and_the_application_tells_by_its_user(server: Server, flags: OpenFeatureClient) -> None:
    client = Client(server.url, "routing")
    first = flag(flags, "ann")
    assert first.error_code is None
    assert first.value in ("a", "b", "c")
    assert (first.value, first.reason) == (first.variant, Reason.SPLIT)
    assert first.flag_metadata["round"] == 1
    assert first.flag_metadata["probability"] == pytest.approx(1 / 3)
    assert flag(flags, "ann") == first
    assert client.tell(request_key="ann", reward=1.0, costs=[0.2]) == "recorded"
    assert client.tell(request_key="ann", reward=1.0, costs={"price": 0.2}) == "repeated"
    with pytest.raises(debora.Conflict, match="ann"):
        client.tell(request_key="ann", reward=0.0, costs=[0.2])
    with pytest.raises(ServiceError, match="nobody"):
        client.tell(request_key="nobody", reward=0.0, costs=[0.2])
    batch = client.ask_many(2, request_key="batch")
    with pytest.raises(ServiceError, match="index"):
        client.tell(request_key="batch", reward=0.0, costs=[0.2])
    assert client.tell(request_key="batch", index=1, reward=0.0, costs=[0.2]) == "recorded"
    assert client.tell(batch[1], 0.0, [0.2]) == "repeated"
    with pytest.raises(debora.Error, match="either"):
        client.tell(3, 1.0, request_key="ann")


def test_what_goes_wrong_has_the_sdks_words_and_leaves_the_default(server: Server, flags: OpenFeatureClient) -> None:
    missing = flag(flags, "ann", "no-such-flag")
    assert (missing.value, missing.error_code) == ("fallback", ErrorCode.FLAG_NOT_FOUND)
    nobody = flags.get_string_details("routing", "fallback")
    assert (nobody.value, nobody.error_code) == ("fallback", ErrorCode.TARGETING_KEY_MISSING)
    odd = flag(flags, "x" * 200)
    assert (odd.value, odd.error_code) == ("fallback", ErrorCode.INVALID_CONTEXT)
    other = flags.get_boolean_details("routing", True, EvaluationContext("ann"))
    assert (other.value, other.error_code) == (True, ErrorCode.TYPE_MISMATCH)


def test_every_state_has_an_answer(server: Server, flags: OpenFeatureClient) -> None:
    client = Client(server.url, "routing")
    known = flag(flags, "ann")
    while client.state()["kind"] == "explore":
        # It waits once all rounds are decided, and holds back those who ask as we do: not a flag.
        decisions = [decision for decision in asked(client)]
        waiting = flag(flags, f"waiting-{decisions[-1].round}")
        assert waiting.flag_metadata["overtime"] is True
        rounds = [decision.round for decision in decisions if decision.round]
        told = [([0.1, 0.9, 0.5][one.action], [[0.1, 0.9, 0.5][one.action]]) for one in decisions]
        client.tell_many(rounds, [reward for reward, _ in told], [costs for _, costs in told])
        if known.flag_metadata["round"] == 1:
            client.tell(request_key="ann", reward=0.5, costs=[0.5])
    client.pause()
    assert flag(flags, "ann") == known
    paused = flag(flags, "bob")
    assert (paused.value, paused.reason, paused.error_code) == ("fallback", Reason.DISABLED, None)
    client.resume()
    resumed = flag(flags, "bob")
    assert "round" in resumed.flag_metadata
    client.close_experiment()
    assert (flag(flags, "ann"), flag(flags, "bob")) == (known, resumed)
    new = flag(flags, "cid")
    assert new.error_code is None
    assert new.flag_metadata["recommendation"] is True
    assert flag(flags, "cid") == new
    audit(server.store)


def test_an_experiment_that_learnt_nothing_leaves_the_default(server: Server, flags: OpenFeatureClient) -> None:
    Client(server.url, "routing").close_experiment()
    details = flag(flags, "ann")
    assert (details.value, details.reason, details.error_code) == ("fallback", Reason.DISABLED, None)


def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    made, python, audited = [answer for _, answer in run("docs/flags.md", tmp_path)]
    assert '"reason":"SPLIT"' in made
    assert '{"round":1,"epoch":0,"probability":0.5}' in made
    # All of them joined, beside the first.
    assert python.strip() == "101"
    assert "101 decisions" in audited
    assert "equal" in audited


def asked(client: Client) -> Iterator[debora.Served]:
    """Decisions until it waits."""
    while True:
        try:
            yield from client.ask_many(10_000)
        except debora.Waiting:
            return


def audit(store: Path | str) -> None:
    assert "all equal" in program("audit", str(store), "--experiment", "routing")


@pytest.fixture
def postgres() -> Iterator[str]:
    """A PostgreSQL server of one's own."""
    command = [str(ROOT / "scripts/with-postgres"), "sh", "-c", "echo $DEBORA_TEST_POSTGRES; cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # What installs it, if it is not there, says so before.
        yield next(line for line in map(str.strip, process.stdout) if line.startswith("postgres"))
        assert process.stdin is not None
        process.stdin.close()


def test_kills_on_one_node_change_no_flag_and_lose_and_double_nothing(server: Server) -> None:
    kills_change_no_flag([server])


def test_kills_of_two_nodes_change_no_flag_and_lose_and_double_nothing(postgres: str) -> None:
    nodes = [Server(postgres), Server(postgres)]
    try:
        kills_change_no_flag(nodes)
    finally:
        for node in nodes:
            node.kill()


def kills_change_no_flag(nodes: list[Server]) -> None:
    """Four threads evaluate users again and again, on any node, and tell twice, while nodes are killed by turns."""
    Client.create(nodes[0].url, SPEC, id="routing", key=KEY, blind=True)
    for number, node in enumerate(nodes):
        api.set_provider(OFREPProvider(node.url, timeout=20), domain=f"node-{number}")
    flags = [api.get_client(domain=f"node-{number}") for number in range(len(nodes))]
    clients = [Client(node.url, "routing") for node in nodes]
    seen: dict[str, FlagEvaluationDetails[str]] = {}
    changed: list[tuple[FlagEvaluationDetails[str], FlagEvaluationDetails[str]]] = []
    failed: list[object] = []
    fallbacks = [0]
    stop = threading.Event()

    def play(thread: int) -> None:
        dice = random.Random(thread)
        number = 0
        while not stop.is_set():
            # Most are users of this thread, some of another's: both may ask at once.
            number += dice.random() < 0.5
            user = f"user-{dice.randrange(4) if dice.random() < 0.2 else thread}-{dice.randrange(number + 1)}"
            details = flag(dice.choice(flags), user)
            if details.error_code is not None:
                # Nobody answered: the application goes on with its default, and asks again.
                fallbacks[0] += 1
                continue
            before = seen.setdefault(user, details)
            if before != details:
                changed.append((before, details))
            value = float("abc".index(details.value)) / 2
            for _ in range(2):
                try:
                    receipt = dice.choice(clients).tell(request_key=user, reward=value, costs=[value])
                except Exception as error:
                    failed.append(error)
                    return
                wanted = ["overtime", "repeated"] if details.flag_metadata.get("overtime") else ["recorded", "repeated"]
                if receipt not in wanted:
                    failed.append((user, receipt))

    threads = [threading.Thread(target=play, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for kill in range(6):
        # However slow the disk is: there are new users before every kill.
        while len(seen) < 8 * (kill + 1) and not failed:
            time.sleep(0.01)
        nodes[kill % len(nodes)].restart()
    stop.set()
    for thread in threads:
        thread.join()
    assert not changed
    assert not failed
    assert fallbacks[0] > 0, "no evaluation met a server that was gone"
    # Asked once more, all of them have what they had; and no two users have the same round.
    for each in flags:
        assert {user: flag(each, user) for user in seen} == seen
    api.shutdown()
    rounds = [details.flag_metadata.get("round") for details in seen.values()]
    given = [round for round in rounds if round is not None]
    assert len(set(given)) == len(given)
    # All were told, though perhaps only decided before a kill: what was acknowledged is there once.
    state = clients[0].state()
    assert state["decided"] >= len(given)
    assert state["decided"] - state["outstanding"] >= len(given)
    audit(nodes[0].store)
