//! What comes next: how far the next epoch is, what it can change, and when nothing can change any more.
//!
//! An epoch ends when an action reaches its target, or with its last round. So from the counts so far and the strategy it is
//! known how many rounds it has left at most:
//!
//! ```text
//! most = min(last round - decided, 1 + sum over played actions (target - decided - 1))
//! ```

use std::time::Duration;

use debora::measure::words::{amount, counted, listed, whole as grouped};
use debora::record::{Interval, Kind};
use debora::spec::OnWait;
use debora::{Engine, Policy};

use super::text;
use crate::reading::pace::DecisionRate;
use crate::reading::{ActionMean, Reading};
use crate::store::Status;

/// The most actions named in a sentence.
const NAMED_MAX: usize = 3;

/// What comes next.
pub struct NextStep {
    /// Whether nothing can change the strategy any more.
    pub is_fixed: bool,
    /// What happens to requests while an epoch waits.
    pub on_wait: OnWait,
    /// After how long a missing outcome is imputed.
    pub outcome_wait: Option<Duration>,
    /// In words, the most important first.
    pub sentences: Vec<String>,
}

/// What comes next in an experiment that decides at this rate.
pub fn find(reading: &Reading, rate: Option<&DecisionRate>) -> NextStep {
    let engine = &reading.engine;
    let end = EpochEnd::of(engine, &reading.progress.decided);
    let fixed = fixed(reading, &end);
    let is_fixed = fixed.is_some();
    let sentences = match fixed {
        Some(sentence) => vec![sentence],
        None => [
            Some(until(reading, &end, rate)),
            Some(change(reading, &end)),
            exploration(reading, rate),
            untold_apart(reading),
        ]
        .into_iter()
        .flatten()
        .collect(),
    };
    NextStep {
        is_fixed,
        on_wait: reading.spec.service.on_wait,
        outcome_wait: reading.spec.service.outcome_wait,
        sentences,
    }
}

/// How many rounds the open epoch has left.
#[derive(Debug, PartialEq, Eq)]
struct EpochEnd {
    /// At most.
    most: u64,
    /// About so many, as the strategy spreads them.
    likely: u64,
    /// Whether the horizon ends it, whatever is drawn.
    is_last: bool,
    /// The actions that may end it, the likeliest first, each with the rounds it then has.
    enders: Vec<(u32, u64)>,
}

impl EpochEnd {
    fn of(engine: &Engine, decided: &[u64]) -> Self {
        let left = engine
            .last_round()
            .saturating_sub(decided.iter().sum::<u64>());
        let strategy = engine.strategy().probabilities();
        let played = (0..).zip(strategy).filter(|(_, share)| **share > 0.0);
        let mut enders = Vec::new();
        let mut most = Some(1u64);
        for (action, share) in played {
            let target = engine.target(action);
            let needed = target.map(|target| target.saturating_sub(decided[action as usize]));
            // One action without a target can be drawn to the end.
            most = most.zip(needed).map(|(most, needed)| {
                // Saturating, as a damaged store may be past a target.
                most.saturating_add(needed.saturating_sub(1))
            });
            // A target reached in the horizon's last round makes no estimate.
            if let (Some(target), Some(needed)) = (target, needed.filter(|needed| *needed < left)) {
                enders.push((needed as f64 / share, action, target));
            }
        }
        enders.sort_by(|one, other| one.0.total_cmp(&other.0));
        let is_last = engine.last_round() == engine.problem().horizon() && enders.is_empty();
        // Of an epoch that an action has ended, what the others would need is beside the point.
        if engine.is_handed_out_at(decided) {
            enders.retain(|(rounds, ..)| *rounds == 0.0);
            most = Some(0);
        }
        let most = most.map_or(left, |most| most.min(left));
        let likely = enders
            .first()
            .map_or(left, |(rounds, ..)| rounds.ceil() as u64);
        Self {
            most,
            likely: likely.min(most),
            is_last,
            enders: enders
                .into_iter()
                .map(|(_, action, target)| (action, target))
                .collect(),
        }
    }
}

/// Why nothing can change any more, if nothing can.
fn fixed(reading: &Reading, end: &EpochEnd) -> Option<String> {
    let plan = reading.engine.plan();
    let why = match reading.progress.status {
        Status::Done => "it has reached its horizon",
        Status::Closed => "it is closed",
        _ if reading.kind() == Kind::Commit => {
            "one action is played to the horizon, whatever its outcomes are; the experiment can be closed without loss"
        }
        _ if end.is_last && reading.kind() == Kind::Explore && plan.blind => {
            "the plan is blind, so exploration lasts to the horizon and nothing is ever estimated"
        }
        _ if end.is_last => {
            "this is the last epoch, as no action that it plays gets the rounds for another estimate before the horizon"
        }
        _ => return None,
    };
    Some(format!("Nothing can change any more: {why}."))
}

