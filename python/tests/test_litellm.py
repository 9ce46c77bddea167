"""LiteLLM itself in front: every attempt is a decision, and each is told once, as its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import litellm
import pytest

import debora
from conftest import ROOT, Server, binary, program
from debora.litellm import Routing

# LiteLLM and what it is made of warn of themselves, and leave sockets and loops to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore")

HELLO = [{"role": "user", "content": "hello"}]

SPEC = """
policy = "soft"
horizon = 3000
rho = 0.9
delta = 0.4
growth = 2
actions = ["good", "poor"]
[reward]
name = "quality"
[[cost]]
name = "price"
range = [0, 0.01]
threshold = 0.005
"""

PRICES = {"good": 0.006, "poor": 0.003, "spare": 0.009, "bad": 0.003}


def deployment(name: str, group: str = "chat", **more: Any) -> dict[str, Any]:
    """A mocked model, whose answers have 30 tokens and say its name."""
    token = PRICES.get(name, 0.0) / 30
    prices = {"input_cost_per_token": token, "output_cost_per_token": token}
    params = {"model": f"openai/{name}", "api_key": "none", "mock_response": name, **prices, **more}
    return {"model_name": group, "litellm_params": params, "model_info": {"id": name}}


def quality(kwargs: dict[str, Any], response: Any) -> float:
    """Only the good model is worth anything."""
    return float(response.choices[0].message.content == "good")


def engine(text: str = SPEC) -> debora.Engine:
    return debora.Engine(debora.Spec.from_toml(text).problem, 7)


Make = Callable[..., Routing]


@pytest.fixture
def routed() -> Iterator[Make]:
    """Makes a routing and attaches it as a user does; callbacks are LiteLLM's globals, so they go with the test."""

    def make(router: Any, experiment: debora.Client | debora.Engine, group: str = "chat", **more: Any) -> Routing:
        routing = Routing(router, experiment, group, **{"reward": quality} | more)
        router.set_custom_routing_strategy(routing)
        litellm.callbacks.append(routing)
        return routing

    yield make
    litellm.logging_callback_manager._reset_all_callbacks()


def settle(routing: Routing) -> None:
    """LiteLLM calls back on other threads."""
    deadline = time.monotonic() + 20
    while routing.outstanding:
        assert time.monotonic() < deadline, f"{routing.outstanding} calls were never told: {routing.counts}"
        time.sleep(0.002)


async def asettle(routing: Routing) -> None:
    """As :func:`settle`, and the loop goes on."""
    await asyncio.to_thread(settle, routing)


def observed(engine: debora.Engine) -> dict[str, tuple[int, float, float]]:
    """How often each action was told, with its mean quality and price."""
    problem = engine.problem
    means = {(problem.actions[one.action], one.quantity): one for one in engine.observed()}
    return {
        name: (means[name, 0].count, means[name, 0].mean, round(means[name, 1].mean, 9)) for name in problem.actions
    }


def test_every_way_to_call_tells_its_own_round(routed: Make) -> None:
    local = engine()
    router = litellm.Router([deployment("good"), deployment("poor")])
    routing = routed(router, local)
    for _ in range(8):
        router.completion("chat", HELLO)
        for _ in router.completion("chat", HELLO, stream=True):
            pass
    settle(routing)

    async def calls() -> None:
        # One dictionary for all of them, as callers have it.
        shared = {"user": "one"}
        await asyncio.gather(*(router.acompletion("chat", HELLO, metadata=shared) for _ in range(40)))
        for _ in range(8):
            async for _ in await router.acompletion("chat", HELLO, stream=True, metadata=shared):
                pass
        await asettle(routing)

    asyncio.run(calls())
    assert routing.counts == {"told": 64}
    assert len(local.outstanding()) == 0
    # A stream's tokens are counted from its text, so prices differ; the actions' rewards show whose round was told.
    counts = {name: (count, reward) for name, (count, reward, _) in observed(local).items()}
    assert counts == {"good": (32, 1.0), "poor": (32, 0.0)}


def test_a_retry_is_another_decision_and_a_fallback_is_nobodys(routed: Make) -> None:
    local = engine(SPEC.replace("poor", "bad"))
    failing = deployment("bad", mock_response="litellm.InternalServerError")
    router = litellm.Router(
        [deployment("good"), failing, deployment("spare", "other")],
        num_retries=1,
        fallbacks=[{"chat": ["other"]}],
        allowed_fails=1000,
    )
    routing = routed(router, local)
    answers = [router.completion("chat", HELLO).choices[0].message.content for _ in range(24)]
    settle(routing)
    assert set(answers) == {"good", "spare"}
    seen = observed(local)
    # Failures are told with the worst values, those that were answered with the model's own, and the spare's never.
    assert seen["bad"] == (routing.counts["failed"], 0.0, 0.01)
    assert seen["good"] == (answers.count("good"), 1.0, 0.006)
    assert routing.counts["told"] == answers.count("good")
    # The spare answers only where both attempts failed.
    assert routing.counts["failed"] >= 2 * answers.count("spare") > 0
    assert len(local.outstanding()) == 0


