"""Every query of docs/export.md, run by DuckDB on a downloaded log, against the service's own numbers."""

from __future__ import annotations

import random
import re
import urllib.request
from pathlib import Path
from typing import Any

import duckdb
import pytest

import debora
from conftest import ROOT, Server
from debora import Client

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


def close(value: float) -> Any:
    # The service adds exactly, and a database adds doubles.
    return pytest.approx(value, rel=1e-9)


def test_every_query_of_the_page_has_the_numbers_of_the_service(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client.create(server.url, SPEC, id="trial", blind=True)
    play(client)
    monkeypatch.chdir(tmp_path)
    with urllib.request.urlopen(f"{server.url}/v1/experiments/trial/log/download") as log:
        Path("trial.jsonl").write_bytes(log.read())
    page = (ROOT / "docs/export.md").read_text()
    answers = {}
    with duckdb.connect() as database:
        for name, query in re.findall(r"```sql\n-- (.*?)\n(.*?)```", page, re.S):
            answers[name] = database.sql(query)
        assert list(answers) == ["decisions", "observed means by action", "realised average of a cost", "parquet"]
        observed = answers["observed means by action"].fetchall()
        [realised] = answers["realised average of a cost"].fetchall()
        rounds = database.sql("SELECT round FROM 'decisions.parquet' ORDER BY round").fetchall()
    state = client.state()
    means = {(mean["action"], mean["quantity"]): mean["observed"] for mean in state["means"]}
    assert len(observed) == 2
    for action, told, quality, price in observed:
        assert told == means[action, "quality"]["count"] == means[action, "price"]["count"]
        assert quality == close(means[action, "quality"]["mean"]) and price == close(means[action, "price"]["mean"])
    limit = state["limits"][0]
    assert realised == (limit["count"], close(limit["realised"]), close(limit["realised_told"]))
    # They differ, so that taking one for the other is noticed.
    assert limit["realised"] != limit["realised_told"]
    assert rounds == [(round,) for round in range(1, 1501)]