/// How far the next epoch is.
fn until(reading: &Reading, end: &EpochEnd, rate: Option<&DecisionRate>) -> String {
    let next = grouped(reading.progress.epoch + 1);
    if end.most == 0 {
        return format!("Epoch {next} begins {}.", after_outcomes(reading));
    }
    let most = counted(end.most, "more round", "more rounds");
    let likely = if end.likely < end.most {
        format!(", likely about {}", grouped(end.likely))
    } else {
        String::new()
    };
    let paused = match reading.progress.status {
        Status::Paused => " once it is resumed",
        _ => "",
    };
    let time = rate
        // Nobody knows how long a pause lasts.
        .filter(|_| paused.is_empty())
        .map_or(String::new(), |rate| {
            format!(
                "; at the current rate in about {}",
                text::duration(rate.seconds(end.likely))
            )
        });
    format!(
        "Epoch {next} begins after at most {most}{paused}{likely}{time}, and once their outcomes are known."
    )
}

/// What an epoch that is fully decided waits for.
fn after_outcomes(reading: &Reading) -> String {
    let outstanding = counted(
        reading.progress.outstanding(),
        "outstanding outcome is",
        "outstanding outcomes are",
    );
    let rules = &reading.spec.service;
    let imputed = rules.outcome_wait.map_or(String::new(), |wait| {
        format!(
            ", or imputed {} after the decision",
            text::duration(wait.as_secs_f64())
        )
    });
    let meanwhile = match rules.on_wait {
        OnWait::Hold => "requests for decisions are refused",
        OnWait::Serve => "requests get overtime decisions, which count for nothing",
    };
    format!("as soon as the {outstanding} told{imputed}; until then {meanwhile}")
}

/// What the end of the open epoch can change.
fn change(reading: &Reading, end: &EpochEnd) -> String {
    let engine = &reading.engine;
    if engine.is_in_blocks() {
        return trial(reading).unwrap_or_else(|| {
            "Then every action is estimated for the first time, and the strategy is found from the estimates.".into()
        });
    }
    let enders: Vec<String> = end
        .enders
        .iter()
        .take(NAMED_MAX)
        .map(|(action, target)| {
            let name = &engine.problem().actions()[*action as usize];
            format!("{name} has {}", counted(*target, "round", "rounds"))
        })
        .collect();
    // Named as one: which of many ends it is a matter of chance.
    let others = match end.enders.len().saturating_sub(NAMED_MAX) {
        0 => "",
        _ => ", or another action its own number",
    };
    let found = match reading.kind() {
        Kind::Explore => "Exploration goes on until every action is estimated.",
        _ => "The strategy is found anew from all estimates.",
    };
    let when = if end.most == 0 { "As" } else { "It ends when" };
    let then = if end.most == 0 { "it" } else { "that action" };
    format!(
        "{when} {}{others}, {then} is then estimated. {found}",
        enders.join(" or ")
    )
}

/// What comes at the end of the open part of a trial, if there is one.
fn trial(reading: &Reading) -> Option<String> {
    let engine = &reading.engine;
    let trial = engine.plan().trial.as_ref()?;
    let record = engine.open_record();
    let actions = engine.problem().actions().len() as u64;
    let each = (engine.last_round() + 1 - record.first_round) / actions + record.counts[0];
    let lead = lead(reading);
    let rounds = grouped(each);
    // What a look asks for is secret until it is made; what it can ask for is in the plan.
    Some(if each < trial.count {
        format!(
            "Then, after {rounds} rounds of each action, the run looks: an action clearly ahead is played from then on. Else the \
             trial goes on, at most to {} rounds each.{lead}",
            grouped(trial.count)
        )
    } else {
        format!(
            "Then, after {rounds} rounds of each action, one is picked and played to the horizon.{lead}"
        )
    })
}

/// Who is ahead in what was told, and by how much.
fn lead(reading: &Reading) -> String {
    let reward = &reading.problem().quantity(0).name;
    let mut means: Vec<(f64, &str)> = reading
        .means_of(reward)
        .filter_map(|mean| Some((mean.observed.mean?, mean.name.as_str())))
        .collect();
    means.sort_by(|one, other| other.0.total_cmp(&one.0));
    match means[..] {
        [(first, name), (second, _), ..] if first > second => format!(
            " In what was told so far {name} is {} ahead.",
            amount(first - second)
        ),
        _ => String::new(),
    }
}

