//! The audit of an experiment: every decision, estimate, strategy, count and hash of its log, recomputed from spec, key and
//! outcomes.
//!
//! ```text
//! file, store or address ─► source ─► lines ─► Auditor ─► all equal, or the first difference
//!                                              Engine: ask, diff, tell, compare
//! ```
//!
//! The service draws decisions, sums whole epochs and tells an engine their tallies; the audit asks and tells an engine of
//! its own round by round. Lines stream through it: memory does not grow with the log, but for one number per run of
//! imputed rounds and, without the key, one per round of the longest epoch.

mod diff;
mod epoch;
mod replay;
mod rows;
mod source;
mod spec_diff;
mod state;

use std::fmt;

use anyhow::{Context as _, Result, bail};
use debora::spec::{ServiceSpec, Spec};
use debora::{Engine, Key, Problem, VALUES_VERSION};
use serde::Serialize;

pub use diff::{Diff, Divergence, DivergingEstimate, diff};
pub use source::{Credentials, Log, LogSource};
pub use spec_diff::SpecDifference;

use crate::hex;
use crate::log::chain;
use crate::log::{Heading, LOG_VERSION, Line};
use crate::store::Status;
use debora::job::words::whole;
use epoch::OpenEpoch;
use replay::Replay;

/// Where a log differs from what follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where.
    pub place: String,
    /// What differs.
    pub what: String,
    /// What the log says.
    pub recorded: String,
    /// What follows from what is above it in the log.
    pub recomputed: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            what,
            recorded,
            recomputed,
        } = self;
        write!(
            f,
            "{place}: {what} is {recorded} as recorded, and {recomputed} as recomputed"
        )
    }
}

/// Nothing, or the first difference.
type Check<T = ()> = Result<T, Difference>;

fn differs(
    place: impl Into<String>,
    what: &str,
    recorded: impl fmt::Display,
    recomputed: impl fmt::Display,
) -> Difference {
    let (recorded, recomputed) = (recorded.to_string(), recomputed.to_string());
    Difference {
        place: place.into(),
        what: what.to_owned(),
        recorded,
        recomputed,
    }
}

fn equal<T: PartialEq + fmt::Debug>(
    place: impl Fn() -> String,
    what: &str,
    recorded: &T,
    recomputed: &T,
) -> Check {
    if recorded == recomputed {
        return Ok(());
    }
    Err(differs(
        place(),
        what,
        format_args!("{recorded:?}"),
        format_args!("{recomputed:?}"),
    ))
}

/// What was recomputed of an experiment, as far as it goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Audited {
    /// The experiment.
    pub experiment: String,
    /// Its status.
    pub status: Option<Status>,
    /// Whether the key was there: without it, only hashes and counts are checked.
    pub key: bool,
    /// Decisions of rounds.
    pub decisions: u64,
    /// Epochs, with the open one.
    pub epochs: u64,
    /// Decisions outside the horizon.
    pub overtime: u64,
    /// Rounds with an outcome, told or imputed.
    pub outcomes: u64,
    /// Of these, imputed ones.
    pub imputed: u64,
    /// Outcomes that came after their round was imputed.
    pub late: u64,
    /// The open epoch, if there is one.
    pub open_epoch: Option<u64>,
    /// The open epoch's rounds that have an outcome, which is in no hash yet.
    pub unhashed_outcomes: u64,
    /// Rounds without an outcome.
    pub outstanding: u64,
    /// Whether the experiment went on while its log was read: then the last counts are ahead of the lines.
    pub moved: bool,
    /// The hash of the last closed epoch.
    pub head: String,
}

impl Audited {
    /// Rounds whose outcome somebody told.
    pub fn told(&self) -> u64 {
        self.outcomes - self.imputed
    }
}

/// What an audit came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Everything that was recomputed is equal.
    Equal(Audited),
    /// The first difference, after this much was equal.
    Different(Audited, Difference),
}

