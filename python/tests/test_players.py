"""Players and worlds written in Python, measured like those of the library."""

from __future__ import annotations

import _thread
import pickle
import subprocess
import sys
import threading
import time
from typing import Any, ClassVar

import numpy as np
import pytest

import debora

# Horizons short enough to play by hand are too short for debora, which plays beside.
pytestmark = pytest.mark.filterwarnings("ignore:BLIND")

SHORT = debora.Problem(actions=["a", "b"], horizon=20, rho=0.5)


def spec_of(problem: debora.Problem, means: list[float], **more: Any) -> debora.Spec:
    return debora.Spec(problem, key=42, world=debora.worlds.bernoulli(reward=means, **more))


class Thompson:
    """Thompson sampling for rewards of 0 and 1."""

    def __init__(self, problem: debora.Problem, key: int) -> None:
        self.chance = np.random.default_rng(key)
        self.seen = np.ones((2, len(problem.actions)))

    def strategy(self) -> list[float]:
        drawn = self.chance.beta(self.seen[0], self.seen[1])
        return (np.arange(len(drawn)) == drawn.argmax()).astype(float).tolist()  # type: ignore[no-any-return]

    def tell(self, actions: list[int], rewards: list[float], costs: list[list[float]]) -> None:
        self.seen[int(rewards[0] == 0), actions[0]] += 1


class Greedy(Thompson):
    """Plays the largest posterior mean: another law, which the test below must tell from Thompson's."""

    def strategy(self) -> list[float]:
        means = self.seen[0] / self.seen.sum(axis=0)
        return (np.arange(len(means)) == means.argmax()).astype(float).tolist()  # type: ignore[no-any-return]


class Alike:
    """Holds the uniform strategy for ten rounds at a time, and notes what it was told."""

    def __init__(self, problem: debora.Problem, key: int) -> None:
        self.actions = len(problem.actions)
        self.played = np.zeros(self.actions)

    def strategy(self) -> np.ndarray:
        return np.full(self.actions, 1 / self.actions)

    def rounds(self) -> int:
        return 10

    def tell_sums(self, counts: np.ndarray, rewards: np.ndarray, costs: np.ndarray) -> None:
        assert counts.dtype == np.uint64 and counts.sum() == 10
        assert rewards.shape == counts.shape and costs.shape[0] == self.actions
        self.played += counts

    def note(self) -> str:
        return f"told of {self.played.sum():.0f} rounds"


def largest_gap(one: np.ndarray, two: np.ndarray) -> float:
    """Between two empirical distribution functions."""
    points = np.union1d(one, two)
    shares = [np.searchsorted(np.sort(sample), points, side="right") / len(sample) for sample in (one, two)]
    return float(np.abs(shares[0] - shares[1]).max())


def test_thompson_in_python_has_the_law_of_the_rival() -> None:
    """n = 1,000 first runs each: two empirical laws are within 2 * 0.09 but for 4 exp(-2 n 0.09^2) = 3.7e-7 (DKW).

    The greedy variant of the same class is told apart.
    """
    spec = spec_of(SHORT, [0.7, 0.4])
    mine, greedy = debora.player("mine", Thompson), debora.player("greedy", Greedy)
    result = debora.compare(spec, players=["thompson", mine, greedy], pairs=1_000)
    regret = {name: result.columns(name)["regret_1"].round(9) for name in result.players}
    gaps = {name: largest_gap(regret["thompson"], regret[name]) for name in ("mine", "greedy")}
    assert gaps["mine"] < 2 * 0.09 < gaps["greedy"], gaps


def test_one_s_own_player_gets_what_rivals_get() -> None:
    spec = spec_of(debora.Problem(actions=["a", "b"], horizon=1_000, rho=0.5), [0.4, 0.6])
    result = debora.compare(spec, players=["rse", debora.player("alike", Alike)], pairs=7)
    assert result.players == ["debora", "rse", "alike"]
    row = result.rows[2]
    assert (row["source"], row["constants"], row["identical_rate"]) == ("own player", None, 1.0)
    assert row["regret"]["mean"] == pytest.approx(100) and row["epochs_mean"] == 100
    # The last stretch is not told: nothing follows it.
    assert row["note"] == "told of 990 rounds" and "alike: told of 990 rounds" in repr(result)
    assert "can tell two actions apart" in result.rows[1]["note"] and result.rows[0]["note"] is None
    assert result.regret_curves("alike").shape == (14, len(result.checkpoints))
    assert result.to_pandas().loc["alike", "note"] == row["note"]


