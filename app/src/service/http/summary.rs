//! What the list says of each experiment, kept in memory while its progress stays the same.
//!
//! A summary restores an engine, which takes a tenth of a millisecond or more: too long for a thousand lines. So a request makes
//! those whose progress has changed, the oldest first, until its time is up; the others are shown as they were, and the next
//! request goes on from there. Names never change, and are read once.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use debora::Policy;
use debora::record::Kind;
use debora::spec::Spec;

use crate::log::account::ToldAccount;
use crate::log::kept::{self, LimitVerdict};
use crate::log::observed::Observed;
use crate::log::sample_ratio;
use crate::log::{OtherValues, check_values};
use crate::service::http::ExperimentInfo;
use crate::service::http::alerts::{self, AlertKind};
use crate::service::http::pace::{DecisionPace, DecisionRate};
use crate::service::recent::Recent;
use crate::service::resident::Resident;
use crate::store::{ExperimentLine, ExperimentRow, Progress, Store};

/// Names kept: as many experiments as a search looks at.
pub const FACTS_MAX: usize = 20_000;

/// Summaries kept: two pages of the list.
const SUMMARIES_MAX: usize = 2_000;

/// Actions whose probability is kept: the metrics show each as a line.
pub const ACTIONS_MAX: usize = 20;

/// How long after its beginning a request makes summaries: if it must read names first, fewer. With the rest of the page it
/// stays below 50 milliseconds.
pub const BUDGET: Duration = Duration::from_millis(20);

/// What never changes about an experiment, as far as a list shows it.
pub struct Facts {
    /// What it is called.
    pub name: Option<String>,
    /// Rounds in all.
    pub horizon: u64,
}

/// An experiment as it stood when its summary was made.
pub struct LineSummary {
    /// How far it was.
    progress: Progress,
    /// When.
    made_at: i64,
    /// What is known of it, or why that cannot be said.
    pub standing: Result<LineStanding, Unsaid>,
    pace: Option<DecisionPace>,
}

/// Why nothing can be said of an experiment.
pub enum Unsaid {
    /// It is decided with other values than this program has.
    OtherValues(String),
    /// The store failed, or is damaged.
    Unreadable(String),
}

/// What an experiment's engine and sums tell.
pub struct LineStanding {
    /// How the open epoch's strategy was found.
    pub kind: Kind,
    /// Rounds in all.
    pub horizon: u64,
    /// Which algorithm decides.
    pub policy: Policy,
    /// The action with the largest probability, by name, and that probability.
    pub leader: (String, f64),
    /// The probability of each action, by name; of many actions, those of the most probable.
    pub strategy: Vec<(String, f64)>,
    /// Whether the open epoch is fully decided and waits for outcomes.
    waiting: bool,
    /// Its costs, those whose limit was exceeded first; `None` if an earlier version stored outcomes without their sums.
    pub limits: Option<Vec<LimitLine>>,
    /// What somebody should look into, in sentences.
    pub alerts: Vec<String>,
    /// What kind each of them is of.
    pub alert_kinds: Vec<AlertKind>,
}

/// Whether a cost's limit was kept.
pub struct LimitLine {
    /// The cost's name.
    pub name: String,
    /// What its mean must not exceed.
    pub threshold: f64,
    /// Its average over all counted rounds; `None` without a round.
    pub realised: Option<f64>,
    /// Whether it was.
    pub verdict: LimitVerdict,
    /// The same in words, with the numbers.
    pub sentence: String,
}

impl Facts {
    pub fn of(info: &ExperimentInfo) -> Self {
        Self {
            name: info.name.clone(),
            horizon: info.problem.horizon(),
        }
    }
}

/// The summaries in memory.
pub struct Summaries {
    facts: Mutex<Recent<Arc<Facts>>>,
    made: Mutex<Recent<Arc<LineSummary>>>,
}

impl Default for Summaries {
    fn default() -> Self {
        Self {
            facts: Mutex::new(Recent::new(FACTS_MAX)),
            made: Mutex::new(Recent::new(SUMMARIES_MAX)),
        }
    }
}

fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().expect("no panic while a summary is kept")
}

impl Summaries {
    /// What never changes about an experiment that is there.
    pub fn facts(&self, store: &mut Store, id: &str) -> Result<Arc<Facts>> {
        if let Some(facts) = lock(&self.facts).get_mut(id) {
            return Ok(Arc::clone(facts));
        }
        let (experiment, _) = row(store, id)?;
        let spec = Spec::parse(&experiment.spec, id)?;
        let facts = Arc::new(Facts {
            name: spec.name,
            horizon: spec.problem.horizon(),
        });
        let mut kept = lock(&self.facts);
        kept.insert(id, Arc::clone(&facts));
        kept.trim();
        Ok(facts)
    }

