//! A small finished experiment with every kind of fact in it, as two people made it.

use std::sync::Arc;

use debora_cli::log::Line;
use debora_cli::service::request::{Change, DecisionId, Granted, Refusal, Request, ToldOutcome};
use debora_cli::store::{DecisionKind, Status};

use crate::trial::{HELD_BACK, Trial};

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
            DecisionId::Overtime { serial, .. } | DecisionId::Holdback { serial, .. } => {
                serial % 2 == 1
            }
        });
        untold.extend::<Vec<DecisionId>>(kept);
        tell(&mut trial, &ben, told, shift);
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
    let outside = ["overtime", "aside", "holdback", "holdback_outcome"];
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
        matches!(journal, Some("late" | "aside" | "holdback_outcome")),
        "{journal:?}"
    );
}

fn decide(trial: &mut Trial, actor: &Arc<str>, step: u64) -> Vec<DecisionId> {
    let request = Request::Decide {
        id: trial.id.into(),
        rounds: 2 + step % 3,
        request_key: Some(format!("request {step}")),
        seen: 0,
        actor: actor.clone(),
    };
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

fn tell(trial: &mut Trial, actor: &Arc<str>, decisions: Vec<DecisionId>, shift: f64) {
    // One by one, so that each has its own place in the order.
    for decision in decisions {
        let reward = trial.draw() / 2.0 + shift;
        let costs = vec![trial.draw()];
        let tell = Request::Tell {
            id: trial.id.into(),
            outcomes: vec![ToldOutcome {
                decision,
                reward,
                costs,
            }],
            actor: actor.clone(),
        };
        trial.ask(tell).unwrap();
    }
}

fn change(trial: &mut Trial, change: Change, actor: &str, reason: Option<&str>) {
    let request = Request::Change {
        id: trial.id.into(),
        change,
        actor: actor.into(),
        reason: reason.map(str::to_owned),
    };
    trial.ask(request).unwrap();
}
