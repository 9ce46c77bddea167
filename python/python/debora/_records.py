"""What leaves a plan or an engine, as plain data.

The extension fills these classes from the JSON of the library's records, by name: a field that the library adds to a
record takes one line here, and is an error until it has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt

from debora._answer import Answer, html, text

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.uint64]
Document: TypeAlias = dict[str, Any]


def _floats(numbers: list[float]) -> Floats:
    return np.array(numbers, dtype=np.float64)


def _counts(numbers: list[int]) -> Counts:
    return np.array(numbers, dtype=np.uint64)


def _ends(interval: dict[str, float]) -> tuple[float, float]:
    return interval["low"], interval["high"]


def _number(value: float | None) -> float:
    # JSON has no NaN.
    return float("nan") if value is None else value


R = TypeVar("R", bound="Record")


@dataclass(frozen=True, repr=False)
class Record:
    """A record of the library."""

    _document: Document = field(compare=False)
    _shown: ClassVar[Sequence[str]] = ()
    _readers: ClassVar[dict[str, Callable[[Any], Any]]]

    def __init_subclass__(cls) -> None:
        # A type that JSON has otherwise is annotated with the function that reads it.
        hints = get_type_hints(cls, include_extras=True)
        cls._readers = {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}

    @classmethod
    def read(cls: type[R], document: Document, **others: Any) -> R:
        """The record of a document; the others are fields that the document does not have, or not as they are here."""
        given = {name: value for name, value in document.items() if name not in others}
        values = {name: cls._readers[name](value) if name in cls._readers else value for name, value in given.items()}
        return cls(document, **values, **others)

    @classmethod
    def read_all(cls: type[R], documents: list[Document]) -> list[R]:
        """A record for each document."""
        return [cls.read(document) for document in documents]

    @classmethod
    def read_any(cls: type[R], document: Document | None) -> R | None:
        """The record, if there is one."""
        return None if document is None else cls.read(document)

    def to_dict(self) -> Document:
        """The record as the program writes it: dictionaries, lists and numbers."""
        return deepcopy(self._document)

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self._shown)
        plain = ((name, value.tolist() if isinstance(value, np.ndarray) else value) for name, value in values)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in plain)})"


@dataclass(frozen=True, repr=False)
class Level(Record):
    """A count at which an action is estimated, with the grid's cell and the width there, as shares of a range."""

    _shown = ("level", "count", "cell", "width")

    level: int
    """Its number, from 0."""
    count: int
    """The number of samples."""
    cell: float
    """The grid's step, the largest over the quantities."""
    width: float
    """Half-length of the confidence interval, the largest over the quantities."""
    cells: list[float]
    """The grid's step of each estimated quantity."""
    widths: list[float]
    """Half-length of the confidence interval of each estimated quantity."""


@dataclass(frozen=True, repr=False)
class Clear(Record):
    """The clear test of policy free: when it is made, and where its thresholds begin."""

    _shown = ("stages", "c0", "c1")

    stages: list[int]
    """The counts of every action after which it is made, in increasing order."""
    c0: float
    """Where the thresholds of the last stage begin, in leads times the root of the count."""
    c1: float
    """Where the thresholds before the last stage begin."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Record):
    """Every constant of a run. Bounds are in the reward's units and in shares of a cost's range."""

    _answer: Answer
    warnings: list[str]
    """What a person must know before anything else."""
    profile: Literal["tight", "paper"]
    """tight or paper."""
    growth: int | None
    """By what counts grow between estimates; None in profile paper."""
    rho_share: float
    """What each estimate may spend of rho."""
    delta_share: float
    """What each estimate may spend of delta."""
    blind: bool
    """Whether nothing will ever be compared: the horizon is too short for rho."""
    first_informative_count: int | None
    """The count at which actions are first estimated (tight), or from which widths are below 1/2 (paper)."""
    exploration_rounds: int | None
    """Rounds until all actions have that count."""
    levels: Annotated[list[Level], Level.read_all]
    """The levels that are estimated."""
    clear: Annotated[Clear | None, Clear.read_any]
    """The clear test of policy free; None if there are too few rounds for one."""
    epochs_max: int
    """Epochs at most."""
    detectable_gap: float | None
    """Differences in reward above it show at the end."""
    regret_bound: float
    """The regret is at most this, with probability ``bound_probability``."""
    violation_bound: float | None
    """The violation is at most this, with probability ``bound_probability``."""
    bound_probability: float
    """The probability of the bounds."""
    horizon_needed: int | None
    """If blind: the smallest horizon known not to be."""
    rho_needed: float | None
    """If blind: any rho above this would not be."""
    values_version: int
    """The values version of its constants."""
    gap: float | None = None
    """The difference in reward that was asked for."""
    horizon_for_gap: int | None = None
    """The horizon at which it shows."""
    gaps: list[dict[str, Any]] = field(default_factory=list)
    """Differences of the world's means, the hardest to see first, and whether this horizon is sure to see them; empty
    without a world."""

    def to_dict(self) -> Document:
        """The document of ``debora plan --json``."""
        return super().to_dict()

    def __repr__(self) -> str:
        return text(self._answer)

    def _repr_html_(self) -> str:
        return html(self._answer)


@dataclass(frozen=True, repr=False)
class Estimate(Record):
    """One rounded mean and all that went into it, on the scale where its range is [0, 1]."""

    _shown = ("action", "quantity", "count", "estimate", "width")

    epoch: int
    """The epoch at whose start it was made."""
    action: int
    """The action."""
    quantity: int
    """The quantity; 0 is the reward."""
    level: int | None
    """The plan's level it was made at; None in profile paper, which estimates at any count."""
    count: int
    """The number of samples."""
    mean: float
    """Their mean, which no decision sees."""
    offset: float
    """The grid's shift in cells."""
    cell: float
    """The grid's step."""
    index: int | None
    """The cell that holds the mean; None if the cell is as wide as the range."""
    estimate: float
    """The cell's middle."""
    width: float
    """The true mean is this close to the estimate, unless an event of probability delta happens."""