def test_a_replication_of_another_player_promises_nothing() -> None:
    problem = debora.Problem(actions=["a", "b"], horizon=400, rho=0.1)
    spec = spec_of(problem, [0.45, 0.55])
    mine = debora.replicate(spec, pairs=40, player=debora.player("mine", Thompson))
    assert mine.identical_rate < 0.5 and mine.broken == [] and mine.to_dict()["player"] == "mine"
    assert "mine is identical in" in repr(mine) and "promised" not in repr(mine)
    assert mine.strategies.shape == (400, 2) and mine.first_rounds[-1] == 400
    named = debora.replicate(spec, pairs=10, player="ucb1")
    assert named.to_dict()["player"] == "ucb1"
    assert debora.replicate(spec, pairs=10).to_dict()["player"] == "debora"


def test_runs_of_a_pair_share_the_key_and_not_the_data() -> None:
    class Keyed:
        made: ClassVar[list[int]] = []

        def __init__(self, problem: debora.Problem, key: int) -> None:
            self.made.append(key)
            self.rewards: list[float] = []

        def strategy(self) -> tuple[float, float]:
            return (0.5, 0.5)

        def tell(self, actions: list[int], rewards: list[float], costs: list[list[float]]) -> None:
            pass

    debora.compare(spec_of(SHORT, [0.5, 0.5]), players=[debora.player("keyed", Keyed)], pairs=3)
    # The first was made to see whether it can play.
    keys = Keyed.made[1:]
    assert keys[::2] == keys[1::2] and len(set(keys)) == 3 and min(keys) > 2**64


def test_parts_of_one_s_own_player_merge_to_the_whole() -> None:
    measurement = debora.Measurement.compare(
        spec_of(SHORT, [0.7, 0.4]), players=["ucb1", debora.player("mine", Thompson)], pairs=9
    )
    copy = pickle.loads(pickle.dumps(measurement))
    assert copy.players == measurement.players == ["debora", "ucb1", "mine"]
    parts = [copy.measure((number, 3)) for number in (3, 1, 2)]
    assert debora.merge(parts).to_bytes() == measurement.measure()
    other = debora.Measurement.compare(
        spec_of(SHORT, [0.7, 0.4]), players=["ucb1", debora.player("yours", Thompson)], pairs=9
    )
    with pytest.raises(debora.Error, match="players debora, ucb1, mine, part 2 has debora, ucb1, yours"):
        debora.merge([parts[0], other.measure((1, 3))])


def broken(strategy: Any, rounds: Any = None) -> debora.Player:
    class Broken:
        def __init__(self, problem: debora.Problem, key: int) -> None:
            self.told = 0

        def strategy(self) -> Any:
            return (
                strategy() if callable(strategy) and self.told == 4 else [0.5, 0.5] if callable(strategy) else strategy
            )

        def tell(self, actions: list[int], rewards: list[float], costs: list[list[float]]) -> None:
            self.told += 1

    return debora.player("broken", Broken)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ([1.0], r"strategy\(\) of player \"broken\" gives 1 probabilities for 2 actions; give one for each"),
        ([1.5, -0.5], r"gives \"b\" the probability -0.5; give 0 or more"),
        ([float("nan"), 1.0], r"gives \"a\" the probability NaN; give 0 or more"),
        ([0.5, 0.4], r"sums to 0.9; make it sum to 1"),
        ([float("inf"), 0.0], r"sums to inf; make it sum to 1"),
        ([0.5, 0.5 + 3e-9], r"sums to 1.000000003; make it sum to 1 within 1e-9"),
        (None, r"strategy\(\) of player \"broken\" gives None; give a list with a probability for each action"),
        (1, r"gives 1; give a list"),
        ([[0.5, 0.5]], r"gives \[\[0.5, 0.5\]\]; give a list"),
        ("a" * 100, r"gives 'a{59}\.\.; give a list"),
    ],
)
def test_strategies_are_checked(strategy: Any, message: str) -> None:
    with pytest.raises(debora.Error, match=message):
        debora.replicate(spec_of(SHORT, [0.5, 0.5]), pairs=3, player=broken(strategy))


@pytest.mark.parametrize("rounds", [0, -1, 1.5, None])
def test_the_rounds_of_a_strategy_are_checked(rounds: Any) -> None:
    class Held(Alike):
        def rounds(self) -> int:
            return rounds  # type: ignore[no-any-return]

        def tell_sums(self, counts: np.ndarray, rewards: np.ndarray, costs: np.ndarray) -> None:
            pass

    with pytest.raises(debora.Error, match=rf'rounds\(\) of player "held" gives {rounds}; give a whole number'):
        debora.replicate(spec_of(SHORT, [0.5, 0.5]), pairs=3, player=debora.player("held", Held))


