//! The sections that state the problem: the top level, `[reward]`, `[[cost]]` and `[safe]`.

use crate::Key;
use crate::problem::{ACTIONS_MAX, Draft, Outside, Policy, Problem};
use crate::spec::blame::blame;
use crate::spec::document::{Node, NodeValue};
use crate::spec::error::Read;
use crate::spec::field::{Field, SpecSection};
use crate::spec::key;
use crate::spec::keys::{COST, REWARD, SAFE, TOP};

pub(super) const POLICIES: [(&str, Policy); 3] = [
    (Policy::Free.name(), Policy::Free),
    (Policy::Soft.name(), Policy::Soft),
    (Policy::Hard.name(), Policy::Hard),
];

/// The profiles, and whether they are the paper's.
pub(super) const PROFILES: [(&str, bool); 2] = [("tight", false), ("paper", true)];

pub(super) const OUTSIDE: [(&str, Outside); 2] =
    [("refuse", Outside::Refuse), ("clip", Outside::Clip)];

/// The top level, read: what the other sections build on.
pub(super) struct Top<'a> {
    pub root: &'a Node,
    pub section: SpecSection<'a>,
    pub name: Option<String>,
    pub problem: Problem,
    pub key: Option<Key>,
}

/// Reads the top level and builds the problem.
pub(super) fn read<'a>(root: &Field<'a>) -> Read<Top<'a>> {
    let section = root.section(TOP)?;
    let name = section.read("name", Field::text)?.map(str::to_owned);
    let draft = scalars(&section, begin(&section)?)?;
    let draft = quantities(&section, draft)?;
    let draft = match section.get("safe") {
        Some(field) => safe(&field, draft)?,
        None => draft,
    };
    let key = section.read("key", |field| key(field, Key::from_hex))?;
    let problem = draft.build().map_err(|error| blame(root.node, &error))?;
    Ok(Top {
        root: root.node,
        section,
        name,
        problem,
        key,
    })
}

/// Policy, actions, horizon and rho: what every problem needs.
fn begin(section: &SpecSection<'_>) -> Read<Draft> {
    let policy = section.need("policy")?.choice(&POLICIES)?;
    let actions = action_names(section)?;
    let horizon = section
        .need("horizon")?
        // The range itself is the problem's to check; this refuses what is not a number of rounds at all.
        .whole::<u64>("it must be a whole number from 1 to 2^53 = 9007199254740992")?;
    let rho = section.need("rho")?.number()?;
    Ok(match policy {
        Policy::Free => Problem::free(actions, horizon, rho),
        Policy::Soft => Problem::soft(actions, horizon, rho),
        Policy::Hard => Problem::hard(actions, horizon, rho),
    })
}

/// A list of names, or how many there are: a number gives them the names a1, a2 and so on.
fn action_names(section: &SpecSection<'_>) -> Read<Vec<String>> {
    let field = section.need("actions")?;
    if let NodeValue::Whole(_) | NodeValue::Number(_) = field.node.value {
        let rule = format!("give their names, or their number from 2 to {ACTIONS_MAX}");
        let count: u64 = field.whole(&rule)?;
        // Before they are named: a large number would fill the memory with names.
        if !(2..=ACTIONS_MAX as u64).contains(&count) {
            return Err(field.wrong(&rule));
        }
        return Ok((1..=count).map(|number| format!("a{number}")).collect());
    }
    let names = field.list()?;
    let names = names.iter().map(|name| name.text().map(str::to_owned));
    names.collect()
}

fn scalars(section: &SpecSection<'_>, mut draft: Draft) -> Read<Draft> {
    if let Some(delta) = section.read("delta", Field::number)? {
        draft = draft.delta(delta);
    }
    let paper = section.read("profile", |field| field.choice(&PROFILES))?;
    if paper == Some(true) {
        draft = draft.paper();
    }
    let growth = section.read("growth", |field| {
        field.whole("it must be a whole number from 2 to 64")
    })?;
    if let Some(growth) = growth {
        // Also beside profile paper, which refuses it: better an error than a value that changes nothing.
        draft = draft.growth(growth);
    }
    let outside = section.read("outside", |field| field.choice(&OUTSIDE))?;
    Ok(draft.outside(outside.unwrap_or_default()))
}

fn quantities(section: &SpecSection<'_>, mut draft: Draft) -> Read<Draft> {
    if let Some(field) = section.get("reward") {
        let reward = field.section(REWARD)?;
        let name = reward.read("name", Field::text)?.unwrap_or("reward");
        draft = draft.reward(
            name,
            reward.read("range", Field::range)?.unwrap_or([0.0, 1.0]),
        );
        draft = declared(&reward, name, draft)?;
    }
    let Some(field) = section.get("cost") else {
        return Ok(draft);
    };
    // [cost] with one bracket reads naturally, and a list of one would hide that a second needs two.
    if matches!(field.node.value, NodeValue::Table(_)) {
        return Err(field.wrong(
            "there may be several, so write [[cost]] with two brackets, and its name below",
        ));
    }
    for field in field.list()? {
        draft = cost(field, draft)?;
    }
    Ok(draft)
}

fn cost(mut field: Field<'_>, draft: Draft) -> Read<Draft> {
    if let (NodeValue::Table(_), Some(name)) = (&field.node.value, field.node.name()) {
        // As overrides and worlds call it.
        field.path = format!("cost.{name}");
    }
    let cost = field.section(COST)?;
    let name = cost.need("name")?.text()?;
    let range = cost.read("range", Field::range)?.unwrap_or([0.0, 1.0]);
    let threshold = cost.need("threshold")?.number()?;
    declared(&cost, name, draft.cost(name, range, threshold))
}

/// Where a quantity's means are declared to lie, if its section says so.
fn declared(section: &SpecSection<'_>, name: &str, draft: Draft) -> Read<Draft> {
    // Read apart from the range: the range is what feedback may be, and a mean near its end says far more.
    Ok(match section.read("mean", Field::range)? {
        Some(mean) => draft.mean(name, mean),
        None => draft,
    })
}

/// The safe strategy by action names, with its costs or margins by cost names.
fn safe(field: &Field<'_>, draft: Draft) -> Read<Draft> {
    let safe = field.section(SAFE)?;
    let actions: Vec<&str> = draft.actions.iter().map(String::as_str).collect();
    // Actions left out are not played: with many actions a safe strategy names one or two.
    let strategy = safe
        .need("strategy")?
        .by_name("action", &actions)?
        .iter()
        .map(|field| field.as_ref().map_or(Ok(0.0), Field::number))
        .collect::<Read<Vec<f64>>>()?;
    let costs: Vec<&str> = draft
        .costs
        .iter()
        .map(|(cost, _)| cost.name.as_str())
        .collect();
    let known = |field: &Field<'_>| -> Read<Vec<f64>> {
        field
            .each_by_name("cost", &costs)?
            .iter()
            .map(Field::number)
            .collect()
    };
    // All costs, not some: an unstated one would be a promise without a premise.
    match (safe.read("cost", known)?, safe.read("margin", known)?) {
        (Some(_), Some(_)) => Err(field.fault(
            "safe has both cost and margin; either follows from the other, so give only one",
        )),
        (Some(costs), None) => Ok(draft.safe_with_costs(strategy, costs)),
        (None, Some(margins)) => Ok(draft.safe_with_margins(strategy, margins)),
        (None, None) if costs.is_empty() => Ok(draft.safe_with_margins(strategy, [])),
        (None, None) => Err(field.fault(
            "safe has neither cost nor margin; give the strategy's known cost, by cost name",
        )),
    }
}
