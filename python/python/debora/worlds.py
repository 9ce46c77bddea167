"""Worlds to simulate, in the words of the spec file's ``[world]``: for the ``world`` of a :class:`debora.Spec`. And
:func:`function`, a world that is code, which no file can hold: for the ``world`` of :func:`debora.replicate` and
:func:`debora.compare`.

Means and values are in the user's units. A list has one entry for each action, in their order; a dictionary goes by
their names. Costs go by theirs.
"""

from __future__ import annotations

import collections.abc
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Function", "bernoulli", "beta", "discrete", "function", "random", "table"]

Means: TypeAlias = Sequence[float] | Mapping[str, float]
"""A mean for each action."""

Law: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""Values, and their probabilities."""

_Draw: TypeAlias = collections.abc.Callable[[int, int, np.random.Generator], Any]
"""What an action (its number) gives so many times, drawn from a generator: rewards, or rewards and costs."""

MEANS_DRAWS = 100_000
"""How often each action is drawn where its means are not given: regret is then right to about 1/300 of a range."""

Laws: TypeAlias = Sequence[Law] | Mapping[str, Law]
"""A law for each action."""


def bernoulli(
    *, reward: Means, costs: Mapping[str, Means] | None = None, key: int | str | None = None
) -> dict[str, Any]:
    """Each quantity is one of its range's two ends, with this mean.

    >>> import debora
    >>> debora.worlds.bernoulli(reward=[0.4, 0.6])
    {'kind': 'bernoulli', 'reward': [0.4, 0.6]}
    """
    return _world("bernoulli", reward, costs, key)


def beta(
    *,
    reward: Means,
    costs: Mapping[str, Means] | None = None,
    concentration: float = 10.0,
    key: int | str | None = None,
) -> dict[str, Any]:
    """Each quantity has a beta law with this mean; the larger the concentration, the closer to it.

    It is drawn sample by sample: not for long horizons.
    """
    return _world("beta", reward, costs, key, concentration=concentration)


def discrete(*, reward: Laws, costs: Mapping[str, Laws] | None = None, key: int | str | None = None) -> dict[str, Any]:
    """Each quantity takes finitely many values, given as (values, probabilities) for each action.

    >>> import debora
    >>> world = debora.worlds.discrete(reward=[([0, 1], [0.2, 0.8]), ([0.9], [1])])
    >>> world["reward"][1]
    {'values': [0.9], 'probabilities': [1]}
    """
    named = {name: _laws(laws) for name, laws in (costs or {}).items()}
    return _world("discrete", _laws(reward), named, key)


def table(
    file: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None, key: int | str | None = None
) -> dict[str, Any]:
    """Recorded rows: each pull draws one of its action, with replacement.

    The file is CSV with the header action, reward and the costs' names, in any order. ``columns`` says which columns
    these are if they are called otherwise, as ``{"reward": "clicks"}``; all others are then ignored.
    """
    named = {} if columns is None else {"columns": dict(columns)}
    return {"kind": "table", "file": os.fspath(file)} | named | _keyed(key)


class Function:
    """A world that is a function in Python, as :func:`function` makes it."""

    def __init__(
        self, draw: _Draw, *, reward: Means | None, costs: Mapping[str, Means] | None, key: int | str | None
    ) -> None:
        self.draw, self.reward, self.costs, self.key = draw, reward, dict(costs or {}), key
        self.name: str = getattr(draw, "__qualname__", type(draw).__qualname__)
        """What parts of a measurement know it by."""
        self._found: list[list[float]] | None = None

    def _means(self, actions: Sequence[str], costs: Sequence[str]) -> list[list[float]]:
        """Quantity by quantity the mean of each action: as given, or of many draws, the same in every process."""
        if self._found is None and self.reward is None:
            drawn = [self._draws(a, MEANS_DRAWS, a, costs).mean(axis=0) for a in range(len(actions))]
            self._found = np.transpose(drawn).tolist()
        elif self._found is None:
            missing = [name for name in costs if name not in self.costs]
            if missing:
                raise ValueError(f"the world has no means of the cost {missing[0]!r}; give costs, or no means at all")
            self._found = [_row(means, actions) for means in (self.reward, *(self.costs[name] for name in costs))]
        return self._found

    def _draws(self, action: int, count: int, key: int, costs: Sequence[str]) -> npt.NDArray[np.float64]:
        """A row for each draw: its reward and its costs."""
        # Philox takes the key as it is, so a generator costs microseconds and streams of two keys never meet.
        given = self.draw(action, count, np.random.Generator(np.random.Philox(key=key)))
        rewards, named = given if isinstance(given, tuple) else (given, {})
        missing = [name for name in costs if name not in named]
        if missing:
            raise ValueError(f"{self.name} gives no cost {missing[0]!r}; return rewards and a dictionary of costs")
        columns = [np.asarray(column, dtype=np.float64) for column in (rewards, *(named[name] for name in costs))]
        for column in columns:
            if column.shape != (count,):
                raise ValueError(f"{self.name} gives values of shape {column.shape} for {count} draws; give ({count},)")
        return np.column_stack(columns)


def function(
    draw: _Draw,
    *,
    reward: Means | None = None,
    costs: Mapping[str, Means] | None = None,
    key: int | str | None = None,
) -> Function:
    """A world of your own: ``draw(action, count, chance)`` gives so many rewards of an action, drawn from the numpy
    generator ``chance``; with costs a tuple of the rewards and a dictionary of costs.

    ``reward`` and ``costs`` are the true means, by which regret and violation are measured; without them each action is
    drawn 100,000 times. Draws must depend only on the generator: then a run is a function of its keys.

    >>> import debora
    >>> world = debora.worlds.function(lambda action, count, chance: chance.beta(2 + action, 2, count))
    >>> problem = debora.Problem(actions=["a", "b"], horizon=20_000, rho=0.5)
    >>> result = debora.replicate(debora.Spec(problem, key=42), pairs=20, world=world)
    >>> result.identical_rate >= 0.5
    True
    """
    return Function(draw, reward=reward, costs=costs, key=key)


def _row(means: Any, actions: Sequence[str]) -> list[float]:
    row = [means[name] for name in actions] if isinstance(means, Mapping) else list(means)
    if len(row) != len(actions):
        raise ValueError(f"the world has {len(row)} means where {len(actions)} are needed; give one for each action")
    return [float(mean) for mean in row]


def random(
    law: Literal["uniform", "gap", "stairs", "sparse"],
    *,
    gap: float | None = None,
    worlds: int = 1,
    index: int = 0,
    key: int | str | None = None,
) -> dict[str, Any]:
    """Means drawn by the key, each within its action's range; pair j meets world number index + j mod worlds.

    ``gap`` is in the reward's units; law uniform has none.

    >>> import debora
    >>> problem = debora.Problem(actions=4, horizon=1e6, rho=0.1)
    >>> spec = debora.Spec(problem, key=42, world=debora.worlds.random("gap", gap=0.2, worlds=100))
    >>> spec.world.means.round(12)
    array([[0.4, 0.4, 0.6, 0.4]])
    """
    given = {} if gap is None else {"gap": gap}
    return {"kind": "random", "law": law} | given | {"worlds": worlds, "index": index} | _keyed(key)


def _world(
    kind: str, reward: Any, costs: Mapping[str, Any] | None, key: int | str | None, **more: float
) -> dict[str, Any]:
    world: dict[str, Any] = {"kind": kind, "reward": reward}
    if costs:
        world["cost"] = dict(costs)
    return world | more | _keyed(key)


def _laws(laws: Laws) -> Any:
    def law(pair: Law) -> dict[str, Sequence[float]]:
        return {"values": pair[0], "probabilities": pair[1]}

    if isinstance(laws, Mapping):
        return {name: law(pair) for name, pair in laws.items()}
    return [law(pair) for pair in laws]


def _keyed(key: int | str | None) -> dict[str, Any]:
    return {} if key is None else {"key": key}
