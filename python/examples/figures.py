"""The figures of a report, with matplotlib: regret, violation, identical pairs, strategy, estimates.

python figures.py examples/model-routing.toml figures
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import debora

TITLES: dict[Any, str] = {
    "regret": "regret so far",
    "violation": "excess over the thresholds so far",
    "identical": "pairs that have not diverged",
    "strategy": "the first run's strategy",
    "estimates": "what the first run knew, with intervals",
}


def estimates(axes: Axes, spec: debora.Spec) -> None:
    """What each action is known to give, epoch by epoch: the estimates of the reward and their widths."""
    run, problem = debora.run(spec), spec.problem
    low, high = problem.ranges[problem.reward]
    for action, name in enumerate(problem.actions):
        made = [
            (epoch["first_round"], *(low + (high - low) * estimate[end] for end in ("estimate", "low", "high")))
            for epoch in run.trace
            for estimate in epoch["estimates"]
            if estimate["action"] == action and estimate["quantity"] == 0
        ]
        if made:
            rounds, middle, bottom, top = np.array([*made, (run.rounds, *made[-1][1:])]).T
            axes.step(rounds, middle, where="post", label=name)
            axes.fill_between(rounds, bottom, top, step="post", alpha=0.12)
    axes.set(xscale="log", xlabel="round", ylabel=problem.reward)


spec, folder = debora.Spec.from_toml(Path(sys.argv[1])), Path(sys.argv[2])
folder.mkdir(parents=True)
result = debora.replicate(spec, pairs=1000)
for kind, title in TITLES.items():
    # Without limits profile tight estimates nothing: it compares what it saw.
    if kind in ("violation", "estimates") and not spec.problem.costs:
        continue
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    estimates(axes, spec) if kind == "estimates" else result.plot(kind, ax=axes)
    axes.set_title(f"{result.name}: {title}")
    axes.margins(x=0)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.savefig(folder / f"{kind}.png", dpi=150)
