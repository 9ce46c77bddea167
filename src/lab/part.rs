//! Parts of a measurement, and their exact merge: pairs are functions of their index, so parts put together in order are the
//! whole, byte for byte.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::VALUES_VERSION;
use crate::lab::LabError;
use crate::lab::metrics::Run;
use crate::lab::replicate::Pair;

/// The indices of part `part` of `parts`, from 1, of `total` pairs: blocks that differ by one in length at most.
pub fn part_indices(total: u64, part: u64, parts: u64) -> Result<Range<u64>, LabError> {
    if part == 0 || part > parts {
        return Err(LabError::PartUnknown { part, parts });
    }
    // In 128 bits: total times part may exceed 64.
    let end = |part: u64| (u128::from(total) * u128::from(part) / u128::from(parts)) as u64;
    Ok(end(part - 1)..end(part))
}

/// Pairs of some players, not necessarily all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartPairs {
    /// The fingerprint of the spec that was measured: parts of another one cannot be merged.
    // Frozen: files written by --shard call it so.
    #[serde(rename = "spec")]
    pub fingerprint: String,
    /// The version of the values it was measured with.
    pub values_version: u32,
    /// How many pairs the whole has.
    pub total: u64,
    /// Player by player: its name and its pairs, in order.
    pub players: Vec<(String, Vec<Pair>)>,
}

impl PartPairs {
    /// A part measured by this version.
    pub fn new(
        fingerprint: impl Into<String>,
        total: u64,
        players: Vec<(String, Vec<Pair>)>,
    ) -> Self {
        Self {
            fingerprint: fingerprint.into(),
            values_version: VALUES_VERSION,
            total,
            players,
        }
    }

    /// The whole, from parts in any order. Parts may overlap where they agree.
    pub fn merge(parts: &[PartPairs]) -> Result<PartPairs, LabError> {
        let names: Vec<String> = (1..=parts.len())
            .map(|number| format!("shard number {number}"))
            .collect();
        Self::merge_named(&names, parts)
    }

    /// The same; errors call the parts by these names.
    pub fn merge_named(names: &[String], parts: &[PartPairs]) -> Result<PartPairs, LabError> {
        let Some(first) = parts.first() else {
            return Err(misfit("there are none".into()));
        };
        for (name, part) in names.iter().zip(parts).skip(1) {
            first.check_same(&names[0], part, name)?;
        }
        let players = first
            .players
            .iter()
            .enumerate()
            .map(|(place, (player, _))| {
                // Each pair with its part's name: if two differ, the error says whose they are.
                let each = names.iter().zip(parts);
                let pairs = each.flat_map(|(name, part)| {
                    let pairs = part.players[place].1.iter();
                    pairs.map(move |pair| (name.as_str(), pair))
                });
                Ok((
                    player.clone(),
                    merge_pairs(player, pairs, first.total, names)?,
                ))
            })
            .collect::<Result<_, LabError>>()?;
        Ok(PartPairs {
            players,
            ..first.clone()
        })
    }

    /// Another part must be of the same measurement as this one.
    fn check_same(&self, own: &str, part: &Self, other_name: &str) -> Result<(), LabError> {
        let names = self.names();
        let part_names = part.names();
        // In the order in which a person would look for the mistake: another file, another program, other flags.
        let facts = [
            differ("spec", &self.fingerprint, &part.fingerprint),
            differ("values version", &self.values_version, &part.values_version),
            differ("pairs in all", &self.total, &part.total),
            // By their names, but compared one by one: a name may hold a comma.
            (names != part_names).then(|| ("players", names.join(", "), part_names.join(", "))),
        ];
        match facts.into_iter().flatten().next() {
            Some((what, one, other)) => Err(misfit(format!(
                "{own} has {what} {one}, {other_name} has {other}"
            ))),
            None => Ok(()),
        }
    }

    fn names(&self) -> Vec<&str> {
        self.players.iter().map(|(name, _)| &**name).collect()
    }
}

/// What differs, and both values as texts; `None` if nothing does.
fn differ<T: PartialEq + ToString>(
    what: &'static str,
    one: &T,
    other: &T,
) -> Option<(&'static str, String, String)> {
    (one != other).then(|| (what, one.to_string(), other.to_string()))
}

/// One player's pairs, each once and in order.
fn merge_pairs<'a>(
    player: &str,
    pairs: impl Iterator<Item = (&'a str, &'a Pair)>,
    total: u64,
    names: &[String],
) -> Result<Vec<Pair>, LabError> {
    let mut merged: BTreeMap<u64, (&str, &Pair)> = BTreeMap::new();
    for (name, pair) in pairs {
        let index = pair.index;
        if index >= total {
            return Err(misfit(format!(
                "{name} has pair {index} of {player}, beyond the {total} of the whole"
            )));
        }
        // Equal repeats are harmless: a part measured again because a machine was lost has the same pairs.
        if let Some((before, other)) = merged.insert(index, (name, pair))
            && other != pair
        {
            return Err(misfit(format!(
                "{before} and {name} both have pair {index} of {player}, and they differ: {}",
                pair_difference(other, pair)
            )));
        }
    }
    if let Some(first) = (0..total).find(|index| !merged.contains_key(index)) {
        let next = merged.range(first..).next();
        let last = next.map_or(total, |(index, _)| *index) - 1;
        return Err(misfit(format!(
            "pairs {first} to {last} of {player} are missing, of {total} from 0 on; there are only {}",
            names.join(", ")
        )));
    }
    Ok(merged.into_values().map(|(_, pair)| pair.clone()).collect())
}

/// What differs between two results for one pair, with both values.
fn pair_difference(one: &Pair, two: &Pair) -> String {
    let round = |pair: &Pair| match &pair.divergence {
        Some(divergence) => format!("round {}", divergence.round),
        None => "nowhere".to_owned(),
    };
    // The divergence first: two runs with other decisions differ in everything else as well.
    if one.divergence != two.divergence {
        return format!("its runs diverge at {}, and at {}", round(one), round(two));
    }
    let mut runs = one.runs.iter().zip(&two.runs);
    let Some((one, two)) = runs.find(|(one, two)| one != two) else {
        return "their numbers".to_owned();
    };
    let regret = |run: &Run| run.regret.map_or("none".to_owned(), |sum| sum.to_string());
    let digest = |run: &Run| run.digest.clone().unwrap_or_default();
    let facts = [
        ("regret", regret(one), regret(two)),
        (
            "violation",
            one.violation.to_string(),
            two.violation.to_string(),
        ),
        ("decisions", digest(one), digest(two)),
    ];
    let different = facts.into_iter().find(|(_, one, two)| one != two);
    different.map_or("their curves".to_owned(), |(what, one, two)| {
        format!("{what} {one} and {two}")
    })
}

fn misfit(reason: String) -> LabError {
    LabError::PartMerge { reason }
}
