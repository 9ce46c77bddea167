"""A live experiment served by ``debora serve``, asked and told as an :class:`debora.Engine` is.

>>> from debora.client import Client
>>> client = Client.create("http://127.0.0.1:8080", spec)                             # doctest: +SKIP
>>> for decision in client:                                                           # doctest: +SKIP
...     reward, price = serve_request(decision.name)
...     client.tell(decision, reward, [price])

Whatever is not answered is repeated: each request for decisions carries a key of its own, with which the service gives
the same rounds again, and outcomes count once however often they are told. A client says which rounds it has seen, so
that a store which was restored without them gives nothing out twice. It may be used by many threads, and in a forked
process.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from debora._debora import Conflict, Error, Waiting

__all__ = ["Behind", "Client", "Served", "ServedMany", "ServiceError"]

FIRST_PATIENCE = 1.0
"""Seconds for which an address that never answered is tried: a wrong port should not take a minute to be found."""

Costs = float | Sequence[float] | Mapping[str, float]


class ServiceError(Error):
    """The service refused: ``code`` is stable, the message is for people."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        super().__init__(str(document.get("message", f"the service answered {status}")))
        self.status = status
        self.code = str(document.get("code", "unknown"))

    def __reduce__(self) -> tuple[type[ServiceError], tuple[int, dict[str, str]]]:
        return type(self), (self.status, {"message": str(self), "code": self.code})


class Behind(ServiceError):
    """The store, restored or a copy, has decided fewer rounds than this client has seen. Nothing is given out."""


@dataclass(frozen=True)
class Served:
    """A decision: play ``action``, called ``name``."""

    round: int | None
    """The round, from 1; None outside the horizon."""
    epoch: int
    action: int
    name: str
    probability: float
    overtime: int | None = None
    """Outside the horizon: the serial within the epoch. Such a decision counts in no estimate."""
    holdback: int | None = None
    """Held back from the experiment: the serial within the epoch. Such a decision is only compared with the others."""


class ServedMany(list[Served]):
    """Decisions of one epoch: one by one, or as arrays, with the names that :class:`debora.Decisions` has."""

    @property
    def epoch(self) -> int:
        """The epoch they belong to."""
        if not self:
            raise Error("there are no decisions, and so no epoch; the experiment is done")
        return self[0].epoch

    @property
    def rounds(self) -> npt.NDArray[np.uint64]:
        """The rounds, in order; 0 outside the horizon, where decisions are told as they are, not by their round."""
        return np.array([one.round or 0 for one in self], dtype=np.uint64)

    @property
    def actions(self) -> npt.NDArray[np.uint32]:
        """The number of the action to play in each round."""
        return np.array([one.action for one in self], dtype=np.uint32)

    @property
    def names(self) -> list[str]:
        """The name of the action to play in each round."""
        return [one.name for one in self]

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """With which probability the epoch's strategy plays it."""
        return np.array([one.probability for one in self])


class _Connection:
    """A connection of one thread of one process, closed when it is no longer held."""

    def __init__(self, parts: urllib.parse.SplitResult) -> None:
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.http = kind(parts.hostname or "", parts.port, timeout=30)
        self.process = os.getpid()

    def __del__(self) -> None:
        self.http.close()


