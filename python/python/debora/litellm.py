"""Asks debora which deployment of a LiteLLM router answers a request, and tells what the answer was worth and cost.

>>> import debora.litellm                                                             # doctest: +SKIP
>>> routing = debora.litellm.Routing(router, client, "chat", reward=quality)          # doctest: +SKIP
>>> router.set_custom_routing_strategy(routing)                                       # doctest: +SKIP
>>> litellm.callbacks.append(routing)                                                 # doctest: +SKIP
>>> router.completion("chat", messages)                                               # doctest: +SKIP

Needs the extra ``debora[litellm]``. The decision travels in the ``model_info`` of the deployment that is called, so
retries, fallbacks, streams and calls side by side each tell their own round. Every attempt is a decision of its own: a
retry asks again. What another deployment answered, as after a fallback to another group, is never told.
"""

from __future__ import annotations

import asyncio
import math
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

from litellm.integrations.custom_logger import CustomLogger
from litellm.types.router import CustomRoutingStrategyBase

from debora._debora import Decision, Engine, Error, Problem, Spec
from debora.client import Client, Served

__all__ = ["Routing"]

Measure: TypeAlias = Callable[[dict[str, Any], Any], float]
"""From what LiteLLM gives to its callbacks, the call's keywords and the response, to a number."""


Place: TypeAlias = tuple[int, int | None, int | None]
"""Which decision: its epoch, round and, outside the horizon, serial."""


class Routing(CustomLogger, CustomRoutingStrategyBase):  # type: ignore[misc]
    """One experiment on one model group: LiteLLM's routing strategy and its logger in one object.

    ``experiment`` is a :class:`debora.Client`, or a :class:`debora.Engine` for one process. ``group`` is the model name
    that callers use; requests for others, and for a specific deployment, go to the strategy that the router had before.
    Each action is the deployment with this id, or else the only one with this model name; ``deployments`` maps actions
    to ids where they are called otherwise.

    ``reward`` is yours. The cost "price" is LiteLLM's ``response_cost``, in dollars, and "latency" the seconds of the
    call, to a stream's end; ``costs`` has a function for each other one. A value beyond its range is told as the end of
    the range (``outside="clip"``), or the outcome is not told ("refuse").

    A call that fails is told with the ``failure``'s values: "worst", numbers by quantity, or "leave" to tell nothing.
    What is not told stays outstanding, and the service imputes it after the spec's ``outcome_wait``.

    Where debora has no decision (it waits for outcomes, it is over, it does not answer) the action ``otherwise``
    is played and nothing is told; without one the caller gets the exception.

    ``counts`` says how often each happened: told, failed, undecided, left, refused, error, and clipped by quantity.
    """

    def __init__(
        self,
        router: Any,
        experiment: Client | Engine,
        group: str,
        *,
        reward: Measure,
        costs: Mapping[str, Measure] | None = None,
        deployments: Mapping[str, str] | None = None,
        outside: Literal["clip", "refuse"] = "clip",
        failure: Literal["worst", "leave"] | Mapping[str, float] = "worst",
        otherwise: str | None = None,
    ) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self._experiment = experiment
        self._group = group
        self._problem = _problem(experiment)
        self._deployments = _deployments(router, self._problem.actions, deployments or {})
        self._measures = _measures(self._problem, reward, costs or {})
        self._failure = _failure(self._problem, failure)
        self._clip = _one_of("outside", outside, ("clip", "refuse")) == "clip"
        if otherwise is not None and otherwise not in self._deployments:
            raise Error(f"otherwise is {otherwise!r}, which is not an action; give one of {_listed(self._deployments)}")
        self._otherwise = otherwise
        # Bound now: once this strategy is set, the router's own methods are hidden behind it.
        self._before = router.get_available_deployment
        self._before_async = router.async_get_available_deployment
        # Callbacks hear of every router's calls, so each must know its own. Public, since LiteLLM takes two loggers for
        # the same one if their public attributes are equal, and would never call the second.
        self.id = uuid.uuid4().hex
        self._open: dict[Place, Served | Decision] = {}
        self._ending: set[Place] = set()
        self._lock = threading.Lock()

    @property
    def outstanding(self) -> int:
        """Calls that were decided here and whose end was not yet told: they run, or LiteLLM has not yet said so."""
        with self._lock:
            return len(self._open)

    def get_available_deployment(self, model: str, *rest: Any, **request: Any) -> Any:
        """The deployment to call: LiteLLM asks."""
        if model != self._group or request.get("specific_deployment"):
            return self._before(model, *rest, **request)
        return self._decide()

    async def async_get_available_deployment(self, model: str, *rest: Any, **request: Any) -> Any:
        """As :meth:`get_available_deployment`, without holding up the event loop."""
        if model != self._group or request.get("specific_deployment"):
            return await self._before_async(model, *rest, **request)
        return await asyncio.to_thread(self._decide)

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: datetime, end_time: datetime) -> None:
        """Tells what the call was worth, cost and took: LiteLLM says how it ended."""
        self._answered(kwargs, response_obj, (end_time - start_time).total_seconds())

    async def async_log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: datetime, end_time: datetime
    ) -> None:
        """As :meth:`log_success_event`, without holding up the event loop."""
        await asyncio.to_thread(self._answered, kwargs, response_obj, (end_time - start_time).total_seconds())

    def log_failure_event(self, kwargs: Any, response_obj: Any, start_time: datetime, end_time: datetime) -> None:
        """Tells a failure as it was configured."""
        self._failed(kwargs)

    async def async_log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: datetime, end_time: datetime
    ) -> None:
        """As :meth:`log_failure_event`, without holding up the event loop."""
        await asyncio.to_thread(self._failed, kwargs)

    def _decide(self) -> dict[str, Any]:
        try:
            decision = self._experiment.ask()
            if decision is None:
                raise Error(f"the experiment on {self._group!r} is over; deploy what it recommends, or give otherwise")
        except (Error, OSError):
            if self._otherwise is None:
                raise
            self._count("undecided")
            return self._deployments[self._otherwise]
        overtime = getattr(decision, "overtime", None)
        with self._lock:
            self._open[decision.epoch, decision.round, overtime] = decision
        mark = {"routing": self.id, "epoch": decision.epoch, "round": decision.round, "overtime": overtime}
        deployment = self._deployments[decision.name]
        # Not in the request's metadata: callers share such a dictionary between requests, and it outlives a fallback.
        return deployment | {"model_info": deployment["model_info"] | {"debora": mark}}

    def _ended(self, kwargs: Any, outcome: Callable[[Served | Decision], str]) -> None:
        """Carries out once what is to be told of this call, if it was decided here, and counts what it was."""
        mark = ((kwargs.get("litellm_params") or {}).get("model_info") or {}).get("debora") or {}
        if mark.get("routing") != self.id:
            return
        place = (mark["epoch"], mark["round"], mark["overtime"])
        with self._lock:
            decision = self._open.get(place)
            # LiteLLM may repeat what it says.
            if decision is None or place in self._ending:
                return
            self._ending.add(place)
        # LiteLLM logs what raises and goes on: a program can see only the count.
        what = "error"
        try:
            what = outcome(decision)
        finally:
            with self._lock:
                # Only now, so that nothing is outstanding means that all is told.
                del self._open[place]
                self._ending.remove(place)
                self.counts[what] += 1

    def _answered(self, kwargs: Any, response: Any, seconds: float) -> None:
        def outcome(decision: Served | Decision) -> str:
            # The cache may hold what another deployment answered, and has neither its price nor its latency.
            if kwargs.get("cache_hit"):
                return "left"
            values = {name: float(measure(kwargs, response)) for name, measure in self._measures.items()}
            fitting = self._fit({"latency": seconds} | values)
            return "refused" if fitting is None else self._tell(decision, fitting, "told")

        self._ended(kwargs, outcome)

    def _failed(self, kwargs: Any) -> None:
        values = self._failure
        self._ended(kwargs, lambda decision: "left" if values is None else self._tell(decision, values, "failed"))

    def _fit(self, values: dict[str, float]) -> dict[str, float] | None:
        """The values within their ranges; None if they are refused."""
        fitting = {}
        for name, (low, high) in self._problem.ranges.items():
            value = values[name]
            # A number that is not one has no nearest end.
            if not math.isfinite(value) or (not self._clip and not low <= value <= high):
                return None
            fitting[name] = min(max(value, low), high)
            if fitting[name] != value:
                self._count(f"clipped {name}")
        return fitting

    def _tell(self, decision: Served | Decision, values: Mapping[str, float], what: str) -> str:
        costs = {name: values[name] for name in self._problem.costs}
        self._experiment.tell(decision, values[self._problem.reward], costs)  # type: ignore[arg-type]
        return what

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1


