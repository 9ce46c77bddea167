//! The answer in words: what to deploy or what is happening, and whether limits are kept.

use debora::Policy;
use debora::measure::words::{counted, listed, whole};
use debora::record::Kind;

use super::view::ExperimentView;
use crate::reading::{LimitVerdict, Reading};

/// The most actions, or limits, named in a sentence.
const NAMED_MAX: usize = 4;

/// The sentence that matters most, and what speaks against it.
pub fn headline(view: &ExperimentView) -> String {
    // Whoever approves it may read no further.
    first_sentence(view) + &against(view)
}

/// That by what was observed the strategy does not keep a limit, if that is so.
fn against(view: &ExperimentView) -> String {
    let reading = &view.reading;
    // What explores is no advice, and what is infeasible says so already.
    if !matches!(reading.kind(), Kind::Estimate | Kind::Commit) || view.plan.is_blind {
        return String::new();
    }
    let least = |cost: &str| -> f64 {
        let weighted = reading
            .means_of(cost)
            .map(|mean| reading.shares().probability_of(mean.action) * mean.observed.interval.low);
        weighted.sum()
    };
    let limits = reading.limits().iter();
    let unkept: Vec<String> = limits
        .filter(|limit| least(&limit.name) > limit.threshold)
        .map(|limit| limit.name.clone())
        .collect();
    match &unkept[..] {
        [] => String::new(),
        [name] => format!(" By what was observed this does not keep the limit of {name}."),
        names if names.len() > NAMED_MAX => format!(
            " By what was observed this does not keep the limits of {} costs.",
            whole(names.len() as u64)
        ),
        names => format!(
            " By what was observed this does not keep the limits of {}.",
            listed(names)
        ),
    }
}

fn first_sentence(view: &ExperimentView) -> String {
    let reading = &view.reading;
    let over = !reading.is_open();
    let (shares, leader) = (reading.shares().words(), &reading.shares().leader().name);
    let nothing_decided = reading.progress.rounds() == 0;
    match reading.kind() {
        Kind::Pick => {
            format!(
                "Deploy {leader}: it was picked at the end of the trial, and no outcome changes that."
            )
        }
        Kind::Commit if over => format!("Deploy {leader}: it was clearly ahead."),
        Kind::Commit => {
            format!(
                "Deploy {leader}: it is clearly ahead, and no outcome can change that any more."
            )
        }
        _ if nothing_decided && over => "There is nothing to deploy: it decided nothing.".into(),
        _ if nothing_decided => "Nothing is decided yet: it waits for its first request.".into(),
        // Its estimates are wider than any difference, so that what is played says nothing.
        _ if view.plan.is_blind => {
            "There is nothing to deploy: the horizon is too short to compare two actions.".into()
        }
        Kind::Explore if over => {
            "There is nothing to deploy: it ended before all actions were estimated.".into()
        }
        Kind::Explore => "Exploring: it is too early to say which action is best.".into(),
        Kind::Estimate if over => format!("Deploy {shares}."),
        Kind::Estimate => format!("The best strategy known so far is {shares}."),
        Kind::Infeasible => infeasible(reading, &shares),
    }
}

fn infeasible(reading: &Reading, shares: &str) -> String {
    let over = !reading.is_open();
    let instead = match (reading.policy(), over) {
        (Policy::Hard, true) => "the safe strategy was played",
        (Policy::Hard, false) => "the safe strategy is played",
        (_, true) => "what comes closest was played",
        (_, false) => "what comes closest is played",
    };
    format!("By the estimates no strategy keeps every limit; {instead}: {shares}.")
}

/// Whether limits are kept, in a sentence; `None` if there are none.
pub fn limits(reading: &Reading) -> Option<String> {
    let named = |verdict: LimitVerdict| {
        let of_it = reading.limits().iter();
        let names = of_it.filter(|limit| limit.all.verdict == verdict);
        names.map(|limit| limit.name.clone()).collect::<Vec<_>>()
    };
    let [exceeded, unknown, kept] = LimitVerdict::ALL.map(named);
    // The worst first.
    let parts = [
        part(&exceeded, "was exceeded", "were exceeded"),
        part(
            &unknown,
            "is not known to be kept",
            "are not known to be kept",
        ),
        part(&kept, "was kept", "were kept"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let free = match reading.policy() {
        // Its thresholds are stated and decide nothing.
        Policy::Free => " Policy free does not try to keep limits.",
        Policy::Soft | Policy::Hard => "",
    };
    (!parts.is_empty()).then(|| format!("{}.{free}", parts.join("; ").replacen("the", "The", 1)))
}

fn part(names: &[String], one: &str, many: &str) -> Option<String> {
    match names {
        [] => None,
        [name] => Some(format!("the limit of {name} {one}")),
        _ if names.len() > NAMED_MAX => Some(format!(
            "the limits of {} {many}",
            counted(names.len() as u64, "cost", "costs")
        )),
        _ => Some(format!("the limits of {} {many}", listed(names))),
    }
}