class Client:
    """One experiment of a service.

    ``patience`` is for how many seconds a request without an answer is repeated, and outcomes of others are waited for.
    An address that never answered is given up after a second if nothing answers there.
    ``seen`` is the highest round seen so far; keep it and set it after a restart to have it checked across processes.
    """

    def __init__(self, url: str, experiment: str, *, api_key: str | None = None, patience: float = 60.0) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise Error(f"{url!r} is not the address of a service; give one such as http://127.0.0.1:8080")
        self.url = url.rstrip("/")
        self.experiment = experiment
        self.patience = patience
        self.seen = 0
        self._reached = False
        self._parts = parts
        self._api_key = api_key
        self._local = threading.local()

    @classmethod
    def create(
        cls,
        url: str,
        spec: str | Path,
        *,
        id: str | None = None,
        key: str | None = None,
        blind: bool = False,
        api_key: str | None = None,
        patience: float = 60.0,
    ) -> Client:
        """Creates an experiment from a spec (a file, or its text) without world and key. Safe to repeat.

        A ``key`` has 32 hexadecimal digits, as ``secrets.token_hex(16)`` draws them; without one the service draws it.
        """
        text = Path(spec).read_text() if isinstance(spec, Path) or "\n" not in spec else spec
        client = cls(url, id or uuid.uuid4().hex, api_key=api_key, patience=patience)
        body: dict[str, Any] = {"id": client.experiment, "spec": text, "blind": blind}
        client._call("POST", "/v1/experiments", body if key is None else body | {"key": key})
        return client

    def __repr__(self) -> str:
        return f"Client({self.url!r}, {self.experiment!r})"

    def ask(self, *, request_key: str | None = None) -> Served | None:
        """The next decision; None when the experiment is done.

        Raises :class:`debora.Waiting` while an epoch's outcomes are missing, and :class:`debora.Behind` if the store
        has decided fewer rounds than this client has seen.

        With a ``request_key`` of your own the same decision can be had again after a crash of this process. Where the
        spec holds some requests back, it decides who: give the name of the user.
        """
        decisions = self.ask_many(1, request_key=request_key)
        return decisions[0] if decisions else None

    def ask_many(self, rounds: float, *, request_key: str | None = None) -> ServedMany:
        """Up to this many decisions, fewer where the epoch ends; none when the experiment is done."""
        # A key of its own makes the request safe to repeat: a lost answer would otherwise cost its rounds.
        body = {"n": _whole(rounds), "request_key": request_key or _request_key(), "seen": self.seen}
        try:
            answer = self._call("POST", self._path("decisions"), body)
        except ServiceError as error:
            if error.code == "done":
                return ServedMany()
            raise
        decisions = ServedMany(
            Served(
                one["round"],
                one["epoch"],
                one["action"],
                one["name"],
                one["probability"],
                one.get("overtime"),
                one.get("holdback"),
            )
            for one in answer["decisions"]
        )
        # Rounds come in order. Threads may overwrite each other's by a lower one: the next answer makes up for it, and
        # a lock would not survive a fork.
        self.seen = max(self.seen, decisions[-1].round or 0)
        return decisions

    def __iter__(self) -> Iterator[Served]:
        """Decisions until the experiment is done; waits for outcomes that others owe, as long as its patience lasts."""
        while True:
            deadline = time.monotonic() + self.patience
            while True:
                try:
                    decision = self.ask()
                    break
                except Waiting:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.2)
            if decision is None:
                return
            yield decision

    def tell(
        self,
        round: int | Served | None = None,
        reward: float | None = None,
        costs: Costs = (),
        *,
        request_key: str | None = None,
        index: int | None = None,
    ) -> str:
        """Tells a decision's reward and costs: "recorded", "repeated", "late", "overtime" or "holdback".

        The decision is given by its ``round``, or by the ``request_key`` that it was given to, such as the targeting
        key of a feature flag; where that was given several decisions, ``index`` says which, from 0.
        Other feedback than was told before raises :class:`debora.Conflict`; the first stays.
        """
        if reward is None or (round is None) == (request_key is None):
            raise Error("tell a decision's reward, and give either its round or its request_key")
        if round is not None:
            return self.tell_many([round], [reward], [costs])[0]
        outcome = _feedback(reward, costs) | {"request_key": request_key}
        if index is not None:
            outcome["index"] = index
        return self._tell([outcome], [f"the decision of request_key {request_key!r}"])[0]

    def tell_many(
        self, rounds: Sequence[int | Served], rewards: Sequence[float], costs: Sequence[Costs] | None = None
    ) -> list[str]:
        """Tells many decisions, in any order; a receipt for each."""
        costs = [()] * len(rounds) if costs is None else costs
        if not len(rounds) == len(rewards) == len(costs):
            raise Error(
                f"{len(rounds)} rounds, {len(rewards)} rewards, {len(costs)} lists of costs; give one of each per round"
            )
        outcomes = [_outcome(*one) for one in zip(rounds, rewards, costs, strict=True)]
        return self._tell(outcomes, rounds)

    def _tell(self, outcomes: Sequence[dict[str, Any]], named: Sequence[object]) -> list[str]:
        receipts: list[str] = []
        # The service takes at most 10,000 a request.
        for start in range(0, len(outcomes), 10_000):
            receipts += self._call("POST", self._path("outcomes"), outcomes[start : start + 10_000])["receipts"]
        for one, receipt in zip(named, receipts, strict=True):
            if receipt == "conflict":
                raise Conflict(f"{one} was told before with other feedback; the first stays")
            if receipt == "unknown":
                raise Error(f"{one} was never decided in experiment {self.experiment!r}")
        return receipts

    def state(self) -> dict[str, Any]:
        """Where it stands: estimates beside what was observed (`means`), were `limits` kept, `alerts`, and more."""
        return self._call("GET", self._path("state"))

    def certificate(self) -> dict[str, Any]:
        """What remains of an experiment that is over, with its key."""
        return self._call("GET", self._path("certificate"))

    def seal(self) -> dict[str, Any]:
        """What is fixed before the first decision: publish it before."""
        return self._call("GET", self._path("seal"))

    def head(self) -> dict[str, Any]:
        """The newest head, which stands for all that is closed."""
        return self._call("GET", self._path("head"))

    def publish(self, where: str) -> str:
        """Notes in the log that the newest head is published, and returns the head: publish it there."""
        head: str = self._call("POST", self._path("publish"), {"where": where})["head"]
        return head

    def log(self) -> Iterator[dict[str, Any]]:
        """The log, line by line; ``debora audit`` recomputes it."""
        after: str | None = None
        while True:
            query = urllib.parse.urlencode({"limit": 1000} | ({"after": after} if after else {}))
            text, after = self._send("GET", f"{self._path('log')}?{query}", None)
            yield from (json.loads(line) for line in text.splitlines())
            if after is None:
                return

    def pause(self) -> None:
        """Decides nothing until resumed; outcomes are still taken."""
        self._call("POST", self._path("pause"))

    def resume(self) -> None:
        """Decides again."""
        self._call("POST", self._path("resume"))

    def close_experiment(self) -> None:
        """Ends the experiment before its horizon, for good."""
        self._call("POST", self._path("close"))

    def _path(self, what: str) -> str:
        return f"/v1/experiments/{urllib.parse.quote(self.experiment, safe='')}/{what}"

    def _call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        text, _ = self._send(method, path, body)
        answer: dict[str, Any] = json.loads(text)
        return answer

    def _send(self, method: str, path: str, body: object) -> tuple[str, str | None]:
        """Sends until there is an answer: every request of this class can be repeated."""
        # NaN and infinities are not JSON.
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        begun, pause = time.monotonic(), 0.05
        deadline = begun + self.patience
        while True:
            try:
                response = self._connection_request(method, path, data)
                status, text = response.status, response.read().decode()
                self._reached = True
                # Below 500 it has decided, so the same request would get the same answer; but 429 asks to come back.
                if status < 500 and status != 429:
                    return self._answer(status, text), response.headers.get("debora-next")
                failure: Exception = ServiceError(status, _document(text))
            except (OSError, http.client.HTTPException) as error:
                self._local.connection = None
                failure = error
            # Only what says that there is no server: one that is slow to answer is there.
            if not self._reached and isinstance(failure, ConnectionRefusedError | socket.gaierror):
                deadline = min(deadline, begun + FIRST_PATIENCE)
            if time.monotonic() + pause > deadline:
                if not isinstance(failure, ServiceError):
                    waited = min(self.patience, deadline - begun)
                    message = f"{self.url} did not answer within {waited:g} seconds ({failure}); is it serving?"
                    raise ConnectionError(message) from failure
                raise failure
            # Many clients that lost one server must not come back all at once.
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, 2.0)

    def _connection_request(self, method: str, path: str, data: bytes | None) -> http.client.HTTPResponse:
        connection: _Connection | None = getattr(self._local, "connection", None)
        # A forked process must not share its parent's connection.
        if connection is None or connection.process != os.getpid():
            connection = self._local.connection = _Connection(self._parts)
        headers = {"content-type": "application/json"}
        if self._api_key is not None:
            headers["authorization"] = f"Bearer {self._api_key}"
        connection.http.request(method, self._parts.path.rstrip("/") + path, data, headers)
        return connection.http.getresponse()

    @staticmethod
    def _answer(status: int, text: str) -> str:
        if status < 400:
            return text
        document = _document(text)
        if document.get("code") == "waiting":
            waiting = Waiting(document["message"])
            waiting.outstanding = document["outstanding"]
            raise waiting
        raise (Behind if document.get("code") == "behind" else ServiceError)(status, document)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_local"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _local=threading.local())


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {"message": text[:200]}
    return document if isinstance(document, dict) else {}


def _feedback(reward: float, costs: Costs) -> dict[str, Any]:
    listed: object
    if isinstance(costs, Mapping):
        listed = dict(costs)
    else:
        listed = [float(cost) for cost in (costs if isinstance(costs, Iterable) else [costs])]
    return {"reward": float(reward), "costs": listed}


def _outcome(round: int | Served, reward: float, costs: Costs) -> dict[str, Any]:
    outcome = _feedback(reward, costs)
    if not isinstance(round, Served):
        return outcome | {"round": int(round)}
    if round.round is None:
        held_back = round.holdback is not None
        serial = {"holdback": round.holdback} if held_back else {"overtime": round.overtime}
        return outcome | {"epoch": round.epoch} | serial
    return outcome | {"round": round.round}


def _whole(rounds: float) -> int:
    if rounds != int(rounds):
        raise Error(f"rounds is {rounds}; give a whole number")
    return int(rounds)


def _request_key() -> str:
    """Like no other, and growing with time: a store keeps such keys side by side and writes few pages for them."""
    return f"{time.time_ns():016x}{uuid.uuid4().hex[:16]}"
