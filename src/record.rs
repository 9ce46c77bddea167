//! The plain data that leaves the engine: decisions, estimates, epoch records, the digest.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::line::MeanLine;
use crate::plan::Plan;
use crate::strategy::Strategy;

/// What to do in a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// The round, from 1.
    pub round: u64,
    /// The epoch it belongs to, from 0.
    pub epoch: u64,
    /// The action to play, from 0.
    pub action: u32,
    /// With which probability the epoch's strategy plays it.
    pub probability: f64,
}

/// What asking gives.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub enum Ask {
    /// The next round.
    Decision(Decision),
    /// All rounds of the epoch are handed out; this many of them are not told yet.
    Waiting {
        /// Rounds handed out and not told.
        outstanding: u64,
    },
    /// All rounds of the horizon are told.
    Done,
}

/// What telling a round did.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// The feedback counts.
    Recorded,
    /// The feedback counts, and it was the epoch's last.
    // Boxed, as a record is far larger than the answers that nearly all rounds get.
    Closed(Box<EpochRecord>),
    /// The same feedback was told before; it counts once.
    Repeated,
    /// The round was told long ago, and so were all before it: its feedback is no longer remembered, and nothing changed.
    AlreadyTold,
}

/// What telling many rounds did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToldMany {
    /// Rounds whose feedback counts.
    pub recorded: u64,
    /// Rounds told before with the same feedback.
    pub repeated: u64,
    /// Rounds told before whose feedback is no longer remembered.
    pub already_told: u64,
    /// The epoch's record, if these were its last rounds.
    pub closed: Option<Box<EpochRecord>>,
}

/// How an epoch's strategy was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Some action is not estimated yet: the strategy does not depend on the data.
    Explore,
    /// From the estimates.
    Estimate,
    /// The estimates say that no strategy keeps all thresholds: least violation (soft), or the safe strategy (hard).
    Infeasible,
    /// A look found one action ahead: it is played to the horizon, whatever its feedback.
    Commit,
    /// The trial is over: the action picked is played to the horizon, whatever its feedback.
    Pick,
}

/// Which strategy a policy with limits plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Soft: the best while costs are taken for higher than estimated, by the policy's caution.
    Moderate,
    /// Soft: the best while costs are the least they may be.
    Optimistic,
    /// Hard: the best of those that are sure to be safe, the safe strategy among them.
    Plan,
    /// Hard: the optimistic candidate, mixed with the safe strategy until it fits.
    Mix,
}

/// When a run of policy free looks: a function of its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Looks {
    /// The draw behind the counts, in [0, 1).
    pub offset: f64,
    /// The samples of every action at each look, ascending.
    pub counts: Vec<u64>,
}

/// A look: policy free commits to the leader if its lead exceeds a keyed threshold.
// Unknown fields are refused wherever a record is read: an audit must not pass over what it does not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LookTest {
    /// Its number k: the count is the trial's, divided by the spacing to the power of k and the run's offset.
    pub look: u32,
    /// The samples of every action.
    pub count: u64,
    /// Their mean rewards, as shares of the range.
    pub means: Vec<f64>,
    /// The action with the largest mean, the first of equals.
    pub leader: u32,
    /// The one with the largest of the other means.
    pub runner_up: u32,
    /// The difference of their places on the line, times the root of the count.
    pub lead: f64,
    /// The draw behind the threshold, in [0, 1).
    pub uniform: f64,
    /// What the lead was compared with.
    pub threshold: f64,
    /// Whether the lead was above it.
    pub passed: bool,
}

impl LookTest {
    /// Lead and threshold as differences on the line: about differences of mean rewards around 1/2.
    pub fn gap_and_threshold(&self) -> [f64; 2] {
        let root = libm::sqrt(self.count as f64);
        [self.lead / root, self.threshold / root]
    }
}

/// The pick at the end of a trial: policy free plays its action for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Pick {
    /// The samples of every action.
    pub count: u64,
    /// Their mean rewards, as shares of the range.
    pub means: Vec<f64>,
    /// What a place on the line is multiplied by: differences of 1/scale are in doubt.
    pub scale: f64,
    /// Each action's draw, in [0, 1).
    pub uniforms: Vec<f64>,
    /// The action picked.
    pub action: u32,
}