/// Audits a log; `head` is one that was published earlier, and must be in its chain.
pub fn audit(log: &mut Log, head: Option<&str>) -> Result<Verdict> {
    let mut auditor = Auditor {
        wanted: head.map(str::to_lowercase),
        ..Auditor::default()
    };
    let mut number = 0u64;
    let checked = loop {
        let Some(line) = log.next() else {
            break auditor.finish()?;
        };
        number += 1;
        if let Err(mut difference) = auditor.take(line?)? {
            difference.place = format!("line {}, {}", whole(number), difference.place);
            break Err(difference);
        }
    };
    let checked = match checked {
        Ok(()) => log.check_rows(&auditor)?,
        difference => difference,
    };
    Ok(match checked {
        Ok(()) => Verdict::Equal(auditor.audited),
        Err(difference) => Verdict::Different(auditor.audited, difference),
    })
}

/// Takes a log line by line. A difference ends it; an error means that it cannot be audited.
#[derive(Default)]
struct Auditor {
    /// What has been read last.
    at: LineKind,
    audited: Audited,
    rules: Option<Rules>,
    replay: Option<Replay>,
    open: Option<OpenEpoch>,
    /// The hash of the last closed epoch, recomputed.
    head: String,
    /// Over the strategies of closed epochs.
    digest: [u8; 32],
    counts: SeenCounts,
    /// What the events so far lead to.
    status: Option<Status>,
    /// A head that must be in the chain.
    wanted: Option<String>,
    /// The first late outcome of a round that no line says was imputed.
    unmatched_late: Option<Difference>,
}

/// What the spec says.
struct Rules {
    problem: Problem,
    service: ServiceSpec,
}

/// What was seen, to be compared with the last line.
#[derive(Default)]
struct SeenCounts {
    next_round: u64,
    decided: Vec<u64>,
    /// Told or imputed.
    outcomes: Vec<u64>,
    imputed: Vec<u64>,
    /// Those of them in closed epochs.
    imputed_before: Vec<u64>,
    infeasible: u64,
    /// First and last of each run of imputed rounds.
    imputed_runs: Vec<(u64, u64)>,
    last_late: u64,
}

/// How far a log has been read; lines come in this order, epoch after epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum LineKind {
    #[default]
    Start,
    Experiment,
    Epoch,
    Decisions,
    Outcomes,
    Overtime,
    OvertimeOutcomes,
    Closed,
    Late,
    Events,
    State,
}

impl LineKind {
    fn of(line: &Line) -> Self {
        match line {
            Line::Experiment(_) => Self::Experiment,
            Line::Epoch { .. } => Self::Epoch,
            Line::Decisions(_) => Self::Decisions,
            Line::Outcome { .. } => Self::Outcomes,
            Line::Overtime(_) => Self::Overtime,
            Line::OvertimeOutcome { .. } => Self::OvertimeOutcomes,
            Line::Closed { .. } => Self::Closed,
            Line::Late { .. } => Self::Late,
            Line::Event { .. } => Self::Events,
            Line::State { .. } => Self::State,
        }
    }

    fn repeats(self) -> bool {
        matches!(
            self,
            Self::Decisions
                | Self::Outcomes
                | Self::Overtime
                | Self::OvertimeOutcomes
                | Self::Late
                | Self::Events
        )
    }

    /// Whether a line may follow.
    fn may_precede(self, next: Self) -> bool {
        match (self, next) {
            (Self::Start, next) => next == Self::Experiment,
            (Self::Experiment | Self::Closed, Self::Epoch) => true,
            (Self::Experiment, _) => false,
            (_, Self::Epoch) => false,
            (at, next) => next > at || (next == at && at.repeats()),
        }
    }
}

impl Auditor {
    fn take(&mut self, line: Line) -> Result<Check> {
        let place = LineKind::of(&line);
        if !self.at.may_precede(place) {
            let at = if self.at == LineKind::Start {
                "the beginning".into()
            } else {
                format!("{:?}", self.at).to_lowercase()
            };
            return Ok(Err(differs(
                "the order of lines",
                &format!("what follows {at}"),
                line.name(),
                "another line",
            )));
        }
        self.at = place;
        if let Line::Experiment(heading) = line {
            return self.begin(*heading);
        }
        Ok(self.check(line))
    }

