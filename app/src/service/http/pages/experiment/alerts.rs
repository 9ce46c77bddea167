//! What somebody should look into, each with what to do: alerts, as the interface and the list have them, and notes on what is as
//! it may be and still calls for someone.

use debora::Policy;
use debora::measure::words::{amount, listed, percent, whole};
use debora::record::Kind;
use debora::spec::OnWait;

use super::view::ExperimentView;
use crate::reading::LimitVerdict;
use crate::reading::alerts::AlertKind;
use crate::store::Status;

/// The most that are shown: every action may have a declared mean that is false.
const SHOWN_MAX: usize = 8;

/// Something to look into, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Advisory {
    /// What is wrong.
    pub sentence: String,
    /// What to do about it.
    pub remedy: String,
}

/// The alerts, and how many more there are than are shown.
pub fn with_remedies(view: &ExperimentView) -> (Vec<Advisory>, usize) {
    let alerts = view.reading.alerts().into_iter();
    let mut alerts: Vec<Advisory> = alerts
        .map(|alert| Advisory {
            sentence: alert.sentence,
            remedy: remedy(view, alert.kind),
        })
        .collect();
    let more = alerts.len().saturating_sub(SHOWN_MAX);
    alerts.truncate(SHOWN_MAX);
    (alerts, more)
}

/// The notes.
pub fn notes(view: &ExperimentView) -> Vec<Advisory> {
    let notes = [exceeded(view), blind(view), infeasible(view), stopped(view)];
    notes.into_iter().flatten().collect()
}

fn remedy(view: &ExperimentView, kind: AlertKind) -> String {
    match kind {
        AlertKind::BrokenPromise => hold(view, "compare costs in the log before and after they rose"),
        AlertKind::UnevenLoss => {
            "Look up rounds without an outcome in the log, and find out what became of them; tell an outcome also of what failed \
             or timed out, as that is when one is forgotten."
                .into()
        }
    }
}

/// Advice to stop, unless it is over.
fn hold(view: &ExperimentView, then: &str) -> String {
    match view.reading.progress.status {
        Status::Running => format!("Pause it, and {then}."),
        _ => format!("To do: {then}."),
    }
}

/// What policy soft may do, and somebody may not expect.
fn exceeded(view: &ExperimentView) -> Option<Advisory> {
    let limits = view.reading.limits().iter();
    let names: Vec<String> = limits
        .filter(|limit| limit.all.verdict == LimitVerdict::Exceeded)
        .map(|limit| limit.name.clone())
        .collect();
    if view.reading.policy() != Policy::Soft || names.is_empty() {
        return None;
    }
    let bound = view.plan.excess_max.map_or(String::new(), |share| {
        format!(
            ", by the plan up to {} of a range on average",
            percent(share)
        )
    });
    // Where no strategy is sure to keep the limits, there is no cautious one.
    let instead = match view.reading.advice().cautious {
        Some(_) => "deploy the cautious strategy, or ",
        None => "",
    };
    Some(Advisory {
        sentence: format!("So far {} is above its threshold.", listed(&names)),
        remedy: format!(
            "Policy soft may exceed a limit while it learns{bound}. If that is too much, {instead}start another experiment with \
             policy hard."
        ),
    })
}

fn blind(view: &ExperimentView) -> Option<Advisory> {
    // Of what is over the answer says it, and nothing is left to do.
    if !view.plan.is_blind || !view.reading.is_open() {
        return None;
    }
    let horizon = view
        .plan
        .horizon_needed
        .map(|horizon| format!("a horizon of {}", whole(horizon)));
    let rho = view
        .plan
        .rho_needed
        .map(|rho| format!("a rho above {}", amount(rho)));
    let needed: Vec<String> = horizon.into_iter().chain(rho).collect();
    let remedy = match &needed[..] {
        [] => "Close it, and start another with fewer actions.".to_owned(),
        _ => format!("Close it, and start another with {}.", needed.join(" or ")),
    };
    Some(Advisory {
        sentence: "The plan is blind: at this horizon two actions can never be compared.".into(),
        remedy,
    })
}

fn infeasible(view: &ExperimentView) -> Option<Advisory> {
    let another = "start another with a higher threshold or a cheaper action";
    let remedy = if view.next.is_fixed {
        format!("Close it, and {another}.")
    } else {
        format!("Go on, as the next estimates may leave one; or close it, and {another}.")
    };
    (view.reading.kind() == Kind::Infeasible && view.reading.is_open()).then(|| Advisory {
        sentence: "By the estimates no strategy keeps every limit.".into(),
        remedy,
    })
}

/// A wait or a pause that only somebody else can end.
fn stopped(view: &ExperimentView) -> Option<Advisory> {
    let reading = &view.reading;
    if reading.progress.status == Status::Paused {
        return Some(Advisory {
            sentence: format!("It was paused{}", view.stopped_by()),
            remedy: "An admin can resume it on the experiment's page; outcomes of rounds that are decided are taken all the while.".into(),
        });
    }
    if reading.is_waiting() && reading.progress.rounds() == reading.problem().horizon() {
        return Some(Advisory {
            sentence: "All rounds are decided, and no request gets another.".into(),
            remedy: "It is done once the outstanding outcomes are known: the log lists the rounds without one.".into(),
        });
    }
    // While overtime is served, callers notice nothing.
    (reading.is_waiting() && view.next.on_wait == OnWait::Hold).then(|| Advisory {
        sentence: "Requests for decisions are refused until the outstanding outcomes are known.".into(),
        remedy: match view.next.outcome_wait {
            Some(_) => "Tell them: the log lists the rounds without one. What is not told in time is imputed.",
            None => {
                "Tell them: the log lists the rounds without one. The spec has no outcome_wait, so that nothing is imputed and \
                 each of them is waited for."
            }
        }
        .into(),
    })
}