@dataclass(frozen=True, repr=False)
class ObservedMean(Record):
    """The plain mean of what was told, in the user's units, with an interval valid at any time."""

    _shown = ("action", "quantity", "count", "mean", "low", "high")

    action: int
    """The action."""
    quantity: int
    """The quantity; 0 is the reward."""
    count: int
    """The number of outcomes."""
    mean: Annotated[float, _number]
    """Their mean, which no decision sees; NaN without one."""
    low: float
    """The true mean is at least this, at every look together, but for a chance of ``miss``."""
    high: float
    """The true mean is at most this."""


@dataclass(frozen=True, repr=False)
class ClearTest(Record):
    """A clear test: policy free commits to the leader if its lead exceeds a keyed threshold."""

    _shown = ("stage", "count", "leader", "runner_up", "lead", "threshold", "passed")

    stage: int
    """The stage it was made after, from 0."""
    count: int
    """The samples of every action."""
    means: list[float]
    """Their mean rewards, on the scale where the range is [0, 1]."""
    leader: int
    """The action with the largest mean, the first of equals."""
    runner_up: int
    """The one with the largest of the other means."""
    lead: float
    """The difference of their means, times the root of the count."""
    uniform: float
    """The draw behind the threshold, in [0, 1)."""
    threshold: float
    """What the lead was compared with."""
    passed: bool
    """Whether the lead was above it."""


@dataclass(frozen=True, eq=False, repr=False)
class EpochRecord(Record):
    """One epoch: a run of rounds under one strategy."""

    _shown = ("epoch", "first_round", "rounds", "kind", "strategy")

    epoch: int
    """Its number, from 0."""
    first_round: int
    """Its first round."""
    rounds: int
    """How many rounds it has; of an open epoch, how many are handed out."""
    kind: Literal["explore", "estimate", "infeasible", "commit"]
    """How its strategy was found: explore, estimate, infeasible or commit."""
    rule: Literal["mix", "plan"] | None
    """Which of its strategies policy hard plays, mix or plan; None for the others."""
    candidate: Annotated[Floats, _floats]
    """The strategy before mixing with the safe one."""
    sigma: float
    """The weight of the safe strategy."""
    strategy: Annotated[Floats, _floats]
    """The strategy played."""
    counts: Annotated[Counts, _counts]
    """Rounds per action before the epoch."""
    test: Annotated[ClearTest | None, ClearTest.read_any]
    """The clear test made at its start, if one was due."""
    estimates: Annotated[list[Estimate], Estimate.read_all]
    """The estimates made at its start."""

    def to_dict(self) -> Document:
        """A line of the program's trace."""
        return super().to_dict()


@dataclass(frozen=True, eq=False, repr=False)
class Prospect(Record):
    """A strategy with what it is known to give, in the user's units."""

    _actions: tuple[str, ...]
    strategy: Annotated[Floats, _floats]
    """A probability per action."""
    reward: Annotated[tuple[float, float], _ends]
    """Its expected reward lies in here."""
    costs: dict[str, tuple[float, float]]
    """Its expected costs lie in here, by name. All intervals hold together with probability 1 - delta."""

    def __repr__(self) -> str:
        # Of many actions a strategy plays a few, and only they are worth a line.
        played = ((name, share) for name, share in zip(self._actions, self.strategy, strict=True) if share > 0)
        shares = ", ".join(f"{name} {share:.4f}" for name, share in played)
        known = [("reward", self.reward), *self.costs.items()]
        intervals = [f"{name} {low:.4f} to {high:.4f}" for name, (low, high) in known]
        return f"{type(self).__name__}({'; '.join([shares, *intervals])})"


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation(Prospect):
    """What to deploy when the experiment ends: the current strategy, or the cautious one, and what they are known to
    give."""

    kind: Literal["explore", "estimate", "infeasible", "commit"]
    """How the current strategy was found. While exploring it says nothing about which action is best."""
    cautious: Prospect | None
    """The best strategy sure to keep every limit; None while nothing is estimated, or if no strategy is sure to."""

    @classmethod
    def named(cls, document: Document, actions: tuple[str, ...], costs: tuple[str, ...]) -> Recommendation:
        """The recommendation of a document, which has numbers for names."""

        def names(one: Document) -> dict[str, Any]:
            return {"_actions": actions, "costs": dict(zip(costs, map(_ends, one["costs"]), strict=True))}

        cautious = document["cautious"]
        if cautious is not None:
            cautious = Prospect.read(cautious, **names(cautious))
        return cls.read(document, cautious=cautious, **names(document))
