"""Wrong input is refused in words, and nothing has changed afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import debora

PROBLEM: dict[str, Any] = {"actions": ["a", "b"], "horizon": 1000, "rho": 0.1}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"policy": "sofd"}, 'policy is "sofd"; did you mean "soft"?'),
        ({"actions": ["a"]}, "1 actions; give at least 2"),
        ({"actions": ["a", "a"]}, 'action "a" is named twice'),
        ({"horizon": 0}, "horizon 0 is outside 1 to 2^53"),
        ({"horizon": 10.5}, "horizon is 10.5; it must be a whole number"),
        ({"horizon": -5}, "horizon is -5; it must be a whole number"),
        ({"horizon": 2**70}, "horizon is"),
        ({"rho": float("nan")}, "rho"),
        ({"rho": float("inf")}, "rho"),
        ({"rho": True}, "rho is true"),
        ({"delta": 2}, "delta 2.0 is outside (0, 1)"),
        ({"growth": 1}, "growth 1 is outside 2 to 64"),
        ({"reward": (1, 0)}, "range [1.0, 0.0]"),
        ({"reward": {"nam": "x"}}, 'unknown key "nam" in reward; did you mean "name"?'),
        ({"costs": {"price": {"treshold": 0.5}}}, 'did you mean "threshold"?'),
        ({"costs": {"price": {"threshold": 0.5}}}, "policy is missing; some cost has a threshold"),
        (
            {"policy": "soft", "costs": {"price": {"threshold": -1}}},
            'threshold -1.0 of cost "price" is below its range',
        ),
        ({"policy": "hard"}, "policy hard has no safe strategy"),
        ({"safe": {"strategy": [1, 0]}}, "policy free does not use one"),
        ({"policy": "hard", "safe": {"strategy": [1]}}, "the safe strategy has 1 probabilities for 2 actions"),
        ({"outside": "error"}, 'outside is "error"'),
    ],
)
def test_problems(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(debora.Error) as error:
        debora.Problem(**(PROBLEM | change))
    assert sentence in str(error.value)
    assert isinstance(error.value, ValueError)


def test_problems_of_other_types() -> None:
    with pytest.raises(TypeError):
        debora.Problem(**(PROBLEM | {"rho": object()}))
    with pytest.raises(TypeError):
        debora.Problem(**(PROBLEM | {"wrong": 1}))


@pytest.mark.parametrize("key", [-1, 2**128, "12", "g" * 32])
def test_keys(free: debora.Problem, key: int | str) -> None:
    with pytest.raises(debora.Error, match="32 hexadecimal digits"):
        debora.Engine(free, key)


def test_keys_of_other_types(free: debora.Problem) -> None:
    with pytest.raises(TypeError):
        debora.Engine(free, 1.5)  # type: ignore[arg-type]


ENGINE_CALLS: list[tuple[type[BaseException], str, Callable[[debora.Engine], object]]] = [
    (debora.Error, "told as NaN, outside its range", lambda e: e.tell(5, float("nan"), (1, 0.5))),
    (debora.Error, "told as inf, outside its range", lambda e: e.tell(5, float("inf"), (1, 0.5))),
    (debora.Error, '"price" was told as 3.0, outside', lambda e: e.tell(5, 0.5, (3, 0.5))),
    (debora.Error, "0 costs were told where the problem has 2", lambda e: e.tell(5, 0.5)),
    (debora.Error, "3 costs were told", lambda e: e.tell(5, 0.5, (1, 0.5, 0.5))),
    (debora.Error, "20 costs were told", lambda e: e.tell(5, 0.5, [0.5] * 20)),
    (debora.Error, "no cost 'prise'", lambda e: e.tell(5, 0.5, {"prise": 1, "wait": 0.5})),
    (debora.Error, 'no value for cost "wait"', lambda e: e.tell(5, 0.5, {"price": 1})),
    (TypeError, "must be real number", lambda e: e.tell(5, "0.5", (1, 0.5))),  # type: ignore[arg-type]
    (TypeError, "", lambda e: e.tell(5, 0.5, ("1", 0.5))),  # type: ignore[arg-type]
    (TypeError, "", lambda e: e.tell(1.5, 0.5, (1, 0.5))),  # type: ignore[arg-type]
    (debora.Error, "round -1 does not exist", lambda e: e.tell(-1, 0.5, (1, 0.5))),
    (debora.Error, "round 0 does not exist", lambda e: e.tell(0, 0.5, (1, 0.5))),
    (debora.Error, "does not exist", lambda e: e.tell(2**64, 0.5, (1, 0.5))),
    (debora.Error, "does not exist", lambda e: e.tell(10**40, 0.5, (1, 0.5))),
    (debora.Error, "was not asked for yet", lambda e: e.tell(20_000, 0.5, (1, 0.5))),
    (debora.Error, "round -3 does not exist", lambda e: e.decision(-3)),
    (debora.Error, "belongs to an earlier epoch", lambda e: e.decision(1)),
    (TypeError, "-1 is not a whole number of 0 or more", lambda e: e.ask_many(-1)),
    (debora.Error, "round -7 does not exist", lambda e: e.tell_many([5, -7], [1, 1], np.ones((2, 2)))),
    (debora.Error, "rewards have the shape", lambda e: e.tell_many([5], [[1]], np.ones((1, 2)))),
    (debora.Error, "rounds have the shape", lambda e: e.tell_many(5, [1], np.ones((1, 2)))),
    (debora.Error, "a batch of 1 rounds has 2 rewards", lambda e: e.tell_many([5], [1, 1], np.ones((1, 2)))),
    (debora.Error, "has 1 rewards and 4 costs", lambda e: e.tell_many([5], [1], np.ones((2, 2)))),
    (debora.Error, "1 costs were told where", lambda e: e.tell_many([5], [1], [[0.5]])),
    (debora.Error, "a batch of 1 rounds", lambda e: e.tell_many([5], [1])),
    (debora.Error, "costs have the shape", lambda e: e.tell_many([5], [1], np.ones((1, 2, 1)))),
    (debora.Error, "are not an array", lambda e: e.tell_many([5], [1], [[1, 2], [3]])),
    (debora.Error, "1 to 2 entries", lambda e: e.tell_many([5], [1], {"price": [1], "wait": [1, 1]})),
    (TypeError, "rounds are float64", lambda e: e.tell_many(np.array([5.0]), [1], np.ones((1, 2)))),
    (TypeError, "rewards are of type complex128", lambda e: e.tell_many([5], [1j], np.ones((1, 2)))),
    (TypeError, "rewards are of type object", lambda e: e.tell_many([5], np.array([None]), np.ones((1, 2)))),
    (TypeError, "costs are of type", lambda e: e.tell_many([5], [1], [["a", "b"]])),
    (debora.Error, "told as NaN", lambda e: e.tell_many(e.outstanding()[:2], [0.5, np.nan], np.ones((2, 2)))),
    (
        debora.Conflict,
        "with other feedback",
        lambda e: e.tell_many(np.repeat(e.outstanding()[:1], 2), [0, 1], np.ones((2, 2))),
    ),
]


@pytest.mark.parametrize(("kind", "sentence", "call"), ENGINE_CALLS)
def test_a_refused_call_changes_nothing(
    soft: debora.Problem, kind: type[BaseException], sentence: str, call: Callable[[debora.Engine], object]
) -> None:
    engine = debora.Engine(soft, 7)
    while engine.epoch < 2:
        batch = engine.ask_many(100)
        engine.tell_many(batch.rounds, np.full(len(batch), 0.5), np.full((len(batch), 2), 0.5))
    engine.ask_many(8)
    before = engine.to_bytes()
    with pytest.raises(kind) as error:
        call(engine)
    assert sentence in str(error.value)
    assert engine.to_bytes() == before and len(engine.outstanding()) > 0


def test_after_the_end(free: debora.Problem) -> None:
    engine = debora.Engine(free, 1)
    for decision in engine:
        engine.tell(decision.round, 0.5)
    assert engine.ask() is None and len(engine.ask_many(10)) == 0 and list(engine) == []
    assert engine.tell(20_000, 0.5) == "already told"
    with pytest.raises(debora.Error, match="round 20001 does not exist"):
        engine.tell(20_001, 0.5)
    assert engine.is_done


def test_snapshots(free: debora.Problem) -> None:
    whole = debora.Engine(free, 1).to_bytes()
    for broken in (b"", b"debora", whole[:-1], whole[:50] + bytes([whole[50] ^ 1]) + whole[51:], whole + b"x"):
        with pytest.raises(debora.Error, match="not a usable snapshot"):
            debora.Engine.from_bytes(broken)


def test_specs(free: debora.Problem) -> None:
    with pytest.raises(FileNotFoundError, match="cannot read"):
        debora.Spec.from_toml("nowhere.toml")
    with pytest.raises(debora.Error, match=r"<text>:2: policy is .sofd.; did you mean"):
        debora.Spec.from_toml("rho = 0.1\npolicy = 'sofd'\n")
    with pytest.raises(debora.Error, match=r"^rho 2.0 is outside"):
        debora.Spec(free).replace(rho=2)
    with pytest.raises(debora.Error, match="world"):
        debora.run(debora.Spec(free))
    with pytest.raises(debora.Error, match="give one for each"):
        debora.Spec(free, world=debora.worlds.bernoulli(reward=[0.5]))
    with pytest.raises(debora.Error, match="action 2 does not exist"):
        world = debora.Spec(free, world=debora.worlds.bernoulli(reward=[0.5, 0.5])).world
        assert world is not None
        world.pull(2, 0)


def test_jobs(routing: debora.Spec) -> None:
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: debora.replicate(routing, pairs=0), "pairs is 0"),
        (lambda: debora.replicate(routing, pairs=5, threads=0), "threads is 0"),
        (lambda: debora.replicate(routing, pairs=5, simulator="round"), 'simulator is "round"'),  # type: ignore[arg-type]
        (lambda: debora.compare(routing, players=["ucb1"]), 'no player "ucb1" for policy soft'),
        (lambda: debora.compare(routing, players=["primal-dual"]), "use a horizon of 10000000 or less"),
        (lambda: debora.Measurement.replicate(routing).measure((3, 2)), "shard 3/2 does not exist"),
        (lambda: debora.merge([]), "no parts"),
        (lambda: debora.merge([b"{}"]), "part 1 is not a shard of debora"),
        (
            lambda: debora.merge([debora.Measurement.replicate(routing, pairs=4).measure((1, 2))]),
            "pairs 2 to 3 of debora are missing, of 4 from 0 on; there are only part 1",
        ),
    ]
    for call, sentence in calls:
        with pytest.raises(debora.Error) as error:
            call()
        assert sentence in str(error.value)
    with pytest.raises(TypeError, match="-1 is not a whole number of 0 or more"):
        debora.replicate(routing, pairs=-1)
