//! The core's error: which rule a value broke, the value, and what to do about it. Simulations have their own,
//! `lab::LabError`.

/// A wrong input. Nothing has changed when one is returned.
///
/// Each variant's first line is the violated condition; its fields are the values that violated it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are the offending values, named as in the condition.
pub enum Error {
    /// Not 32 hexadecimal digits.
    #[error(
        "key {text:?} is not 32 hexadecimal digits; give 32 of 0-9 and a-f, or a non-negative integer"
    )]
    KeyText { text: String },

    /// Fewer than two actions, or more than 2^20.
    #[error("{count} actions; give at least 2 to choose from, and at most 1048576")]
    Actions { count: usize },

    /// An action or quantity without a name.
    #[error("{what} {number} has an empty name; give it one")]
    NameEmpty { what: &'static str, number: usize },

    /// Two actions, or two quantities, with one name.
    #[error("{what} {name:?} is named twice; give each its own name")]
    NameRepeated { what: &'static str, name: String },

    /// horizon = 0 or horizon > 2^53.
    #[error(
        "horizon {horizon} is outside 1 to 2^53 = 9007199254740992; give the number of rounds you will run"
    )]
    Horizon { horizon: u64 },

    /// rho < 1e-100, rho >= 1 or NaN.
    #[error(
        "rho {rho:?} is outside (0, 1) or below 1e-100; give the chance of differing decisions you accept, say 0.1"
    )]
    Rho { rho: f64 },

    /// delta < 1e-100, delta >= 1 or NaN.
    #[error(
        "delta {delta:?} is outside (0, 1) or below 1e-100; give the chance of failing bounds you accept, say 0.01"
    )]
    Delta { delta: f64 },

    /// Profile paper with 2 delta >= rho.
    #[error(
        "profile paper needs 2 delta < rho, but delta is {delta:?} and rho {rho:?}; lower delta or use profile tight"
    )]
    PaperDelta { rho: f64, delta: f64 },

    /// growth < 2 or growth > 64.
    #[error("growth {growth} is outside 2 to 64; leave it out for the default of 8")]
    Growth { growth: u32 },

    /// Profile paper with a growth.
    #[error(
        "growth {growth} is given with profile paper, which always doubles; leave it out or use profile tight"
    )]
    GrowthWithPaper { growth: u32 },

    /// A range whose ends are not finite, not in order, or too far apart or too close for a finite scale.
    #[error(
        "range [{low:?}, {high:?}] of {name:?} is not two finite numbers in increasing order; give [least, largest]"
    )]
    Range { name: String, low: f64, high: f64 },

    /// A threshold below its cost's range, infinite or NaN.
    #[error(
        "threshold {threshold:?} of cost {name:?} is below its range [{low:?}, {high:?}] or no number; use the range's units"
    )]
    Threshold {
        name: String,
        threshold: f64,
        low: f64,
        high: f64,
    },

    /// explore <= 0, explore >= 1 or NaN.
    #[error(
        "explore {explore:?} is outside (0, 1); give the share of the horizon that exploration is to take, say 0.2, or leave it out"
    )]
    Explore { explore: f64 },

    /// Profile paper with explore.
    #[error(
        "explore {explore:?} is given with profile paper, whose exploration has no length of its own; leave it out or use profile tight"
    )]
    ExploreWithPaper { explore: f64 },

    /// caution < 0, caution > 1 or NaN.
    #[error("caution {caution:?} is outside 0 to 1; leave it out for the default of 0.5")]
    Caution { caution: f64 },

    /// Caution with another policy than soft.
    #[error(
        "caution is given, but policy {policy} does not use it; leave it out or use policy soft"
    )]
    CautionUnused { policy: &'static str },

    /// Profile paper with a cost that has a range for each action.
    #[error(
        "cost {name:?} has a range for each action, which profile paper does not know; give one range or use profile tight"
    )]
    RangesWithPaper { name: String },

    /// Another number of ranges than there are actions.
    #[error(
        "cost {name:?} has {got} ranges for {actions} actions; give one for each, or one for all"
    )]
    RangeCount {
        name: String,
        got: usize,
        actions: usize,
    },

    /// A told cost that differs from the one known beforehand.
    #[error(
        "{name:?} of {action:?} was told as {value:?}, but its range says that it is {known:?}; leave it out, or widen the range"
    )]
    KnownDiffers {
        name: String,
        action: String,
        value: f64,
        known: f64,
    },

    /// Policy hard without a safe strategy.
    #[error(
        "policy hard has no safe strategy; give a strategy known to be safe and its costs or margins"
    )]
    SafeMissing,

    /// A safe strategy with another policy than hard.
    #[error(
        "a safe strategy is given, but policy {policy} does not use one; leave it out or use policy hard"
    )]
    SafeUnused { policy: &'static str },

    /// A safe strategy with another number of entries than there are actions.
    #[error("the safe strategy has {got} probabilities for {actions} actions; give one for each")]
    SafeLength { got: usize, actions: usize },

    /// A probability of the safe strategy below 0, above 1 or NaN.
    #[error(
        "the safe strategy plays {action:?} with probability {probability:?}; give numbers from 0 to 1"
    )]
    SafeProbability { action: String, probability: f64 },

    /// Probabilities of the safe strategy that miss 1 by more than 1e-9.
    #[error("the safe strategy's probabilities sum to {sum:?}; make them sum to 1")]
    SafeSum { sum: f64 },

    /// Another number of known costs or margins than there are limited costs.
    #[error(
        "the safe strategy has {got} known costs or margins for {costs} limited costs; give one for each"
    )]
    MarginCount { got: usize, costs: usize },

    /// A margin that is not above 0 and at most the distance from the threshold to the range's lower end.
    #[error(
        "the safe strategy's margin {margin:?} on cost {name:?} is not above 0 and at most {most:?}; its cost must be known \
         to lie below the threshold and within the range"
    )]
    Margin {
        name: String,
        margin: f64,
        most: f64,
    },

    /// A gap that is not above 0 and at most the length of the reward's range.
    #[error("gap {gap} is not above 0 and at most {most}, the length of the reward's range")]
    Gap { gap: f64, most: f64 },

    /// A told value that is NaN, or outside its range when values are not clipped.
    #[error(
        "{name:?} was told as {value:?}, outside its range [{low:?}, {high:?}]; nothing was recorded"
    )]
    Outside {
        name: String,
        value: f64,
        low: f64,
        high: f64,
    },

    /// Another number of costs told than the problem has.
    #[error("{got} costs were told where the problem has {costs}; nothing was recorded")]
    CostCount { got: usize, costs: usize },

    /// Arrays of a batch that do not have one entry per round (costs: one per round and cost).
    #[error(
        "a batch of {rounds} rounds has {rewards} rewards and {told} costs; give one reward and {costs} costs a round"
    )]
    BatchLength {
        rounds: usize,
        rewards: usize,
        told: usize,
        costs: usize,
    },

    /// Round 0, or beyond the horizon.
    #[error("round {round} does not exist; rounds are 1 to {horizon}")]
    RoundUnknown { round: u64, horizon: u64 },

    /// A round that was not handed out yet.
    #[error("round {round} was not asked for yet; the next one to be handed out is {next}")]
    RoundNotAsked { round: u64, next: u64 },

    /// A round of an earlier epoch.
    #[error("round {round} belongs to an earlier epoch; this one began with round {first}")]
    RoundGone { round: u64, first: u64 },

    /// A round told again with other feedback.
    #[error("round {round} was told before with other feedback; the first stays")]
    Conflict { round: u64 },

    /// A whole epoch told after the run's last round.
    #[error("all {horizon} rounds are told; there is no open epoch")]
    Done { horizon: u64 },

    /// A whole epoch told after some of its rounds were.
    #[error("{told} rounds of epoch {epoch} are told already; tell the rest round by round")]
    EpochBegun { epoch: u64, told: u64 },

    /// A tally with a different number of actions or quantities than the problem.
    #[error(
        "the tally has {actions} actions and {quantities} quantities; the problem has {wanted_actions} and {wanted_quantities}"
    )]
    TallyShape {
        actions: usize,
        quantities: usize,
        wanted_actions: usize,
        wanted_quantities: usize,
    },

    /// A tally that plays an action of probability 0, or other rounds of an action than were handed out.
    #[error(
        "the tally has {count} rounds of action {action:?}; this epoch's strategy and decisions need {rule}"
    )]
    TallyCount {
        action: String,
        count: u64,
        rule: String,
    },

    /// A tally with a sum of what is known beforehand.
    #[error(
        "the tally has a sum of {name:?} for action {action:?}, whose value is known; shares of a range without length are 0"
    )]
    TallyKnown { action: String, name: String },

    /// A tally whose sum for an action exceeds its count.
    #[error(
        "the tally's sum for action {action:?}, quantity {quantity}, exceeds its count {count}"
    )]
    TallySum {
        action: String,
        quantity: usize,
        count: u64,
    },

    /// A tally that stops before the epoch's end.
    #[error(
        "the tally ends after {rounds} rounds with no action at its target; it must run to one, or {left} rounds to the horizon"
    )]
    TallyShort { rounds: u64, left: u64 },

    /// A tally with more rounds than are left.
    #[error("the tally has {rounds} rounds, but {left} are left to the horizon")]
    TallyBeyond { rounds: u64, left: u64 },

    /// A tally that goes on after the epoch's end.
    #[error(
        "the tally has {count} rounds of action {action:?}, but the epoch ends when {ender:?} has {target}"
    )]
    TallyLong {
        action: String,
        count: u64,
        ender: String,
        target: u64,
    },

    /// Bytes that are not a snapshot, or one of another version, or damaged.
    #[error("this is not a usable snapshot: {reason}")]
    Snapshot { reason: String },
}
