"""A player of one's own in the race: Thompson sampling in Python, beside debora and the rivals.

python own_player.py
"""

import numpy as np

import debora


class Thompson:
    """The action with the largest draw from its posterior, in every round."""

    def __init__(self, problem: debora.Problem, key: int) -> None:
        self.chance = np.random.default_rng(key)  # both runs of a pair have this key
        self.ones = np.zeros(len(problem.actions))
        self.zeros = np.zeros(len(problem.actions))

    def strategy(self) -> np.ndarray:
        """All on the largest draw."""
        drawn = self.chance.beta(self.ones + 1, self.zeros + 1)
        return np.where(np.arange(len(drawn)) == drawn.argmax(), 1.0, 0.0)

    def tell(self, actions: list[int], rewards: list[float], costs: list[list[float]]) -> None:
        """Counts a round."""
        for action, reward in zip(actions, rewards, strict=True):
            self.ones[action] += reward
            self.zeros[action] += 1 - reward


problem = debora.Problem(actions=["a", "b", "c"], horizon=3_000, rho=0.3)
spec = debora.Spec(problem, key=42, world=debora.worlds.bernoulli(reward=[0.4, 0.5, 0.6]), name="three actions")
print(debora.compare(spec, players=["thompson", "ucb1", debora.player("mine", Thompson)], pairs=20))
