//! The sections that state the problem: the top level, `[reward]`, `[[cost]]` and `[safe]`.

use crate::Key;
use crate::problem::{ACTIONS_MAX, CostRange, Draft, Outside, Policy, Problem};
use crate::spec::blame::blame;
use crate::spec::document::{Node, NodeValue};
use crate::spec::error::{Fault, Read};
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
    let policy = policy(section)?;
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

/// What the spec says, or free where there is nothing to limit: how thresholds are to be kept is nobody's guess.
fn policy(section: &SpecSection<'_>) -> Read<Policy> {
    if let Some(field) = section.get("policy") {
        return field.choice(&POLICIES);
    }
    let has_threshold = |cost: &Node| cost.child("threshold").is_some();
    let limited = match section.get("cost").map(|field| &field.node.value) {
        Some(NodeValue::List(costs)) => costs.iter().any(has_threshold),
        _ => false,
    };
    if limited {
        return Err(section.lacks("policy", "policy"));
    }
    Ok(Policy::Free)
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
    if let Some(share) = section.read("explore", Field::number)? {
        draft = draft.explore(share);
    }
    if let Some(caution) = section.read("caution", Field::number)? {
        draft = draft.caution(caution);
    }
    let outside = section.read("outside", |field| field.choice(&OUTSIDE))?;
    Ok(draft.outside(outside.unwrap_or_default()))
}

fn quantities(section: &SpecSection<'_>, mut draft: Draft) -> Read<Draft> {
    if let Some(field) = section.get("reward") {
        no_mean(&field)?;
        let reward = field.section(REWARD)?;
        let name = reward.read("name", Field::text)?.unwrap_or("reward");
        draft = draft.reward(
            name,
            reward.read("range", Field::range)?.unwrap_or([0.0, 1.0]),
        );
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
    no_mean(&field)?;
    let cost = field.section(COST)?;
    let name = cost.need("name")?.text()?;
    let range = cost.read("range", |field| ranges(field, &draft.actions))?;
    let range = range.unwrap_or(CostRange::All([0.0, 1.0]));
    let threshold = cost.read("threshold", Field::number)?;
    Ok(match threshold {
        Some(threshold) => draft.cost(name, range, threshold),
        None => draft.watch(name, range),
    })
}

/// One range for all actions, or a table with one for each.
fn ranges(field: &Field<'_>, actions: &[String]) -> Read<CostRange> {
    let NodeValue::Table(_) = field.node.value else {
        return field.range().map(CostRange::All);
    };
    let names: Vec<&str> = actions.iter().map(String::as_str).collect();
    let each = field.each_by_name("action", &names)?;
    let each = each.iter().map(Field::range).collect::<Read<_>>()?;
    Ok(CostRange::Each(each))
}

/// Says why what earlier specs declared is not a key.
fn no_mean(field: &Field<'_>) -> Read<()> {
    match field.node.child("mean") {
        // Of a list of sections `child` looks for a name.
        Some(mean) if matches!(field.node.value, NodeValue::Table(_)) => Err(Fault::new(
            mean.place,
            format!(
                "{}.mean is not a key: means need not be declared any more, as estimates near an end of the range are as sharp as \
                 their variance allows by themselves; leave it out",
                field.path
            ),
        )),
        _ => Ok(()),
    }
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
    // Of the costs that have a threshold: a watched one has none to be safe from.
    let costs: Vec<&str> = draft
        .limited()
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
