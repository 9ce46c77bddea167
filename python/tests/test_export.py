"""Logs and curves as Parquet: every query of docs/export.md, run by DuckDB, against the service's own numbers."""

from __future__ import annotations

import json
import os
import random
import re
import tracemalloc
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import debora
import debora.export
from conftest import ROOT, Server
from debora import Client, Error

TOLERANCE = 1e-9
"""As the page says."""

SPEC = """
policy = "soft"
horizon = 1500
rho = 0.9
actions = ["small", "large"]
[reward]
name = "quality"
[[cost]]
name = "price"
range = [0.0, 0.02]
threshold = 0.008
[[cost]]
name = "round"
range = [-1, 3]
threshold = 3
[service]
on_wait = "serve"
outcome_wait = "1s"
"""


def play(client: Client) -> None:
    """To the end, with outcomes of the first epoch that are imputed and then told late, and with overtime."""
    draw = random.Random(5)
    late: list[debora.Served] = []
    while decisions := client.ask_many(250):
        told = [one for one in decisions if one.round is None or one.epoch > 0 or draw.random() < 0.9]
        late += [one for one in decisions if one not in told]
        rewards = [float(draw.random() < (0.5, 0.75)[one.action]) for one in told]
        costs = [[(0.001, 0.015)[one.action] * draw.random(), draw.uniform(-1, 3)] for one in told]
        client.tell_many(told, rewards, costs)
    receipts = client.tell_many(late, [1.0] * len(late), [[0.002, 0.0]] * len(late))
    assert set(receipts) == {"late"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs/export.md").read_text(), re.S)


def close(found: float, wanted: float) -> bool:
    return abs(found - wanted) <= TOLERANCE * abs(wanted)


def test_every_query_of_the_page_has_the_numbers_of_the_service(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client.create(server.url, SPEC, id="trial", blind=True)
    play(client)
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    with urllib.request.urlopen(f"{server.url}/v1/experiments/trial/log/download") as log:
        Path("trial.jsonl").write_bytes(log.read())
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(block.replace("http://127.0.0.1:8123", server.url), names)
    answers = {}
    for block in blocks("sql"):
        name, query = re.match(r"-- (.*?)\n(.*)", block, re.S).groups()  # type: ignore[union-attr]
        relation = duckdb.sql(query)
        assert relation is not None
        answers[name] = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    state = client.state()
    check = dict(CHECKS)
    assert answers.keys() == check.keys()
    for name, rows in answers.items():
        assert rows, name
        check[name](rows, state, client)


def observed(rows: list[dict[str, Any]], state: dict[str, Any], _: Client) -> None:
    seen = 0
    for mean in state["means"]:
        if mean["quantity"] not in rows[0]:
            continue
        row = next(row for row in rows if row["action"] in (mean["action"], mean["name"]))
        assert row["told"] == mean["observed"]["count"]
        assert close(row[mean["quantity"]], mean["observed"]["mean"]), (row, mean)
        seen += 1
    assert seen == 4 and len(rows) == 2


def realised(rows: list[dict[str, Any]], state: dict[str, Any], _: Client) -> None:
    limit = state["limits"][0]
    assert rows[0]["rounds"] == limit["count"] == 1500 and float(rows[0]["threshold"]) == limit["threshold"]
    # They differ, so that taking one for the other is noticed.
    assert limit["realised"] != limit["realised_told"]
    assert close(rows[0]["realised"], limit["realised"]) and close(rows[0]["realised_told"], limit["realised_told"])


def overtime(rows: list[dict[str, Any]], state: dict[str, Any], _: Client) -> None:
    assert rows[0]["told"] > 0 and close(rows[0]["realised"], state["limits"][0]["realised_overtime"])


def spend(rows: list[dict[str, Any]], state: dict[str, Any], client: Client) -> None:
    limit = state["limits"][0]
    told = sum(mean["observed"]["count"] for mean in state["means"] if mean["quantity"] == "price")
    lines = [line for line in client.log() if line["type"] in ("aside", "late")]
    uncounted = sum(line["costs"][0] for line in lines)
    assert sum(row["outcomes"] for row in rows) == told + len(lines) and len(lines) > state["late"] > 0
    assert close(sum(row["spent"] for row in rows), limit["realised_told"] * told + uncounted)


def exposure(rows: list[dict[str, Any]], state: dict[str, Any], _: Client) -> None:
    assert sum(row["rounds"] for row in rows) == 1500
    for row, action in zip(sorted(rows, key=lambda row: row["action"] == "large"), (0, 1), strict=True):
        told = next(mean["observed"]["count"] for mean in state["means"] if mean["action"] == action)
        assert row["rounds"] == told + row["imputed"] and row["imputed"] > 0
    assert sum(row["overtime"] for row in rows) == state["overtime"] > 0


def expected(rows: list[dict[str, Any]], state: dict[str, Any], _: Client) -> None:
    assert close(sum(row["expected"] for row in rows), 1500) and sum(row["played"] for row in rows) == 1500
    # By Hoeffding, more than this in 1,500 draws happens with probability below 1e-6.
    assert all(abs(row["expected"] - row["played"]) < 105 for row in rows)


def estimates(rows: list[dict[str, Any]], state: dict[str, Any], _: Client) -> None:
    wanted = {(mean["name"], mean["quantity"]): mean["estimate"] for mean in state["means"]}
    assert len(rows) == len(wanted) == 6
    for row in rows:
        estimate = wanted[row["action"], row["quantity"]]
        assert row["count"] == estimate["count"]
        assert close(row["estimate"], estimate["value"]) and close(row["width"], estimate["width"])


def head(rows: list[dict[str, Any]], _: dict[str, Any], client: Client) -> None:
    assert rows == [{"head": client.head()["head"]}]


def curve(rows: list[dict[str, Any]], _: dict[str, Any], __: Client) -> None:
    result = debora.replicate(debora.Spec.from_toml("examples/model-routing.toml"), pairs=20)
    assert [row["round"] for row in rows] == result.checkpoints.tolist()
    runs = result.regret_curves.reshape(40, -1)
    for place, row in enumerate(rows):
        middle = sorted(runs[:, place])[19:21]
        assert close(row["regret"], sum(middle) / 2)
        assert row["violation"] == result.violation_curves[:, :, place].max()


CHECKS = {
    "observed means by action": observed,
    "observed means by action, from JSON lines": observed,
    "realised average against the threshold": realised,
    "realised average of overtime": overtime,
    "spend by day": spend,
    "exposure by action": exposure,
    "exposure against the strategies": expected,
    "estimates in force": estimates,
    "head": head,
    "curves": curve,
}


def test_the_tables_have_every_line_of_the_log(server: Server, tmp_path: Path) -> None:
    client = Client.create(server.url, SPEC, id="a-trial", blind=True)
    for _ in range(3):
        decisions = client.ask_many(20, request_key=None)
        client.tell_many(decisions[:15], [0.5] * 15, [[0.004, 1.5]] * 15)
    lines = list(client.log())
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    address = f"{server.url}/v1/experiments/a-trial"
    sources: dict[str, Any] = {"client": client, "file": file, "address": address}
    for name, source in sources.items():
        folder = debora.export.log(source, tmp_path / name)
        table = pq.read_table(folder / "decisions.parquet")
        rows = table.to_pylist()
        assert [row["round"] for row in rows] == list(range(1, 61))
        told = {line["round"]: line for line in lines if line["type"] == "outcome"}
        leases = [line for line in lines if line["type"] == "decisions"]
        asked = {one["first"] + place: (one, action) for one in leases for place, action in enumerate(one["actions"])}
        for row in rows:
            lease, action = asked[row["round"]]
            assert (row["action"], row["probability"]) == (("small", "large")[action], 0.5)
            assert (
                row["decided_at"].timestamp() * 1000 == lease["at"]
                and row["decided_at"].utcoffset().total_seconds() == 0
            )
            assert (row["asked_by"], row["request_key"]) == (lease["actor"], lease["request_key"])
            # A cost may be called as another column is.
            found = (row["reward"], row["cost_price"], row["cost_round"], row["imputed"], row["told_by"])
            if outcome := told.get(row["round"]):
                assert found == (outcome["reward"], *outcome["costs"], False, outcome["actor"])
            else:
                assert set(found) == {None} and row["told_at"] is None
        assert sum(row["reward"] is not None for row in rows) == 45
        kinds = {field.name: str(field.type) for field in table.schema}
        assert (
            kinds["round"] == "int64"
            and kinds["decided_at"] == "timestamp[ms, tz=UTC]"
            and "dictionary" in kinds["action"]
        )
        metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        metadata |= {
            key.decode(): value.decode() for key, value in pq.read_metadata(folder / "epochs.parquet").metadata.items()
        }
        assert metadata["debora.spec"] == SPEC and metadata["debora.values_version"] == str(debora.VALUES_VERSION)
        assert metadata["debora.head"] == client.head()["head"]
        # The log of an admin has the key, which decides all to come.
        key = lines[0]["key"]
        assert key is not None and all(key.encode() not in part.read_bytes() for part in folder.iterdir())
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


HEADING = {"type": "experiment", "id": "x", "spec": SPEC, "genesis": "g", "values_version": 2, "key_hash": "h"}
EPOCH = {"epoch": 0, "first_round": 1, "kind": "explore", "strategy": [0.5, 0.5], "counts": [0, 0], "estimates": []}
STATE = {"type": "state", "progress": {"head": "g"}}


def long_log(rounds: int) -> Iterator[dict[str, Any]]:
    """A log of one epoch, each round asked for by itself."""
    yield HEADING
    yield {"type": "epoch", "opened_at": 0, "record": EPOCH}
    for round in range(1, rounds + 1):
        lease = {"epoch": 0, "first": round, "actions": [round % 2], "request_key": f"key {round}", "at": round}
        yield {"type": "decisions", **lease}
    for round in range(1, rounds + 1):
        yield {"type": "outcome", "round": round, "reward": 0.5, "costs": [0.0, 0.0], "imputed": False, "at": round}
    yield STATE


def test_memory_does_not_grow_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debora.export, "ROWS_A_GROUP", 500)
    monkeypatch.setattr(debora.export, "SPILL_BYTES", 1 << 15)
    peaks = []
    for rounds in (2_000, 20_000):
        monkeypatch.setattr(debora.export, "_lines", lambda _, __, rounds=rounds: long_log(rounds))
        tracemalloc.start()
        folder = debora.export.log("x", tmp_path / str(rounds))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        parquet = pq.ParquetFile(folder / "decisions.parquet")
        assert (parquet.metadata.num_rows, parquet.num_row_groups) == (rounds, rounds // 500)
    assert peaks[1] < 1.5 * peaks[0], peaks


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "first line"),
        ([EPOCH], "first line"),
        ([HEADING], "cut off"),
        (list(long_log(3))[:-1], "cut off"),
        ([HEADING, {"type": "error", "message": "the store failed"}, STATE], "line 2 .* the store failed"),
        ([HEADING, {"type": "describe"}, STATE], "type 'describe'"),
        ([*list(long_log(3))[:-2], {**list(long_log(9))[-2], "round": 9}, STATE], "round 9 has an outcome"),
        (list(long_log(2))[:5] + list(long_log(2))[3:], "not in order"),
    ],
)
def test_a_log_that_is_not_whole_leaves_nothing(lines: list[dict[str, Any]], said: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(Error, match=said):
        debora.export.log(log, tmp_path / "out")
    assert os.listdir(tmp_path) == ["log.jsonl"]


def test_what_is_there_stays(tmp_path: Path, routing: debora.Spec) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "curves.parquet").write_text("mine")
    with pytest.raises(Error, match="nothing is overwritten"):
        debora.export.log(tmp_path / "log.jsonl", tmp_path / "out")
    with pytest.raises(Error, match="nothing is overwritten"):
        debora.export.curves(debora.run(routing), tmp_path / "curves.parquet")
    (tmp_path / "bad.jsonl").write_text("{\n")
    with pytest.raises(Error, match=r"line 1 of .* is not JSON"):
        debora.export.log(tmp_path / "bad.jsonl", tmp_path / "new")
    with pytest.raises(Error, match="not the address of an experiment"):
        debora.export.log("http://127.0.0.1:1/", tmp_path / "new")
    assert (tmp_path / "curves.parquet").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["bad.jsonl", "curves.parquet", "out"]


