//! A small finished experiment with every kind of fact in it, as two people made it.

use std::sync::Arc;

use debora::spec::Spec;
use debora::{Engine, Key};
use debora_cli::log::Line;
use debora_cli::service::request::{
    Change, Decide, DecisionId, Granted, MakeChange, Refusal, Request, Tell, ToldOutcome,
};
use debora_cli::store::{DecisionKind, Status};

use crate::kit::trial::{HELD_BACK, Trial};

/// A finished experiment; another `shift` gives other outcomes under the same key.
pub fn life(shift: f64) -> Trial {
    let mut trial = Trial::new(HELD_BACK, 42, 1);
    let (ann, ben): (Arc<str>, Arc<str>) = ("ann".into(), "ben".into());
    let mut untold = Vec::new();
    for step in 0..200u64 {
        if trial.status() == Status::Done {
            break;
        }
        let given = decide(&mut trial, &ann, step);
        // Each third decision is forgotten, until it is too late for it.
        let (told, kept) = given.into_iter().partition(|decision| match decision {
            DecisionId::Round(round) => round % 3 != 0,
            DecisionId::Overtime { serial, .. } => serial % 2 == 1,
            DecisionId::Holdback { .. } => unreachable!("asked for apart"),
        });
        untold.extend::<Vec<DecisionId>>(kept);
        tell(&mut trial, &ben, told, shift);
        if (3..6).contains(&step) {
            hold_back(&mut trial, &ann, step);
        }
        if step == 4 {
            change(&mut trial, Change::Pause, "ann", Some("a price was wrong"));
            trial.wait(1_000);
            change(&mut trial, Change::Resume, "ben", Some("it is right again"));
        }
        trial.wait(31_000);
        trial.tick();
        if step == 6 {
            let told = std::mem::take(&mut untold);
            tell(&mut trial, &ann, told, shift);
        }
    }
    tell(&mut trial, &ben, untold, shift);
    trial.stop();
    check_kinds(&trial);
    trial
}

/// The lines of an experiment's log.
pub fn lines(trial: &Trial) -> Vec<Line> {
    trial.log(10_000, true)
}

fn check_kinds(trial: &Trial) {
    assert_eq!(trial.status(), Status::Done);
    let lines = lines(trial);
    let outside = [
        "overtime",
        "overtime_outcome",
        "holdback",
        "holdback_outcome",
    ];
    for kind in ["decisions", "outcome", "late", "event"]
        .into_iter()
        .chain(outside)
    {
        let found = lines.iter().filter(|line| line.name() == kind).count();
        assert!(found > 1, "{found} lines of kind {kind}");
    }
    // What comes after the end is chained by another rule than what comes before.
    let journal = lines.iter().rev().nth(1).map(Line::name);
    assert!(
        matches!(journal, Some("late" | "overtime_outcome")),
        "{journal:?}"
    );
}

fn decide(trial: &mut Trial, actor: &Arc<str>, step: u64) -> Vec<DecisionId> {
    let request = Request::Decide(Decide {
        id: trial.id.into(),
        rounds: 2 + step % 3,
        request_key: Some(request_key(step, false)),
        seen: 0,
        actor: actor.clone(),
    });
    let lease = match trial.ask(request) {
        Ok(Granted::Decided(decided)) => decided.lease,
        Err(Refusal::Waiting { .. } | Refusal::Done { .. }) => return Vec::new(),
        other => panic!("{other:?}"),
    };
    let epoch = lease.epoch;
    let numbers = (lease.first..).take(lease.actions.len());
    numbers
        .map(|serial| match lease.kind {
            DecisionKind::Round => DecisionId::Round(serial),
            DecisionKind::Overtime => DecisionId::Overtime { epoch, serial },
            DecisionKind::Holdback => DecisionId::Holdback { epoch, serial },
        })
        .collect()
}

/// Asks for someone who is held back, and tells what came of it.
fn hold_back(trial: &mut Trial, actor: &Arc<str>, step: u64) {
    let request = Request::Decide(Decide {
        id: trial.id.into(),
        rounds: 2,
        request_key: Some(request_key(step, true)),
        seen: 0,
        actor: actor.clone(),
    });
    let Ok(Granted::Decided(decided)) = trial.ask(request) else {
        panic!("nothing was held back");
    };
    let (epoch, first) = (decided.lease.epoch, decided.lease.first);
    for serial in first..first + 2 {
        let outcome = ToldOutcome {
            decision: DecisionId::Holdback { epoch, serial },
            // Not drawn: the rounds' outcomes are those of a life without a holdback.
            reward: 0.75,
            costs: vec![0.5],
        };
        let tell = Request::Tell(Tell {
            id: trial.id.into(),
            outcomes: vec![outcome],
            actor: actor.clone(),
        });
        trial.ask(tell).unwrap();
    }
}

/// A key of a step's request, inside the experiment or held back from it.
fn request_key(step: u64, outside: bool) -> String {
    let spec = Spec::parse(HELD_BACK, "spec").unwrap();
    let share = spec.service.holdback.unwrap().share;
    let engine = Engine::new(spec.problem, Key::from(42u64));
    let mut keys = (0..).map(|number| format!("request {step}.{number}"));
    let found = keys.find(|key| engine.holds_back(key, share) == outside);
    found.unwrap()
}

fn tell(trial: &mut Trial, actor: &Arc<str>, decisions: Vec<DecisionId>, shift: f64) {
    // One by one, so that each has its own place in the order.
    for decision in decisions {
        let reward = trial.draw() / 2.0 + shift;
        let costs = vec![trial.draw()];
        let tell = Request::Tell(Tell {
            id: trial.id.into(),
            outcomes: vec![ToldOutcome {
                decision,
                reward,
                costs,
            }],
            actor: actor.clone(),
        });
        trial.ask(tell).unwrap();
    }
}

fn change(trial: &mut Trial, change: Change, actor: &str, reason: Option<&str>) {
    let request = Request::Change(MakeChange {
        id: trial.id.into(),
        change,
        actor: actor.into(),
        reason: reason.map(str::to_owned),
    });
    trial.ask(request).unwrap();
}
