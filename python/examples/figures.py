"""The figures of a report, with matplotlib: regret, violation, identical pairs, strategy, estimates.

    python figures.py examples/model-routing.toml figures --pairs 1000
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

import debora


def estimates(axes: Axes, spec: debora.Spec, run: debora.RunResult) -> Axes:
    """What each action is known to give, epoch by epoch: the estimates of the reward and their widths."""
    problem = spec.problem
    low, high = problem.ranges[problem.reward]
    for action, name in enumerate(problem.actions):
        made = [
            (epoch["first_round"], low + (high - low) * estimate["estimate"], (high - low) * estimate["width"])
            for epoch in run.trace
            for estimate in epoch["estimates"]
            if estimate["action"] == action and estimate["quantity"] == 0
        ]
        rounds, middle, width = np.array([*made, (run.rounds, *made[-1][1:])]).T
        axes.step(rounds, middle, where="post", label=name)
        axes.fill_between(rounds, middle - width, middle + width, step="post", alpha=0.2)
    axes.set(xscale="log", xlabel="round", ylabel=problem.reward, ylim=(low, high))
    axes.legend(loc="lower right")
    return axes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=1000)
    given = parser.parse_args()
    spec = debora.Spec.from_toml(given.spec)
    result, run = debora.replicate(spec, pairs=given.pairs), debora.run(spec)
    given.folder.mkdir(parents=True)
    for kind in ("regret", "violation", "identical", "strategy", "estimates"):
        figure = pyplot.figure(figsize=(6.4, 4), layout="constrained")
        axes = figure.add_subplot()
        axes = estimates(axes, spec, run) if kind == "estimates" else result.plot(kind, ax=axes)
        axes.set_title(f"{result.name}: {kind}")
        figure.savefig(given.folder / f"{kind}.png", dpi=150)


if __name__ == "__main__":
    main()
