//! Whether a store has kept what was acknowledged: no more, no less, and as an engine that nobody disturbed decides it.

use std::collections::BTreeMap;

use debora::key::Label;
use debora::spec::Spec;
use debora::{Ask, Engine, Key, WorldKey};
use debora_cli::store::{DecisionKind, Lease, Location, OutcomeRow, Purpose, Status};

use crate::kit::binary::debora;
use crate::kit::play::SPEC;

/// A fixed world: what an action gives in a round.
pub fn outcome(round: u64, action: u64) -> (f64, f64) {
    let uniform =
        |quantity: u64| WorldKey::from(5u64).uniform(Label::Feedback, [action, round, quantity]);
    let means = [[0.3, 0.2], [0.6, 0.5], [0.8, 0.9]][action as usize];
    (
        f64::from(u8::from(uniform(0) < means[0])),
        f64::from(u8::from(uniform(1) < means[1])),
    )
}

/// What clients were told, by experiment.
#[derive(Default)]
pub struct Acknowledged {
    /// By request key: overtime, epoch, first, actions.
    pub leases: BTreeMap<String, (bool, u64, u64, Vec<u64>)>,
    /// By round: the receipt.
    pub outcomes: BTreeMap<u64, String>,
}

/// Compares what is stored with what was acknowledged, and with an engine that nobody disturbed.
pub fn check(location: &Location, id: &str, key: Key, noted: &Acknowledged) -> (u64, u64) {
    let mut store = location.open(Purpose::Read).unwrap();
    store.begin().unwrap();
    let (_, progress) = store.experiment(id).unwrap().unwrap();
    let mut leases: Vec<Lease> = Vec::new();
    for epoch in 0..=progress.epoch {
        for kind in DecisionKind::ALL {
            leases.extend(store.leases(id, epoch, kind, 0, usize::MAX).unwrap());
        }
    }
    let outcomes = store.outcomes(id, 0, usize::MAX).unwrap();
    store.rollback();

    for (request_key, (overtime, epoch, first, actions)) in &noted.leases {
        let found: Vec<&Lease> = leases
            .iter()
            .filter(|lease| lease.request_key.as_ref() == Some(request_key))
            .collect();
        assert_eq!(
            found.len(),
            1,
            "{id}: {request_key} has {} leases",
            found.len()
        );
        let lease = found[0];
        let given: Vec<u64> = lease
            .actions
            .iter()
            .map(|&action| u64::from(action))
            .collect();
        assert_eq!(
            (
                lease.kind == DecisionKind::Overtime,
                lease.epoch,
                lease.first,
                &given
            ),
            (*overtime, *epoch, *first, actions)
        );
    }
    let stored: BTreeMap<u64, &OutcomeRow> = outcomes
        .iter()
        .map(|outcome| (outcome.round, outcome))
        .collect();
    assert_eq!(stored.len(), outcomes.len());
    for (round, receipt) in &noted.outcomes {
        let found = stored
            .get(round)
            .unwrap_or_else(|| panic!("{id}: round {round} was acknowledged and is gone"));
        assert!(
            receipt == "repeated" || found.imputed == (receipt == "late"),
            "{id}: round {round} was {receipt}"
        );
    }

    let mut engine = Engine::new(Spec::parse(SPEC, "spec").unwrap().problem, key);
    let mut told = outcomes.iter();
    for lease in leases
        .iter()
        .filter(|lease| lease.kind == DecisionKind::Round)
    {
        for (round, action) in (lease.first..).zip(&lease.actions) {
            loop {
                match engine.ask() {
                    Ask::Decision(decision) => {
                        assert_eq!(
                            (decision.round, decision.action, decision.epoch),
                            (round, *action, lease.epoch)
                        );
                        break;
                    }
                    // The next round is of the next epoch: the outcomes of this one lead there.
                    _ => {
                        let outcome = told.next().expect("an epoch that ended has its outcomes");
                        engine
                            .tell(outcome.round, outcome.reward, &outcome.costs)
                            .unwrap();
                    }
                }
            }
        }
    }
    for outcome in told {
        engine
            .tell(outcome.round, outcome.reward, &outcome.costs)
            .unwrap();
        let action = leases
            .iter()
            .filter(|lease| lease.kind == DecisionKind::Round)
            .find_map(|lease| {
                lease
                    .actions
                    .get(usize::try_from(outcome.round.checked_sub(lease.first)?).ok()?)
            });
        let expected = self::outcome(outcome.round, u64::from(*action.unwrap()));
        assert!(
            outcome.imputed || (outcome.reward, outcome.costs[0]) == expected,
            "{id}: {outcome:?}"
        );
    }
    assert_eq!(engine.tally().counts(), progress.outcomes);
    assert_eq!(
        (engine.digest(), engine.is_done()),
        (progress.digest, progress.status == Status::Done)
    );
    (
        outcomes.len() as u64,
        outcomes.iter().filter(|outcome| outcome.imputed).count() as u64,
    )
}

/// An audit from the store confirms all.
pub fn audited<'a>(store: &str, ids: impl Iterator<Item = &'a String>) {
    for id in ids {
        let output = debora(&["audit", store, "--experiment", id])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("all equal"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
