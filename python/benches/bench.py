"""Decisions from Python: debora's engine beside the bandits of mabwiser and river, ten actions, no context.

    pip install -r benches/requirements.txt
    python benches/bench.py

The feedback lies ready, so the world costs nothing. Times are microseconds of processor a round, for a decision and its
feedback: the least of several repeats. Processor time, since on a busy machine the clock measures the others.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

import debora

MEANS = [0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80]
COSTS = [(0.1 * (action + 1), 1 - 0.1 * action) for action in range(10)]
BATCH = 1_000_000

Play = Callable[[int], None]
"""Plays this many rounds."""


def engine(policy: Literal["free", "soft"]) -> debora.Engine:
    """Past its exploration, as an engine in use is: under soft constraints the strategy is then a mixture."""
    costs = {} if policy == "free" else {"price": {"threshold": 0.5}, "wait": {"threshold": 0.6}}
    actions = [f"action {number}" for number in range(10)]
    problem = debora.Problem(policy=policy, actions=actions, horizon=1e9, rho=0.1, costs=costs)
    playing = debora.Engine(problem, key=42)
    while playing.record.kind == "explore":
        batch = playing.ask_many(BATCH)
        feedback = np.array(COSTS)[batch.actions] if costs else None
        playing.tell_many(batch.rounds, np.array(MEANS)[batch.actions], feedback)
    return playing


def one_by_one(policy: Literal["free", "soft"]) -> Play:
    playing = engine(policy)
    ask, tell, costs = playing.ask, playing.tell, [()] * 10 if policy == "free" else COSTS

    def play(rounds: int) -> None:
        for _ in range(rounds):
            decision = ask()
            assert decision is not None
            action = decision.action
            tell(decision.round, MEANS[action], costs[action])

    return play


def many(policy: Literal["free", "soft"]) -> Play:
    playing = engine(policy)
    # Not by action, which would add the time numpy takes to look it up.
    rewards = np.resize(MEANS, BATCH)
    costs = None if policy == "free" else np.resize(COSTS, (BATCH, 2))

    def play(rounds: int) -> None:
        while rounds:
            batch = playing.ask_many(rounds)
            count = len(batch)
            playing.tell_many(batch.rounds, rewards[:count], None if costs is None else costs[:count])
            rounds -= count

    return play


def mabwiser(policy: str, batches: bool) -> Play:
    from mabwiser.mab import MAB, LearningPolicy

    rule = LearningPolicy.UCB1(alpha=1.25) if policy == "UCB1" else LearningPolicy.EpsilonGreedy(epsilon=0.1)
    bandit = MAB(arms=list(range(10)), learning_policy=rule, seed=42)
    bandit.fit(list(range(10)), MEANS)

    def play(rounds: int) -> None:
        for _ in range(rounds):
            action = bandit.predict()
            bandit.partial_fit([action], [MEANS[action]])

    def play_batch(rounds: int) -> None:
        # Without context a decision is asked for by itself; only feedback comes in batches.
        actions = [bandit.predict() for _ in range(rounds)]
        bandit.partial_fit(actions, [MEANS[action] for action in actions])

    return play_batch if batches else play


def river(policy: str) -> Play:
    from river import bandit

    rule: Any = bandit.UCB(delta=1, seed=42) if policy == "UCB" else bandit.EpsilonGreedy(epsilon=0.1, seed=42)
    actions: Any = list(range(10))

    def play(rounds: int) -> None:
        for _ in range(rounds):
            action = rule.pull(actions)
            rule.update(action, MEANS[action])

    return play


def microseconds(play: Play, rounds: int, repeats: int) -> float:
    """The least time of a round over the repeats."""
    play(rounds // 10)
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        play(rounds)
        times.append(time.process_time() - begun)
    return min(times) / rounds * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    names = {name: f"{name} {importlib.metadata.version(name)}" for name in ("mabwiser", "river")}
    rows: list[tuple[str, Play, int]] = [
        ("debora, free, ask and tell", one_by_one("free"), 50_000),
        ("debora, soft with two costs, ask and tell", one_by_one("soft"), 50_000),
        (f"{names['river']}, epsilon-greedy, pull and update", river("greedy"), 5_000),
        (f"{names['river']}, UCB, pull and update", river("UCB"), 2_000),
        (f"{names['mabwiser']}, epsilon-greedy, predict and partial_fit", mabwiser("greedy", batches=False), 500),
        (f"{names['mabwiser']}, UCB1, predict and partial_fit", mabwiser("UCB1", batches=False), 500),
        ("debora, free, ask_many and tell_many of 1e6", many("free"), 1_000_000),
        ("debora, soft with two costs, ask_many and tell_many of 1e6", many("soft"), 1_000_000),
        (f"{names['mabwiser']}, UCB1, predict, then one partial_fit of 1e4", mabwiser("UCB1", batches=True), 10_000),
    ]
    times = [microseconds(play, rounds, repeats) for _, play, rounds in rows]
    print("| what | us a round | times debora's ask and tell |")
    print("|---|---|---|")
    for (what, _, _), one in zip(rows, times, strict=True):
        ratio = one / times[0]
        print(f"| {what} | {one:.3g} | {ratio:.{0 if ratio > 10 else 2}f} |")


if __name__ == "__main__":
    main()
