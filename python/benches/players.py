"""What a player written in Python costs a stretch, beside rivals of the library: ten actions, rewards of 0 and 1.

    python benches/players.py

Microseconds of processor time: the least of several repeats, as on a busy machine the clock measures the others.
"""

from __future__ import annotations

import time

import numpy as np

import debora

ACTIONS = 10
ROUNDS = 20_000
REPEATS = 5


class Idle:
    """Holds the uniform strategy and learns nothing: what remains is the way there and back."""

    def __init__(self, problem: debora.Problem, key: int) -> None:
        self.held = [1 / ACTIONS] * ACTIONS

    def strategy(self) -> list[float]:
        """The same list again."""
        return self.held

    def tell(self, actions: list[int], rewards: list[float], costs: list[list[float]]) -> None:
        """Nothing."""


class IdleArray(Idle):
    """The same with an array."""

    def __init__(self, problem: debora.Problem, key: int) -> None:
        self.array = np.full(ACTIONS, 1 / ACTIONS)

    def strategy(self) -> np.ndarray:  # type: ignore[override]
        """The same array again."""
        return self.array


class IdleStretch(IdleArray):
    """Stretches of a thousand rounds."""

    def rounds(self) -> int:
        """A thousand."""
        return 1_000

    def tell_sums(self, counts: np.ndarray, rewards: np.ndarray, costs: np.ndarray) -> None:
        """Nothing."""


def microseconds(player: str | debora.Player, rounds: int, stretches: int) -> float:
    """Of a stretch, over a pair of runs."""
    problem = debora.Problem(actions=[f"action {number}" for number in range(ACTIONS)], horizon=rounds, rho=0.3)
    means = [0.1 + 0.08 * number for number in range(ACTIONS)]
    spec = debora.Spec(problem, key=1, world=debora.worlds.bernoulli(reward=means))
    spent = []
    for _ in range(REPEATS):
        begun = time.process_time()
        debora.Measurement.replicate(spec, pairs=1, player=player).measure()
        spent.append(time.process_time() - begun)
    # A pair is two runs, and the first is played once more for its strategies.
    return min(spent) / (3 * stretches) * 1e6


if __name__ == "__main__":
    players: list[tuple[str, str | debora.Player, int, int]] = [
        ("ucb1, of the library", "ucb1", ROUNDS, ROUNDS),
        ("an idle player, a list a round", debora.player("idle", Idle), ROUNDS, ROUNDS),
        ("an idle player, an array a round", debora.player("idle", IdleArray), ROUNDS, ROUNDS),
        ("an idle player, stretches of 1,000 rounds", debora.player("idle", IdleStretch), 1_000 * ROUNDS, ROUNDS),
    ]
    for name, player, rounds, stretches in players:
        print(f"{name:44} {microseconds(player, rounds, stretches):8.2f} us a stretch")
