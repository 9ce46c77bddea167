//! The answer in words: what to deploy or what is happening, and whether limits are kept.

use debora::Policy;
use debora::measure::words::{counted, listed, percent, whole};
use debora::record::Kind;

use super::view::ExperimentView;
use crate::log::kept::LimitVerdict;
use crate::service::http::state::{ByName, State};

/// The most actions, or limits, named in a sentence.
const NAMED_MAX: usize = 4;

/// The sentence that matters most.
pub fn headline(view: &ExperimentView) -> String {
    let state = &view.state;
    let over = !state.status.is_open();
    let shares = shares(&state.strategy);
    match state.kind {
        Kind::Commit if over => format!("Deploy {}: it was clearly ahead.", leader(state)),
        Kind::Commit => format!(
            "Deploy {}: it is clearly ahead, and no outcome can change that any more.",
            leader(state)
        ),
        _ if state.decided == 0 && over => "There is nothing to deploy: it decided nothing.".into(),
        _ if state.decided == 0 => "Nothing is decided yet: it waits for its first request.".into(),
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
        Kind::Infeasible => infeasible(state, &shares),
    }
}

fn infeasible(state: &State, shares: &str) -> String {
    let over = !state.status.is_open();
    let instead = match (state.policy, over) {
        (Policy::Hard, true) => "the safe strategy was played",
        (Policy::Hard, false) => "the safe strategy is played",
        (_, true) => "what comes closest was played",
        (_, false) => "what comes closest is played",
    };
    format!("By the estimates no strategy keeps every limit; {instead}: {shares}.")
}

fn leader(state: &State) -> &str {
    let shares = state.strategy.0.iter();
    shares
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .map_or("", |(name, _)| name)
}

/// A strategy in words, the largest shares first.
pub fn shares(strategy: &ByName) -> String {
    let mut played: Vec<&(String, f64)> = strategy
        .0
        .iter()
        .filter(|(_, share)| *share > 0.0)
        .collect();
    played.sort_by(|one, other| other.1.total_cmp(&one.1));
    if let [(name, _)] = played[..] {
        return format!("{name} alone");
    }
    // One more than fits would be "1 other", which is no shorter than its name.
    let named = match played.len() {
        few if few <= NAMED_MAX => few,
        _ => NAMED_MAX - 1,
    };
    let mut words: Vec<String> = played[..named]
        .iter()
        .map(|(name, share)| format!("{name} {}", percent(*share)))
        .collect();
    let others = &played[named..];
    if !others.is_empty() {
        let rest: f64 = others.iter().map(|(_, share)| share).sum();
        words.push(format!(
            "{} others {}",
            whole(others.len() as u64),
            percent(rest)
        ));
    }
    // A number and its sign stay on one line.
    listed(&words).replace(" %", "\u{a0}%")
}

/// Whether limits are kept, in a sentence; `None` if there are none.
pub fn limits(state: &State) -> Option<String> {
    let named = |verdict: LimitVerdict| {
        let of_it = state.limits.iter();
        let names = of_it.filter(|limit| limit.all.verdict == verdict);
        names.map(|limit| limit.name.clone()).collect::<Vec<_>>()
    };
    let [exceeded, unknown, kept] = [
        LimitVerdict::Exceeded,
        LimitVerdict::Unknown,
        LimitVerdict::Kept,
    ]
    .map(named);
    // The worst first.
    let parts = [
        part(&exceeded, "was exceeded", "were exceeded"),
        part(
            &unknown,
            "is not yet known to be kept",
            "are not yet known to be kept",
        ),
        part(&kept, "was kept", "were kept"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let free = match state.policy {
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