/// One rounded mean and all that went into it. Mean, estimate, low and high are shares of the action's range; offset, cell, index
/// and width are on the line, in profile paper on the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Estimate {
    /// The epoch at whose start it was made.
    pub epoch: u64,
    /// The action.
    pub action: u32,
    /// The quantity; 0 is the reward.
    pub quantity: u32,
    /// The plan's level it was made at; none in profile paper, which estimates at any count.
    pub level: Option<u32>,
    /// The number of samples.
    pub count: u64,
    /// Their mean, which no decision sees.
    pub mean: f64,
    /// The grid's shift in cells, in [0, 1).
    pub offset: f64,
    /// The grid's step.
    pub cell: f64,
    /// The cell that holds the mean; two runs agree on the estimate exactly when they agree on it. None if the cell is as
    /// wide as the plain line.
    pub index: Option<i64>,
    /// Half-length of the interval, unless an event of probability delta happens.
    pub width: f64,
    /// The mean at the cell's middle.
    pub estimate: f64,
    /// The true mean is at least this, unless an event of probability delta happens.
    pub low: f64,
    /// The true mean is at most this, likewise.
    pub high: f64,
}

impl Estimate {
    /// Where the true mean lies unless an event of probability delta happens, as a share of the range.
    pub fn interval(&self) -> [f64; 2] {
        // The published profile's ends may be far outside, which says less than the range does.
        [self.low, self.high].map(|end| end.clamp(0.0, 1.0))
    }

    /// The ends of the mean's cell on its line; none if the cell is as wide as the plain one.
    fn cell_edges(&self) -> Option<[f64; 2]> {
        let index = self.index?;
        Some([index, index + 1].map(|edge| (self.offset + edge as f64) * self.cell))
    }

    /// The ends of the mean's cell, as shares of the range: any mean in it gives the same estimate.
    pub fn cell_ends(&self, plan: &Plan) -> [f64; 2] {
        let Some(edges) = self.cell_edges() else {
            return [0.0, 1.0];
        };
        let line = plan.line(self.count);
        edges.map(|edge| mean_at(line.as_ref(), edge))
    }

    /// The mean's place on its grid, in cells: its cell begins at its index.
    pub fn place_in_cells(&self, plan: &Plan) -> f64 {
        let line = plan.line(self.count);
        let place = line.map_or(self.mean, |line| line.of_mean(self.mean));
        place / self.cell - self.offset
    }

    /// The mean at an edge of the grid, as a share of the range; none if no mean lies beyond it. Cell i begins at edge i.
    pub fn mean_at_edge(&self, edge: i64, plan: &Plan) -> Option<f64> {
        let place = (self.offset + edge as f64) * self.cell;
        let line = plan.line(self.count);
        let [least, most] = line.as_ref().map_or([0.0, 1.0], MeanLine::ends);
        (least..=most)
            .contains(&place)
            .then(|| mean_at(line.as_ref(), place))
    }

    /// The edge of the mean's cell that lies towards another cell, as a share of the range: what separates two runs whose
    /// means fell into these cells. None if the cell is as wide as the range.
    ///
    /// Cell i spans from (offset + i) cell to (offset + i + 1) cell.
    pub fn nearest_edge(&self, other: i64, plan: &Plan) -> Option<f64> {
        let [begin, end] = self.cell_edges()?;
        let edge = if self.index? < other { end } else { begin };
        Some(match plan.line(self.count) {
            Some(line) => line.mean(edge),
            None => edge,
        })
    }
}

/// The mean at a place of a line, the plain one if there is none.
fn mean_at(line: Option<&MeanLine>, place: f64) -> f64 {
    match line {
        Some(line) => line.mean(place),
        None => place.clamp(0.0, 1.0),
    }
}

