"""Drive the engine from a function of your own: three prices for a ticket, and a limit on unhappy customers.

Two teams have the same key and each its own customers: with probability 1 - rho or more they decide alike throughout.
"""

import random
from collections.abc import Callable

import debora

PRICES = {"9 euros": 9.0, "12 euros": 12.0, "15 euros": 15.0}

problem = debora.Problem(
    policy="soft",
    actions=list(PRICES),
    horizon=400_000,
    rho=0.5,
    reward={"name": "income", "range": (0, 15)},
    costs={"complaints": {"threshold": 0.2}},
)


def customers(seed: int) -> Callable[[str], tuple[float, float]]:
    """One team's customers: what one of them pays, and whether there is a complaint."""
    chance = random.Random(seed)

    def buy(price: str) -> tuple[float, float]:
        euros = PRICES[price]
        buys = chance.random() < 1 - euros / 24
        complains = chance.random() < euros / 50
        return euros * buys, float(complains)

    return buy


def play(buy: Callable[[str], tuple[float, float]]) -> debora.Engine:
    """One team's experiment, round by round."""
    engine = debora.Engine(problem, key=42)
    for decision in engine:
        income, complaint = buy(decision.name)
        engine.tell(decision.round, income, complaint)
    return engine


here, there = play(customers(seed=1)), play(customers(seed=2))
print("same decisions in all", problem.horizon, "rounds:", here.digest == there.digest)
print(here.recommendation())
