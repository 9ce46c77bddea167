//! The audit of an experiment: every decision, estimate, strategy, count and hash of its log, recomputed from spec, key and
//! outcomes.
//!
//! ```text
//! file, store or address ─► source ─► lines ─► Auditor ─► all equal, or the first difference
//!                                              Engine: ask, compare, tell, compare
//! ```
//!
//! The service draws decisions, sums whole epochs and tells an engine their tallies; the audit asks and tells an engine of
//! its own round by round. Lines stream through it: memory does not grow with the log, except for two numbers per run of
//! imputed rounds and, without the key, one per round of the longest epoch.

mod closing;
mod diff;
mod diff_words;
mod epoch;
mod held_back;
mod journal;
mod order;
mod promise;
mod replay;
mod rows;
mod source;
mod spec_diff;
mod state;
mod words;

use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};
use debora::spec::{ServiceSpec, Spec};
use debora::{Engine, Key, Problem};
use serde::Serialize;

pub use diff::{Diff, Divergence, DivergingEstimate, DivergingPick, DivergingTest, diff};
pub use diff_words::compared;
pub use promise::{PairPromise, PairStanding};
pub use source::{Credentials, Log, LogSource};
pub use spec_diff::SpecDifference;
pub use words::{finding, not_recomputed, verdict_word};

use crate::hex;
use crate::log::chain;
use crate::log::{Heading, LOG_VERSION, Line, check_values_version};
use crate::store::{DecisionKind, Event, OutcomeRow, RowCounts, Status, UncountedOutcome};
use debora::measure::words::whole;
use epoch::OpenEpoch;
use journal::Journal;
use order::LineKind;
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

/// What differs where a head that was published is not in the chain.
const PUBLISHED_HEAD: &str = "the published head";

impl Difference {
    /// What it means, where that is not plain.
    pub fn meaning(&self) -> Option<&'static str> {
        (self.what == PUBLISHED_HEAD).then_some(
            "This store is behind what was published (an old copy was put back, or is served beside its original), or it is another \
             one, or the head is another experiment's.",
        )
    }
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

// The place is made only where there is a difference: nearly every comparison finds none, and there are several per round.
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
    /// The version of the values it was decided with.
    pub values_version: u32,
    /// Whether the key was there.
    pub key: bool,
    /// Whether actions, estimates and strategies were recomputed, which takes the key; if not, only hashes, order and counts were
    /// checked.
    pub recomputed: bool,
    /// Decisions of rounds.
    pub decisions: u64,
    /// Epochs, with the open one.
    pub epochs: u64,
    /// Decisions outside the horizon.
    pub overtime: u64,
    /// Decisions that were held back from the experiment.
    pub holdback: u64,
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
    /// The newest hash of the chain.
    pub head: String,
}

impl Audited {
    /// Rounds whose outcome somebody told.
    pub fn told(&self) -> u64 {
        self.outcomes - self.imputed
    }
}

/// What an audit found.
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
            // Only the first one: whatever follows from a wrong line is wrong as well.
            difference.place = format!("line {}, {}", whole(number), difference.place);
            break Err(difference);
        }
    };
    // Rows only once the lines are equal: what they are held against comes from the lines.
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
    /// The newest hash of the chain, recomputed.
    head: String,
    /// When the next epoch must be opened.
    opens_at: i64,
    journal: Journal,
    /// Over the strategies of closed epochs.
    digest: [u8; 32],
    counts: SeenCounts,
    /// What the events so far lead to.
    status: Option<Status>,
    /// A head that must be in the chain.
    wanted: Option<String>,
    /// The first late outcome of a round that no line says was imputed.
    unmatched_late: Option<Difference>,
    /// Every head of the chain, in order.
    heads: Vec<String>,
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
    // Runs, not rounds: where outcomes stop coming, whole leases are imputed one after the other.
    /// First and last of each run of imputed rounds.
    imputed_runs: Vec<(u64, u64)>,
    /// As many rows as lines show.
    rows: RowCounts,
}

impl SeenCounts {
    fn of(actions: usize) -> Self {
        Self {
            next_round: 1,
            decided: vec![0; actions],
            outcomes: vec![0; actions],
            imputed: vec![0; actions],
            imputed_before: vec![0; actions],
            ..Self::default()
        }
    }
}

impl Auditor {
    fn take(&mut self, line: Line) -> Result<Check> {
        // Everything below relies on it: a line is only looked at where the lines that it needs have been read.
        let kind = LineKind::of(&line);
        if !self.at.may_precede(kind) {
            return Ok(Err(differs(
                "the order of lines",
                &format!("what follows {}", self.at),
                line.name(),
                "another line",
            )));
        }
        self.at = kind;
        if let Line::Experiment(heading) = line {
            return self.begin(*heading);
        }
        Ok(self.check(line))
    }

