"""A live experiment's log, and the curves of a simulation, as Parquet files for DuckDB, pandas, Polars and Spark.

The log becomes a folder of tables, a row for each decision with what came of it, and a simulation's curves become one
file. Rows are written group by group, so memory does not grow with their number. Files appear whole or not at all, and
nothing is overwritten. Keys are left out: the tables may be shared while the experiment runs.

Needs pyarrow: ``pip install 'debora[export]'``.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import tempfile
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from debora._debora import VALUES_VERSION, Error, Spec
from debora._results import Comparison, Replication, RunResult, Sweep
from debora.client import Client

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    raise ImportError("pyarrow is not installed; install it, or the extra: pip install 'debora[export]'") from None

__all__ = ["curves", "log"]

ROWS_A_GROUP = 100_000
"""Rows written at once: some MB in memory, and enough for a reader to skip what it does not need."""

SPILL_BYTES = 1 << 25
"""Requests of one epoch that are kept in memory until their outcomes come; more of them wait in a temporary file."""

WORD = pa.dictionary(pa.int32(), pa.string())
TIME = pa.timestamp("ms", tz="UTC")


def log(source: str | os.PathLike[str] | Client, folder: str | os.PathLike[str], *, api_key: str | None = None) -> Path:
    """Writes the log of a live experiment as a new folder of tables.

    ``source`` is a downloaded log (``trial.jsonl``), the address of an experiment
    (``http://127.0.0.1:8080/v1/experiments/trial``, entered with ``api_key``), or a :class:`debora.Client`. The folder
    gets ``decisions.parquet``, ``uncounted.parquet``, ``epochs.parquet``, ``strategies.parquet``,
    ``estimates.parquet`` and ``events.parquet``; all values are in the user's units. A log is taken as it is:
    ``debora audit`` says whether it is true.
    """
    folder = Path(folder)
    if folder.exists():
        raise Error(f"{folder} exists; choose another folder, as nothing is overwritten")
    # Beside its place, as only within one file system a folder gets its name at once.
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    part.mkdir()
    try:
        with _LogTables(part) as tables:
            tables.read(_lines(source, api_key))
        part.rename(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return folder


def curves(result: RunResult | Replication | Comparison | Sweep, file: str | os.PathLike[str]) -> Path:
    """Writes the curves of a result as one new Parquet file: regret and violation so far, at each checkpoint.

    A row has the ``round``, the ``pair`` and ``run`` (0 or 1) it belongs to, ``regret`` and ``violation``; of a
    comparison also the ``player``, and of a sweep a column for each parameter. A number that does not exist is null.
    """
    file = Path(file)
    if file.exists():
        raise Error(f"{file} exists; choose another name, as nothing is overwritten")
    parameters = _parameters(result)
    schema = pa.schema(
        [(name, kind) for name, (kind, _) in parameters.items()]
        + [("player", WORD), ("pair", pa.int64()), ("run", pa.int8()), ("round", pa.int64())]
        + [("regret", pa.float64()), ("violation", pa.float64())]
    )
    document = json.dumps(result.to_dict())
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with _Table(part, schema) as table:
            for point, player, values in _measured(result):
                before = [values_of[point] for _, values_of in parameters.values()]
                table.extend([*before, player, *row] for row in values)
            table.describe({"values_version": str(VALUES_VERSION), "summary": document})
        part.rename(file)
    finally:
        part.unlink(missing_ok=True)
    return file


class _Table:
    """A Parquet file that is being written, a group of rows after another."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.schema = schema
        self.rows: list[Sequence[Any]] = []
        self.writer = pq.ParquetWriter(path, schema, compression="zstd")

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is None:
            self.flush()
        self.writer.close()

    def add(self, *row: Any) -> None:
        self.rows.append(row)
        if len(self.rows) >= ROWS_A_GROUP:
            self.flush()

    def extend(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self.add(*row)

    def flush(self) -> None:
        # A table without rows has its columns all the same, from the writer's schema.
        if not self.rows:
            return
        columns = zip(*self.rows, strict=True)
        arrays = [_array(values, field.type) for values, field in zip(columns, self.schema, strict=True)]
        self.writer.write_table(pa.Table.from_arrays(arrays, schema=self.schema))
        self.rows.clear()

    def describe(self, facts: dict[str, str]) -> None:
        """In the footer, as some are known only after the last row."""
        self.writer.add_key_value_metadata({f"debora.{name}": fact for name, fact in facts.items()})


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == WORD:
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, kind)


class _LogTables:
    """The tables of a log, filled line by line in the order that every log has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = ExitStack()
        self.closed: dict[str, Any] = {}
        self.epoch: dict[str, Any] | None = None
        self.asked: _Asked | None = None

    def __enter__(self) -> _LogTables:
        return self

    def __exit__(self, *failed: Any) -> None:
        self.stack.__exit__(*failed)

    def read(self, lines: Iterator[dict[str, Any]]) -> None:
        heading = next(lines, {})
        if heading.get("type") != "experiment":
            raise Error(
                "this is not a log: its first line has to be of type experiment; download one with /log/download"
            )
        self.head = heading["genesis"]
        self._open(Spec.from_toml(heading["spec"]))
        last = heading
        for number, last in enumerate(lines, 2):
            take = getattr(self, f"_{last.get('type')}", None) if last.get("type") in _TYPES else None
            if take is None:
                # Also the last line of a log that the service could not read to its end.
                raise Error(
                    f"line {number} of the log is of type {last.get('type')!r}: {last.get('message', 'unknown here')}"
                )
            take(last)
        if last["type"] != "state":
            raise Error("the log is cut off, as its last line is not of type state; download it again")
        self._end_epoch()
        self._describe(heading, last)

    def _open(self, spec: Spec) -> None:
        problem = spec.problem
        self.actions = problem.actions
        self.quantities = [problem.reward, *problem.costs]
        self.ranges = [problem.ranges[name] for name in self.quantities]
        # With a word in front: a cost may be called round.
        values = [("reward", pa.float64())] + [(f"cost_{name}", pa.float64()) for name in problem.costs]
        self.unknown = [None] * len(values)
        # No column is called at, which is a word of SQL.
        whole, word, number, flag = pa.int64(), WORD, pa.float64(), pa.bool_()
        asked = [("epoch", whole), ("round", whole), ("serial", whole)]
        asked += [("holdback", whole), ("action", word), ("probability", number)]
        asked += [("decided_at", TIME), ("asked_by", word), ("request_key", pa.string())]
        told = [*values, ("imputed", flag), ("told_at", TIME), ("told_by", word)]
        self.decisions = self._table("decisions", asked + told)
        uncounted = [
            ("kind", word),
            ("round", whole),
            ("epoch", whole),
            ("serial", whole),
            ("holdback", whole),
            *values,
        ]
        self.uncounted = self._table("uncounted", [*uncounted, ("told_at", TIME), ("told_by", word)])
        epoch = [("epoch", whole), ("kind", word), ("first_round", whole), ("rounds", whole)]
        epoch += [("opened_at", TIME), ("closed_at", TIME), ("early", flag), ("hash", pa.string())]
        self.epochs = self._table("epochs", epoch)
        played = [("epoch", whole), ("action", word), ("probability", number), ("count", whole)]
        self.strategies = self._table("strategies", played)
        estimate = [("epoch", whole), ("action", word), ("quantity", word), ("level", whole), ("count", whole)]
        estimate += [(name, number) for name in ("mean", "estimate", "width", "cell")]
        self.estimates = self._table("estimates", estimate)
        self.events = self._table(
            "events", [("happened_at", TIME), ("actor", word), ("what", word), ("reason", pa.string())]
        )

    def _table(self, name: str, columns: list[tuple[str, pa.DataType]]) -> _Table:
        return self.stack.enter_context(_Table(self.folder / f"{name}.parquet", pa.schema(columns)))

    def _describe(self, heading: dict[str, Any], state: dict[str, Any]) -> None:
        # Of a log that was read while the experiment went on, the counts are ahead of the lines.
        moved = state.get("moved", False)
        facts = {
            "experiment": heading["id"],
            "spec": heading["spec"],
            "values_version": str(heading["values_version"]),
            "key_hash": heading["key_hash"],
            "head": self.head if moved else state["progress"]["head"],
        }
        for table in (self.decisions, self.uncounted, self.epochs, self.strategies, self.estimates, self.events):
            table.describe(facts)

    def _epoch(self, line: dict[str, Any]) -> None:
        self._end_epoch()
        record = line["record"]
        self.epoch, self.closed, self.rounds = line, {}, 0
        self.asked = self.stack.enter_context(_Asked())
        self.strategy = record["strategy"]
        for action, probability in enumerate(self.strategy):
            self.strategies.add(record["epoch"], self.actions[action], probability, record["counts"][action])
        for one in record["estimates"]:
            low, high = self.ranges[one["quantity"]]
            span = high - low
            self.estimates.add(
                *(
                    one["epoch"],
                    self.actions[one["action"]],
                    self.quantities[one["quantity"]],
                    one["level"],
                    one["count"],
                ),
                *(low + span * one["mean"], low + span * one["estimate"], span * one["width"], span * one["cell"]),
            )

    def _end_epoch(self) -> None:
        self._end_rounds()
        if self.epoch is None:
            return
        record, closed = self.epoch["record"], self.closed
        self.epochs.add(
            *(record["epoch"], record["kind"], record["first_round"], self.rounds, self.epoch["opened_at"]),
            *(closed.get("closed_at"), closed.get("early", False), closed.get("hash")),
        )
        self.epoch = None

    def _decisions(self, line: dict[str, Any]) -> None:
        assert self.asked is not None
        self.rounds += len(line["actions"])
        self.asked.put(line)

    def _outcome(self, line: dict[str, Any]) -> None:
        assert self.asked is not None
        told = [line["reward"], *line["costs"], line["imputed"], line["at"], line.get("actor")]
        while (decision := self.asked.next()) is not None:
            if decision[0] == line["round"]:
                self._decided(*decision, told)
                return
            self._decided(*decision, [*self.unknown, None, None, None])
        raise Error(f"round {line['round']} has an outcome and was never decided; debora audit says what is wrong")

    def _end_rounds(self) -> None:
        """Those that nobody told yet."""
        if self.asked is None:
            return
        while (decision := self.asked.next()) is not None:
            self._decided(*decision, [*self.unknown, None, None, None])
        self.asked.close()
        self.asked = None

    def _decided(
        self,
        round: int | None,
        action: int,
        lease: dict[str, Any],
        told: list[Any],
        serial: int | None = None,
        holdback: int | None = None,
    ) -> None:
        # Those who are held back all get the action.
        chosen = (self.actions[action], self.strategy[action] if holdback is None else 1.0)
        asked = (lease["at"], lease.get("actor"), lease["request_key"])
        self.decisions.add(lease["epoch"], round, serial, holdback, *chosen, *asked, *told)

    def _overtime(self, line: dict[str, Any]) -> None:
        self._end_rounds()
        for serial, action in enumerate(line["actions"], line["first"]):
            # What came of it stands at the end of the log, long after this row is written.
            self._decided(None, action, line, [*self.unknown, None, None, None], serial)

    def _holdback(self, line: dict[str, Any]) -> None:
        self._end_rounds()
        for serial, action in enumerate(line["actions"], line["first"]):
            self._decided(None, action, line, [*self.unknown, None, None, None], holdback=serial)

    def _aside(self, line: dict[str, Any]) -> None:
        values = (line["reward"], *line["costs"], line["at"], line.get("actor"))
        self.uncounted.add("overtime", None, line["epoch"], line["serial"], None, *values)

    def _holdback_outcome(self, line: dict[str, Any]) -> None:
        values = (line["reward"], *line["costs"], line["at"], line.get("actor"))
        # Numbered apart from overtime, so in a column of its own.
        self.uncounted.add("holdback", None, line["epoch"], None, line["serial"], *values)

    def _late(self, line: dict[str, Any]) -> None:
        values = (line["reward"], *line["costs"], line["at"], line.get("actor"))
        self.uncounted.add("late", line["round"], None, None, None, *values)

    def _closed(self, line: dict[str, Any]) -> None:
        self.closed = line
        self.head = line["hash"]

    def _event(self, line: dict[str, Any]) -> None:
        self.events.add(line["at"], line["actor"], line["what"], line.get("reason"))

    def _state(self, line: dict[str, Any]) -> None:
        """The last line, which :meth:`read` looks at."""


_TYPES = {
    "epoch",
    "decisions",
    "outcome",
    "overtime",
    "holdback",
    "aside",
    "holdback_outcome",
    "late",
    "closed",
    "event",
}
_TYPES |= {"state"}


class _Asked:
    """The requests of an epoch, in order, until their outcomes come: a log has all requests of an epoch first."""

    def __init__(self) -> None:
        # Closed with the epoch, or with the tables if the log ends in an error.
        self.file = tempfile.SpooledTemporaryFile(max_size=SPILL_BYTES)  # noqa: SIM115
        self.reading = False
        self.decisions: Iterator[tuple[int, int, dict[str, Any]]] = iter(())

    def __enter__(self) -> _Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.file.close()

    def put(self, lease: dict[str, Any]) -> None:
        if self.reading:
            raise Error("the log's lines are not in order: decisions after outcomes; debora audit says what is wrong")
        pickle.dump(lease, self.file)

    def next(self) -> tuple[int, int, dict[str, Any]] | None:
        """The next round, its action and its request; None after the last."""
        if not self.reading:
            self.file.seek(0)
            self.reading = True
            self.decisions = self._all()
        return next(self.decisions, None)

    def _all(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        while True:
            try:
                lease = pickle.load(self.file)
            except EOFError:
                return
            for round, action in enumerate(lease["actions"], lease["first"]):
                yield round, action, lease


def _lines(source: str | os.PathLike[str] | Client, api_key: str | None) -> Iterator[dict[str, Any]]:
    if isinstance(source, Client):
        yield from source.log()
        return
    address = re.fullmatch(r"(https?://.*)/v1/experiments/([^/]+)/?", os.fspath(source))
    if address:
        client = Client(address[1], urllib.parse.unquote(address[2]), api_key=api_key)
        yield from client.log()
        return
    if re.match(r"https?://", os.fspath(source)):
        raise Error(f"{source} is not the address of an experiment; give one such as http://HOST/v1/experiments/ID")
    with open(source, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                document = json.loads(line)
            except ValueError:
                raise Error(f"line {number} of {os.fspath(source)} is not JSON; download the log again") from None
            yield document if isinstance(document, dict) else {}


def _parameters(result: RunResult | Replication | Comparison | Sweep) -> dict[str, tuple[pa.DataType, list[Any]]]:
    """The parameters of a sweep, each with the type and the values that its points have."""
    if not isinstance(result, Sweep):
        return {}
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {}
    for name in result.names:
        values = [point[name] for point in result.points]
        if all(isinstance(value, int | float) for value in values):
            columns[name] = (pa.float64(), [float(value) for value in values])
        else:
            columns[name] = (WORD, [str(value) for value in values])
    return columns


def _measured(
    result: RunResult | Replication | Comparison | Sweep,
) -> Iterator[tuple[int, str, Iterator[Sequence[Any]]]]:
    """Point, player and rows of each curve."""
    if isinstance(result, RunResult):
        document = result.to_dict()
        both = (result.regret_curve[None], result.violation_curve[None])
        yield 0, "debora", _rows(result.checkpoints, *both, [(document["pair"], document["member"])])
        return
    results = result.results if isinstance(result, Sweep) else [result]
    for point, one in enumerate(results):
        for player in one.players if isinstance(one, Comparison) else ["debora"]:
            if isinstance(one, Comparison):
                regret, violation = one.regret_curves(player), one.violation_curves(player)
            else:
                regret, violation = (
                    each.reshape(-1, each.shape[-1]) for each in (one.regret_curves, one.violation_curves)
                )
            runs = max(len(regret), len(violation))
            yield point, player, _rows(one.checkpoints, regret, violation, [(run // 2, run % 2) for run in range(runs)])


def _rows(rounds: Any, regret: Any, violation: Any, runs: list[tuple[int, int]]) -> Iterator[Sequence[Any]]:
    for number, (pair, run) in enumerate(runs):
        columns = [_curve(curve, number, len(rounds)) for curve in (regret, violation)]
        for place, round in enumerate(rounds.tolist()):
            yield pair, run, round, columns[0][place], columns[1][place]


def _curve(curves: Any, number: int, length: int) -> list[float | None]:
    """One curve; nulls where there is none, as there is no regret where no strategy is safe."""
    if number >= len(curves) or len(curves[number]) != length:
        return [None] * length
    values: list[float | None] = curves[number].tolist()
    return values
