"""The loop: however rounds are asked for and told, the engine is the same, here and in Rust."""

from __future__ import annotations

import copy
import gc
import math
import os
import pickle
import threading
import warnings
import weakref
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pytest

import debora

REWARDS = np.array([0.25, 0.75, 1.0])
COSTS = np.array([[0.5, 0.25], [1.0, 0.5], [2.0, 1.0]])


def play(engine: debora.Engine) -> debora.Engine:
    """One ask, one tell, to the end."""
    costs = [tuple(row[: len(engine.problem.costs)]) for row in COSTS]
    for decision in engine:
        engine.tell(decision.round, REWARDS[decision.action], costs[decision.action])
    return engine


def batches(engine: debora.Engine, size: int) -> Iterable[debora.Decisions]:
    while len(batch := engine.ask_many(size)):
        yield batch


def test_batches_are_round_by_round(soft: debora.Problem) -> None:
    one, many = play(debora.Engine(soft, 7)), debora.Engine(soft, 7)
    asked = 0
    for batch in batches(many, 1_000):
        assert batch.rounds.dtype == np.uint64 and batch.actions.dtype == np.uint32
        assert batch.rounds.tolist() == list(range(asked + 1, asked + len(batch) + 1))
        decision = many.decision(int(batch.rounds[-1]))
        assert (decision.action, decision.probability) == (batch.actions[-1], batch.probabilities[-1])
        assert decision.epoch == batch.epoch
        told = many.tell_many(batch.rounds, REWARDS[batch.actions], COSTS[batch.actions])
        assert (told.recorded, told.repeated, told.already_told) == (len(batch), 0, 0)
        asked += len(batch)
    assert asked == soft.horizon and many.is_done
    assert one.digest == many.digest and one.to_bytes() == many.to_bytes()


def test_costs_come_in_any_clothes(soft: debora.Problem) -> None:
    digest = play(debora.Engine(soft, 7)).digest
    for dress in (tuple, list, np.asarray, lambda row: {"wait": row[1], "price": row[0]}):
        engine = debora.Engine(soft, 7)
        for decision in engine:
            engine.tell(decision.round, float(REWARDS[decision.action]), dress(COSTS[decision.action]))
        assert engine.digest == digest


@pytest.mark.parametrize("layout", ["fortran", "strided", "float32", "lists", "named"])
def test_arrays_come_in_any_layout(soft: debora.Problem, layout: str) -> None:
    def dressed(batch: debora.Decisions) -> tuple[npt.ArrayLike, npt.ArrayLike, object]:
        rewards, costs = REWARDS[batch.actions], COSTS[batch.actions]
        match layout:
            case "fortran":
                return batch.rounds.astype(np.int32), rewards, np.asfortranarray(costs)
            case "strided":
                return np.repeat(batch.rounds, 2)[::2], np.repeat(rewards, 3)[::3], np.repeat(costs, 2, axis=0)[::2]
            case "float32":
                return batch.rounds, rewards.astype(np.float32), costs.astype(np.float16)
            case "lists":
                return batch.rounds.tolist(), rewards.tolist(), costs.tolist()
            case _:
                return batch.rounds, rewards, {"wait": costs[:, 1], "price": costs[:, 0].tolist()}

    engine = debora.Engine(soft, 7)
    for batch in batches(engine, 5_000):
        rounds, rewards, costs = dressed(batch)
        engine.tell_many(rounds, rewards, costs)  # type: ignore[arg-type]
    assert engine.digest == play(debora.Engine(soft, 7)).digest


def test_asking_runs_ahead_and_waits(free: debora.Problem) -> None:
    engine = debora.Engine(free, 1)
    first = engine.ask()
    assert first is not None and (first.round, first.epoch, first.probability) == (1, 0, 0.5)
    rest = engine.ask_many(20_000).rounds.tolist()
    last = rest[-1]
    with pytest.raises(debora.Waiting, match=f"{last} are not told") as waiting:
        engine.ask()
    assert waiting.value.outstanding == last and engine.outstanding().tolist() == [1, *rest]
    with pytest.raises(debora.Waiting):
        engine.ask_many(5)
    assert engine.decision(1) == first
    engine.tell_many(rest, np.full(len(rest), 0.5))
    assert engine.tell(1, 0.5) == "closed"
    assert engine.tell(1, 0.5) == "already told"


@pytest.mark.filterwarnings("ignore:BLIND")
def test_a_batch_has_an_end() -> None:
    # Blind, so that one epoch has all rounds.
    engine = debora.Engine(debora.Problem(actions=["a", "b"], horizon=2**26, rho=1e-9), 1)
    assert [len(engine.ask_many(rounds)) for rounds in (2**60, 1)] == [2**24, 1]


