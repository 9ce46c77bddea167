"""What the service shows of itself: Prometheus scrapes it, and runs the dashboard's queries and the alert rules."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from conftest import ROOT, Server
from debora.client import Client

SPEC = """
policy = "soft"
horizon = 3000
rho = 0.9
delta = 0.4
growth = 2
actions = ["small", 'a "quoted" \\ one']
[[cost]]
name = "price"
range = [0, 2]
threshold = 1
"""

# Epochs of 1, 2, 4 .. rounds, so that the first request leaves it waiting.
SHORT = SPEC.replace("growth = 2", 'profile = "paper"')

# Every price is 0.5, and the safe strategy was said to keep below 0.3.
FALSE = (
    SPEC.replace('"soft"', '"hard"').replace("threshold = 1", "threshold = 0.3")
    + """
[safe]
strategy = { small = 1.0 }
cost = { price = 0.1 }
"""
)

DASHBOARD = json.loads((ROOT / "deploy/grafana.json").read_text())


def tool(name: str) -> str:
    """A program of Debian's package prometheus."""
    found = shutil.which(name) or ROOT / "target/prometheus/usr/bin" / name
    if not Path(found).exists():
        pytest.fail(f"{name} is not there; ./check unpacks it")
    return str(found)


def get(address: str, accept: str = "*/*") -> str:
    request = urllib.request.Request(address, headers={"accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def play(client: Client, rounds: int) -> None:
    decisions = client.ask_many(rounds)
    client.tell_many(decisions, [1.0] * len(decisions), [{"price": 0.5}] * len(decisions))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with experiments in several states."""
    server = Server(tmp_path_factory.mktemp("metrics") / "store.db")
    url = server.url
    for id, spec, times in [("learns", SPEC, 3), ("false", FALSE, 12), ("paused", SPEC, 1), ("closed", SPEC, 1)]:
        client = Client.create(url, spec, id=id, blind=True)
        for _ in range(times):
            play(client, 200)
    Client.create(url, SHORT, id="waits", blind=True).ask_many(1)
    Client(url, "paused").pause()
    Client(url, "closed").close_experiment()
    deadline = time.monotonic() + 30
    # A scrape gives up on experiments after a second, which is short while other tests run; the next shows it.
    while len(set(re.findall(r'_strategy_ratio{experiment="(\w+)"', get(f"{url}/metrics")))) < 4:
        assert time.monotonic() < deadline, "the experiments have no metrics"
        time.sleep(0.1)
    yield url
    server.stop()


@pytest.fixture(scope="module")
def prometheus(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of Prometheus's that has scraped it for some seconds, while decisions were made."""
    folder = tmp_path_factory.mktemp("prometheus")
    config = {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "rule_files": [str(ROOT / "deploy/alerts.yml")],
        "scrape_configs": [
            {"job_name": "debora", "static_configs": [{"targets": [service.removeprefix("http://")]}]},
        ],
    }
    # JSON is YAML.
    (folder / "prometheus.yml").write_text(json.dumps(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [tool("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"]
    process = subprocess.Popen([*command, f"--web.listen-address={address}"], cwd=folder)
    url = f"http://{address}"
    client = Client(service, "learns")
    deadline = time.monotonic() + 30
    # Rates need a few scrapes.
    while time.monotonic() < deadline:
        play(client, 10)
        try:
            if float(query(url, 'count_over_time(up{job="debora"}[1m])')[0]["value"][1]) >= 6:
                break
        except (OSError, IndexError):
            pass
        time.sleep(0.1)
    yield url
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def query(prometheus: str, expression: str) -> list[dict[str, Any]]:
    found = json.loads(get(f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"))
    assert found["status"] == "success", expression
    result: list[dict[str, Any]] = found["data"]["result"]
    return result


def queries() -> Iterator[tuple[str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def test_promtool_has_nothing_to_say(service: str) -> None:
    text = get(f"{service}/metrics")
    done = subprocess.run(
        [tool("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for command in [["check", "rules", "deploy/alerts.yml"], ["test", "rules", "deploy/alerts.test.yml"]]:
        done = subprocess.run([tool("promtool"), *command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_both_formats_say_the_same(service: str) -> None:
    """What Prometheus asks for, and what others do."""
    kinds = ["*/*", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"]
    texts = [get(f"{service}/metrics", kind) for kind in kinds]
    assert texts[1].endswith("# EOF\n") and "# EOF" not in texts[0]
    series = [{line.rsplit(" ", 1)[0] for line in text.splitlines() if line[0] != "#"} for text in texts]
    # The first scrape is a request of its own, counted by the second.
    extra = {line for line in series[1] - series[0] if 'route="/metrics"' not in line}
    assert not extra and series[0] <= series[1]


def test_every_query_of_the_dashboard_finds_something(prometheus: str) -> None:
    for title, expression in queries():
        expression = expression.replace("$__rate_interval", "10s").replace("$experiment", ".*")
        assert "$" not in expression, expression
        found = query(prometheus, expression)
        assert found, f"{title}: {expression} finds nothing"
        assert all(row["value"][1] != "NaN" for row in found), f"{title}: {expression} is {found}"
    names = json.loads(get(f"{prometheus}/api/v1/label/experiment/values"))["data"]
    assert names == ["false", "learns", "paused", "waits"], "those that are over have no metrics of their own"
    [share] = query(
        prometheus, 'debora_experiment_strategy_ratio{experiment="learns",action="a \\"quoted\\" \\\\ one"}'
    )
    assert 0 <= float(share["value"][1]) <= 1


def test_every_rule_is_evaluated_and_what_is_wrong_fires(prometheus: str) -> None:
    groups = json.loads(get(f"{prometheus}/api/v1/rules"))["data"]["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert len(rules) == 11
    assert {rule["health"] for rule in rules.values()} == {"ok"}, rules
    firing = {
        (alert["labels"]["alertname"], alert["labels"].get("experiment"))
        for rule in rules.values()
        for alert in rule["alerts"]
        if alert["state"] == "firing"
    }
    assert firing == {("DeboraPromiseContradicted", "false"), ("DeboraLimitExceeded", "false")}
    assert [alert["labels"]["experiment"] for alert in rules["DeboraWaits"]["alerts"]] == ["waits"], "pending"


def test_the_page_has_every_metric_and_no_other(prometheus: str) -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    written = set(re.findall(r"^\| `(debora_[a-z_]+)`", page, flags=re.MULTILINE))
    known = json.loads(get(f"{prometheus}/api/v1/label/__name__/values"))["data"]
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in known if name.startswith("debora_")}
    assert written == shown


def paths(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every value within a document, by where it is."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from paths(inner, f"{path}[{place}]")
    else:
        yield path, value


def test_the_dashboard_is_one_to_grafana() -> None:
    """Read by Grafana's own model and written again, nothing is lost: what it does not know, it leaves out."""
    register_default_plugins()
    read = Dashboard.from_json(DASHBOARD)
    written = dict(paths(json.loads(JSONEncoder(sort_keys=True).encode(read))))
    lost = [path for path, value in paths(DASHBOARD) if written.get(path, "lost") != value]
    assert not lost
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
