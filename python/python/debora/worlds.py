"""Worlds to simulate, in the words of the spec file's ``[world]``: for the ``world`` of a :class:`debora.Spec`.

Means and values are in the user's units. A list has one entry for each action, in their order; a dictionary goes by
their names. Costs go by theirs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

__all__ = ["bernoulli", "beta", "discrete", "random", "table"]

Means: TypeAlias = Sequence[float] | Mapping[str, float]
"""A mean for each action."""

Law: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""Values, and their probabilities."""

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


def table(file: str | os.PathLike[str], *, key: int | str | None = None) -> dict[str, Any]:
    """Recorded rows: each pull draws one of its action, with replacement.

    The file is CSV with the header action, reward and the costs' names, in any order.
    """
    return {"kind": "table", "file": os.fspath(file)} | _keyed(key)


def random(
    law: Literal["uniform", "gap", "stairs", "sparse"],
    *,
    gap: float | None = None,
    worlds: int = 1,
    index: int = 0,
    key: int | str | None = None,
) -> dict[str, Any]:
    """Means drawn by the key, within the ranges or the declared means; pair j meets world number index + j mod worlds.

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