@pytest.mark.parametrize(
    ("failure", "price"), [("leave", None), ({"quality": 0.5, "price": 0.002}, 0.002), ("worst", 0.01)]
)
def test_failures_are_told_as_configured(routed: Make, failure: Any, price: float | None) -> None:
    local = engine()
    failing = {"mock_response": "litellm.RateLimitError"}
    router = litellm.Router([deployment("good", **failing), deployment("poor", **failing)], num_retries=0)
    routing = routed(router, local, failure=failure)

    async def calls() -> None:
        for _ in range(4):
            with pytest.raises(litellm.RateLimitError):
                await router.acompletion("chat", HELLO)
        await asettle(routing)

    asyncio.run(calls())
    if price is None:
        assert routing.counts == {"left": 4} and len(local.outstanding()) == 4
    else:
        assert routing.counts == {"failed": 4} and len(local.outstanding()) == 0
        assert {mean for _, _, mean in observed(local).values()} == {price}


def test_values_beyond_the_range_are_clipped_or_refused_and_counted(routed: Make) -> None:
    router = litellm.Router([deployment("good"), deployment("poor")])
    narrow = SPEC.replace("[0, 0.01]", "[0, 0.005]").replace("threshold = 0.005", "threshold = 0.004")
    clipped = engine(narrow)
    routing = routed(router, clipped)
    for _ in range(8):
        router.completion("chat", HELLO)
    settle(routing)
    times = routing.counts["clipped price"]
    assert routing.counts == {"told": 8, "clipped price": times} and observed(clipped)["good"] == (times, 1.0, 0.005)
    router = litellm.Router([deployment("good"), deployment("poor")])
    refused = engine(narrow)
    routing = routed(router, refused, outside="refuse")
    for _ in range(8):
        router.completion("chat", HELLO)
    settle(routing)
    assert routing.counts == {"told": 8 - times, "refused": times} and len(refused.outstanding()) == times
    router = litellm.Router([deployment("good"), deployment("poor")])
    routing = routed(router, engine(), reward=lambda kwargs, response: float("nan"))
    router.completion("chat", HELLO)
    settle(routing)
    assert routing.counts == {"refused": 1}, "what is not a number has no nearest end"


def test_an_event_is_told_once_and_not_if_the_cache_answered() -> None:
    """As LiteLLM's events are: with its extras for the proxy absent, it cannot read its own cache."""
    now, local = datetime.now(), engine()

    def judge(kwargs: dict[str, Any], response: Any) -> float:
        # Said again while it is being told.
        routing.log_success_event(kwargs, response, now, now)
        return 1.0

    routing = Routing(litellm.Router([deployment("good"), deployment("poor")]), local, "chat", reward=judge)
    for cached in (False, True):
        info = routing.get_available_deployment("chat")["model_info"]
        event = {"litellm_params": {"model_info": info}, "response_cost": 0.001, "cache_hit": cached}
        for _ in range(2):
            routing.log_success_event(event, None, now, now)
    assert routing.counts == {"told": 1, "left": 1} and list(local.outstanding()) == [2]


def test_a_reward_that_raises_is_counted_and_the_caller_has_its_answer(routed: Make) -> None:
    def judge(kwargs: dict[str, Any], response: Any) -> float:
        raise RuntimeError("no judge")

    local = engine()
    router = litellm.Router([deployment("good"), deployment("poor")])
    routing = routed(router, local, reward=judge)
    assert router.completion("chat", HELLO).choices[0].message.content in ("good", "poor")
    settle(routing)
    assert routing.counts == {"error": 1} and len(local.outstanding()) == 1


def test_without_a_decision_the_action_named_otherwise_answers(routed: Make) -> None:
    local = engine()
    while len(batch := local.ask_many(1000)):
        local.tell_many(batch, [0.5] * len(batch), {"price": [0.001] * len(batch)})
    router = litellm.Router([deployment("good"), deployment("poor")])
    routing = routed(router, local, otherwise="poor")
    assert router.completion("chat", HELLO).choices[0].message.content == "poor"
    assert routing.counts == {"undecided": 1} and routing.outstanding == 0
    strict = Routing(router, local, "chat", reward=quality)
    with pytest.raises(debora.Error, match="the experiment on 'chat' is over"):
        strict.get_available_deployment("chat")
    absent = debora.Client("http://127.0.0.1:9", "x", patience=0.1)
    with pytest.raises(ConnectionError, match="did not answer"):
        Routing(router, absent, "chat", reward=quality)