/// When exploration ends, while it lasts.
fn exploration(reading: &Reading, rate: Option<&DecisionRate>) -> Option<String> {
    let plan = reading.engine.plan();
    let planned = plan.exploration_rounds.filter(|_| !plan.blind)?;
    if reading.kind() != Kind::Explore {
        return None;
    }
    // Under hard limits chance decides when the safe strategy is played, and the plan follows the expected path.
    let about = match reading.policy() {
        Policy::Hard => "about ",
        _ => "",
    };
    let left = planned.saturating_sub(reading.progress.rounds());
    // Nobody knows how long outcomes are waited for, either.
    let running = reading.progress.status == Status::Running && !reading.is_waiting() && left > 0;
    let time = rate.filter(|_| running).map_or(String::new(), |rate| {
        format!(
            ", in about {} at the current rate",
            text::duration(rate.seconds(left))
        )
    });
    let earlier = match &plan.trial {
        Some(trial) if !trial.looks.is_empty() => " at the latest",
        _ => "",
    };
    Some(format!(
        "By the plan exploration ends with {about}round {}{earlier}{time}.",
        grouped(planned)
    ))
}

/// Which actions the estimates of the reward cannot tell from the best.
fn untold_apart(reading: &Reading) -> Option<String> {
    let reward = &reading.problem().quantity(0).name;
    let means = reading.means_of(reward);
    let estimated: Vec<(&ActionMean, &Interval)> = means
        .filter_map(|mean| Some((mean, &mean.estimate.as_ref()?.interval)))
        .collect();
    let surely = estimated
        .iter()
        .map(|(_, interval)| interval.low)
        .reduce(f64::max)?;
    let close = estimated
        .iter()
        .filter(|(_, interval)| interval.high >= surely);
    let close: Vec<&ActionMean> = close.map(|(mean, _)| *mean).collect();
    let actions = reading.problem().actions().len();
    // Of actions that have no estimate yet nothing is said.
    let all = estimated.len() == actions;
    match close[..] {
        [best] if all => Some(format!(
            "By its interval {} has the largest {reward} of all actions.",
            best.name
        )),
        [] | [_] => None,
        _ if close.len() > NAMED_MAX => Some(format!(
            "In {reward}, {} of {} actions are not yet told apart: their intervals overlap.",
            grouped(close.len() as u64),
            grouped(actions as u64)
        )),
        _ => {
            let names: Vec<String> = close.iter().map(|close| close.name.clone()).collect();
            Some(format!(
                "In {reward}, {} are not yet told apart: their intervals overlap.",
                listed(&names)
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use debora::{Ask, Key, Problem};

    use super::*;

    /// Plays to the horizon and compares what is said before each round with what then comes.
    fn keeps_its_word(problem: Problem) -> (u64, bool) {
        let horizon = problem.horizon();
        let mut engine = Engine::new(problem, Key::from(7u64));
        let mut said: Vec<(u64, u64, bool)> = Vec::new();
        while let Ask::Decision(decision) = engine.ask() {
            let end = EpochEnd::of(&engine, engine.tally().counts());
            assert!(end.likely <= end.most, "{end:?}");
            said.push((decision.epoch, decision.round - 1 + end.most, end.is_last));
            let mut handed_out = engine.tally().counts().to_vec();
            handed_out[decision.action as usize] += 1;
            let left = EpochEnd::of(&engine, &handed_out).most;
            assert_eq!(left == 0, engine.is_handed_out(), "{left} more rounds");
            let reward = [0.2, 0.6, 0.9][decision.action as usize];
            let costs =
                vec![[0.1, 0.3, 0.8][decision.action as usize]; engine.problem().quantities() - 1];
            engine.tell(decision.round, reward, &costs).unwrap();
        }
        let last = said.last().unwrap().0;
        let mut ended = vec![0; last as usize + 1];
        for (round, (epoch, ..)) in (1..).zip(&said) {
            ended[*epoch as usize] = round;
        }
        assert_eq!(ended[last as usize], horizon);
        for (epoch, by, is_last) in &said {
            let ended = ended[*epoch as usize];
            assert!(
                ended <= *by,
                "epoch {epoch} ended with round {ended}, and by {by} was said"
            );
            assert!(!is_last || *epoch == last, "epoch {epoch} was not the last");
        }
        (last, said.last().unwrap().2)
    }

    /// Against the engine itself: epochs end by the round that was said, and after the last that was said to be so none begins.
    #[test]
    fn epochs_end_when_it_was_said() {
        let names = ["a", "b", "c"];
        let free = Problem::free(names, 60_000, 0.9).build().unwrap();
        let soft = Problem::soft(names, 60_000, 0.9).cost("price", [0.0, 1.0], 0.4);
        let paper = Problem::free(names, 1_000, 0.9).paper();
        for problem in [free, soft.build().unwrap(), paper.build().unwrap()] {
            let (epochs, was_last) = keeps_its_word(problem);
            assert!(epochs > 1 && was_last, "{epochs} epochs");
        }
    }
}
