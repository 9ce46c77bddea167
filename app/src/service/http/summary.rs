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

use crate::log::OtherValues;
use crate::reading::alerts::Alert;
use crate::reading::pace::{DecisionPace, DecisionRate};
use crate::reading::{ActionShare, LimitState, Reading, RunState, Shares};
use crate::service::http::ExperimentInfo;
use crate::service::recent::Recent;
use crate::store::{ExperimentLine, Progress, Status, Store};

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
    pub glance: Result<Glance, Unreadable>,
    pace: Option<DecisionPace>,
}

/// Why nothing can be said of an experiment.
pub enum Unreadable {
    /// It is decided with other values than this program has.
    OtherValues(String),
    /// The store failed, or is damaged.
    Damaged(String),
}

/// What a list keeps of a reading.
pub struct Glance {
    /// How the open epoch's strategy was found.
    pub kind: Kind,
    /// Rounds in all.
    pub horizon: u64,
    /// Which algorithm decides.
    pub policy: Policy,
    /// The action that is played most.
    pub leader: ActionShare,
    /// How often each action is played; of many actions, the most frequent.
    pub shares: Shares,
    /// Whether the open epoch is fully decided and waits for outcomes.
    waiting: bool,
    /// Its limits, the worst first.
    pub limits: Vec<LimitState>,
    /// What somebody should look into.
    pub alerts: Vec<Alert>,
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
        let row = store.experiment(id)?;
        let (experiment, _) = row.with_context(|| not_there(id))?;
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

fn not_there(id: &str) -> String {
    format!("the store lists an experiment {id:?} that is not there")
}

impl From<anyhow::Error> for Unreadable {
    fn from(error: anyhow::Error) -> Self {
        if error.is::<OtherValues>() {
            Self::OtherValues(error.to_string())
        } else {
            Self::Damaged(format!("{error:#}"))
        }
    }
}

impl LineSummary {
    fn read(store: &mut Store, line: &ExperimentLine, now: i64) -> Self {
        let reading = Reading::read(store, &line.id)
            .and_then(|reading| reading.with_context(|| not_there(&line.id)));
        Self {
            // One that cannot be read must not hide the others.
            glance: match reading {
                Ok(reading) => Ok(Glance::from_reading(&reading)),
                Err(error) => Err(error.into()),
            },
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
        self.is_of(line) && !matches!(self.glance, Err(Unreadable::Damaged(_)))
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
    fn is_waiting(&self, line: &ExperimentLine) -> bool {
        let waited = self.glance.as_ref().is_ok_and(|glance| glance.waiting);
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

/// What an experiment does; `None` while it is not known whether it waits or has committed.
pub fn run_state(line: &ExperimentLine, summary: Option<&LineSummary>) -> Option<RunState> {
    let status = line.progress.status;
    let Some(summary) = summary else {
        return (status != Status::Running).then(|| RunState::new(status, false, false));
    };
    let glance = summary.glance.as_ref();
    let is_committed = glance.is_ok_and(|glance| glance.kind == Kind::Commit);
    Some(RunState::new(
        status,
        is_committed,
        summary.is_waiting(line),
    ))
}

impl Glance {
    fn from_reading(reading: &Reading) -> Self {
        let shares = reading.shares();
        let mut limits = reading.limits().to_vec();
        limits.sort_by_key(|limit| limit.all.verdict.severity());
        Self {
            kind: reading.kind(),
            horizon: reading.problem().horizon(),
            policy: reading.policy(),
            leader: shares.leader().clone(),
            shares: shares.clone().most_frequent(ACTIONS_MAX),
            waiting: reading.is_waiting(),
            limits,
            alerts: reading.alerts(),
        }
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
