//! Parts of a measurement, and their exact merge: pairs are functions of their index, so parts put together in order are the
//! whole, byte for byte.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::VALUES_VERSION;
use crate::lab::LabError;
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
        let Some(first) = parts.first() else {
            return Err(misfit("there are none".into()));
        };
        for (number, part) in (2..).zip(&parts[1..]) {
            first.check_same(part, number)?;
        }
        let players = first
            .players
            .iter()
            .enumerate()
            .map(|(place, (name, _))| {
                let pairs = parts.iter().flat_map(|part| &part.players[place].1);
                Ok((name.clone(), merge_pairs(name, pairs, first.total)?))
            })
            .collect::<Result<_, LabError>>()?;
        Ok(PartPairs {
            players,
            ..first.clone()
        })
    }

    /// Part number `number` must be of the same measurement as this one.
    fn check_same(&self, part: &Self, number: usize) -> Result<(), LabError> {
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
                "the first has {what} {one}, number {number} has {other}"
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
    name: &str,
    pairs: impl Iterator<Item = &'a Pair>,
    total: u64,
) -> Result<Vec<Pair>, LabError> {
    let mut merged = BTreeMap::new();
    for pair in pairs {
        let index = pair.index;
        // Equal repeats are harmless: a part measured again because a machine was lost has the same pairs.
        if merged
            .insert(index, pair)
            .is_some_and(|before| before != pair)
        {
            return Err(misfit(format!(
                "two have pair {index} of {name}, and they differ"
            )));
        }
    }
    if let Some(missing) = (0..total).find(|index| !merged.contains_key(index)) {
        return Err(misfit(format!(
            "pair {missing} of {name} is in none of them"
        )));
    }
    if let Some(extra) = merged.keys().find(|index| **index >= total) {
        return Err(misfit(format!(
            "pair {extra} of {name} is beyond the {total} of the whole"
        )));
    }
    Ok(merged.into_values().cloned().collect())
}

fn misfit(reason: String) -> LabError {
    LabError::PartMerge { reason }
}