def test_other_groups_go_to_the_routers_own_strategy(routed: Make) -> None:
    router = litellm.Router([deployment("good"), deployment("poor"), deployment("spare", "other")])
    first = routed(router, engine())
    second = engine()
    # One experiment beside another: the later one hands on to the earlier.
    names = {"good": "spare", "poor": "poor"}
    both = routed(router, second, "mixed", deployments=names, reward=lambda kwargs, response: 1.0)
    said = [router.completion(group, HELLO).choices[0].message.content for group in ("other", "chat", "mixed", "mixed")]
    settle(first)
    settle(both)
    assert said[0] == "spare" and said[1] in ("good", "poor") and set(said[2:]) <= {"spare", "poor"}
    assert (first.counts, both.counts) == ({"told": 1}, {"told": 2})


def test_what_does_not_fit_is_refused_at_the_start_with_its_remedy() -> None:
    router = litellm.Router([deployment("good"), deployment("spare", "other")])
    both = litellm.Router([deployment("good"), deployment("poor")])
    speed = SPEC.replace('"price"', '"speed"')
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: Routing(router, engine(), "chat", reward=quality), r"'poor': 0 deployments .*'good', 'spare'"),
        (lambda: Routing(router, engine(), "chat", reward=quality, deployments={"poor": "x"}), "'poor': 0 .* 'x'"),
        (lambda: Routing(both, engine(), "chat", reward=quality, deployments={"x": "good"}), "'x', not among"),
        (lambda: Routing(both, engine(speed), "chat", reward=quality), "'speed' have no function"),
        (lambda: Routing(both, engine(), "chat", reward=quality, costs={"x": quality}), "'x', not among"),
        (lambda: Routing(both, engine(), "chat", reward=quality, otherwise="x"), "'x', which is not an action"),
        (lambda: Routing(both, engine(), "chat", reward=quality, failure={"price": 0}), "give those of 'quality'"),
        (
            lambda: Routing(both, engine(), "chat", reward=quality, failure={"quality": 2, "price": 0}),
            r"quality 2, outside its range \[0, 1\]",
        ),
        (lambda: Routing(both, engine(), "chat", reward=quality, failure="x"), "failure is 'x'"),  # type: ignore
        (lambda: Routing(both, engine(), "chat", reward=quality, outside="x"), "outside is 'x'"),  # type: ignore
    ]
    for refused, message in cases:
        with pytest.raises(debora.Error, match=message):
            refused()


def test_a_service_killed_in_the_middle_loses_nothing_and_is_told_nothing_twice(routed: Make, server: Server) -> None:
    client = debora.Client.create(server.url, SPEC + '[service]\non_wait = "serve"\n', id="gateway", blind=True)
    router = litellm.Router([deployment("good"), deployment("poor")])
    told: dict[tuple[int, int | None, int | None], float] = {}

    def judge(kwargs: dict[str, Any], response: Any) -> float:
        mark = kwargs["litellm_params"]["model_info"]["debora"]
        reward = quality(kwargs, response)
        place = (mark["epoch"], mark["round"], mark["overtime"])
        assert place not in told, f"{place} was judged twice"
        told[place] = reward
        return reward

    routing = routed(router, client, reward=judge)
    stop = threading.Event()

    def disturb() -> None:
        while not stop.wait(0.3):
            server.restart()

    async def calls() -> None:
        for _ in range(10):
            await asyncio.gather(*(router.acompletion("chat", HELLO) for _ in range(25)))
        await asettle(routing)

    trouble = threading.Thread(target=disturb)
    trouble.start()
    try:
        asyncio.run(calls())
    finally:
        stop.set()
        trouble.join()
    assert routing.counts == {"told": 250}
    state = client.state()
    assert state["outstanding"] == 0
    lines = list(client.log())
    rounds = [(line["round"], line["reward"]) for line in lines if line["type"] == "outcome"]
    overtime = [((line["epoch"], line["serial"]), line["reward"]) for line in lines if line["type"] == "overtime_outcome"]
    assert sorted(rounds) == sorted((round, reward) for (_, round, _), reward in told.items() if round)
    assert sorted(overtime) == sorted(((epoch, at), reward) for (epoch, _, at), reward in told.items() if at)
    assert len(told) == 250 and state["decided"] == len(rounds)
    audit = subprocess.run([binary(), "audit", server.store], capture_output=True, text=True, check=False)
    assert audit.returncode == 0, audit.stdout + audit.stderr


