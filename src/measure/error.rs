//! Why something cannot be measured.

use crate::lab::LabError;
use crate::measure::words::whole;
use crate::spec::SpecError;

/// A spec that cannot be used, a wrong input, or parts that do not hold what they say.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are the offending values, named as in the condition.
pub enum MeasureError {
    /// The spec, or a table it names.
    #[error(transparent)]
    Spec(#[from] SpecError),

    /// A world, a player or a part that the lab refuses.
    #[error(transparent)]
    Lab(#[from] LabError),

    /// The second run's world cannot be built.
    #[error("the other world, {file}: {error}")]
    OtherWorld { file: String, error: SpecError },

    /// The second run's world has another shape than the first's.
    #[error("the world of {other} has a different number of actions or costs than that of {file}")]
    OtherShape { other: String, file: String },

    /// A player that decides every round, at a horizon with too many of them.
    #[error("{name} decides in every round, and {} rounds are too many for it; use a horizon of {most} or less", whole(*.horizon))]
    PlayerSlow {
        name: String,
        horizon: u64,
        most: u64,
    },

    /// A player of one's own that has the name of another player.
    #[error(
        "a player of one's own is named {name:?}, as another player is; give it a name of its own"
    )]
    PlayerName { name: String },

    /// A parameter of a sweep that cannot be read, or a grid that cannot be measured.
    #[error("{text}: {reason}")]
    Over { text: String, reason: String },

    /// A part of another measurement than the one that is asked for.
    #[error("this is of another measurement, which differs by {reason}")]
    PartOther { reason: String },

    /// A part whose runs are not of the shape that its spec gives.
    #[error("{name} does not hold what its spec asks for; measure it again")]
    PartShape { name: String },
}
