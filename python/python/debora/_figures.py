"""The figures of a report, by matplotlib: the same points, axes, colours and dashes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

COLOURS = ("#0072b2", "#bf5109", "#00805c", "#b4558c", "#a66f00", "#4a7fd6", "#7a5c14", "#6f6f6f")
"""Of players and actions; those of the program's files."""

# In grey, dashes tell lines apart where colours do not.
DASHES: tuple[Any, ...] = (
    "-",
    (0, (7, 4)),
    (0, (2, 4)),
    (0, (9, 4, 2, 4)),
    (0, (12, 4)),
    (0, (5, 3)),
    (0, (9, 4, 2, 4, 2, 4)),
    (0, (1, 3)),
)

# How many powers of ten an axis has on its longer side, before it is linear.
_POWERS = 5

# How many it has at most, where the results differ by more.
_POWERS_MAX = 9

_BOUND = "#5a6170"

# Above this many lines of a sweep, their intervals are upright lines.
_BANDS_MAX = 3


def axes_of(ax: Axes | None) -> Axes:
    """The caller's axes, or those of a figure of its own."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("matplotlib is not installed; install it, or the extra: pip install 'debora[plot]'") from None
    # Room is made for the legend below, which a figure that is saved would else cut off.
    return pyplot.figure(layout="constrained").add_subplot()


def line(axes: Axes, curve: Floats, label: str, look: tuple[str, Any]) -> None:
    """A curve with its band: round, value, low, high."""
    rounds, values, low, high = curve.T
    colour, dashes = look
    axes.plot(rounds, values, label=label, color=colour, linestyle=dashes)
    # Of a single run there is no band: it would be a line upon its line.
    if not np.isnan(low).all():
        axes.fill_between(rounds, low, high, alpha=0.18, color=colour, linewidth=0)


def look_of(place: int) -> tuple[str, Any]:
    """The colour and the dashes of player n."""
    return COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]


def bound(axes: Axes, rounds: npt.ArrayLike, values: npt.ArrayLike) -> None:
    """What a curve stays below."""
    axes.plot(rounds, values, linestyle=":", color=_BOUND, label="bound")


def amounts(axes: Axes, label: str, results: Iterable[float] | None = None) -> Axes:
    """Against rounds, both axes logarithmic, the upright one away from zero: regret and violation may be below it.

    The results, by default where each line ends, do not look like zero unless they are.
    """
    ends = np.array([axes.dataLim.y0, axes.dataLim.y1, 0.0])
    if not ends.any():
        ends[1] = 1.0
    largest = np.abs(ends).max()
    most = int(np.ceil(np.log10(largest) - 1e-9))
    if results is None:
        results = [float(np.asarray(one.get_ydata())[-1]) for one in axes.get_lines()]
    least = min((abs(one) for one in results if one != 0.0), default=largest)
    powers = min(max(most - int(np.floor(np.log10(least))), _POWERS), _POWERS_MAX)
    axes.set(xscale="log", xlabel="round", ylabel=label)
    axes.set_yscale("symlog", linthresh=10.0 ** (most - powers))
    # Zero and the powers on each side that are reached, as far as there is room: matplotlib's own choice crowds.
    every = 2 if powers > _POWERS and ends.min() < 0.0 else 1
    side = 10.0 ** np.arange(most, most - powers, -every)
    ticks = np.concatenate([-side, [0.0], side[::-1]])
    axes.set_yticks(ticks[(ticks >= ends.min()) & (ticks <= 1.001 * ends.max())], minor=False)
    axes.minorticks_off()
    # Margins on this scale: matplotlib's own are in data units, half the figure where nothing is.
    scale = axes.yaxis.get_transform()
    low, high = scale.transform([ends.min(), ends.max()])
    margin = 0.03 * (high - low)
    # None below zero where nothing is below it.
    below = margin if ends.min() < 0.0 else 0.0
    axes.set_ylim(*scale.inverted().transform([low - below, high + margin]))
    return legend(axes)


def shares(axes: Axes, promised: float) -> Axes:
    """Against rounds, from none to all, with what is promised."""
    axes.axhline(promised, linestyle="--", color="black", label="promised")
    axes.set(xscale="log", xlabel="round", ylabel="identical pairs", ylim=(0, 1.02))
    return legend(axes)


def strategies(
    axes: Axes, first: npt.NDArray[np.uint64], probabilities: Floats, rounds: int, names: Sequence[str]
) -> Axes:
    """Each stretch to the next one's first round; of many actions those played most, and the others together."""
    ends = np.append(first[1:].astype(np.float64), rounds)
    edges = np.column_stack([first.astype(np.float64), ends]).ravel()
    labels, rows, colours = _most_played(probabilities, ends - first.astype(np.float64), names)
    axes.stackplot(edges, np.repeat(rows, 2, axis=1), labels=labels, colors=colours, alpha=0.85)
    axes.set(xscale="log", xlabel="round", ylabel="probability", xlim=(1, max(rounds, 2)), ylim=(0, 1))
    return legend(axes)