    fn check(&mut self, line: Line) -> Check {
        match line {
            // An error of it means that the log cannot be audited at all, unlike those of the others.
            Line::Experiment(_) => unreachable!("taken above"),
            Line::Epoch { record, opened_at } => self.open_epoch(*record, opened_at),
            Line::Decisions(given) => self.decisions(&given),
            Line::Outcome {
                round,
                reward,
                costs,
                imputed,
                at,
                actor,
            } => self.outcome(
                &OutcomeRow {
                    round,
                    reward,
                    costs,
                    imputed,
                    at,
                    // Hashes have the name.
                    actor: 0,
                },
                actor.as_deref(),
            ),
            Line::Overtime(given) => self.overtime(&given),
            Line::OvertimeOutcome(told) => self.outside_outcome(&told, DecisionKind::Overtime),
            Line::Holdback(given) => self.holdback(&given),
            Line::HoldbackOutcome(told) => self.outside_outcome(&told, DecisionKind::Holdback),
            line @ Line::Closed { .. } => self.close_epoch(&line),
            Line::Late {
                round,
                reward,
                costs,
                at,
                actor,
                position,
            } => self.late(
                &UncountedOutcome {
                    epoch: 0,
                    kind: DecisionKind::Round,
                    number: round,
                    reward,
                    costs,
                    at,
                    actor: 0,
                    position,
                },
                actor.as_deref(),
            ),
            Line::Event {
                at,
                actor,
                what,
                reason,
                position,
            } => self.event(&Event {
                at,
                actor,
                what,
                reason,
                position,
            }),
            Line::State { progress, moved } => self.state(&progress, moved),
        }
    }

    /// Checks spec, key and the head before the first epoch.
    fn begin(&mut self, heading: Heading) -> Result<Check> {
        self.audited.experiment.clone_from(&heading.id);
        check_versions(&heading)?;
        let genesis = recomputed_genesis(&heading);
        // The transaction that creates an experiment opens its first epoch.
        self.opens_at = heading.created_at;
        let key = match check_heading(&heading, &genesis) {
            Ok(key) => key,
            Err(difference) => return Ok(Err(difference)),
        };
        let spec =
            Spec::parse(&heading.spec, "spec").context("the spec of the log cannot be read")?;
        let actions = spec.problem.actions().len();
        self.counts = SeenCounts::of(actions);
        self.audited.values_version = heading.values_version;
        self.audited.key = key.is_some();
        self.audited.recomputed = key.is_some();
        // Without the key the actions cannot be recomputed, but every hash and every count still can.
        self.replay = Some(match key {
            Some(key) => Replay::of(Engine::new(spec.problem.clone(), key)),
            None => Replay::recorded(actions),
        });
        self.rules = Some(Rules {
            problem: spec.problem,
            service: spec.service,
        });
        self.tick_off_head(&genesis);
        self.head = genesis;
        Ok(Ok(()))
    }

    /// Ticks off a published head.
    fn tick_off_head(&mut self, head: &str) {
        self.heads.push(head.to_owned());
        self.wanted.take_if(|wanted| wanted == head);
    }

    fn finish(&mut self) -> Result<Check> {
        if self.at != LineKind::State {
            bail!("the log ends before its last line, the state: fetch all its pages, in order");
        }
        Ok(match &self.wanted {
            // Anyone who can rewrite the log can rehash it; a head that was noted down before is what gives them away.
            Some(wanted) => Err(differs(
                "the chain of hashes",
                PUBLISHED_HEAD,
                wanted,
                "not one of its heads",
            )),
            None => Ok(()),
        })
    }
}

fn recomputed_genesis(heading: &Heading) -> String {
    chain::genesis(
        heading.values_version,
        &heading.spec,
        &heading.key_hash,
        &heading.id,
        heading.created_at,
    )
}

/// Another version is not a difference: this program cannot say what the log should be.
fn check_versions(heading: &Heading) -> Result<()> {
    ensure!(
        heading.log == LOG_VERSION,
        "this is a log of version {}, and this program reads version {LOG_VERSION}; use the debora that wrote it",
        heading.log
    );
    check_values_version(&heading.id, heading.values_version)?;
    Ok(())
}

/// The key, once the head before the first epoch and the key's hash are found right.
fn check_heading(heading: &Heading, genesis: &String) -> Check<Option<Key>> {
    equal(
        || "the experiment".to_owned(),
        "the head before the first epoch",
        &heading.genesis,
        genesis,
    )?;
    revealed(heading)
}

/// The key, if it is there, and then the one whose hash was published.
fn revealed(heading: &Heading) -> Check<Option<Key>> {
    let place = "the experiment";
    // Without its salt a key cannot be held against the hash, so half of it is not taken for the whole.
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
