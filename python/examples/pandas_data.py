"""Replay a pandas data set: each decision draws a recorded row of its action, batch by batch.

python pandas_data.py [recorded.csv]
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import debora

recorded = Path(__file__).resolve().parents[2] / "examples/recorded.csv"
data = pd.read_csv(sys.argv[1] if len(sys.argv) > 1 else recorded)

problem = debora.Problem(
    policy="soft",
    actions=data["action"].unique(),
    horizon=1e6,
    rho=0.3,
    reward={"name": "visits", "range": (0, 3)},
    costs={"unsubscribed": {"threshold": 0.1}},
)
groups = [data[data["action"] == action] for action in problem.actions]
rewards, costs = ([group[column].to_numpy(dtype=float) for group in groups] for column in ("reward", "unsubscribed"))
sizes = np.array([len(group) for group in groups])

chance = np.random.default_rng(1)
engine = debora.Engine(problem, key=5)
while len(batch := engine.ask_many(100_000)):
    rows = chance.integers(sizes[batch.actions])
    reward, cost = np.empty(len(batch)), np.empty(len(batch))
    for action in range(len(groups)):
        of = batch.actions == action
        reward[of], cost[of] = rewards[action][rows[of]], costs[action][rows[of]]
    engine.tell_many(batch.rounds, reward, cost)

table = data.groupby("action")[["reward", "unsubscribed"]].mean().loc[list(problem.actions)]
print(table.assign(strategy=engine.strategy, rounds=engine.counts).round(3))
print(engine.recommendation())