/// One epoch: a line of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EpochRecord {
    /// Its number, from 0.
    pub epoch: u64,
    /// Its first round.
    pub first_round: u64,
    /// How many rounds it has; of an open epoch, how many are handed out.
    pub rounds: u64,
    /// How its strategy was found.
    pub kind: Kind,
    /// Which of its strategies a policy with limits plays; none of policy free, and of soft while it explores.
    pub rule: Option<Rule>,
    /// The strategy before mixing with the safe one.
    pub candidate: Vec<f64>,
    /// The weight of the safe strategy.
    pub sigma: f64,
    /// The strategy played.
    pub strategy: Vec<f64>,
    /// Rounds per action before the epoch.
    pub counts: Vec<u64>,
    /// When the run looks: in the first record of policy free in profile tight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<Looks>,
    /// The look made at its start, if one was due.
    pub test: Option<LookTest>,
    /// The pick made at its start, if it was due.
    pub pick: Option<Pick>,
    /// The estimates made at its start.
    pub estimates: Vec<Estimate>,
}

impl EpochRecord {
    /// An epoch whose strategy is not found yet.
    pub(crate) fn opening(epoch: u64, first_round: u64, counts: Vec<u64>) -> Self {
        Self {
            epoch,
            first_round,
            rounds: 0,
            kind: Kind::Explore,
            rule: None,
            candidate: Vec::new(),
            sigma: 0.0,
            strategy: Vec::new(),
            counts,
            looks: None,
            test: None,
            pick: None,
            estimates: Vec::new(),
        }
    }

    /// The action played to the horizon from this epoch on, and how it was found; none while more is to be decided.
    pub fn decided(&self) -> Option<(Kind, u32)> {
        let committed = self.test.as_ref().filter(|test| test.passed);
        let committed = committed.map(|test| (Kind::Commit, test.leader));
        let picked = self.pick.as_ref().map(|pick| (Kind::Pick, pick.action));
        committed.or(picked)
    }

    /// The same epoch with this many rounds: logs write a record both when its epoch opens and when it closes.
    pub fn with_rounds(self, rounds: u64) -> Self {
        Self { rounds, ..self }
    }
}

/// A range of values, in the user's units. Exhaustive: two ends are all an interval will ever have, and callers take it
/// apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A strategy with what it is known to give.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Prospect {
    /// A probability per action.
    pub strategy: Vec<f64>,
    /// Its expected reward lies in here, in the user's units.
    pub reward: Interval,
    /// Its expected costs lie in here, in the user's units. All intervals hold together with probability 1 - delta.
    pub costs: Vec<Interval>,
}

/// What to deploy when the experiment ends: the cautious strategy where there is one; the current one stands beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Recommendation {
    /// How the current strategy was found. While exploring it says nothing about which action is best.
    pub kind: Kind,
    /// The current strategy: the one that learns.
    #[serde(flatten)]
    pub current: Prospect,
    /// The best strategy sure to keep every limit: it maximises what the reward is at least, and keeps what each cost is at
    /// most within its threshold. None while actions are not estimated, or if no strategy is sure to keep the limits; under
    /// hard limits there always is one.
    pub cautious: Option<Prospect>,
}

/// SHA-256 of (digest so far, epoch, rounds, probability bits per action), integers and floats as 8 bytes little endian.
///
/// A chain rather than one long hash, so that its state is 32 bytes and fits a snapshot.
pub(crate) fn chain(digest: [u8; 32], epoch: u64, rounds: u64, strategy: &Strategy) -> [u8; 32] {
    let mut hash = Sha256::new();
    // The layout is frozen: digests are compared across versions and published in certificates.
    hash.update(digest);
    hash.update(epoch.to_le_bytes());
    hash.update(rounds.to_le_bytes());
    // Many at a time: handing over eight bytes takes as long as hashing them.
    let mut bytes = [0; 2048];
    for some in strategy.probabilities().chunks(bytes.len() / 8) {
        for (place, probability) in bytes.chunks_exact_mut(8).zip(some) {
            place.copy_from_slice(&probability.to_bits().to_le_bytes());
        }
        hash.update(&bytes[..8 * some.len()]);
    }
    hash.finalize().into()
}