    /// The summary made last, if there is one.
    pub fn of(&self, id: &str) -> Option<Arc<LineSummary>> {
        lock(&self.made).get_mut(id).cloned()
    }

    /// Makes summaries of experiments that have changed, the oldest first, until its time is up.
    pub fn refresh(&self, store: &mut Store, lines: &[&ExperimentLine], now: i64, end: Instant) {
        let mut changed: Vec<_> = lines
            .iter()
            .map(|line| (self.of(&line.id), line))
            .filter(|(made, line)| !made.as_ref().is_some_and(|made| made.holds_for(line)))
            .collect();
        changed.sort_by_key(|(made, _)| made.as_ref().map(|made| made.made_at));
        for (_, line) in changed {
            let summary = Arc::new(LineSummary::read(store, line, now));
            let mut made = lock(&self.made);
            made.insert(&line.id, summary);
            made.trim();
            // Looked at after each, so that every request makes at least one.
            if Instant::now() >= end {
                return;
            }
        }
    }
}

fn row(store: &mut Store, id: &str) -> Result<(ExperimentRow, Progress)> {
    let row = store.experiment(id)?;
    row.with_context(|| format!("the store lists an experiment {id:?} that is not there"))
}

impl Unsaid {
    fn of(error: &anyhow::Error) -> Self {
        if error.is::<OtherValues>() {
            Self::OtherValues(error.to_string())
        } else {
            Self::Unreadable(format!("{error:#}"))
        }
    }
}

impl LineSummary {
    fn read(store: &mut Store, line: &ExperimentLine, now: i64) -> Self {
        let standing = LineStanding::read(store, line);
        Self {
            // One that cannot be read must not hide the others.
            standing: standing.map_err(|error| Unsaid::of(&error)),
            pace: DecisionPace::read(store, &line.id, &line.progress).unwrap_or_default(),
            progress: line.progress.clone(),
            made_at: now,
        }
    }

    /// Whether it is of the experiment as it stands.
    fn is_of(&self, line: &ExperimentLine) -> bool {
        self.progress == line.progress
    }

    /// Whether it need not be made again.
    fn holds_for(&self, line: &ExperimentLine) -> bool {
        // A store that failed may have recovered.
        self.is_of(line) && !matches!(self.standing, Err(Unsaid::Unreadable(_)))
    }

    /// How many milliseconds old it is, if the experiment has changed since.
    pub fn age(&self, line: &ExperimentLine, now: i64) -> i64 {
        if self.is_of(line) {
            0
        } else {
            (now - self.made_at).max(0)
        }
    }

    /// Whether the experiment is known to wait for outcomes.
    pub fn is_waiting(&self, line: &ExperimentLine) -> bool {
        let waited = self
            .standing
            .as_ref()
            .is_ok_and(|standing| standing.waiting);
        // Of an epoch that was fully decided nothing more is, so this stays true until its last outcome.
        waited && self.progress.decided == line.progress.decided && line.progress.outstanding() > 0
    }

    /// How fast it decides; `None` without a decision in the last minutes.
    pub fn rate(&self, line: &ExperimentLine, now: i64) -> Option<DecisionRate> {
        // What was decided since the summary was made is not counted, so that time does not count either.
        let until = if self.is_of(line) { now } else { self.made_at };
        self.pace?.until(until)
    }

    /// When the last round was decided.
    pub fn last_decided(&self) -> Option<i64> {
        self.pace.map(|pace| pace.last)
    }
}

impl LineStanding {
    fn read(store: &mut Store, line: &ExperimentLine) -> Result<Self> {
        let (id, progress) = (&*line.id, &line.progress);
        let (experiment, _) = row(store, id)?;
        check_values(&experiment)?;
        let resident = Resident::read(store, id)?.context("it is not there")?;
        resident.check(id, progress)?;
        let engine = &resident.engine;
        let probabilities = engine.strategy().probabilities().iter();
        // The first of those that share the largest, as ties go to the lowest action everywhere.
        let (place, probability) =
            probabilities
                .enumerate()
                .fold((0, 0.0), |best, (place, probability)| {
                    if *probability > best.1 {
                        (place, *probability)
                    } else {
                        best
                    }
                });
        let (limits, alerts) = told(store, progress, &resident, id)?;
        let problem = engine.problem();
        Ok(Self {
            kind: engine.open_record().kind,
            horizon: problem.horizon(),
            policy: problem.policy(),
            leader: (problem.actions()[place].clone(), probability),
            strategy: most_probable(problem.actions(), engine.strategy().probabilities()),
            waiting: progress.status.is_open()
                && progress.outstanding() > 0
                && resident.is_decided(progress),
            limits,
            alert_kinds: alerts.iter().map(|(kind, _)| *kind).collect(),
            alerts: alerts::sentences(alerts),
        })
    }
}

