//! The answer in words: what to deploy or what is happening, and whether limits are kept.

use debora::Policy;
use debora::measure::words::{counted, listed, whole};
use debora::record::Kind;

use super::view::ExperimentView;
use crate::log::kept::LimitVerdict;
use crate::service::http::epochs::entry::share;
use crate::service::http::state::{ByName, State};

/// The most actions, or limits, named in a sentence.
const NAMED_MAX: usize = 4;

/// The sentence that matters most, and what speaks against it.
pub fn headline(view: &ExperimentView) -> String {
    // Whoever approves it may read no further.
    first_sentence(view) + &against(view)
}

/// That by what was observed the strategy does not keep a limit, if that is so.
fn against(view: &ExperimentView) -> String {
    let state = &view.state;
    // What explores is no advice, and what is infeasible says so already.
    if !matches!(state.kind, Kind::Estimate | Kind::Commit) || view.plan.is_blind {
        return String::new();
    }
    let least = |cost: &str| -> f64 {
        let of_cost = state.means.iter().filter(|mean| mean.quantity == cost);
        let share = |action: u32| state.strategy.0[action as usize].1;
        of_cost
            .map(|mean| share(mean.action) * mean.observed.interval.low)
            .sum()
    };
    let limits = state.limits.iter();
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
    let state = &view.state;
    let over = !state.status.is_open();
    let shares = shares(&state.strategy);
    match state.kind {
        Kind::Commit if over => format!("Deploy {}: it was clearly ahead.", leader(state)),
        Kind::Commit => format!(
            "Deploy {}: it is clearly ahead, and no outcome can change that any more.",
            leader(state)
        ),
        Kind::Pick => format!(
            "Deploy {}: it was picked at the end of the trial, and no outcome changes that.",
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
        .map(|(name, probability)| format!("{name} {}", share(*probability)))
        .collect();
    let others = &played[named..];
    if !others.is_empty() {
        let rest: f64 = others.iter().map(|(_, share)| share).sum();
        words.push(format!(
            "{} others {}",
            whole(others.len() as u64),
            share(rest)
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
            "is not known to be kept",
            "are not known to be kept",
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
