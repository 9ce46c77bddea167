"""Decisions from Python: debora's engine beside the bandits of other libraries, ten actions, no context.

    pip install -r benches/requirements.txt
    python benches/bench.py

The feedback is tossed beforehand, so the world costs nothing; all meet the same coins. Every library is used as its
documentation says, and where that leaves a choice, in the fastest way found. They take turns; medians count.
Times are those of the processor, since on a busy machine the clock measures the others.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

import debora

MEANS = [0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80]
COSTS = {"price": [0.1 * (action + 1) for action in range(10)], "wait": [1 - 0.1 * action for action in range(10)]}
THRESHOLDS = {"price": {"threshold": 0.5}, "wait": {"threshold": 0.6}}
BATCH = 1_000_000
# Simulated runs of a turn: one alone takes a millisecond.
RUNS = 20
# How often epsilon-greedy explores.
EPSILON = 0.1

Policy = Literal["free", "soft"]
Play = Callable[[int], None]
"""Plays this many rounds."""

RANDOM = np.random.default_rng(7)


def toss(means: Any, rounds: int) -> Any:
    """Zeros and ones with these means, a row a round."""
    return (RANDOM.random((rounds, len(means))) < means).astype(float)


# What each action gives in a round: its reward, and its two costs. Of few objects, and for a thousand rounds that come
# over and over: with objects of their own for every round, waiting for memory would take half of debora's time.
REWARDS = [tuple((0.0, 1.0)[int(one)] for one in row) for row in toss(MEANS, 1_000)]
PAIRS = [
    tuple(((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))[int(2 * price + wait)] for price, wait in row)
    for row in np.dstack([toss(means, 1_000) for means in COSTS.values()])
]


def first(rounds: int) -> Iterator[tuple[float, ...]]:
    """The rewards of a turn, round by round."""
    return itertools.islice(itertools.cycle(REWARDS), rounds)


def problem(policy: Policy, horizon: float) -> debora.Problem:
    actions = [f"action {number}" for number in range(10)]
    costs = {} if policy == "free" else THRESHOLDS
    return debora.Problem(policy=policy, actions=actions, horizon=horizon, rho=0.1, costs=costs)


def engine(policy: Policy) -> debora.Engine:
    """Past its exploration, as an engine in use is: under soft constraints the strategy is then a mixture."""
    playing = debora.Engine(problem(policy, 1e9), key=42)
    costs = np.array(list(COSTS.values())).T
    while playing.record.kind == "explore":
        batch = playing.ask_many(BATCH)
        feedback = costs[batch.actions] if policy == "soft" else None
        playing.tell_many(batch.rounds, np.array(MEANS)[batch.actions], feedback)
    return playing


def one_by_one(policy: Policy) -> Play:
    playing = engine(policy)
    ask, tell = playing.ask, playing.tell
    all_costs: Any = PAIRS if policy == "soft" else [((),) * 10]

    def play(rounds: int) -> None:
        for rewards, costs in zip(first(rounds), itertools.cycle(all_costs), strict=False):
            decision = ask()
            assert decision is not None
            action = decision.action
            tell(decision.round, rewards[action], costs[action])

    return play


def many(policy: Policy) -> Play:
    playing = engine(policy)
    # Not by action, which would add the time numpy takes to look it up.
    coins = toss([0.5, 0.5, 0.5], BATCH)
    rewards = np.ascontiguousarray(coins[:, 0])
    costs = np.ascontiguousarray(coins[:, 1:]) if policy == "soft" else None

    def play(rounds: int) -> None:
        while rounds:
            batch = playing.ask_many(rounds)
            count = len(batch)
            playing.tell_many(batch.rounds, rewards[:count], None if costs is None else costs[:count])
            rounds -= count

    return play


def simulated(policy: Policy, horizon: float) -> Play:
    """Plays whole runs."""
    costs = COSTS if policy == "soft" else None
    world = debora.worlds.bernoulli(reward=MEANS, costs=costs)
    spec = debora.Spec(problem(policy, horizon), key=42, world=world)

    def play(runs: int) -> None:
        for _ in range(runs):
            debora.run(spec)

    return play


def mabwiser(policy: str, batches: bool = False) -> Play:
    from mabwiser.mab import MAB, LearningPolicy

    rule = LearningPolicy.UCB1() if policy == "UCB1" else LearningPolicy.EpsilonGreedy(epsilon=EPSILON)
    bandit = MAB(arms=list(range(10)), learning_policy=rule, seed=42)
    bandit.fit(list(range(10)), list(REWARDS[0]))

    def play(rounds: int) -> None:
        for rewards in first(rounds):
            action = bandit.predict()
            bandit.partial_fit([action], [rewards[action]])

    def play_batch(rounds: int) -> None:
        # Without context a decision is asked for by itself; only feedback comes in batches.
        actions = [bandit.predict() for _ in range(rounds)]
        bandit.partial_fit(actions, [rewards[action] for rewards, action in zip(first(rounds), actions, strict=True)])

    return play_batch if batches else play


def river(policy: str) -> Play:
    from river import bandit

    rule: Any = bandit.UCB(delta=1, seed=42) if policy == "UCB" else bandit.EpsilonGreedy(epsilon=EPSILON, seed=42)
    actions: Any = list(range(10))

    def play(rounds: int) -> None:
        for rewards in first(rounds):
            action = rule.pull(actions)
            rule.update(action, rewards[action])

    return play


def pymab(policy: str) -> Play:
    from pymab import policies

    kinds = {
        "greedy": lambda: policies.EpsilonGreedyPolicy(n_arms=10, epsilon=EPSILON),
        "UCB": lambda: policies.UCBPolicy(n_arms=10),
        "Thompson": lambda: policies.BernoulliThompsonSamplingPolicy(n_arms=10),
    }
    rule, rng = kinds[policy](), np.random.default_rng(42)
    assert rule.backend == "rust"

    def play(rounds: int) -> None:
        for rewards in first(rounds):
            action = rule.select_action(rng=rng)
            rule.update(action=action, reward=rewards[action])

    return play


def pymab_simulated(rounds: int) -> None:
    """A whole experiment in Rust, its world included."""
    from pymab import BanditEnvironment, BernoulliReward, Experiment, ExperimentConfig
    from pymab.policies import UCBPolicy

    environment = BanditEnvironment(means=np.array(MEANS), reward_model=BernoulliReward())
    config = ExperimentConfig(horizon=rounds, n_replicates=1, seed=42, backend="rust")
    Experiment(environment=environment, policies={"ucb": UCBPolicy(n_arms=10)}, config=config).run()


def vowpalwabbit(keeps: bool) -> Play:
    """Epsilon-greedy. Examples are text, as in its tutorials; or made once a label and kept, which decides the same."""
    from vowpalwabbit import Workspace

    workspace, rng = Workspace(f"--cb_explore 10 --epsilon {EPSILON} --quiet"), random.Random(42)
    example: Any = functools.cache(workspace.example) if keeps else str

    def play(rounds: int) -> None:
        for rewards in first(rounds):
            draw, action, probability = rng.random(), 0, 0.0
            for action, probability in enumerate(workspace.predict(example("|"))):  # noqa: B007
                draw -= probability
                if draw < 0:
                    break
            workspace.learn(example(f"{action + 1}:{-rewards[action]}:{probability} |"))

    return play


def rows() -> list[tuple[str, Play, int]]:
    """What is timed, and how many rounds a turn has."""
    peers = ("mabwiser", "pymab", "river", "vowpalwabbit")
    mab, pym, riv, vow = (f"{name} {importlib.metadata.version(name)}" for name in peers)
    return [
        ("debora, free, ask and tell", one_by_one("free"), 50_000),
        ("debora, soft with two costs, ask and tell", one_by_one("soft"), 50_000),
        (f"{mab}, epsilon-greedy, predict and partial_fit", mabwiser("greedy"), 500),
        (f"{mab}, UCB1, predict and partial_fit", mabwiser("UCB1"), 500),
        (f"{pym}, epsilon-greedy, select_action and update", pymab("greedy"), 10_000),
        (f"{pym}, UCB, select_action and update", pymab("UCB"), 10_000),
        (f"{pym}, Thompson, select_action and update", pymab("Thompson"), 10_000),
        (f"{riv}, epsilon-greedy, pull and update", river("greedy"), 10_000),
        (f"{riv}, UCB, pull and update", river("UCB"), 5_000),
        (f"{vow}, epsilon-greedy, predict and learn", vowpalwabbit(keeps=False), 5_000),
        (f"{vow}, epsilon-greedy, the same with examples kept", vowpalwabbit(keeps=True), 5_000),
        ("debora, free, ask_many and tell_many of 1e6", many("free"), BATCH),
        ("debora, soft with two costs, ask_many and tell_many of 1e6", many("soft"), BATCH),
        (f"{mab}, UCB1, predict, then one partial_fit of 1e4", mabwiser("UCB1", batches=True), 10_000),
        (f"{pym}, UCB, simulated by Experiment.run", pymab_simulated, 100_000),
    ]


def simulations() -> dict[str, list[Play]]:
    """Whole runs of a million rounds and of a thousand million."""
    return {
        "debora, free, simulated by whole epochs": [simulated("free", 1e6), simulated("free", 1e9)],
        "debora, soft with two costs, simulated by whole epochs": [simulated("soft", 1e6), simulated("soft", 1e9)],
    }


def seconds(play: Play, rounds: int) -> float:
    begun = time.process_time()
    play(rounds)
    return time.process_time() - begun


def duration(taken: float) -> str:
    """In the unit that a reader would choose, to two digits."""
    units = {"d": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3}
    unit = next((unit for unit, size in units.items() if taken >= size), "ms")
    return f"{float(f'{taken / units[unit]:.2g}'):g} {unit}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9)
    turns = parser.parse_args().turns
    measured, whole = rows(), simulations()
    for _, play, rounds in measured:
        play(rounds // 10)
    times: list[list[float]] = [[] for _ in measured]
    runs: dict[str, list[list[float]]] = {what: [[] for _ in plays] for what, plays in whole.items()}
    for _ in range(turns):
        for (_, play, rounds), row in zip(measured, times, strict=True):
            row.append(seconds(play, rounds) / rounds)
        for what, plays in whole.items():
            for play, run in zip(plays, runs[what], strict=True):
                run.append(seconds(play, RUNS) / RUNS)

    print("| what | us a round | decisions/s | times debora's ask and tell | 1e6 rounds | 1e9 rounds |")
    print("|---|---|---|---|---|---|")
    for (what, _, _), row in zip(measured, times, strict=True):
        one = statistics.median(row)
        ratio = statistics.median(mine / asked for mine, asked in zip(row, times[0], strict=True))
        rate = f"{1 / one:.1e}".replace("e+0", "e")
        extrapolated = " | ".join(f"~ {duration(one * rounds)}" for rounds in (1e6, 1e9))
        print(f"| {what} | {one * 1e6:.3g} | {rate} | {ratio:.{0 if ratio > 10 else 2}f} | {extrapolated} |")
    for what, both in runs.items():
        print(f"| {what} | | | | {' | '.join(duration(statistics.median(run)) for run in both)} |")


if __name__ == "__main__":
    main()
