//! Players of one's own: played, compared, measured and merged like the library's.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use debora::key::Label;
use debora::lab::metrics;
use debora::lab::players::{OwnPlayer, Player, Rival, Stream, beta};
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::world::Bernoulli;
use debora::measure::{
    Io, MeasureError, Measurement, Own, Part, SpecText, answer, check_names, choose, json,
};
use debora::{Key, Problem, Strategy, Tally, WorldKey};

use crate::common::{names, plan};

fn experiment(horizon: u64, means: &[f64]) -> Experiment {
    let problem = Problem::free(names(means.len()), horizon, 0.3)
        .build()
        .unwrap();
    let world = Arc::new(Bernoulli::new(&problem, &[means.to_vec()]).unwrap());
    Experiment {
        worlds: [world.clone(), world],
        key: Key::from(42u64),
        world_key: WorldKey::from(7u64),
        simulator: Simulator::Epochs,
        checkpoints: metrics::checkpoints(horizon),
        plan: plan(problem),
    }
}

/// Thompson sampling for coins, written by the formula and with none of the rival's code but its draws.
struct Thompson {
    key: Key,
    tally: Tally,
    strategy: Strategy,
}

impl Thompson {
    fn own(name: &str) -> OwnPlayer {
        OwnPlayer::new(name, |plan, key| {
            let actions = plan.problem.actions().len();
            let mut player = Self {
                key,
                tally: Tally::new(actions, plan.problem.quantities()),
                strategy: Strategy::pure(0, actions),
            };
            player.decide();
            Box::new(player)
        })
        .per_round()
    }

    fn decide(&mut self) {
        let round = self.tally.counts().iter().sum::<u64>() + 1;
        let drawn = (0u64..).zip(self.tally.counts()).map(|(action, &count)| {
            let ones = self.tally.sums()[action as usize * self.tally.quantities()] >> 53;
            let mut stream = Stream::new(self.key, Label::Player, [round, action]);
            beta(
                &mut stream,
                ones as f64 + 1.0,
                (count as u128 - ones) as f64 + 1.0,
            )
        });
        let drawn: Vec<f64> = drawn.collect();
        let largest = drawn.iter().copied().fold(0.0, f64::max);
        let first = drawn.iter().position(|&theta| theta == largest).unwrap();
        self.strategy = Strategy::pure(first as u32, drawn.len());
    }
}

impl Player for Thompson {
    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn rounds_max(&self) -> Option<u64> {
        Some(1)
    }

    fn tell(&mut self, stretch: &Tally) {
        self.tally.merge(stretch);
        self.decide();
    }

    fn note(&self) -> Option<String> {
        let best = self.tally.counts().iter().max().unwrap();
        Some(format!("played its favourite {best} times"))
    }
}

/// To the bit: the same draws of the same key, on the same data.
#[test]
fn one_s_own_thompson_sampling_is_the_rival_s() {
    let experiment = experiment(400, &[0.5, 0.4, 0.6]);
    let own = Thompson::own("mine");
    let thompson = Contestant::Rival(Rival::named("thompson").unwrap());
    for index in 0..6 {
        let mine = experiment.pair(Contestant::Own(&own), index).unwrap();
        let mut theirs = experiment.pair(thompson, index).unwrap();
        for (mine, theirs) in mine.runs.iter().zip(&mut theirs.runs) {
            assert!(theirs.note.is_none() && mine.note.is_some());
            theirs.note.clone_from(&mine.note);
        }
        assert_eq!(mine, theirs);
    }
}

/// Another strategy in every round, the same in both runs, up to a round from which on the data decide.
struct Restless {
    until: u64,
    round: u64,
    strategy: Strategy,
}

impl Restless {
    fn own(until: u64) -> OwnPlayer {
        OwnPlayer::new("restless", move |_, _| {
            Box::new(Self {
                until,
                round: 1,
                strategy: Strategy::pure(0, 2),
            })
        })
        .per_round()
    }
}

impl Player for Restless {
    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn rounds_max(&self) -> Option<u64> {
        Some(1)
    }

