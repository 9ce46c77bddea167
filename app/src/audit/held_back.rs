//! What was held back from an experiment: who, by the key, and that all of them got the one action.

use super::epoch::check_length;
use super::{Auditor, Check, Replay, Rules, differs, equal};
use crate::log::LeaseLine;
use crate::store::DecisionKind;

impl Auditor {
    pub(super) fn holdback(&mut self, given: &LeaseLine) -> Check {
        let (rules, _, open) = self.reading();
        let epoch = open.record.epoch;
        let place = || format!("epoch {epoch}, the holdback from serial {}", given.first);
        equal(place, "its epoch", &given.epoch, &epoch)?;
        equal(place, "its first serial", &given.first, &open.next_holdback)?;
        check_length(&place(), given)?;
        let Some(holdback) = rules.service.holdback else {
            let instead = "decided, as the spec has no holdback";
            return Err(differs(place(), "the request", "held back", instead));
        };
        let asked = given.actions.len() as u64;
        equal(place, "what was asked for", &given.asked, &asked)?;
        // Known without the key: the spec says it.
        for (serial, action) in (given.first..).zip(&given.actions) {
            let place = || format!("epoch {epoch}, serial {serial} of holdback");
            equal(place, "the action", action, &holdback.action)?;
        }
        open.next_holdback = given.end();
        self.audited.holdback += asked;
        self.lease(&place(), given, DecisionKind::Holdback)
    }
}

/// Whether a request is on the side where its key puts it: in or out of the experiment.
pub(super) fn check_membership(
    rules: &Rules,
    replay: &Replay,
    place: &str,
    given: &LeaseLine,
    kind: DecisionKind,
) -> Check {
    let Some(holdback) = rules.service.holdback else {
        return Ok(());
    };
    let Some(request_key) = &given.request_key else {
        return Err(differs(
            place,
            "its request key",
            "missing",
            "there, as the spec holds back by it",
        ));
    };
    let held_back = kind == DecisionKind::Holdback;
    // Both ways: a request that was let in against its key bends the comparison as much as one that was kept out.
    let by_key = replay.holds_back(request_key, holdback.share);
    equal(
        || place.to_owned(),
        "whether the request is held back",
        &held_back,
        &by_key.unwrap_or(held_back),
    )
}
