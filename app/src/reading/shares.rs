//! A strategy by the names of its actions.

use debora::Problem;
pub use debora::measure::words::share_to_tenths as share;
use debora::measure::words::{listed, whole};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// The most actions named in a sentence.
const NAMED_MAX: usize = 4;

/// How often an action is played.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "describe", schema(as = ShareState))]
pub struct ActionShare {
    /// The action's number in the spec, from 0.
    pub action: u32,
    /// The action's name.
    pub name: String,
    /// Its probability.
    pub probability: f64,
}

/// How often a strategy plays each action, in the spec's order.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Shares(Vec<ActionShare>);

/// Shares as a map from names to probabilities, in the spec's order.
#[derive(Clone, Copy)]
pub struct ByName<'a>(&'a [ActionShare]);

impl Shares {
    /// Names the actions of a strategy.
    pub fn new(problem: &Problem, probabilities: &[f64]) -> Self {
        Self::keeping(|_| true, problem, probabilities)
    }

    /// Names those that it plays, the most frequent first.
    pub fn played_by(problem: &Problem, probabilities: &[f64]) -> Vec<ActionShare> {
        let mut played = Self::keeping(|share| share > 0.0, problem, probabilities);
        played.sort();
        played.0
    }

    fn keeping(keep: impl Fn(f64) -> bool, problem: &Problem, probabilities: &[f64]) -> Self {
        let named = (0..).zip(problem.actions()).zip(probabilities);
        let shares =
            named
                .filter(|(_, share)| keep(**share))
                .map(|((action, name), &probability)| ActionShare {
                    action,
                    name: name.clone(),
                    probability,
                });
        Self(shares.collect())
    }

    /// Every action's share.
    pub fn all(&self) -> &[ActionShare] {
        &self.0
    }

    /// The probability of an action.
    pub fn of(&self, action: u32) -> f64 {
        self.0[action as usize].probability
    }

    /// As a map from names.
    pub fn by_name(&self) -> ByName<'_> {
        ByName(&self.0)
    }

    /// The action that is played most, the first of equals: ties go to the lowest action everywhere.
    pub fn leader(&self) -> &ActionShare {
        let (first, others) = self.0.split_first().expect("a problem has actions");
        others.iter().fold(first, |best, other| {
            if other.probability > best.probability {
                other
            } else {
                best
            }
        })
    }

    /// Those that are played, the most frequent first.
    pub fn played(&self) -> Vec<&ActionShare> {
        let shares = self.0.iter();
        let mut played: Vec<_> = shares.filter(|share| share.probability > 0.0).collect();
        // Stable, so that equals stay in the spec's order.
        played.sort_by(|one, other| other.probability.total_cmp(&one.probability));
        played
    }

    /// So many of the most frequent, in the spec's order if they are all.
    pub fn most_frequent(mut self, room: usize) -> Self {
        if self.0.len() > room {
            self.sort();
            self.0.truncate(room);
        }
        self
    }

    fn sort(&mut self) {
        // Stable, so that equals stay in the spec's order.
        self.0
            .sort_by(|one, other| other.probability.total_cmp(&one.probability));
    }

    /// In words, the largest shares first.
    pub fn words(&self) -> String {
        let played = self.played();
        if let [only] = played[..] {
            return format!("{} alone", only.name);
        }
        // One more than fits would be "1 other", which is no shorter than its name.
        let named = match played.len() {
            few if few <= NAMED_MAX => few,
            _ => NAMED_MAX - 1,
        };
        let (named, others) = played.split_at(named);
        let mut words: Vec<String> = named
            .iter()
            .map(|played| format!("{} {}", played.name, share(played.probability)))
            .collect();
        if !others.is_empty() {
            let rest: f64 = others.iter().map(|other| other.probability).sum();
            words.push(format!(
                "{} others {}",
                whole(others.len() as u64),
                share(rest)
            ));
        }
        // A number and its sign stay on one line.
        listed(&words).replace(" %", "\u{a0}%")
    }
}

impl Serialize for ByName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // This is written by hand: a `BTreeMap` would sort the names, and actions are known in the spec's order.
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for share in self.0 {
            map.serialize_entry(&share.name, &share.probability)?;
        }
        map.end()
    }
}
