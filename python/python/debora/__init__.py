"""Bandit experiments whose decisions replicate, within limits.

Two runs with the same key, each on its own fresh data, take the same decisions in every round with probability at least
1 - rho; costs stay within their thresholds on average (soft) or in every round (hard).

>>> import debora
>>> problem = debora.Problem(actions=["a", "b"], horizon=20_000, rho=0.5)
>>> engine = debora.Engine(problem, key=42)
>>> for decision in engine:
...     told = engine.tell(decision.round, [0.25, 0.75][decision.action])  # your world answers here
>>> engine.strategy
array([0., 1.])

:class:`Problem` says what can be asked, :class:`Engine` is for your own loop, :func:`run`, :func:`replicate`,
:func:`compare` and :func:`sweep` simulate a :class:`Spec`, :func:`player` lets a class of yours race,
:class:`Measurement` and :func:`merge` share the work out over machines, :class:`Client` asks and tells a live
experiment.
"""

from debora import worlds
from debora._debora import (
    VALUES_VERSION,
    Conflict,
    Decision,
    Decisions,
    Engine,
    Error,
    Measurement,
    Problem,
    Spec,
    ToldMany,
    Waiting,
    World,
    __version__,
)
from debora._lab import compare, merge, replicate, run, sweep
from debora._players import Player, RoundPlayer, StretchPlayer, player
from debora._records import (
    EpochRecord,
    Estimate,
    Level,
    Looks,
    LookTest,
    ObservedMean,
    Pick,
    Plan,
    PlannedLook,
    Prospect,
    Recommendation,
    Trial,
)
from debora._results import Comparison, Replication, RunResult, Sweep
from debora.client import Behind, Client, Served, ServedMany, ServiceError

__all__ = [
    "VALUES_VERSION",
    "Behind",
    "Client",
    "Comparison",
    "Conflict",
    "Decision",
    "Decisions",
    "Engine",
    "EpochRecord",
    "Error",
    "Estimate",
    "Level",
    "LookTest",
    "Looks",
    "Measurement",
    "ObservedMean",
    "Pick",
    "Plan",
    "PlannedLook",
    "Player",
    "Problem",
    "Prospect",
    "Recommendation",
    "Replication",
    "RoundPlayer",
    "RunResult",
    "Served",
    "ServedMany",
    "ServiceError",
    "Spec",
    "StretchPlayer",
    "Sweep",
    "ToldMany",
    "Trial",
    "Waiting",
    "World",
    "__version__",
    "compare",
    "merge",
    "player",
    "replicate",
    "run",
    "sweep",
    "worlds",
]
