//! `[service]`: what a live experiment does while it waits, and about outcomes that never come.

use std::time::Duration;

use crate::problem::{CHANCES, Policy, Problem};
use crate::spec::error::Read;
use crate::spec::field::{Field, SpecSection};
use crate::spec::keys::{HOLDBACK, IMPUTE, SERVICE};
use crate::spec::spelling::hint;

/// The longest an outcome can be waited for: a hundred years, so that adding it to a time cannot overflow.
const WAIT_MAX: Duration = Duration::from_secs(36_500 * 86_400);

/// The units of a wait, in seconds.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

pub(super) const ON_WAIT: [(&str, OnWait); 2] = [("hold", OnWait::Hold), ("serve", OnWait::Serve)];

/// What happens to a request when all rounds of an epoch are handed out and outcomes are outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnWait {
    /// It is asked to come back later.
    #[default]
    Hold,
    /// It gets a decision outside the horizon, from the same strategy, that no estimate counts.
    Serve,
}

/// The rules of a live experiment. A spec without `[service]` has the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceSpec {
    /// What happens while an epoch waits; default hold.
    pub on_wait: OnWait,
    /// After how long a missing outcome is imputed; default never.
    pub outcome_wait: Option<Duration>,
    /// What is imputed, per quantity (0 is the reward), in the user's units: default the worst value.
    pub impute: Vec<f64>,
    /// What stays outside the experiment; default nothing.
    pub holdback: Option<Holdback>,
}

/// A share of requests that stays outside the experiment, for comparison: by request key, and with one action for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holdback {
    /// The chance of a request key to be held back, in (0, 1).
    pub share: f64,
    /// What is played there, by number.
    pub action: u32,
}

/// Reads `[service]`, if it is there.
pub(super) fn read(top: &SpecSection<'_>, problem: &Problem) -> Read<ServiceSpec> {
    let mut service = ServiceSpec {
        on_wait: OnWait::Hold,
        outcome_wait: None,
        impute: worst(problem),
        holdback: None,
    };
    let Some(field) = top.get("service") else {
        return Ok(service);
    };
    let section = field.section(SERVICE)?;
    service.on_wait = section
        .read("on_wait", |field| field.choice(&ON_WAIT))?
        .unwrap_or_default();
    service.outcome_wait = section.read("outcome_wait", duration)?;
    section.read("impute", |field| {
        impute(field, problem, &mut service.impute)
    })?;
    service.holdback = section.read("holdback", |field| holdback(field, problem))?;
    Ok(service)
}

/// The values that flatter no action: a guarantee that holds for them holds for whatever was lost.
fn worst(problem: &Problem) -> Vec<f64> {
    let costs = (1..problem.quantities()).map(|quantity| problem.quantity(quantity).range.high);
    std::iter::once(problem.quantity(0).range.low)
        .chain(costs)
        .collect()
}

/// A whole number of days, hours, minutes or seconds: "7d", "12h", "30m", "45s".
fn duration(field: &Field<'_>) -> Read<Duration> {
    let wrong = || {
        field.wrong(
            "it must be a whole number of days, hours, minutes or seconds up to 36500d, say \"7d\"",
        )
    };
    // A bare number has no unit, which is what the rule is about.
    let text = field.text().map_err(|_| wrong())?;
    let split = |(unit, seconds)| Some((text.strip_suffix(unit)?, seconds));
    let (digits, seconds) = UNITS.into_iter().find_map(split).ok_or_else(wrong)?;
    // `parse` alone would take a sign.
    let count = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse::<u64>().ok())
        .flatten();
    let wait = count
        .and_then(|count| count.checked_mul(seconds))
        .map(Duration::from_secs);
    // Zero would impute every outcome before it can be told.
    wait.filter(|wait| (Duration::from_secs(1)..=WAIT_MAX).contains(wait))
        .ok_or_else(wrong)
}

/// What a wait looks like, as a regular expression: of each unit as many digits as the longest wait has.
pub(super) fn wait_pattern() -> String {
    let of_unit = |(unit, seconds): (char, u64)| {
        let most = (WAIT_MAX.as_secs() / seconds).to_string();
        format!("[1-9][0-9]{{0,{}}}{unit}", most.len() - 1)
    };
    format!("^0*({})$", UNITS.map(of_unit).join("|"))
}

fn impute(field: &Field<'_>, problem: &Problem, values: &mut [f64]) -> Read<()> {
    let section = field.section(IMPUTE)?;
    let costs = match section.get("cost") {
        Some(field) => field.by_name("cost", &super::cost_names(problem))?,
        None => Vec::new(),
    };
    for (quantity, field) in std::iter::once(section.get("reward"))
        .chain(costs)
        .enumerate()
    {
        if let Some(field) = field {
            // What is not named keeps its worst value.
            values[quantity] = inside(&field, problem, quantity)?;
        }
    }
    Ok(())
}

fn holdback(field: &Field<'_>, problem: &Problem) -> Read<Holdback> {
    let section = field.section(HOLDBACK)?;
    let (share, named) = (section.need("share")?, section.need("action")?);
    let chance = share.number()?;
    if !CHANCES.contains(&chance) {
        return Err(share.wrong("it must be above 0 and below 1, say 0.05"));
    }
    let name = named.text()?;
    let actions = problem.actions();
    let found = actions.iter().position(|action| action == name);
    let action =
        found.ok_or_else(|| named.wrong(&hint(name, actions.iter().map(String::as_str))))?;
    check_safe(&named, problem, action as u32)?;
    Ok(Holdback {
        share: chance,
        action: action as u32,
    })
}

/// Hard limits hold for whatever is played, held back or not, and before any outcome only the safe strategy is known to keep them.
fn check_safe(named: &Field<'_>, problem: &Problem, action: u32) -> Read<()> {
    // Of a safe mixture no single action need be safe: the cheap ones may make up for a dear one.
    let alone = |safe: &crate::problem::Safe| safe.strategy.only() == Some(action);
    if problem.policy() != Policy::Hard || problem.safe().is_some_and(alone) {
        return Ok(());
    }
    Err(named.wrong(
        "under policy hard every decision must be safe, and only the whole safe strategy is known to be: hold back an action that \
         safe.strategy gives probability 1, or leave holdback out",
    ))
}

fn inside(field: &Field<'_>, problem: &Problem, quantity: usize) -> Read<f64> {
    let (value, range) = (field.number()?, problem.quantity(quantity).range);
    if (range.low..=range.high).contains(&value) {
        return Ok(value);
    }
    Err(field.wrong(&format!(
        "it must lie in its range [{:?}, {:?}]",
        range.low, range.high
    )))
}