def test_telling_again(free: debora.Problem) -> None:
    engine = debora.Engine(free, 1)
    while len(engine.ask_many(1)) == 1 and engine.epoch < 3:
        engine.tell(int(engine.outstanding()[0]), 0.5)
    rest = engine.ask_many(100).rounds
    last = int(rest[-1])
    assert engine.tell(last, 0.5) == "recorded"
    assert engine.tell(last, 0.5) == "repeated"
    before = engine.to_bytes()
    with pytest.raises(debora.Conflict, match=f"round {last} was told before"):
        engine.tell(last, 0.6)
    assert engine.to_bytes() == before


def test_epochs_are_told_to_the_callback(soft: debora.Problem) -> None:
    records: list[debora.EpochRecord] = []
    engine = debora.Engine(soft, 1, on_epoch=records.append)
    play(engine)
    assert [record.epoch for record in records] == list(range(engine.epoch + 1))
    assert sum(record.rounds for record in records) == soft.horizon
    assert records[-1].to_dict()["strategy"] == records[-1].strategy.tolist() == engine.strategy.tolist()
    estimates = [estimate for record in records for estimate in record.estimates]
    assert engine.estimates and all(estimate in estimates for estimate in engine.estimates)


def test_what_a_callback_raises_comes_out_of_a_whole_engine(free: debora.Problem) -> None:
    def callback(record: debora.EpochRecord) -> None:
        raise KeyError(record.epoch)

    engine = debora.Engine(free, 1, on_epoch=callback)
    rounds = engine.ask_many(20_000).rounds
    engine.tell_many(rounds[1:], np.full(len(rounds) - 1, 0.5))
    with pytest.raises(KeyError, match="0"):
        engine.tell(int(rounds[0]), 0.5)
    assert engine.epoch == 1 and len(engine.outstanding()) == 0
    rounds = engine.ask_many(20_000).rounds
    with pytest.raises(KeyError, match="1"):
        engine.tell_many(rounds, np.full(len(rounds), 0.5))
    engine.on_epoch = None
    assert play(engine).is_done


def test_a_callback_may_use_the_engine(free: debora.Problem) -> None:
    engine = debora.Engine(free, 1)
    seen: list[int] = []
    engine.on_epoch = lambda record: seen.append(engine.epoch - record.epoch)
    play(engine)
    assert set(seen[:-1]) == {1} and seen[-1] == 0


def test_engines_are_saved_copied_and_pickled(soft: debora.Problem) -> None:
    engine = debora.Engine(soft, 7)
    for batch in batches(engine, 777):
        engine.tell_many(batch.rounds, REWARDS[batch.actions], COSTS[batch.actions])
        if engine.epoch > 2:
            break
    ahead = engine.ask_many(10)
    others = [
        debora.Engine.from_bytes(engine.to_bytes()),
        copy.copy(engine),
        copy.deepcopy(engine),
        pickle.loads(pickle.dumps(engine)),
    ]
    for other in others:
        assert other.problem == soft and np.array_equal(other.outstanding(), ahead.rounds)
        other.tell_many(ahead.rounds, REWARDS[ahead.actions], COSTS[ahead.actions])
        play(other)
    assert {other.digest for other in others} == {play(debora.Engine(soft, 7)).digest}
    assert len(engine.outstanding()) == len(ahead), "a copy is not the engine"