def test_an_exception_comes_out_as_it_is_with_its_place() -> None:
    def fail() -> list[float]:
        raise ZeroDivisionError("mine")

    made = list[int]()

    def make(problem: debora.Problem, key: int) -> debora.RoundPlayer:
        made.append(key)
        player: debora.RoundPlayer = broken(fail).make(problem, key)  # type: ignore[assignment]
        return player

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        debora.compare(spec_of(SHORT, [0.5, 0.5]), players=[debora.player("broken", make)], pairs=50)
    assert len(made) == 2, "once to see whether it can play, and once to play: nothing is begun after a failure"
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == ['in player "broken", pair 0, round 5']


def test_what_cannot_play_is_refused_before_anything_is_measured() -> None:
    spec = spec_of(SHORT, [0.5, 0.5])

    class Silent:
        def __init__(self, problem: debora.Problem, key: int) -> None:
            pass

        def strategy(self) -> list[float]:
            return [0.5, 0.5]

    with pytest.raises(debora.Error, match="player silent has no method tell; it needs"):
        debora.compare(spec, players=[debora.player("silent", Silent)])  # type: ignore[arg-type]
    for name in ("debora", "oplb"):
        with pytest.raises(debora.Error, match=f'is named "{name}", as another player is'):
            debora.compare(spec, players=[debora.player(name, Thompson)])
    twice = [debora.player("mine", Thompson), debora.player("mine", Greedy)]
    with pytest.raises(debora.Error, match='is named "mine"'):
        debora.compare(spec, players=twice)
    with pytest.raises(debora.Error, match="players has <class"):
        debora.compare(spec, players=[Thompson])  # type: ignore[list-item]
    with pytest.raises(debora.Error, match="needs a name and a class"):
        debora.player("", Thompson)
    long = spec_of(debora.Problem(actions=["a", "b"], horizon=1e9, rho=0.5), [0.4, 0.6])
    with pytest.raises(debora.Error, match="mine decides in every round, and 1,000,000,000 rounds are too many"):
        debora.replicate(long, player=debora.player("mine", Thompson))


def test_ctrl_c_stops_a_player_within_its_run() -> None:
    told = [0]

    class Counting(Thompson):
        def tell(self, actions: list[int], rewards: list[float], costs: list[list[float]]) -> None:
            told[0] += 1

    spec = spec_of(debora.Problem(actions=["a", "b"], horizon=1e7, rho=0.5), [0.4, 0.6])
    threading.Timer(0.3, _thread.interrupt_main).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        debora.replicate(spec, pairs=10, player=debora.player("mine", Counting))
    assert time.monotonic() - begun < 10
    # The round that was being played ends; then nobody calls the player, whose run had minutes to go.
    time.sleep(0.2)
    stopped = told[0]
    time.sleep(0.2)
    assert told[0] == stopped