def swept(axes: Axes, drawn: dict[str, Any], label: str) -> Axes:
    """The lines of a sweep against its parameter, or against rounds."""
    # Between two words there is nothing that a line or a band could stand for, and many bands cover each other.
    has_bands = not drawn["words"] and (drawn["name"] == "round" or len(drawn["lines"]) <= _BANDS_MAX)
    for name, (colour, dashes), points in drawn["lines"]:
        look = (COLOURS[colour], DASHES[dashes])
        if has_bands:
            line(axes, points, name, look)
        # Rounds are many, and dots at each would be a thick line.
        if drawn["name"] != "round":
            _dots(axes, points, name, look, has_bands=has_bands, is_connected=not drawn["words"])
    if label == "identical pairs":
        if drawn["promised"]:
            places, shares = zip(*drawn["promised"], strict=True)
            axes.plot(places, shares, linestyle="--", color="black", label="promised")
        axes.set(ylabel=label, ylim=(0, 1.02))
        legend(axes)
    else:
        # Against rounds only the ends are results.
        first = -1 if drawn["name"] == "round" else 0
        amounts(axes, label, [float(value) for *_, points in drawn["lines"] for value in points[first:, 1]])
    axes.set(xscale="log" if drawn["is_logarithmic"] else "linear", xlabel=drawn["name"])
    if drawn["words"]:
        axes.set_xticks(range(1, len(drawn["words"]) + 1), drawn["words"])
    elif drawn["name"] not in ("round", "horizon"):
        _value_ticks(axes, sorted({float(value) for *_, points in drawn["lines"] for value in points[:, 0]}))
    return axes


def _value_ticks(axes: Axes, values: list[float]) -> None:
    """The values themselves, as what lies between was not measured; but not so many that they run into each other."""
    places = axes.xaxis.get_transform().transform(np.array(values))
    apart = 0.05 * (places[-1] - places[0])
    kept = [0]
    for number in range(1, len(values)):
        if places[number] - places[kept[-1]] > apart:
            kept.append(number)
    axes.set_xticks([values[number] for number in kept], [f"{values[number]:g}" for number in kept])
    axes.minorticks_off()


def _dots(axes: Axes, points: Floats, name: str, look: tuple[str, Any], *, has_bands: bool, is_connected: bool) -> None:
    """The points of a line; with upright lines for their intervals, where there are no bands."""
    colour, dashes = look
    places, values, low, high = points.T
    if has_bands:
        axes.plot(places, values, "o", color=colour)
        return
    axes.plot(places, values, marker="o", color=colour, linestyle=dashes if is_connected else "none", label=name)
    axes.vlines(places, low, high, colors=colour, alpha=0.4)


def _most_played(probabilities: Floats, lengths: Floats, names: Sequence[str]) -> tuple[list[str], Floats, list[str]]:
    if len(names) <= len(COLOURS):
        return list(names), probabilities.T, list(COLOURS[: len(names)])
    # Stable, so that of equals the first comes first.
    order = np.argsort(-(lengths @ probabilities), kind="stable")
    most = np.sort(order[: len(COLOURS) - 1])
    rest = order[len(COLOURS) - 1 :]
    rows = np.vstack([probabilities.T[most], probabilities.T[rest].sum(axis=0)])
    return [*(names[action] for action in most), f"{len(rest)} others"], rows, [*COLOURS[: len(most)], _BOUND]


def legend(axes: Axes) -> Axes:
    """Below the figure, where a long name covers nothing."""
    labels = axes.get_legend_handles_labels()[1]
    longest = max((len(label) for label in labels), default=0)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        # As many as fit beside each other: a small letter is about a hundredth of the figure wide, a dash six.
        ncols=max(1, min(4, 90 // (longest + 8))),
        frameon=False,
        fontsize="small",
    )
    return axes
