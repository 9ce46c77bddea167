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
    """The grid's step: on the line where variance is constant, in profile paper as a share of the range."""
    width: float
    """Half-length of the confidence interval, likewise."""


@dataclass(frozen=True, repr=False)
class PlannedLook(Record):
    """A look of policy free. Leads are differences on the line: around a mean of 1/2 about shares of the range."""

    _shown = ("count", "round", "commits_from", "commits_at_most")

    count: int
    """Samples of every action."""
    round: int
    """The round after which it is made."""
    commits_from: float
    """The least lead that may commit."""
    commits_at_most: float
    """The lead that is sure to commit."""


@dataclass(frozen=True, repr=False)
class Trial(Record):
    """The trial of policy free: how long all actions are tried, when it looks, how it picks."""

    _shown = ("count", "looks", "scale")

    count: int
    """How often each action is tried."""
    looks: Annotated[list[PlannedLook], PlannedLook.read_all]
    """The looks for the median draw of their place, the first first."""
    scale: float
    """What a place on the line is multiplied by in the pick."""
    offset_c: float
    """The line's offset."""
    threshold: float
    """What a lead times the root of its count must exceed, for the least threshold."""
    picked_lead: float
    """The lead on the line that is picked with probability 90 %."""


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
    explore: float | None
    """The share of the horizon that exploration was asked to take."""
    caution: float | None
    """How much of an estimate's uncertainty counts against a cost; of policy soft."""
    rho_share: float | None
    """What each estimate may spend of rho; None where nothing is estimated."""
    delta_share: float | None
    """What each estimate may spend of delta."""
    offset_c: float | None
    """The offset of the line that estimates are rounded on."""
    blind: bool
    """Whether nothing will ever be compared: the horizon is too short for rho."""
    first_informative_count: int | None
    """The count at which actions are first estimated (tight), or from which widths are below 1/2 (paper)."""
    exploration_rounds: int | None
    """Rounds until all actions have that count."""
    levels: Annotated[list[Level], Level.read_all]
    """The levels that are estimated."""
    trial: Annotated[Trial | None, Trial.read_any]
    """The trial of policy free in profile tight; None if the plan is blind."""
    epochs_max: int
    """Epochs at most."""
    detectable: float | None
    """The difference in reward that is found with probability 90 %; None if none is."""
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

    _shown = ("action", "quantity", "count", "estimate", "low", "high")

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
    width: float
    """Half-length of the interval on the line."""
    estimate: float
    """The mean at the cell's middle."""
    low: float
    """The true mean is at least this, unless an event of probability delta happens."""
    high: float
    """The true mean is at most this, likewise."""


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
class Looks(Record):
    """When a run of policy free looks: a function of its key."""

    _shown = ("offset", "counts")

    offset: float
    """The draw behind the counts, in [0, 1)."""
    counts: list[int]
    """The samples of every action at each look, ascending."""


@dataclass(frozen=True, repr=False)
class LookTest(Record):
    """A look: policy free commits to the leader if its lead exceeds a keyed threshold."""

    _shown = ("look", "count", "leader", "runner_up", "lead", "threshold", "passed")

    look: int
    """Its number, from the last on."""
    count: int
    """The samples of every action."""
    means: list[float]
    """Their mean rewards, as shares of the range."""
    leader: int
    """The action with the largest mean, the first of equals."""
    runner_up: int
    """The one with the largest of the other means."""
    lead: float
    """The difference of their places on the line, times the root of the count."""
    uniform: float
    """The draw behind the threshold, in [0, 1)."""
    threshold: float
    """What the lead was compared with."""
    passed: bool
    """Whether the lead was above it."""


@dataclass(frozen=True, repr=False)
class Pick(Record):
    """The pick at the end of a trial: its action is played for good."""

    _shown = ("count", "action")

    count: int
    """The samples of every action."""
    means: list[float]
    """Their mean rewards, as shares of the range."""
    scale: float
    """What a place on the line is multiplied by."""
    uniforms: list[float]
    """Each action's draw, in [0, 1)."""
    action: int
    """The action picked."""


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
    kind: Literal["explore", "estimate", "infeasible", "commit", "pick"]
    """How its strategy was found: explore, estimate, infeasible, commit or pick."""
    rule: Literal["moderate", "optimistic", "mix", "plan"] | None
    """Which of its strategies a policy with limits plays; None of policy free."""
    candidate: Annotated[Floats, _floats]
    """The strategy before mixing with the safe one."""
    sigma: float
    """The weight of the safe strategy."""
    strategy: Annotated[Floats, _floats]
    """The strategy played."""
    counts: Annotated[Counts, _counts]
    """Rounds per action before the epoch."""
    test: Annotated[LookTest | None, LookTest.read_any]
    """The look made at its start, if one was due."""
    pick: Annotated[Pick | None, Pick.read_any]
    """The pick made at its start, if it was due."""
    estimates: Annotated[list[Estimate], Estimate.read_all]
    """The estimates made at its start."""
    looks: Annotated[Looks | None, Looks.read_any] = None
    """When the run looks: in the first record of policy free."""

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

    kind: Literal["explore", "estimate", "infeasible", "commit", "pick"]
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
