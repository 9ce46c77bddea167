//! Shares of a measurement, and their exact merge: pairs are functions of their index, so shards put together in order are
//! the whole, byte for byte.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::VALUES_VERSION;
use crate::lab::LabError;
use crate::lab::replicate::Pair;

/// The indices of shard `shard` of `shards`, from 1, of `total` pairs: blocks that differ by one in length at most.
pub fn share(total: u64, shard: u64, shards: u64) -> Result<Range<u64>, LabError> {
    if shard == 0 || shard > shards {
        return Err(LabError::PartUnknown {
            part: shard,
            parts: shards,
        });
    }
    let end = |shard: u64| (u128::from(total) * u128::from(shard) / u128::from(shards)) as u64;
    Ok(end(shard - 1)..end(shard))
}

/// Pairs of some players, not necessarily all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shard {
    /// What was measured: shards of another spec do not fit.
    pub spec: String,
    /// The version of the values it was measured with.
    pub values_version: u32,
    /// How many pairs the whole has.
    pub total: u64,
    /// Player by player: its name and its pairs, in order.
    pub players: Vec<(String, Vec<Pair>)>,
}

impl Shard {
    /// A shard measured by this version.
    pub fn new(spec: impl Into<String>, total: u64, players: Vec<(String, Vec<Pair>)>) -> Self {
        Self {
            spec: spec.into(),
            values_version: VALUES_VERSION,
            total,
            players,
        }
    }

    /// Whether no pair is missing.
    pub fn is_whole(&self) -> bool {
        self.players
            .iter()
            .all(|(_, pairs)| pairs.iter().map(|pair| pair.index).eq(0..self.total))
    }

    /// As JSON: floats are written so that they are read back to the bit.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers, texts and lists")
    }

    /// Reads what [`Shard::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| LabError::PartMerge {
            reason: format!("one cannot be read ({error})"),
        })
    }

    /// The whole, from parts in any order. Parts may overlap where they agree.
    pub fn merge(parts: &[Shard]) -> Result<Shard, LabError> {
        let refuse = |reason: String| Err(LabError::PartMerge { reason });
        let Some(first) = parts.first() else {
            return refuse("there are none".into());
        };
        let names = |shard: &Shard| {
            shard
                .players
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        for (number, part) in parts.iter().enumerate().skip(1) {
            let differs = |what: &str, one: String, other: String| {
                refuse(format!(
                    "the first has {what} {one}, number {} has {other}",
                    number + 1
                ))
            };
            if part.spec != first.spec {
                return differs("spec", first.spec.clone(), part.spec.clone());
            }
            if part.values_version != first.values_version {
                return differs(
                    "values version",
                    first.values_version.to_string(),
                    part.values_version.to_string(),
                );
            }
            if part.total != first.total {
                return differs(
                    "pairs in all",
                    first.total.to_string(),
                    part.total.to_string(),
                );
            }
            if names(part) != names(first) {
                return differs("players", names(first).join(", "), names(part).join(", "));
            }
        }
        let mut players = Vec::new();
        for (place, (name, _)) in first.players.iter().enumerate() {
            let mut pairs = BTreeMap::new();
            for pair in parts.iter().flat_map(|part| &part.players[place].1) {
                if pairs
                    .insert(pair.index, pair)
                    .is_some_and(|before| before != pair)
                {
                    return refuse(format!(
                        "two have pair {} of {name}, and they differ",
                        pair.index
                    ));
                }
            }
            if let Some(missing) = (0..first.total).find(|index| !pairs.contains_key(index)) {
                return refuse(format!("pair {missing} of {name} is in none of them"));
            }
            if let Some(extra) = pairs.keys().find(|index| **index >= first.total) {
                return refuse(format!(
                    "pair {extra} of {name} is beyond the {} of the whole",
                    first.total
                ));
            }
            players.push((name.clone(), pairs.into_values().cloned().collect()));
        }
        Ok(Shard {
            players,
            ..first.clone()
        })
    }
}
