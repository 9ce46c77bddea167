"""Feedback that the extension cannot read in place: other types, other layouts, lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from debora._debora import Error


def rounds(values: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Rounds as the engine numbers them: whole and not negative."""
    array = _shaped(values, "rounds", 1)
    if array.size == 0:
        return np.empty(0, dtype=np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"rounds are {array.dtype} numbers; give whole ones, such as those of ask_many")
    if array.dtype.kind == "i" and array.min() < 0:
        raise Error(f"round {array.min()} does not exist; rounds begin with 1")
    return np.require(array, np.uint64, ["C", "A"])


def values(given: npt.ArrayLike, what: str, dimensions: int) -> npt.NDArray[np.float64]:
    """Rewards or costs as doubles; costs of one kind may come without their second dimension."""
    array = _shaped(given, what, dimensions)
    if array.dtype.kind not in "fiub" and array.size > 0:
        raise TypeError(f"{what} are of type {array.dtype}; give real numbers")
    return np.require(array, np.float64, ["C", "A"])


def columns(named: Sequence[npt.ArrayLike]) -> npt.NDArray[np.float64]:
    """One array for each cost, side by side."""
    arrays = [values(column, "costs", 1) for column in named]
    lengths = sorted({len(array) for array in arrays})
    if len(lengths) > 1:
        raise Error(f"the arrays of costs have {lengths[0]} to {lengths[-1]} entries; give one for each round")
    return np.column_stack(arrays)


def _shaped(given: npt.ArrayLike, what: str, dimensions: int) -> npt.NDArray[Any]:
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise Error(f"{what} are not an array: {error}") from None
    if dimensions == 2 and array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != dimensions:
        wanted = "one entry for each round" if dimensions == 1 else "a row for each round and a column for each cost"
        raise Error(f"{what} have the shape {array.shape}; give {wanted}")
    return array