    fn check(&mut self, line: Line) -> Check {
        match line {
            Line::Experiment(_) => unreachable!("taken above"),
            Line::Epoch { record, .. } => self.open_epoch(*record),
            Line::Decisions(given) => self.decisions(&given),
            Line::Outcome {
                round,
                reward,
                costs,
                imputed,
                at,
            } => self.outcome(&crate::store::OutcomeRow {
                round,
                reward,
                costs,
                imputed,
                at,
            }),
            Line::Overtime(given) => self.overtime(&given),
            Line::OvertimeOutcome {
                epoch,
                serial,
                reward,
                costs,
                ..
            } => self.overtime_outcome(epoch, serial, reward, &costs),
            Line::Closed {
                epoch,
                rounds,
                rounds_hash,
                previous,
                hash,
                ..
            } => self.close_epoch(epoch, rounds, &rounds_hash, &previous, &hash),
            Line::Late {
                round,
                reward,
                costs,
                ..
            } => self.late(round, reward, &costs),
            Line::Event { what, .. } => self.event(&what),
            Line::State { progress, moved } => self.state(&progress, moved),
        }
    }

    /// Checks spec, key and the head before the first epoch.
    fn begin(&mut self, heading: Heading) -> Result<Check> {
        self.audited.experiment.clone_from(&heading.id);
        if heading.log != LOG_VERSION {
            bail!(
                "this is log version {}, and this program audits version {LOG_VERSION}",
                heading.log
            );
        }
        if heading.values_version != VALUES_VERSION {
            let version = heading.values_version;
            bail!(
                "the values are of version {version}; audit them with a debora of that version, this one has {VALUES_VERSION}"
            );
        }
        let place = || "the experiment".to_owned();
        let genesis = chain::genesis(heading.values_version, &heading.spec, &heading.key_hash);
        if let Err(difference) = equal(
            place,
            "the head before the first epoch",
            &heading.genesis,
            &genesis,
        ) {
            return Ok(Err(difference));
        }
        let key = match revealed(&heading) {
            Ok(key) => key,
            Err(difference) => return Ok(Err(difference)),
        };
        let Spec {
            problem, service, ..
        } = Spec::parse(&heading.spec, "spec").context("the spec of the log cannot be read")?;
        let actions = problem.actions().len();
        self.counts = SeenCounts {
            next_round: 1,
            ..SeenCounts::default()
        };
        let SeenCounts {
            decided,
            outcomes,
            imputed,
            imputed_before,
            ..
        } = &mut self.counts;
        for counts in [decided, outcomes, imputed, imputed_before] {
            *counts = vec![0; actions];
        }
        self.replay = Some(match key {
            Some(key) => Replay::of(Engine::new(problem.clone(), key)),
            None => Replay::recorded(actions),
        });
        self.audited.key = key.is_some();
        self.rules = Some(Rules { problem, service });
        self.meet(&genesis);
        self.head = genesis;
        Ok(Ok(()))
    }

    /// Ticks off a published head.
    fn meet(&mut self, head: &str) {
        self.wanted.take_if(|wanted| wanted == head);
    }

    fn finish(&mut self) -> Result<Check> {
        if self.at != LineKind::State {
            bail!(
                "the log ends before its last line, the state: take all its pages, one after another"
            );
        }
        Ok(match &self.wanted {
            Some(wanted) => Err(differs(
                "the chain of hashes",
                "the published head",
                wanted,
                "none of its heads",
            )),
            None => Ok(()),
        })
    }
}

/// The key, if it is there, and then the one whose hash was published.
fn revealed(heading: &Heading) -> Check<Option<Key>> {
    let place = "the experiment";
    let (salt, key) = match (&heading.salt, &heading.key) {
        (Some(salt), Some(key)) => (salt, key),
        (None, None) => return Ok(None),
        _ => {
            return Err(differs(
                place,
                "the key",
                "half revealed",
                "revealed with its salt, or not at all",
            ));
        }
    };
    let bytes: Option<[u8; 16]> = hex::decode(salt).and_then(|bytes| bytes.try_into().ok());
    let (Some(salt), Ok(key)) = (bytes, Key::from_hex(key)) else {
        return Err(differs(
            place,
            "salt or key",
            format_args!("{salt}, {key}"),
            "32 hexadecimal digits each",
        ));
    };
    equal(
        || place.into(),
        "the hash of salt and key",
        &heading.key_hash,
        &chain::key_hash(salt, key),
    )?;
    Ok(Some(key))
}