def test_curves_of_every_result(tmp_path: Path, routing: debora.Spec) -> None:
    run = debora.run(routing, pair=3, member=1)
    table = pq.read_table(debora.export.curves(run, tmp_path / "run.parquet")).to_pydict()
    assert table["round"] == run.checkpoints.tolist() and table["regret"] == run.regret_curve.tolist()
    assert table["violation"] == run.violation_curve.tolist() and set(table["pair"]) == {3} and set(table["run"]) == {1}

    compared = debora.compare(routing, pairs=4, players=["optimistic-lp"])
    path = debora.export.curves(compared, tmp_path / "compare.parquet")
    found = duckdb.sql(f"FROM '{path}' WHERE player = 'optimistic-lp' AND pair = 2 AND run = 1 ORDER BY round")
    assert found is not None
    assert found.to_df()["regret"].tolist() == compared.regret_curves("optimistic-lp")[5].tolist()
    assert len(pq.read_table(path)) == len(compared.players) * 8 * len(compared.checkpoints)
    summary = pq.read_metadata(path).metadata[b"debora.summary"]
    assert json.loads(summary) == compared.to_dict()

    swept = debora.sweep(routing, over={"rho": [0.1, 0.3]}, pairs=3)
    table = pq.read_table(debora.export.curves(swept, tmp_path / "sweep.parquet")).to_pydict()
    result = swept.results[1]
    assert isinstance(result, debora.Replication)
    rows = [regret for rho, regret in zip(table["rho"], table["regret"], strict=True) if rho == 0.3]
    assert rows == result.regret_curves.reshape(-1).tolist()


def test_what_does_not_exist_is_null(tmp_path: Path) -> None:
    """No strategy is safe, so there is no regret."""
    problem = debora.Problem(
        policy="soft", actions=["a", "b"], horizon=1e6, rho=0.3, costs={"price": {"threshold": 0.1}}
    )
    world = debora.worlds.bernoulli(reward=[0.4, 0.6], costs={"price": [0.5, 0.6]})
    result = debora.replicate(debora.Spec(problem, key=1, world=world), pairs=2)
    table = pq.read_table(debora.export.curves(result, tmp_path / "curves.parquet"))
    assert table["regret"].null_count == len(table) == 4 * len(result.checkpoints)
    assert table["violation"].null_count == 0