/// The actions with the largest probabilities, in the spec's order if they are all.
fn most_probable(actions: &[String], probabilities: &[f64]) -> Vec<(String, f64)> {
    let mut named: Vec<_> = actions.iter().zip(probabilities.iter().copied()).collect();
    if named.len() > ACTIONS_MAX {
        // Stable, so that of equals the lowest actions stay.
        named.sort_by(|one, other| other.1.total_cmp(&one.1));
        named.truncate(ACTIONS_MAX);
    }
    let owned = named.into_iter().map(|(name, share)| (name.clone(), share));
    owned.collect()
}

type LimitsAndAlerts = (Option<Vec<LimitLine>>, Vec<(AlertKind, String)>);

/// What was told: limits, and alerts.
fn told(
    store: &mut Store,
    progress: &Progress,
    resident: &Resident,
    id: &str,
) -> Result<LimitsAndAlerts> {
    let engine = &resident.engine;
    let observed = match store.observed(id)? {
        Some(text) => Observed::parse(&text, engine.problem())?,
        None if progress.outcomes.iter().sum::<u64>() == 0 => Observed::new(engine.problem()),
        // To sum up an epoch again may take seconds: the experiment's own page does.
        None => return Ok((None, Vec::new())),
    };
    let account = ToldAccount::new(engine, progress, &observed, &resident.rules)?;
    let limits = kept::of(&account);
    let ratio = sample_ratio::check(&account);
    let alerts = alerts::alerts(engine.problem().policy(), &limits, &ratio);
    let mut limits: Vec<_> = limits
        .into_iter()
        .map(|limit| LimitLine {
            name: limit.name,
            threshold: limit.threshold,
            realised: limit.all.realised,
            verdict: limit.all.verdict,
            sentence: limit.all.sentence,
        })
        .collect();
    limits.sort_by_key(|limit| severity(limit.verdict));
    Ok((Some(limits), alerts))
}

/// The worst first.
pub fn severity(verdict: LimitVerdict) -> u8 {
    match verdict {
        LimitVerdict::Exceeded => 0,
        LimitVerdict::Unknown => 1,
        LimitVerdict::Kept => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::service::clock::Moment;
    use crate::service::request::{Create, Decide, Request};
    use crate::service::transaction::Executor;
    use crate::store::{Location, Purpose};

    fn create(id: &str) -> Request {
        Request::Create(Create {
            id: id.into(),
            spec: "policy = 'free'\nhorizon = 1e6\nrho = 0.3\nactions = ['a', 'b']\n".into(),
            key: None,
            blind: true,
            actor: "test".into(),
        })
    }

    fn decide(id: &str) -> Request {
        Request::Decide(Decide {
            id: id.into(),
            rounds: 1,
            request_key: None,
            seen: 0,
            actor: "test".into(),
        })
    }

    fn lines(location: &Location) -> (Store, Vec<ExperimentLine>) {
        let mut store = location.open(Purpose::Read).unwrap();
        store.begin().unwrap();
        let lines = store.lines(None, None, false, 9).unwrap();
        (store, lines)
    }

    #[test]
    fn without_time_one_is_made_and_the_oldest_comes_first() {
        let folder = Scratch::new("summaries");
        let location = Location::Sqlite(folder.join("store.db"));
        let store = location.open(Purpose::Serve).unwrap();
        let mut executor = Executor::start(store, Moment::both(0)).unwrap();
        let mut serve = |requests: &[Request]| {
            let answers = executor.serve(requests, Moment::both(0));
            assert!(answers.iter().all(Result::is_ok));
        };
        let summaries = Summaries::default();
        let refresh = |from: usize, now: i64| {
            let (mut store, lines) = lines(&location);
            let asked: Vec<_> = lines[from..].iter().collect();
            summaries.refresh(&mut store, &asked, now, Instant::now());
            let made = lines.iter().map(|line| summaries.of(&line.id));
            made.map(|made| made.map_or(-1, |made| made.made_at))
                .collect::<Vec<_>>()
        };
        serve(&["a", "b", "c"].map(create));
        assert_eq!(refresh(2, 1), [-1, -1, 1]);
        assert_eq!(refresh(0, 2), [2, -1, 1]);
        assert_eq!(refresh(0, 3), [2, 3, 1]);
        // Nothing has changed, and nothing is made again.
        assert_eq!(refresh(0, 4), [2, 3, 1]);
        serve(&["a", "c"].map(decide));
        assert_eq!(refresh(0, 5), [2, 3, 5]);
        assert_eq!(refresh(0, 6), [6, 3, 5]);
    }
}
