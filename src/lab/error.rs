//! The lab's error: what a simulation cannot do, the value that stands in its way, and the remedy.
//!
//! Not variants of the core's [`Error`](crate::Error): an engine in production never meets one of these, and its callers
//! should not have to match on worlds and rivals.

/// A world, a player or a part of a measurement that cannot be used. Nothing has been measured when one is returned.
///
/// Each variant's first line is the violated condition; its fields are the values that violated it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are the offending values, named as in the condition.
pub enum LabError {
    /// A world's list with another length than the problem needs.
    #[error("the world has {got} {what} where {wanted} are needed; give one for each")]
    WorldLength {
        what: &'static str,
        got: usize,
        wanted: usize,
    },

    /// A world's value or mean that is NaN or outside its quantity's range.
    #[error(
        "the world gives {name:?} the value {value:?}, outside its range [{low:?}, {high:?}]; use the range's units"
    )]
    WorldValue {
        name: String,
        value: f64,
        low: f64,
        high: f64,
    },

    /// A discrete law whose probabilities are not in [0, 1] or do not sum to 1 within 1e-9.
    #[error(
        "the world's probabilities for {name:?} sum to {sum:?} or are not all from 0 to 1; make them sum to 1"
    )]
    WorldProbabilities { name: String, sum: f64 },

    /// concentration < 1e-6, concentration > 1e12 or NaN.
    #[error("concentration {concentration:?} is outside 1e-6 to 1e12; give a number in it, say 10")]
    Concentration { concentration: f64 },

    /// A random world's gap that is not above 0, or more than its rewards have room for.
    #[error(
        "gap {gap:?} of law {law} is not above 0 or needs more room than its means have; give at most {most:?}"
    )]
    WorldGap {
        law: &'static str,
        gap: f64,
        most: f64,
    },

    /// A table's row of an action the problem does not have.
    #[error("a row is of action number {action}, but the problem has {actions} actions, from 0")]
    TableAction { action: u32, actions: usize },

    /// An action without any row in a table.
    #[error("the table has no row of action {action:?}; each action needs at least one")]
    TableEmpty { action: String },

    /// A world that must be drawn sample by sample, for too many samples.
    #[error(
        "this world is drawn sample by sample, and {draws} draws exceed {most}; use a discrete world or a shorter horizon"
    )]
    WorldSlow { draws: u64, most: u64 },

    /// A horizon beyond what whole epochs can be drawn for.
    #[error("horizon {horizon} exceeds 2^51, the longest a simulation can draw; shorten it")]
    HorizonSimulated { horizon: u64 },

    /// A player's name that is not known, or a player of another policy.
    #[error("no player {name:?} for policy {policy}; there are {known}")]
    PlayerUnknown {
        name: String,
        policy: &'static str,
        known: String,
    },

    /// A part's number outside 1 to the number of parts.
    #[error("shard {part}/{parts} does not exist; shards are 1 to {parts}")]
    PartUnknown { part: u64, parts: u64 },

    /// Parts that cannot be merged.
    #[error("these shards do not fit together: {reason}")]
    PartMerge { reason: String },

    /// The caller asked to stop.
    #[error("stopped as asked; nothing is complete")]
    Cancelled,
}