    fn tell(&mut self, stretch: &Tally) {
        self.round += 1;
        let next = if self.round < self.until {
            self.round % 2
        } else {
            stretch.sums().iter().sum::<u128>() as u64 >> 53
        };
        self.strategy = Strategy::pure(next as u32, 2);
    }
}

/// Far more changes of strategy than a pair is first compared by. After `until` a round is alike with probability 1/2 or so, so
/// a pair diverges within 40 rounds but for 2^-40.
#[test]
fn pairs_of_restless_players_are_compared_to_the_end() {
    let until = 120_000;
    let experiment = experiment(until + 40, &[0.5, 0.5]);
    let pair = experiment.pair(Contestant::Own(&Restless::own(until)), 0);
    let round = pair.unwrap().divergence.expect("they diverge").round;
    assert!((until..until + 40).contains(&round), "{round}");
    let alike = experiment.pair(Contestant::Own(&Restless::own(u64::MAX)), 0);
    assert_eq!(alike.unwrap().divergence, None);
}

#[test]
fn pairs_one_by_one_are_played_in_order_on_one_thread() {
    let experiment = experiment(10, &[0.5, 0.5]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let own = OwnPlayer::new("alike", move |plan, key| {
        // Long enough for other threads to take pairs, were there work for them.
        std::thread::sleep(std::time::Duration::from_millis(1));
        let thread = std::thread::current().id();
        noted.lock().unwrap().push((thread, key));
        Rival::named("ucb1").unwrap().player(plan, key)
    });
    let own = own.one_by_one();
    let contestant = Contestant::Own(&own);
    let pairs = experiment.pairs_on(4, contestant, 3..40, &|_| (), &AtomicBool::new(false));
    assert_eq!(pairs.unwrap().len(), 37);
    let seen = seen.lock().unwrap();
    let keys: Vec<Key> = (3..40)
        .flat_map(|pair| [experiment.key.derive(pair, 0); 2])
        .collect();
    assert_eq!(seen.iter().map(|(_, key)| *key).collect::<Vec<_>>(), keys);
    assert!(seen.iter().all(|(thread, _)| *thread == seen[0].0));
}

const TWO: &str = "policy = 'free'\nhorizon = 300\nrho = 0.3\nactions = ['a', 'b']\n\
                   [world]\nkind = 'bernoulli'\nreward = [0.4, 0.6]";

fn spec() -> SpecText {
    SpecText::parse(TWO.into(), "two.toml".into(), Vec::new()).unwrap()
}

fn measured(measurement: &Measurement, own: &Own, part: Option<(u64, u64)>) -> Part {
    let open = |_: &std::path::Path| unreachable!("only tables are read from files");
    let io = Io {
        open: &open,
        clock: &|| 0.0,
        progress: &|_| (),
        cancel: &AtomicBool::new(false),
        threads: None,
        own,
    };
    measurement.measure(part, &io).unwrap().0
}

fn own_players(names: &[&str]) -> Own {
    Own {
        players: names.iter().map(|name| Thompson::own(name)).collect(),
        world: None,
    }
}

#[test]
fn one_s_own_player_has_a_row_a_note_and_parts() {
    let own = own_players(&["mine"]);
    let wanted = ["rse".to_owned(), "mine".to_owned()];
    let choice = choose(spec().problem(), &wanted, &own.players, 12).unwrap();
    assert_eq!(choice.players, ["debora", "rse", "mine"]);
    let measurement = Measurement::compare(spec(), 12, Simulator::Epochs, choice.players);
    let whole = measured(&measurement, &own, None);
    let findings = whole.findings();
    let document = json::measured(&whole, &findings);
    let rows = document["rows"].as_array().unwrap();
    let text = |row: usize, field: &str| rows[row][field].as_str().unwrap_or("none").to_owned();
    assert_eq!(
        [text(2, "player"), text(2, "source")],
        ["mine", "own player"]
    );
    assert!(rows[2]["constants"].is_null() && rows[2]["interval"].is_array());
    // Every run of rse says the same, those of the other differ in a number.
    assert!(
        text(1, "note").ends_with("can tell two actions apart"),
        "{}",
        text(1, "note")
    );
    let mine = text(2, "note");
    assert!(mine.starts_with("played its favourite"), "{mine}");
    assert!(
        mine.ends_with("times (one of 24 notes on 24 runs)"),
        "{mine}"
    );
    assert_eq!(text(0, "note"), "none");
    let shown = format!("{:?}", answer::measured(&whole, &findings));
    assert!(
        shown.contains(&format!("Note(\"mine: {mine}\")")),
        "{shown}"
    );

    let parts = [2, 1, 3].map(|number| measured(&measurement, &own, Some((number, 3))));
    assert_eq!(
        Part::merge(parts.to_vec()).unwrap().to_json(),
        whole.to_json()
    );
    let other = Measurement {
        players: ["debora", "rse", "yours"].map(String::from).to_vec(),
        ..measurement.clone()
    };
    let part = measured(&other, &own_players(&["yours"]), Some((1, 3)));
    let error = Part::merge(vec![parts[0].clone(), part]).unwrap_err();
    assert!(error.to_string().contains("debora, rse, yours"), "{error}");
}

#[test]
fn a_replication_of_another_player_checks_no_promise_of_debora() {
    let own = own_players(&["mine"]);
    let measurement = Measurement::replicate(spec(), 60, Simulator::Epochs, None).of_player("mine");
    let part = measured(&measurement, &own, None);
    let findings = part.findings();
    let (name, summary) = &findings.summaries[0];
    // Thompson sampling diverges nearly always: as debora's this would be a broken promise.
    assert_eq!(name, "mine");
    assert!(!summary.broken(&part.measurement.spec.plan).is_empty());
    assert!(findings.broken.is_empty());
    assert_eq!(json::measured(&part, &findings)["player"], "mine");
    let shown = format!("{:?}", answer::measured(&part, &findings));
    assert!(
        shown.contains("mine is identical in") && !shown.contains("promised"),
        "{shown}"
    );
    let first_run = part.first_run.unwrap();
    assert_eq!(first_run.strategies.len(), 300);
}

#[test]
fn names_of_one_s_own_are_one_s_own() {
    for names in [["debora", "mine"], ["safe-mix", "mine"], ["mine", "mine"]] {
        let error = check_names(&own_players(&names).players).unwrap_err();
        assert!(
            matches!(error, MeasureError::PlayerName { .. }),
            "{names:?}: {error}"
        );
    }
    assert_eq!(
        check_names(&own_players(&["mine", "yours"]).players),
        Ok(())
    );
    let long = TWO.replace("300", "1e9");
    let long = SpecText::parse(long, "long.toml".into(), Vec::new()).unwrap();
    let own = own_players(&["mine"]);
    let error = choose(long.problem(), &["mine".into()], &own.players, 1).unwrap_err();
    assert!(
        error.to_string().starts_with("mine decides in every round"),
        "{error}"
    );
}

/// Rivals that must be named do not play without a wish, at any horizon.
#[test]
fn the_players_of_a_comparison_without_a_wish_are_those_that_need_not_be_named() {
    let choice = choose(spec().problem(), &[], &[], 10).unwrap();
    let added = ["thompson", "kl-ucb", "exp3"];
    assert!(choice.players.contains(&"ucb1".to_owned()));
    assert!(
        added
            .iter()
            .all(|name| !choice.players.iter().any(|player| player == name))
    );
    assert_eq!(choice.left_out, Vec::<String>::new());
    let named: Vec<String> = added.map(String::from).to_vec();
    let choice = choose(spec().problem(), &named, &[], 10).unwrap();
    assert_eq!(choice.players[1..], named);
}

/// A cancelled measurement of one's own player stops between pairs.
#[test]
fn progress_and_cancel_are_those_of_every_player() {
    let experiment = experiment(50, &[0.5, 0.5]);
    let done = AtomicU64::new(0);
    let cancel = AtomicBool::new(false);
    let progress = |pairs: u64| {
        done.store(pairs, Ordering::Relaxed);
        cancel.store(pairs == 5, Ordering::Relaxed);
    };
    let own = Thompson::own("mine").one_by_one();
    let stopped = experiment.pairs(Contestant::Own(&own), 0..100, &progress, &cancel);
    assert!(stopped.is_err() && done.into_inner() == 5);
}