def test_the_example_plays_what_its_engine_decides(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(ROOT / "python/examples")
    import llm_router

    monkeypatch.setattr(sys, "argv", ["llm_router.py", "--requests", "60", "--out", str(tmp_path)])
    llm_router.main()
    mocked = capsys.readouterr().out
    spec = debora.Spec.from_toml(llm_router.SPEC)
    world, local = llm_router.World(spec), spec.engine()
    seen = llm_router.Seen(world)
    for request in range(60):
        decision = local.ask()
        assert decision is not None
        seen.rows.append((decision.name, world.answer(decision.name, request)))
        quality, price, latency = seen.rows[-1][1]
        local.tell(decision, quality, {"price": price, "latency": latency})
    assert mocked.rstrip() == llm_router.report(seen, spec.problem)
    assert {file.name for file in tmp_path.iterdir()} == {
        f"model-gateway-{name}.svg" for name in ("quality", "price", "latency")
    }
    litellm.logging_callback_manager._reset_all_callbacks()
    monkeypatch.setattr(sys, "argv", ["llm_router.py", "--requests", "60", "--server", "--abreast", "20"])
    monkeypatch.setattr(llm_router, "SCALE", 0.02)
    llm_router.main()
    litellm.logging_callback_manager._reset_all_callbacks()
    served = capsys.readouterr().out
    # Side by side, requests meet other decisions, but each model has as many, at its price.
    columns = [[line.split()[:2] + line.split()[3:4] for line in text.splitlines()[-3:]] for text in (mocked, served)]
    assert columns[0] == columns[1]
    assert "saved" in served


def test_the_page_shows_what_its_commands_print() -> None:
    page = (ROOT / "docs/models.md").read_text()
    blocks = re.findall(r"```sh\n(debora .*?)\n```(?:\n\n```text\n(.*?)```)?", page, re.S)
    assert len(blocks) == 4
    for command, shown in blocks:
        printed = re.sub(r"\n  [\d.]+ seconds\n", "", program(*command.split()[1:]))
        assert not shown or printed.strip() == shown.strip(), command


@pytest.mark.long
def test_the_proxy_asks_and_tells_by_the_files_of_the_page(server: Server, tmp_path: Path) -> None:
    """LiteLLM's proxy has a hundred packages of its own, so it gets an environment of its own."""
    page = (ROOT / "docs/models.md").read_text()
    for file, fence in [("gateway.py", "py"), ("config.yaml", "yaml")]:
        found = re.search(rf"```{fence}\n(.*?)```", page, re.S)
        assert found
        (tmp_path / file).write_text(found[1].replace("http://127.0.0.1:8080", server.url))
    spec = (ROOT / "examples/model-gateway.toml").read_text().split("[world]")[0]
    client = debora.Client.create(server.url, spec + '[service]\non_wait = "serve"\n', id="gateway")
    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    wanted = f"litellm[proxy]=={metadata.version('litellm')}"
    subprocess.run([python, "-m", "pip", "install", "-q", wanted], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    key = "sk-" + secrets.token_hex(24)
    paths = {"PYTHONPATH": str(Path(debora.__file__).parents[1]), "LITELLM_MASTER_KEY": key}
    command = [str(python.with_name("litellm")), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "log").open("w") as log:
        proxy = subprocess.Popen(command, cwd=tmp_path, env=os.environ | paths, stdout=log, stderr=log)
    try:
        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(lambda _: answer(port, key), range(40)))
        # Loggers are called a moment later.
        deadline = time.monotonic() + 20
        while client.state()["outstanding"] and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        proxy.terminate()
        proxy.wait()
    state = client.state()
    asked = {one["name"]: one["decided"] for one in state["actions"]}
    assert (state["decided"], state["outstanding"], state["overtime"]) == (40, 0, 0), state
    assert asked == {name: said.count(f"this is {name}") for name in asked}


def answer(port: int, key: str) -> str:
    """What the proxy answers, once it is there."""
    body = json.dumps({"model": "chat", "messages": HELLO}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, headers)
    for _ in range(600):
        try:
            with urllib.request.urlopen(request) as response:
                return str(json.load(response)["choices"][0]["message"]["content"])
        except urllib.error.URLError as error:
            if isinstance(error, urllib.error.HTTPError):
                raise
            time.sleep(0.2)
    raise AssertionError("the proxy does not start")
