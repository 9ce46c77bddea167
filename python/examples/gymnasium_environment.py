"""Play an environment in the style of Gymnasium: reset, step, a reward, and a cost in the step's info.

Any object with these two methods will do. Gymnasium itself need not be there; if it is, this is one of its
environments.
"""

from typing import Any

import numpy as np

import debora

try:
    from gymnasium import Env
    from gymnasium.spaces import Discrete
except ImportError:
    Env, Discrete = object, int  # type: ignore[assignment, misc]


class Notifications(Env):  # type: ignore[misc, unused-ignore]
    """How to remind a reader: a visit is the reward, a mute the cost. One observation, one step an episode."""

    visit, mute = [0.10, 0.30, 0.60], [0.01, 0.05, 0.40]
    observation_space, action_space = Discrete(1), Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        if seed is not None:
            self.np_random = np.random.default_rng(seed)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        visits, mutes = self.np_random.random(2) < (self.visit[action], self.mute[action])
        return 0, float(visits), True, False, {"cost": float(mutes)}


def play(environment: Any, engine: debora.Engine, seed: int) -> None:
    """One step for each round; episodes begin again as they end."""
    environment.reset(seed=seed)
    for decision in engine:
        _, reward, terminated, truncated, info = environment.step(decision.action)
        engine.tell(decision.round, float(reward), info["cost"])
        if terminated or truncated:
            environment.reset()


if __name__ == "__main__":
    problem = debora.Problem(
        policy="soft", actions=["none", "badge", "push"], horizon=400_000, rho=0.5, costs={"mute": {"threshold": 0.2}}
    )
    engine = debora.Engine(problem, key=7)
    play(Notifications(), engine, seed=1)
    print(engine.epoch + 1, "epochs;", engine.recommendation())