def _problem(experiment: Client | Engine) -> Problem:
    if isinstance(experiment, Engine):
        return experiment.problem
    return Spec.from_toml(experiment.seal()["spec"]).problem


def _deployments(router: Any, actions: tuple[str, ...], named: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    known: list[dict[str, Any]] = router.model_list
    if strangers := [name for name in named if name not in actions]:
        raise Error(f"deployments has {_listed(strangers)}, not among the actions {_listed(actions)}")
    found = {}
    for action in actions:
        name = named.get(action, action)
        matching = [one for one in known if one["model_info"]["id"] == name]
        matching = matching or [one for one in known if one["model_name"] == name]
        if len(matching) != 1:
            ids = _listed(one["model_info"]["id"] for one in known)
            raise Error(
                f"action {action!r}: {len(matching)} deployments of the router have the id or model name {name!r}; "
                f"give it one as deployments={{{action!r}: id}}, of the ids {ids}"
            )
        found[action] = matching[0]
    return found


def _measures(problem: Problem, reward: Measure, costs: Mapping[str, Measure]) -> dict[str, Measure]:
    """A function for the reward and each cost but "latency", which comes with every call."""
    if strangers := [name for name in costs if name not in problem.costs]:
        raise Error(f"costs has {_listed(strangers)}, not among the spec's costs {_listed(problem.costs)}")
    if missing := [name for name in problem.costs if name not in {"price", "latency", *costs}]:
        raise Error(f"the spec's costs {_listed(missing)} have no function; give one for each in costs")
    priced = {"price": _price} if "price" in problem.costs else {}
    return {problem.reward: reward, **priced, **costs}


def _price(kwargs: dict[str, Any], _: Any) -> float:
    price = kwargs.get("response_cost")
    if price is None:
        raise Error(f"LiteLLM knows no price of {kwargs.get('model')!r}; give its deployment input_cost_per_token")
    return float(price)


def _failure(problem: Problem, failure: str | Mapping[str, float]) -> dict[str, float] | None:
    quantities = (problem.reward, *problem.costs)
    if isinstance(failure, str):
        if _one_of("failure", failure, ("worst", "leave")) == "leave":
            return None
        return {name: problem.ranges[name][name != problem.reward] for name in quantities}
    if set(failure) != set(quantities):
        raise Error(f"failure has values of {_listed(failure)}; give those of {_listed(quantities)}")
    for name, value in failure.items():
        low, high = problem.ranges[name]
        if not low <= value <= high:
            raise Error(f"failure has {name} {value}, outside its range [{low:g}, {high:g}]")
    return dict(failure)


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise Error(f"{name} is {value!r}; give one of {_listed(choices)}")
    return value


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))
