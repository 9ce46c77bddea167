"""What was found, as plain objects: numbers, arrays, the JSON contract, a table, a figure."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from debora import _figures
from debora._answer import Answer, html, text
from debora._debora import Error, Grid, Part

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.uint64]


class Result:
    """What every result has: the document of the JSON contract, and the program's answer."""

    def __init__(self, document: dict[str, Any], answer: Answer) -> None:
        self._document = document
        self._answer = answer
        self.name: str | None = document["name"]
        """What the experiment is called."""
        self.blind: bool = document["blind"]
        """Whether the horizon was too short for anything to be compared."""
        self.warnings: list[str] = document["warnings"]
        """What a person must know before anything else."""
        self.gaps: list[dict[str, Any]] = document["gaps"]
        """Differences of the world's means, the hardest to see first, and whether the horizon is sure to see them."""

    def to_dict(self) -> dict[str, Any]:
        """The document of the JSON contract, as the program writes it to ``summary.json``."""
        return deepcopy(self._document)

    def __repr__(self) -> str:
        return text(self._answer)

    def _repr_html_(self) -> str:
        return html(self._answer)


class RunResult(Result):
    """One run. Regret is in the reward's units, violation in shares of a cost's range."""

    def __init__(
        self,
        *,
        document: dict[str, Any],
        answer: Answer,
        trace: list[dict[str, Any]],
        checkpoints: Counts,
        regret_curve: Floats,
        violation_curve: Floats,
        actions: list[str],
        first_rounds: Counts,
        strategies: Floats,
    ) -> None:
        super().__init__(document, answer)
        self.rounds: int = document["rounds"]
        """Rounds played."""
        self.epochs: int = document["epochs"]
        """Stretches of one strategy."""
        self.digest: str = document["digest"]
        """Over all strategies: with one key, equal digests mean equal decisions."""
        self.regret: float | None = document["regret"]
        """``None`` if no strategy is safe, or if the world is a function, whose means are not known."""
        self.violation: float | None = document["violation"]
        """The largest total excess over a threshold."""
        self.decided_by: str | None = document["decided_by"]
        """How one action was found to be played for good, commit or pick; ``None`` if none was."""
        self.decided_at: int | None = document["decided_at"]
        """The round from which it is played."""
        self.committed: bool = self.decided_by == "commit"
        """Whether the run committed to an action before its trial was over."""
        self.lost_at_most: float | None = document["lost_at_most"]
        """What the run's own record says was lost at most, in the reward's units."""
        self.reward_mean: float = document["reward_mean"]
        """The mean reward observed."""
        self.actions = actions
        """The names of the actions."""
        self.trace = trace
        """A line for each epoch, as in the program's ``--trace``."""
        self.checkpoints = checkpoints
        """The rounds at which the curves are read."""
        self.regret_curve = regret_curve
        """Regret so far at each checkpoint; empty if no strategy is safe or the world is a function."""
        self.violation_curve = violation_curve
        """Violation so far at each checkpoint."""
        self.first_rounds = first_rounds
        """The first round of each stretch of one strategy."""
        self.strategies = strategies
        """The strategy of each stretch, a column for each action."""
        self.counts = np.array(document["counts"], dtype=np.uint64)
        """Rounds per action."""
        self.final_strategy = np.array(document["final_strategy"])
        """The last strategy."""

    def to_pandas(self) -> pd.DataFrame:
        """A row for each stretch of one strategy: its first round, and the probability of each action by name."""
        # One frame beside another, as an action may be called first_round.
        frame = _frame(self.strategies, columns=self.actions)
        frame.insert(0, "first_round", self.first_rounds, allow_duplicates=True)
        return frame

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The strategy over time."""
        return _figures.strategies(_figures.axes_of(ax), self.first_rounds, self.strategies, self.rounds, self.actions)


class Measured(Result):
    """What replications and comparisons share."""

    def __init__(self, part: Part) -> None:
        self._part = part
        found = part.findings()
        document: dict[str, Any] = found["document"]
        super().__init__(document, found["answer"])
        self.broken: list[dict[str, Any]] = document["broken"]
        """The promises that were measured as broken, with 99.9 % confidence; empty if all is well."""
        self.checkpoints: Counts = found["checkpoints"]
        """The rounds at which the curves are read."""
        self._found = found

    @property
    def seconds(self) -> float | None:
        """How long the measurement took; None after a merge."""
        return sum(self._part.seconds) if self._part.seconds else None

    def _lines(self, axes: Axes, kind: str, labels: Sequence[str]) -> None:
        if kind not in ("regret", "violation", "identical"):
            raise Error(f"kind is {kind!r}; choose regret, violation or identical, or strategy of a replication")
        curves = [self._part.curve(place, kind) for place in range(len(labels))]
        if not any(map(len, curves)):
            why = "no strategy is safe in this world" if kind == "regret" else "there are no costs"
            raise Error(f"there is no {kind} to plot: {why}")
        for place, (curve, label) in enumerate(zip(curves, labels, strict=True)):
            if len(curve):
                _figures.line(axes, curve, label, _figures.look_of(place))

    def _label(self, kind: str) -> str:
        return f"regret ({self._found['reward']})" if kind == "regret" else kind

    def to_bytes(self) -> bytes:
        """The whole measurement as the bytes of one part, for :func:`debora.merge` and the program."""
        return self._part.to_bytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.to_bytes(),)


class Replication(Measured):
    """Pairs of runs. Regret is in the reward's units, violation in shares of a cost's range."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        document = self._document
        self.pairs: int = document["pairs"]
        """How many pairs there are."""
        self.identical: int = document["identical"]
        """How many were identical."""
        self.identical_rate: float = document["identical_rate"]
        """Their share."""
        self.interval: list[float] = document["interval"]
        """Two-sided 95 % Clopper-Pearson interval of that rate."""
        self.promised: float = document["promised"]
        """1 - rho."""
        self.same_conclusion: dict[str, float | None] = document["same_conclusion"]
        """How often runs with other keys end at the same strategy (``other_keys``), and at the best one (``best``)."""
        self.committed: int = document["committed"]
        """How many runs, two a pair, committed to an action clearly ahead."""
        columns = part.columns(0)
        self.identical_pairs: npt.NDArray[np.bool_] = columns["identical"]
        """Whether each pair took the same decisions in every round."""
        self.regret = np.column_stack([columns["regret_1"], columns["regret_2"]])
        """A row for each pair, a column for each of its runs."""
        self.violation = np.column_stack([columns["violation_1"], columns["violation_2"]])
        """The largest total excess over a threshold, shaped as the regret."""
        self.first_rounds: Counts = self._found["first_rounds"]
        """The first round of each stretch of pair 0's first run."""
        self.strategies: Floats = self._found["strategies"]
        """The strategy of each of these stretches."""

    @property
    def regret_curves(self) -> Floats:
        """Regret so far: by pair, run and checkpoint; empty if no strategy is safe."""
        return self._curves(0)

    @property
    def violation_curves(self) -> Floats:
        """Violation so far: by pair, run and checkpoint."""
        return self._curves(1)

    def _curves(self, which: Literal[0, 1]) -> Floats:
        curves = self._part.curves(0)[which]
        return curves.reshape(len(curves) // 2, 2, curves.shape[1])

    def to_pandas(self) -> pd.DataFrame:
        """A row for each pair: whether and where it diverged, and what both runs cost. Action and quantity by name."""
        columns: dict[str, Any] = self._part.columns(0)
        for column, names in (("split_action", self._found["actions"]), ("split_quantity", self._found["quantities"])):
            columns[column] = [None if np.isnan(number) else names[int(number)] for number in columns[column]]
        return _frame(columns)

    def plot(
        self, kind: Literal["regret", "violation", "identical", "strategy"] = "regret", *, ax: Axes | None = None
    ) -> Axes:
        """Regret or violation beside the bound; the share identical up to a round; or the first run's strategy."""
        axes = _figures.axes_of(ax)
        if kind == "strategy":
            rounds = int(self.checkpoints[-1])
            return _figures.strategies(axes, self.first_rounds, self.strategies, rounds, self._found["actions"])
        self._lines(axes, kind, ["measured"])
        if kind == "identical":
            return _figures.shares(axes, self.promised)
        _figures.bound(axes, self.checkpoints, self._found[f"{kind}_bound"])
        return _figures.amounts(axes, self._label(kind))


class Comparison(Measured):
    """The policy beside its rivals."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        document = self._document
        self.rows: list[dict[str, Any]] = document["rows"]
        """A row for each player; debora first."""
        self.players: list[str] = [row["player"] for row in self.rows]
        """Their names."""

    def columns(self, player: str) -> dict[str, npt.NDArray[Any]]:
        """A player's pairs as arrays: whether and where they diverged, and what both runs cost."""
        return self._part.columns(self._place(player))

    def regret_curves(self, player: str) -> Floats:
        """A player's regret so far: by run and checkpoint; empty if no strategy is safe."""
        return self._part.curves(self._place(player))[0]

    def violation_curves(self, player: str) -> Floats:
        """A player's violation so far: by run and checkpoint."""
        return self._part.curves(self._place(player))[1]

    def _place(self, player: str) -> int:
        if player not in self.players:
            raise Error(f"no player {player!r}; there are {', '.join(self.players)}")
        return self.players.index(player)

    def to_pandas(self) -> pd.DataFrame:
        """A row for each player, the numbers of the JSON contract in columns such as ``regret.mean``."""
        rows = [_flat(row) for row in self._document["rows"]]
        return _frame(rows).set_index("player")

    def to_latex(self) -> str:
        """The table for papers, with booktabs: intervals in brackets, the best in bold."""
        return self._part.latex()

    def plot(self, kind: Literal["regret", "violation", "identical"] = "regret", *, ax: Axes | None = None) -> Axes:
        """Each player's regret or violation, median and 5 % and 95 % quantiles of its runs; or its identical pairs."""
        axes = _figures.axes_of(ax)
        self._lines(axes, kind, self.players)
        if kind == "identical":
            return _figures.shares(axes, self.rows[0]["promised"])
        return _figures.amounts(axes, self._label(kind))


class Sweep:
    """A measurement at every point of a grid."""

    def __init__(self, grid: Grid, parts: Sequence[Part]) -> None:
        self._swept = grid.swept(parts)
        found = self._swept.findings()
        self._document: dict[str, Any] = found["document"]
        self._answer: Answer = found["answer"]
        self._reward: str = found["reward"]
        self.names: list[str] = grid.names
        """The parameters; ``spec`` first, if there are several."""
        found_points = self._document["points"]
        self.points: list[dict[str, Any]] = [
            {name: point["values"][name] for name in self.names} for point in found_points
        ]
        """The values of each point, the last parameter changing first."""
        self.results: list[Replication | Comparison] = [_result(part) for part in parts]
        """What was found at each point."""

    def to_dict(self) -> dict[str, Any]:
        """The document of the JSON contract, as the program writes it to ``sweep.json``."""
        return deepcopy(self._document)

    def to_pandas(self) -> pd.DataFrame:
        """A row for each point and player, the numbers of the JSON contract in columns such as ``regret.mean``."""
        rows = []
        for values, result in zip(self.points, self.results, strict=True):
            document = result.to_dict()
            found = document["rows"] if isinstance(result, Comparison) else [{"player": "debora"} | document]
            rows += [values | _flat(row) for row in found]
        return _frame(rows).set_index([*self.names, "player"])

    def to_latex(self) -> str:
        """The table for papers, with booktabs: intervals in brackets, the best of each point in bold."""
        return self._swept.latex()

    def plot(self, kind: Literal["regret", "violation", "identical"] = "regret", *, ax: Axes | None = None) -> Axes:
        """Regret, violation or identical pairs against the parameter with most values: the program's figure.

        There is a line for each player and each value of the other parameters, in the player's colour and the value's
        dashes: twelve at most.
        """
        if kind not in ("regret", "violation", "identical"):
            raise Error(f"kind is {kind!r}; choose regret, violation or identical")
        drawn = self._swept.lines(kind)
        if drawn is None:
            why = "no strategy is safe in these worlds" if kind == "regret" else "there are no costs"
            raise Error(f"there is no {kind} to plot: {why}")
        label = {"regret": f"regret ({self._reward})", "identical": "identical pairs"}.get(kind, kind)
        return _figures.swept(_figures.axes_of(ax), drawn, label)

    def __repr__(self) -> str:
        return text(self._answer)

    def _repr_html_(self) -> str:
        return html(self._answer)


def _result(part: Part) -> Replication | Comparison:
    return Comparison(part) if part.verb == "compare" else Replication(part)


def _restored(part: bytes) -> Measured:
    return _result(Part.merge([part]))


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict) and name != "first_split":
            flat |= {f"{name}.{inner}": number for inner, number in value.items()}
        elif name != "first_split":
            flat[name] = value
    return flat


def _frame(data: Any, columns: list[str] | None = None) -> pd.DataFrame:
    try:
        import pandas
    except ImportError:
        raise ImportError("pandas is not installed; install it, or the extra: pip install 'debora[pandas]'") from None
    return pandas.DataFrame(data, columns=columns)
