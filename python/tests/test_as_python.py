"""What Python hands in, and what comes back: its numbers, its sequences, its warnings, and errors in its words."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import debora

PROBLEM = debora.Problem(actions=["a", "b"], horizon=20_000, rho=0.5)
SPEC = debora.Spec(
    debora.Problem(actions=["a", "b"], horizon=1e6, rho=0.3),
    key=42,
    world=debora.worlds.bernoulli(reward=[0.4, 0.6]),
    name="two",
)
SOFT = SPEC.replace(policy="soft")
BLIND = SOFT.replace(horizon=100)


def test_the_version_is_that_of_the_program() -> None:
    cargo = (Path(__file__).parents[2] / "Cargo.toml").read_text()
    assert f'version = "{debora.__version__}"' in cargo


def test_whole_numbers_may_be_floats() -> None:
    whole = debora.replicate(SPEC, pairs=100)
    for pairs in (1e2, np.int64(100), np.float64(100)):
        assert (
            debora.replicate(
                SPEC,
                pairs=pairs,  # type: ignore[arg-type]
                threads=1.0,
            ).to_dict()
            == whole.to_dict()
        )
    assert debora.compare(SPEC, players="rse", pairs=5e0).rows[0]["pairs"] == 5
    assert len(debora.Engine(PROBLEM, key=1).ask_many(5e1)) == 50
    for wrong in (1.5, -1, "ten"):
        with pytest.raises(TypeError, match=r"(?s)is not a whole number of 0 or more.*'pairs'"):
            debora.replicate(SPEC, pairs=wrong)  # type: ignore[arg-type]


def test_one_player_may_come_as_a_text() -> None:
    assert debora.compare(SPEC, players="rse", pairs=2).players == ["debora", "rse"]
    assert debora.compare(SPEC, players="rse, rec", pairs=2).players == ["debora", "rse", "rec"]
    with pytest.raises(debora.Error, match=r'no player "rs" for policy free'):
        debora.compare(SPEC, players="rs", pairs=2)


def test_a_world_may_be_given_with_a_problem() -> None:
    world = debora.worlds.bernoulli(reward=[0.4, 0.6])
    assert debora.run(SPEC.problem, key=42, world=world).digest == debora.run(SPEC).digest
    other = debora.worlds.bernoulli(reward=[0.6, 0.4])
    assert debora.run(SPEC, world=other).counts.tolist() != debora.run(SPEC).counts.tolist()


def test_a_run_plays_any_pair_s_data() -> None:
    columns = debora.replicate(SPEC, pairs=4).to_pandas()
    for pair, member in ((0, 0), (3, 0), (3, 1)):
        run = debora.run(SPEC, pair=pair, member=member)  # type: ignore[arg-type]
        assert run.regret == columns[f"regret_{member + 1}"][pair]
        assert (run.to_dict()["pair"], run.to_dict()["member"]) == (pair, member)
    with pytest.raises(debora.Error, match="member is 2; give 0 or 1: a pair has two runs"):
        debora.run(SPEC, member=2)  # type: ignore[arg-type]
    with pytest.raises(debora.Error, match="a function has no other pair's data"):
        debora.run(PROBLEM, world=lambda action, round: 0.5, pair=1)


def test_decisions_are_a_sequence_and_are_told_as_they_are() -> None:
    engine, again = debora.Engine(PROBLEM, key=42), debora.Engine(PROBLEM, key=42)
    batch = engine.ask_many(10)
    decisions = list(batch)
    assert decisions == [again.ask() for _ in range(10)]
    assert [one.round for one in batch] == batch.rounds.tolist()
    assert [one.name for one in batch] == batch.names
    assert (batch[0], batch[-1]) == (decisions[0], decisions[9])
    with pytest.raises(IndexError, match="decision 10 does not exist; there are 10"):
        batch[10]
    assert engine.tell_many(batch, np.full(10, 0.5)).recorded == 10
    assert [again.tell(decision, 0.5) for decision in decisions] == ["recorded"] * 10
    assert engine.to_bytes() == again.to_bytes()


def test_the_client_s_decisions_have_the_engine_s_shape() -> None:
    engine = debora.Engine(PROBLEM, key=42)
    batch = engine.ask_many(3)
    served = debora.ServedMany(
        debora.Served(one.round, one.epoch, one.action, one.name, one.probability) for one in batch
    )
    for shape in ("rounds", "actions", "probabilities"):
        ours, theirs = getattr(served, shape), getattr(batch, shape)
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    assert (served.epoch, served.names, len(served)) == (batch.epoch, batch.names, len(batch))
    assert engine.tell_many(served.rounds, [0.5] * 3).recorded == 3
    overtime = debora.ServedMany([debora.Served(None, 3, 0, "a", 0.5, overtime=1)])
    assert overtime.rounds.tolist() == [0]
    with pytest.raises(debora.Error, match="there are no decisions"):
        debora.ServedMany().epoch  # noqa: B018


def test_a_blind_plan_warns() -> None:
    for call in (
        lambda: debora.run(BLIND),
        lambda: debora.replicate(BLIND, pairs=2),
        lambda: debora.compare(BLIND, players="doss", pairs=2),
        lambda: debora.Engine(BLIND.problem, key=1),
        BLIND.engine,
    ):
        with pytest.warns(UserWarning, match="BLIND: 100 rounds are too few for rho 0.3") as caught:
            call()
        assert [one.filename for one in caught] == [__file__]
    with pytest.warns(UserWarning, match="BLIND at 1 of 2 points, the first with horizon 100 and rho 0.3") as caught:
        debora.sweep(SOFT, over={"horizon": [100, SPEC.problem.horizon]}, pairs=2)
    assert [one.filename for one in caught] == [__file__]


def test_errors_name_arguments_and_not_lines_that_nobody_wrote() -> None:
    problem = SPEC.problem

    def message(call: object) -> str:
        with pytest.raises(debora.Error) as caught:
            call()  # type: ignore[operator]
        return str(caught.value)

    world = debora.worlds.bernoulli(reward=[0.4])
    assert message(lambda: debora.Spec(problem, world=world)) == (
        "world.reward has 1 entries for 2 actions; give one for each, in their order"
    )
    assert message(lambda: SPEC.replace(rho=2)) == (
        "rho 2.0 is outside (0, 1) or below 1e-100; give the chance of differing decisions you accept, say 0.1"
    )
    assert message(lambda: debora.run(SPEC, world={"kind": "bernouli", "reward": [0, 1]})) == (
        'world.kind is "bernouli"; did you mean "bernoulli"?'
    )
    assert message(lambda: debora.run(problem)) == (
        'there is no [world] to simulate; add one, say kind = "bernoulli" with the means of each action'
    )
    table = debora.Spec(problem, world=debora.worlds.table("nowhere.csv"))
    assert message(lambda: debora.replicate(table, pairs=1)).startswith('"nowhere.csv" cannot be opened')


def test_tables_have_the_columns_that_are_named(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("day;arm;clicks\n1;a;0,5\n2;b;1\n")
    world = debora.worlds.table(file, columns={"action": "arm", "reward": "clicks"})
    means = debora.Spec(SPEC.problem, world=world).world
    assert means is not None and means.means.tolist() == [[0.5, 1.0]]


def test_frames_have_names() -> None:
    pytest.importorskip("pandas")
    run = debora.run(SPEC)
    frame = run.to_pandas()
    assert frame.columns.tolist() == ["first_round", "a", "b"]
    assert frame["b"].tolist() == run.strategies[:, 1].tolist()
    pairs = debora.replicate(SOFT.replace(**{"world.reward": [0.5, 0.52]}), pairs=200).to_pandas()
    diverged = pairs[~pairs["identical"]]
    assert len(diverged) > 0
    assert set(diverged["split_action"].dropna()) <= {"a", "b"}
    assert set(diverged["split_quantity"].dropna()) == {"reward"}


def test_plans_and_results_say_what_the_horizon_sees() -> None:
    close = SPEC.replace(**{"world.reward": [0.5, 0.505]})
    gaps = close.plan().gaps
    assert [(one["actions"], one["seen"]) for one in gaps] == [(["b", "a"], False)]
    # From the worse mean, 1/2, towards an end: about what is found around 1/2.
    assert gaps[0]["sight"] == pytest.approx(close.plan().detectable, rel=0.01)
    needed = gaps[0]["horizon_needed"]
    assert close.replace(horizon=needed).plan().gaps[0]["seen"]
    assert "it is not sure to tell them apart" in repr(close.plan()).replace("\n", " ")
    for result in (debora.run(close), debora.replicate(close, pairs=2), debora.compare(close, players="rse", pairs=2)):
        assert result.gaps == gaps
        assert "it is not sure to tell them apart" in repr(result).replace("\n", " ")
    assert SPEC.problem.plan().gaps == []


def test_merge_errors_name_the_files(tmp_path: Path) -> None:
    files = []
    for number, rho in ((1, 0.3), (2, 0.2)):
        files.append(tmp_path / f"part-{number}")
        measurement = debora.Measurement.replicate(SPEC.replace(rho=rho), pairs=4)
        files[-1].write_bytes(measurement.measure((number, 2)))
    with pytest.raises(debora.Error) as caught:
        debora.merge(files)
    assert f"{files[0]} has rho 0.3, {files[1]} has 0.2" in str(caught.value)


def test_a_wrong_port_fails_in_a_second() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        client = debora.Client(f"http://127.0.0.1:{port}", "any")
        begun = time.monotonic()
        with pytest.raises(ConnectionError, match=rf"127.0.0.1:{port} did not answer within 1 seconds .*is it serving"):
            client.ask()
    assert time.monotonic() - begun < 3


def test_an_interrupt_ends_a_run_by_rounds() -> None:
    code = (
        "import debora, sys\n"
        "problem = debora.Problem(actions=['a', 'b'], horizon=1e12, rho=0.3)\n"
        "world = debora.worlds.bernoulli(reward=[0.4, 0.6])\n"
        "print('begun', flush=True)\n"
        "try:\n"
        "    debora.run(problem, world=world, simulator='rounds')\n"
        "except KeyboardInterrupt:\n"
        "    import os, threading, time\n"
        "    before = os.times().user\n"
        "    time.sleep(1)\n"
        "    print('idle' if os.times().user - before < 0.5 else 'busy')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    timer = threading.Timer(30, child.kill)
    timer.start()
    os.kill(child.pid, signal.SIGINT)
    said, _ = child.communicate()
    timer.cancel()
    assert (child.returncode, said) == (0, "idle\n")
