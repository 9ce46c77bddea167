"""Three language models behind LiteLLM: debora routes within a price and a latency, and the end says what was saved.

python llm_router.py                                answers by LiteLLM's mock_response, decisions by an engine
python llm_router.py --server --requests 2000       answers by a local server that speaks OpenAI's protocol
python llm_router.py --service http://127.0.0.1:8080 --out run     decisions by debora serve; figures into a folder

No network is needed. What the models are worth is the [world] of examples/model-gateway.toml, the same in every run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

# LiteLLM would ask the network for a newer list of prices; the models here have prices of their own.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm

import debora
import debora.litellm

# It warns that prices of cached tokens are missing; nothing is cached here.
logging.getLogger("LiteLLM").setLevel(logging.ERROR)

SPEC = Path(__file__).resolve().parents[2] / "examples/model-gateway.toml"
SCALE = 0.1
"""Seconds that the local server takes for a second of the world."""


Row: TypeAlias = tuple[str, tuple[float, float, float]]
"""A model, and the quality, dollars and seconds of its answer."""


class World:
    """What each model would answer to each request: a pure function of the spec's world, whoever asks."""

    def __init__(self, spec: debora.Spec) -> None:
        assert spec.world is not None
        self.world, self.actions = spec.world, spec.problem.actions
        # LiteLLM's mocked answers have 10 tokens in and 20 out; the local server's too.
        self.token = {name: self.answer(name, 0)[1] / 30 for name in self.actions}

    def answer(self, model: str, request: int) -> tuple[float, float, float]:
        """Quality, dollars and seconds."""
        quality, (price, latency) = self.world.pull(self.actions.index(model), request)
        return quality, price, latency


