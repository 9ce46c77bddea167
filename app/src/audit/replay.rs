//! What must have happened: from an engine with the key or, without the key, as far as the records say.

use debora::{Ask, Engine, EpochRecord, Told};

use super::{Check, differs};
use crate::store::OutcomeRow;

/// Rounds whose actions are drawn together.
const WINDOW: usize = 1_024;

/// An experiment, replayed.
pub enum Replay {
    /// Recomputed, round by round.
    Keyed {
        /// Asked for every decision and told every outcome.
        engine: Box<Engine>,
        /// The same as the epoch in question began.
        opening: Box<Engine>,
        /// The record of the epoch in question, once all its rounds are told.
        closed: Option<Box<EpochRecord>>,
        /// The first of some rounds of the epoch, and their actions.
        window: (u64, Vec<u32>),
    },
    /// Read from records and decisions: the hash over rounds takes the actions from here.
    Recorded {
        /// How many actions there are.
        actions: usize,
        /// What the epoch's rounds were given.
        given: Vec<u32>,
    },
}

impl Replay {
    /// With the key.
    pub fn of(engine: Engine) -> Self {
        Self::Keyed {
            opening: Box::new(engine.clone()),
            engine: Box::new(engine),
            closed: None,
            window: (0, Vec::new()),
        }
    }

    /// Without it.
    pub fn recorded(actions: usize) -> Self {
        Self::Recorded {
            actions,
            given: Vec::new(),
        }
    }

    /// Begins an epoch.
    pub fn open(&mut self, record: &EpochRecord) -> Check {
        match self {
            Self::Keyed {
                engine,
                opening,
                closed,
                window,
            } => {
                // Kept as it was: decisions and overtime of an epoch are asked for again after outcomes have moved the engine on.
                opening.clone_from(engine);
                *closed = None;
                window.1.clear();
                same_record(record, engine.open_record())
            }
            Self::Recorded { given, .. } => {
                given.clear();
                Ok(())
            }
        }
    }

    /// The next decision: it must be this action.
    pub fn decide(&mut self, epoch: u64, round: u64, action: u32) -> Check {
        let place = || format!("epoch {epoch}, round {round}");
        match self {
            Self::Keyed { engine, .. } => match engine.ask() {
                Ask::Decision(decision) if (decision.round, decision.action) == (round, action) => {
                    Ok(())
                }
                Ask::Decision(decision) => {
                    let [recorded, recomputed] =
                        [action, decision.action].map(|action| named(engine, action));
                    Err(differs(place(), "the action", recorded, recomputed))
                }
                Ask::Waiting { .. } | Ask::Done => Err(differs(
                    place(),
                    "the round",
                    "decided",
                    "beyond the epoch's end",
                )),
            },
            Self::Recorded { actions, given } => {
                // The action is checked here, as it indexes lists from now on.
                if action as usize >= *actions {
                    let known = format!("one of 0 to {}", *actions - 1);
                    return Err(differs(place(), "the action", action, known));
                }
                given.push(action);
                Ok(())
            }
        }
    }

    /// The action of a round of the epoch that has been decided.
    pub fn action(&mut self, first_round: u64, round: u64) -> u32 {
        match self {
            Self::Keyed {
                opening, window, ..
            } => {
                let (first, actions) = window;
                // Outcomes come in order, so a window serves many; one by one, each would draw its whole block's order.
                if !(*first..*first + actions.len() as u64).contains(&round) {
                    *first = round;
                    actions.resize(WINDOW, 0);
                    opening.decide_many(round.., actions);
                }
                actions[(round - *first) as usize]
            }
            Self::Recorded { given, .. } => given[(round - first_round) as usize],
        }
    }

    /// Tells the next round's outcome.
    pub fn tell(&mut self, outcome: &OutcomeRow) -> Check {
        // Without the key there is nothing to tell it to: the hashes are checked elsewhere.
        let Self::Keyed { engine, closed, .. } = self else {
            return Ok(());
        };
        let (recorded, recomputed) =
            match engine.tell(outcome.round, outcome.reward, &outcome.costs) {
                Ok(Told::Closed(record)) => {
                    *closed = Some(record);
                    return Ok(());
                }
                Ok(Told::Recorded) => return Ok(()),
                Ok(_) => ("told again".to_owned(), "told once"),
                Err(error) => (error.to_string(), "told"),
            };
        let place = format!("round {}", outcome.round);
        Err(differs(place, "its outcome", recorded, recomputed))
    }

    /// The action of a decision outside the horizon, if the key tells it.
    pub fn overtime(&self, serial: u64) -> Option<u32> {
        match self {
            Self::Keyed { opening, .. } => Some(opening.overtime(serial).action),
            Self::Recorded { .. } => None,
        }
    }

    /// Whether a request is held back from the experiment, if the key tells it.
    pub fn holds_back(&self, request_key: &str, share: f64) -> Option<bool> {
        match self {
            Self::Keyed { opening, .. } => Some(opening.holds_back(request_key, share)),
            Self::Recorded { .. } => None,
        }
    }

    /// Whether all rounds of the epoch are decided, if the key tells it.
    pub fn is_decided(&self) -> Option<bool> {
        match self {
            // The engine has opened the next epoch by then.
            Self::Keyed {
                closed: Some(_), ..
            } => Some(true),
            Self::Keyed { engine, .. } => Some(engine.is_handed_out()),
            Self::Recorded { .. } => None,
        }
    }

    /// Whether all rounds of the epoch are told, if the key tells it.
    pub fn is_complete(&self) -> Option<bool> {
        match self {
            Self::Keyed { closed, .. } => Some(closed.is_some()),
            Self::Recorded { .. } => None,
        }
    }
}

/// An action's number and name; a log may hold numbers that no action has.
fn named(engine: &Engine, action: u32) -> String {
    match engine.problem().actions().get(action as usize) {
        Some(name) => format!("{action} ({name:?})"),
        None => action.to_string(),
    }
}

/// Compares records bit for bit, and names the first field that differs.
fn same_record(recorded: &EpochRecord, recomputed: &EpochRecord) -> Check {
    // Through JSON, where every field has a name to be told by, those of later versions too.
    let value = |record| serde_json::to_value(record).expect("records are written as JSON");
    let place = format!("the record of epoch {}", recorded.epoch);
    match first_difference(&value(recorded), &value(recomputed), String::new()) {
        Some((path, recorded, recomputed)) => Err(differs(place, &path, recorded, recomputed)),
        None => Ok(()),
    }
}

/// The path of the first leaf that differs, and both values.
fn first_difference(
    one: &serde_json::Value,
    two: &serde_json::Value,
    path: String,
) -> Option<(String, String, String)> {
    use serde_json::Value::{Array, Object};
    match (one, two) {
        (Object(one), Object(two)) if one.keys().eq(two.keys()) => {
            one.iter().find_map(|(name, value)| {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                first_difference(value, &two[name], path)
            })
        }
        (Array(one), Array(two)) if one.len() == two.len() => {
            let mut pairs = one.iter().zip(two).enumerate();
            pairs.find_map(|(place, (one, two))| {
                first_difference(one, two, format!("{path}[{place}]"))
            })
        }
        // As texts: numbers are written with all their bits, and -0.0 is not 0.0.
        (one, two) => {
            let (one, two) = (one.to_string(), two.to_string());
            (one != two).then_some((path, one, two))
        }
    }
}