def test_ctrl_c_ends_a_world_in_python_before_the_interpreter_ends() -> None:
    code = """
import signal, threading, time, debora

def draw(action, count, chance):
    time.sleep(0.2)  # as many draws take: the interpreter would end meanwhile
    return chance.random(count)

spec = debora.Spec(debora.Problem(actions=["a", "b"], horizon=20_000, rho=0.5), key=42)
threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
try:
    debora.replicate(spec, pairs=10_000, world=debora.worlds.function(draw, reward=[0.5, 0.5]))
except KeyboardInterrupt:
    print("stopped")
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (child.returncode, child.stdout) == (0, "stopped\n"), child


def test_a_second_ctrl_c_does_not_wait_for_code_that_never_returns() -> None:
    class Endless(Thompson):
        def strategy(self) -> list[float]:
            while waits[0]:
                time.sleep(0.01)
            return [1.0, 0.0]

    waits = [True]
    for after in (0.2, 0.6):
        threading.Timer(after, _thread.interrupt_main).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        debora.replicate(spec_of(SHORT, [0.5, 0.5]), pairs=3, player=debora.player("endless", Endless))
    waited = time.monotonic() - begun
    waits[0] = False
    assert 0.5 < waited < 10, waited


def test_a_stretch_player_plays_long_horizons() -> None:
    class Late(Alike):
        def rounds(self) -> int:
            return 10**8

        def tell_sums(self, counts: np.ndarray, rewards: np.ndarray, costs: np.ndarray) -> None:
            assert counts.sum() == 10**8 and (rewards <= counts).all()
            assert costs.shape == (2, 1) and costs[:, 0] == pytest.approx(3 * 0.5 * counts, rel=0.01)

    problem = debora.Problem(
        actions=["a", "b"],
        policy="soft",
        horizon=1e9,
        rho=0.5,
        costs={"price": {"range": (0, 3), "threshold": 2}},
    )
    world = debora.worlds.bernoulli(reward=[0.4, 0.6], costs={"price": [1.5, 1.5]})
    row = debora.compare(debora.Spec(problem, key=1, world=world), players=[debora.player("late", Late)], pairs=2).rows[
        1
    ]
    assert row["epochs_mean"] == 10 and row["regret"]["mean"] == pytest.approx(1e8)


def beta(action: int, count: int, chance: np.random.Generator) -> Any:
    """Rewards of mean 0.4 and 0.6; costs in [0, 2] of mean 0.5 and 1."""
    mean = (0.4, 0.6)[action]
    return chance.beta(4 * mean, 4 * (1 - mean), count), {"price": 2 * chance.beta(1 + action, 3 - action, count)}


COSTLY = debora.Problem(
    actions=["a", "b"],
    policy="soft",
    horizon=20_000,
    rho=0.5,
    costs={"price": {"range": (0, 2), "threshold": 1.5}},
)


def test_a_world_in_python_is_measured_like_any_other() -> None:
    world = debora.worlds.function(beta, reward=[0.4, 0.6], costs={"price": {"a": 0.5, "b": 1.0}})
    spec = debora.Spec(COSTLY, key=42)
    result = debora.replicate(spec, pairs=20, world=world)
    assert result.to_dict() == debora.replicate(spec, pairs=20, world=world, threads=1).to_dict()
    assert result.regret.max() < 0.2 * 20_000 and (result.violation == 0).all()
    # Each of 40 runs has the mean reward of its strategies to within 0.02, but for 2 exp(-2 * 20,000 * 0.02^2) = 2.3e-7
    columns = result.to_pandas()
    for run in (1, 2):
        expected = 0.6 - columns[f"regret_{run}"] / 20_000
        assert (columns[f"reward_mean_{run}"] - expected).abs().max() < 0.02
    begun = list[float]()

    def noting(action: int, count: int, chance: np.random.Generator) -> Any:
        begun.append(chance.random())
        return beta(action, count, chance)

    noted = debora.worlds.function(noting, reward=[0.4, 0.6], costs={"price": [0.5, 1.0]})
    debora.replicate(spec, pairs=5, world=noted, threads=1)
    # The first run is played once more for its strategies; else every call has randomness of its own.
    again = len(begun) - len(set(begun))
    assert len(set(begun)) > 20 and again < len(begun) / 4, begun
    short = debora.Spec(COSTLY, key=42).replace(horizon=300)
    table = debora.compare(short, pairs=2, players=["doss", debora.player("mine", Thompson)], world=world)
    assert table.players == ["debora", "doss", "mine"]
    # Without means they are found by drawing: 100,000 in [0, 2] are off by 0.02 with probability 2 exp(-20) at most.
    found = debora.worlds.function(beta)._means(["a", "b"], ["price"])
    assert np.abs(np.array(found) - [[0.4, 0.6], [0.5, 1.0]]).max() < 0.02, found


def test_wrong_worlds_say_what_is_wrong() -> None:
    spec = debora.Spec(COSTLY, key=42)

    def refused(draw: Any, error: type[Exception], message: str, **means: Any) -> None:
        world = debora.worlds.function(draw, **(means or {"reward": [0.4, 0.6], "costs": {"price": [0.5, 1]}}))
        with pytest.raises(error, match=message):
            debora.replicate(spec, pairs=3, world=world)

    refused(lambda a, n, chance: np.zeros(n), ValueError, "gives no cost 'price'; return rewards and a dictionary")
    refused(lambda a, n, chance: (0.5, {"price": 0.5}), ValueError, r"gives values of shape \(\) for \d+ draws")
    refused(lambda a, n, chance: (np.full(n, 1.5), {"price": np.ones(n)}), debora.Error, 'gives "reward" the value 1.5')
    refused(lambda a, n, chance: 1 / 0, ZeroDivisionError, "division")
    refused(beta, debora.Error, 'gives "price" the value 3.0, outside', reward=[0, 1], costs={"price": [3, 1]})
    refused(beta, ValueError, "no means of the cost 'price'", reward=[0, 1])
    refused(beta, ValueError, "2 are needed", reward=[0], costs={"price": [1, 1]})
    with pytest.raises(debora.Error, match=r"use debora\.replicate\(spec, pairs=1, world=world\)"):
        debora.run(spec, world=debora.worlds.function(beta))  # type: ignore[arg-type]
    with pytest.raises(debora.Error, match=r"give debora\.worlds\.function"):
        debora.replicate(spec, world=lambda action, round: 0.5)  # type: ignore[arg-type]