def serve(world: World) -> ThreadingHTTPServer:
    """A server with three models: it answers as OpenAI's does, and takes its time."""

    class Handler(BaseHTTPRequestHandler):
        # Connections are kept, as a provider's are.
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            quality, _, latency = world.answer(asked["model"], number(asked["messages"]))
            time.sleep(SCALE * latency)
            message = {"role": "assistant", "content": "right" if quality else "wrong"}
            body = {
                "id": "local",
                "object": "chat.completion",
                "created": 0,
                "model": asked["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30},
            }
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def number(messages: list[dict[str, str]]) -> int:
    """Which request it is: the question says so."""
    return int(messages[-1]["content"].rpartition(" ")[2])


def models(world: World, address: str | None) -> list[dict[str, Any]]:
    """The router's deployments: one group, three models, each with its price."""
    answered = {"api_base": address} if address else {"mock_response": "an answer"}
    return [
        {
            "model_name": "chat",
            "litellm_params": {
                "model": f"openai/{name}",
                "api_key": "none",
                "input_cost_per_token": world.token[name],
                "output_cost_per_token": world.token[name],
                **answered,
            },
            "model_info": {"id": name},
        }
        for name in world.actions
    ]


class Seen:
    """What the answers were worth, and what they cost, in the order in which they were told."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rows: list[Row] = []

    def quality(self, kwargs: dict[str, Any], response: Any) -> float:
        """The reward: your judge, test or user. Here the world knows, and the server's answer must agree."""
        name = kwargs["litellm_params"]["model_info"]["id"]
        quality, _, _ = self.world.answer(name, number(kwargs["messages"]))
        content = response.choices[0].message.content
        assert content in ("an answer", "right" if quality else "wrong"), content
        self.rows.append((name, (quality, kwargs["response_cost"], self.latency(kwargs, response))))
        return quality

    def latency(self, kwargs: dict[str, Any], response: Any) -> float:
        """Seconds of the world: a mocked answer takes none of its own."""
        if response.choices[0].message.content == "an answer":
            return self.world.answer(kwargs["litellm_params"]["model_info"]["id"], number(kwargs["messages"]))[2]
        seconds: float = (kwargs["end_time"] - kwargs["start_time"]).total_seconds()
        return seconds / SCALE


async def play(router: Any, routing: debora.litellm.Routing, requests: int, abreast: int) -> None:
    """All requests, some of them at once; the next begin when these are told."""
    for first in range(0, requests, abreast):
        questions = range(first, min(first + abreast, requests))
        await asyncio.gather(
            *(router.acompletion("chat", [{"role": "user", "content": f"question {one}"}]) for one in questions)
        )
        while routing.outstanding:
            await asyncio.sleep(0.0005)


def means(rows: list[Row]) -> tuple[float, ...]:
    """Of quality, dollars and seconds."""
    return tuple(sum(values[which] for _, values in rows) / len(rows) for which in range(3))


def report(seen: Seen, problem: debora.Problem) -> str:
    """In words first, then by model."""
    quality, price, latency = means(seen.rows)
    by_model = {name: [row for row in seen.rows if row[0] == name] for name in problem.actions}
    limits = problem.thresholds
    lines = [
        f"{len(seen.rows):,} requests were answered with quality {quality:.3f}, at {price:.5f} dollars a request",
        f"(limit {limits['price']:g}) and {latency:.2f} seconds (limit {limits['latency']:g}).",
    ]
    largest = by_model[problem.actions[-1]]
    if largest:
        top_quality, top_price, _ = means(largest)
        lines += [
            f"Always {problem.actions[-1]}, as observed, would cost {len(seen.rows) * top_price:,.0f} dollars; "
            f"this cost {len(seen.rows) * price:,.0f}:",
            f"{1 - price / top_price:.0%} saved, for {top_quality - quality:.3f} less quality.",
        ]
    lines += ["", f"  {'model':8}{'requests':>9}{'quality':>9}{'price':>9}{'latency':>9}"]
    for name, rows in by_model.items():
        if rows:
            quality, price, latency = means(rows)
            lines.append(f"  {name:8}{len(rows):>9,}{quality:>9.3f}{price:>9.5f}{latency:>9.2f}")
    return "\n".join(lines)


def draw(seen: Seen, problem: debora.Problem, folder: Path) -> None:
    """Spend, latency and quality so far, each beside its limit."""
    import numpy as np
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    # The same bytes from every run: figures are kept in the repository.
    rcParams["svg.hashsalt"] = "debora"
    folder.mkdir(parents=True, exist_ok=True)
    values = np.array([row for _, row in seen.rows])
    rounds = np.arange(1, len(values) + 1)
    shown = np.unique(np.geomspace(min(100, len(values)), len(values), 400).astype(int)) - 1
    labels = ("quality", "price, dollars a request", "latency, seconds a request")
    for which, (name, label) in enumerate(zip((problem.reward, *problem.costs), labels, strict=True)):
        figure = Figure(figsize=(7, 3), layout="constrained")
        axes = figure.add_subplot()
        averages = values[:, which].cumsum() / rounds
        axes.plot(rounds[shown], averages[shown], color="#0072b2", label="on average so far")
        if name in problem.thresholds:
            axes.axhline(problem.thresholds[name], linestyle="--", color="black", label="limit")
            axes.set_ylim(0, 1.2 * problem.thresholds[name])
        axes.set(xscale="log", xlabel="request", ylabel=label)
        axes.margins(x=0)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        figure.savefig(folder / f"model-gateway-{name}.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description="three models behind LiteLLM, routed by debora")
    parser.add_argument("--requests", type=int, help="default: the spec's horizon")
    parser.add_argument("--server", action="store_true", help="answers by a local server instead of mocked ones")
    parser.add_argument("--service", metavar="URL", help="decisions by debora serve instead of an engine")
    parser.add_argument("--abreast", type=int, default=1, help="requests at once; 1 makes every run the same")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="figures, into this folder")
    args = parser.parse_args()

    spec = debora.Spec.from_toml(SPEC)
    world = World(spec)
    experiment: debora.Client | debora.Engine = spec.engine()
    if args.service:
        experiment = debora.Client.create(args.service, spec.problem.to_toml())
        print(f"{experiment}: its page is {args.service}/experiments/{experiment.experiment}", file=sys.stderr)
    server = serve(world) if args.server else None
    address = f"http://127.0.0.1:{server.server_address[1]}/v1" if server else None
    router = litellm.Router(model_list=models(world, address))
    seen = Seen(world)
    routing = debora.litellm.Routing(
        router, experiment, "chat", reward=seen.quality, costs={"latency": seen.latency}, otherwise="small"
    )
    router.set_custom_routing_strategy(routing)
    litellm.callbacks.append(routing)

    begun = time.monotonic()
    asyncio.run(play(router, routing, args.requests or spec.problem.horizon, args.abreast))
    print(report(seen, spec.problem))
    print(f"\n{dict(routing.counts)}; {time.monotonic() - begun:.0f} seconds", file=sys.stderr)
    if args.out:
        draw(seen, spec.problem, args.out)
    if server:
        server.shutdown()


if __name__ == "__main__":
    main()
