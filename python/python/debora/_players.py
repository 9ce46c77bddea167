"""Players of one's own: a class in Python that races like a rival."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from debora._debora import Error, Problem

Probabilities: TypeAlias = Sequence[float] | npt.NDArray[np.float64]
"""One for each action, in their order; they sum to 1 within 1e-9."""


class RoundPlayer(Protocol):
    """A player that decides anew in every round."""

    def strategy(self) -> Probabilities:
        """The strategy of the next round."""

    def tell(self, actions: list[int], rewards: list[float], costs: list[list[float]]) -> None:
        """What the round gave, in the problem's units: lists with one entry for each round, of which there is one."""


class StretchPlayer(Protocol):
    """A player that holds a strategy for many rounds, which are simulated at once."""

    def strategy(self) -> Probabilities:
        """The strategy of the next rounds."""

    def rounds(self) -> int:
        """How many rounds it holds; the horizon may end them earlier."""

    def tell_sums(
        self, counts: npt.NDArray[np.uint64], rewards: npt.NDArray[np.float64], costs: npt.NDArray[np.float64]
    ) -> None:
        """How often each action was played, and the sums of its rewards and of its costs, a column for each cost."""


Make: TypeAlias = Callable[[Problem, int], RoundPlayer | StretchPlayer]
"""Makes a player before its first round, from the problem and a number that both runs of a pair have."""


@dataclass(frozen=True)
class Player:
    """A player of one's own, as :func:`debora.player` makes it."""

    name: str
    """What its row is called; not the name of a rival."""
    make: Make
    """Makes one for each run."""


def player(name: str, make: Make) -> Player:
    """A player of one's own for ``players`` of :func:`debora.compare` and ``player`` of :func:`debora.replicate`.

    ``make`` is a class, or any function, of the problem and a key: a whole number that both runs of a pair have. What a
    player draws it draws from ``numpy.random.default_rng(key)``, so that two runs differ only by their data.

    >>> import debora
    >>> class Uniform:
    ...     def __init__(self, problem, key):
    ...         self.probabilities = [1 / len(problem.actions)] * len(problem.actions)
    ...     def strategy(self):
    ...         return self.probabilities
    ...     def tell(self, actions, rewards, costs):
    ...         pass
    >>> problem = debora.Problem(actions=["a", "b"], horizon=1000, rho=0.5)
    >>> spec = debora.Spec(problem, key=42, world=debora.worlds.bernoulli(reward=[0.4, 0.6]))
    >>> rows = debora.compare(spec, players=[debora.player("uniform", Uniform)], pairs=5).rows
    >>> [(row["player"], row["identical_rate"], round(row["regret"]["mean"])) for row in rows]
    [('debora', 1.0, 33), ('uniform', 1.0, 100)]
    """
    if not name or not callable(make):
        raise Error(f"player({name!r}, {make!r}) needs a name and a class or function that makes a player")
    return Player(name, make)


def as_players(players: str | Sequence[str | Player] | None) -> list[Any] | None:
    """A list of nothing but names and players; a text holds names, with commas between them."""
    if players is None:
        return None
    if isinstance(players, str):
        # Its letters would be taken for names.
        return [name.strip() for name in players.split(",")]
    for one in players:
        if not isinstance(one, str | Player):
            raise Error(f"players has {one!r}; give the names of rivals, or debora.player(name, class)")
    return list(players)