def test_threads_share_an_engine(soft: debora.Problem) -> None:
    engine = debora.Engine(soft, 7)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while not engine.is_done:
                try:
                    batch = engine.ask_many(3)
                except debora.Waiting:
                    continue
                for round, action in zip(batch.rounds.tolist(), batch.actions.tolist(), strict=True):
                    engine.tell(round, REWARDS[action], COSTS[action])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors and engine.is_done
    assert engine.digest == play(debora.Engine(soft, 7)).digest


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_goes_on_with_its_own_copy(soft: debora.Problem) -> None:
    engine = debora.Engine(soft, 7)
    spec = debora.Spec(soft, key=7, world=debora.worlds.bernoulli(reward=[0.1, 0.2, 0.3], costs=TWO))
    whole = debora.replicate(spec, pairs=4).to_dict()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        same = debora.replicate(spec, pairs=4).to_dict() == whole
        os.write(writing, f"{play(engine).digest} {same}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert engine.epoch == 0 and len(engine.outstanding()) == 0
    assert os.read(reading, 200).decode() == f"{play(engine).digest} True"


TWO = {"price": [0.5, 1.0, 2.0], "wait": [0.25, 0.5, 1.0]}


def test_a_callback_that_holds_its_engine_is_collected(free: debora.Problem) -> None:
    class Watcher:
        def __init__(self) -> None:
            self.engine = debora.Engine(free, 1)
            self.engine.on_epoch = self.seen

        def seen(self, record: debora.EpochRecord) -> None: ...

    watcher = Watcher()
    gone = weakref.ref(watcher)
    del watcher
    gc.collect()
    assert gone() is None


def test_keys_are_numbers_or_digits(free: debora.Problem) -> None:
    digests = {play(debora.Engine(free, key)).digest for key in (42, "0000000000000000000000000000002a")}
    assert len(digests) == 1
    assert debora.Spec(free, key=2**128 - 1).key == 2**128 - 1


def test_reprs(soft: debora.Problem) -> None:
    engine = debora.Engine(soft, 7)
    decision = engine.ask()
    assert repr(decision) == "Decision(round=1, epoch=0, action=2, name='large', probability=0.3333333333333333)"
    assert repr(engine) == "Engine(epoch 0, 0 of 30000 rounds told, 1 outstanding)"
    play(engine_after(engine))
    with pytest.warns(UserWarning, match="comes from the key"):
        recommendation = engine.recommendation()
    assert repr(recommendation).startswith("Recommendation(")
    assert recommendation.to_dict()["strategy"] == recommendation.strategy.tolist()
    assert set(recommendation.costs) == {"price", "wait"}
    assert repr(engine.record).startswith("EpochRecord(epoch=")
    assert repr(engine.estimates[0]).startswith("Estimate(action=0, quantity=0")
    assert engine.estimates[0].level == 1 and engine.record.rule == "moderate" and engine.record.test is None
    cautious = recommendation.cautious
    assert cautious is not None and cautious.costs["price"][1] <= 0.9 + 1e-9 and cautious.costs["wait"][1] <= 0.5 + 1e-9
    assert recommendation.costs["price"][1] > 0.9, "the current strategy is more hopeful"
    with pytest.warns(UserWarning, match="comes from the key"):
        assert debora.Engine(soft, 7).recommendation().cautious is None, "nothing is estimated"


def test_records_are_their_json_and_plain_data(soft: debora.Problem) -> None:
    engine = play(debora.Engine(soft, 7))
    record = engine.record
    document = record.to_dict()
    # Only the first record of policy free has looks.
    assert set(document) == {name for name in vars(record) if not name.startswith("_")} - {"looks"}
    assert document["counts"] == record.counts.tolist() and record.counts.dtype == np.uint64
    assert document["estimates"] == [estimate.to_dict() for estimate in record.estimates]
    document["strategy"].clear()
    copied = pickle.loads(pickle.dumps(record))
    assert copied.to_dict() == record.to_dict() != document and repr(copied) == repr(record)
    assert pickle.loads(pickle.dumps(engine.estimates)) == engine.estimates
    with pytest.raises(AttributeError, match="cannot assign"):
        record.epoch = 7  # type: ignore[misc]
    with pytest.raises(TypeError, match="strange"):
        debora.EpochRecord.read(record.to_dict() | {"strange": 1})


def committed() -> debora.Engine:
    """Policy free, one action far ahead, told until the run commits to it."""
    problem = debora.Problem(actions=["a", "b"], horizon=40_000, rho=0.9, delta=0.4, growth=3)
    engine = debora.Engine(problem, 1)
    while engine.record.kind == "explore":
        batch = engine.ask_many(1000)
        engine.tell_many(batch.rounds, batch.actions.astype(float))
    return engine


def test_a_commitment_is_in_the_record() -> None:
    """It is made at one of the looks that the first record has, and asking never waits afterwards."""
    engine = committed()
    looks = debora.Engine(engine.problem, 1).record.looks
    trial = engine.problem.plan().trial
    assert looks is not None and trial is not None and looks.counts[-1] <= trial.count == 1882
    record, test = engine.record, engine.record.test
    assert record.kind == "commit" and record.pick is None and test is not None and test.passed
    assert record.counts.tolist() == [test.count, test.count] and test.count in looks.counts
    assert (test.means, test.leader, test.runner_up) == ([0.0, 1.0], 1, 0)
    # The line, from the formulas of docs/theory.md.
    low, high = math.sqrt(trial.offset_c), math.sqrt(test.count + trial.offset_c)
    lead = math.atan2(high, low) - math.atan2(low, high)
    assert test.lead == pytest.approx(math.sqrt(test.count) * lead, rel=1e-12)
    assert test.threshold == pytest.approx(trial.threshold * (1 + test.uniform), rel=1e-12)
    assert test.lead > test.threshold and 0 <= test.uniform < 1
    assert repr(test).startswith(f"LookTest(look={test.look}, count={test.count}, leader=1")
    assert len(engine.ask_many(10_000)) == 10_000, "it never waits"
    cautious = engine.recommendation().cautious
    assert cautious is not None and cautious.strategy.tolist() == [0.0, 1.0]
    assert repr(cautious).startswith("Prospect(b 1.0000; reward 0.") and cautious.reward[1] == 1


def test_a_pick_is_in_the_record() -> None:
    """All actions alike: no look commits, and one is picked, by scores and draws that the record has."""
    problem = debora.Problem(actions=["a", "b"], horizon=40_000, rho=0.9, delta=0.4, growth=3)
    engine = debora.Engine(problem, 1)
    while engine.record.kind == "explore":
        batch = engine.ask_many(1000)
        engine.tell_many(batch.rounds, np.zeros(len(batch)))
    record, pick, trial = engine.record, engine.record.pick, problem.plan().trial
    assert record.kind == "pick" and pick is not None and trial is not None
    assert (pick.count, pick.means) == (1882, [0.0, 0.0])
    # Equal means: the draws decide.
    assert pick.action == int(np.argmax([-math.log(-math.log(draw)) for draw in pick.uniforms]))
    slope = math.sqrt(6) * 0.9 * 0.98 / (1 - 1 / 2)
    assert pick.scale == trial.scale == pytest.approx(slope * math.sqrt(1882), rel=1e-12)
    assert record.strategy.tolist() == [float(action == pick.action) for action in (0, 1)]
    assert repr(pick) == f"Pick(count=1882, action={pick.action})"


def test_a_recommendation_warns_where_nothing_can_be_found(free: debora.Problem) -> None:
    short = debora.Engine(debora.Problem(actions=["a", "b"], horizon=500, rho=0.1), 1)
    with pytest.warns(UserWarning, match="no difference of 0.1 in reward is found with probability 90 %") as caught:
        short.recommendation()
    assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        debora.Engine(free, 1).recommendation()


def test_declared_means_are_refused_with_the_reason() -> None:
    with pytest.raises(debora.Error, match="means need not be declared any more"):
        debora.Problem(actions=["a", "b"], horizon=1e6, rho=0.3, reward={"mean": (0.5, 1)})


def test_ranges_by_action_known_values_and_watched_costs() -> None:
    """Each action's price on a scale of its own, one of them known; a cost without a threshold limits nothing."""
    price = {"range": {"small": (0, 0.0001), "large": (0.05, 0.05)}, "threshold": 0.02}
    problem = debora.Problem(
        policy="soft",
        actions=["small", "large"],
        horizon=30_000,
        rho=0.9,
        delta=0.4,
        costs={"price": price, "tokens": {"range": (0, 10)}},
    )
    assert pickle.loads(pickle.dumps(problem)) == problem
    engine = debora.Engine(problem, 7)
    while len(batch := engine.ask_many(10_000)):
        costs = np.stack([np.where(batch.actions == 0, 0.00005, 0.05), 7.0 - batch.actions], axis=1)
        engine.tell_many(batch, batch.actions.astype(float), costs)
    assert engine.is_done
    # Two rewards and one price: the other is known, and tokens are only tallied.
    assert {(one.action, one.quantity) for one in engine.estimates} == {(0, 0), (1, 0), (0, 1)}
    tokens = [one.mean for one in engine.observed() if one.quantity == 2]
    assert tokens == pytest.approx([7.0, 6.0])
    low, high = engine.recommendation().costs["price"]
    large = engine.recommendation().strategy[1]
    assert 0.05 * large <= low <= high <= 0.05 * large + 0.0001
    with pytest.raises(debora.Error, match="large"):
        again = debora.Engine(problem, 7)
        round = next(one.round for one in again.ask_many(16) if one.name == "large")
        again.tell(round, 1.0, (0.04, 7.0))


def test_policy_free_says_that_limits_are_only_tallied() -> None:
    with pytest.warns(UserWarning, match="price has a threshold, but policy free keeps no limits"):
        debora.Problem(policy="free", actions=["a", "b"], horizon=1e6, rho=0.3, costs={"price": {"threshold": 0.5}})


def engine_after(engine: debora.Engine) -> debora.Engine:
    for round in engine.outstanding():
        action = engine.decision(int(round)).action
        engine.tell(int(round), REWARDS[action], COSTS[action])
    return engine


def test_observed_means_are_plain_means_with_intervals(soft: debora.Problem) -> None:
    engine = play(debora.Engine(soft, 7))
    observed = engine.observed()
    assert len(observed) == len(soft.actions) * (1 + len(soft.costs))
    for mean in observed:
        values = REWARDS if mean.quantity == 0 else COSTS[:, mean.quantity - 1]
        assert mean.count == engine.counts[mean.action]
        assert mean.mean == pytest.approx(values[mean.action], abs=1e-12)
        assert mean.low <= mean.mean <= mean.high
        assert mean.high - mean.low < 0.5 * (2.0 if mean.quantity else 1.0)
    wider = engine.observed(miss=1e-6)
    assert all(w.low <= o.low and o.high <= w.high for w, o in zip(wider, observed, strict=True))
    assert np.isnan(debora.Engine(soft, 7).observed()[0].mean)
    with pytest.raises(debora.Error, match="miss 0 is outside"):
        engine.observed(miss=0.0)
