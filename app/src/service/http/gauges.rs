//! What the metrics say of experiments: those that were active last, each by its id, and how many there are in all.
//!
//! Read beside the writer in the pages' lane, within the time that the list of experiments takes, and kept: a scrape that finds the
//! lane taken shows what the last one found, with its age. The values are those of the list and of `/state`.

mod declared;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::Result;
use debora::Policy;
use debora::record::Kind;

use crate::reading::alerts::AlertKind;
use crate::reading::{LimitState, LimitVerdict, OutcomeCounts, RunState};
use crate::service::http::AppState;
use crate::service::http::census::STATUSES;
use crate::service::http::samples::Families;
use crate::service::http::summary::{BUDGET, Glance, LineSummary, run_state};
use crate::store::{ExperimentLine, Store};
use declared::DECLARED;

/// How long a scrape waits for the lane. Scrapers give up after ten seconds, and know nothing then.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Costs of an experiment that are shown, those whose limit was exceeded first.
const COSTS_MAX: usize = 20;

/// What an experiment that is not over may be doing.
const STATES: [RunState; 4] = [
    RunState::Running,
    RunState::Waiting,
    RunState::Committed,
    RunState::Paused,
];

/// An experiment as it is shown.
struct GaugeLine {
    line: ExperimentLine,
    summary: Option<Arc<LineSummary>>,
}

impl GaugeLine {
    fn glance(&self) -> Option<&Glance> {
        self.summary.as_ref()?.glance.as_ref().ok()
    }
}

/// As it was last read.
struct Board {
    families: Families,
    /// How old what is said of each was when it was read, in milliseconds.
    ages: Vec<(String, i64)>,
    /// When all experiments were last counted, by monotonic time; `None` before the first time.
    counted_at: Option<i64>,
    /// When it was read.
    at: i64,
}

/// What was read last; `None` before the first scrape.
#[derive(Default)]
pub struct Gauges(Mutex<Option<Arc<Board>>>);

impl Gauges {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Board>>> {
        self.0.lock().expect("no panic while gauges are kept")
    }
}

/// The gauges, as new as the lane lets them be.
pub async fn read(app: &AppState) -> Families {
    let shared = Arc::clone(app);
    let look = app.read_page(move |store| {
        let board = Arc::new(looked(&shared, store)?);
        *shared.gauges.lock() = Some(board);
        Ok(())
    });
    // A store that fails, or too many readers: both are told by other metrics, and what was read before is still worth showing.
    let _ = tokio::time::timeout(WAIT_MAX, look).await;
    let board = app.gauges.lock().clone();
    let now = (app.service.clock)().monotonic;
    board.map_or(Families::default(), |board| aged(&board, now))
}

fn looked(app: &AppState, store: &mut Store) -> Result<Board> {
    let begun = Instant::now();
    let now = (app.service.clock)();
    // Half of the time is for the experiments that are shown.
    let clocks = [now.wall, now.monotonic];
    app.census.go_on(store, clocks, begun + BUDGET / 2)?;
    let counted = app.census.counted();
    let ids = counted.iter().flat_map(|counted| counted.shown.clone());
    let ids: Vec<String> = ids.collect();
    // Read again: the walk may have come by minutes ago.
    let lines = store.lines(Some(&ids), None, true, ids.len())?;
    let open = lines.iter().filter(|line| line.progress.status.is_open());
    let open: Vec<_> = open.collect();
    app.summaries
        .refresh(store, &open, now.wall, begun + BUDGET);
    let shown: Vec<GaugeLine> = open
        .into_iter()
        .map(|line| GaugeLine {
            summary: app.summaries.of(&line.id),
            line: line.clone(),
        })
        .collect();
    let mut families = Families::declared(DECLARED);
    families.add("store_size_bytes", &[], store.size()? as f64);
    families.add("experiments_shown", &[], shown.len() as f64);
    let statuses = counted.iter().flat_map(|counted| counted.statuses);
    for ((_, word), count) in STATUSES.iter().zip(statuses) {
        families.add("experiments", &[("status", word)], count as f64);
    }
    shown.iter().for_each(|one| one.add_to(&mut families));
    let age = |one: &GaugeLine| {
        let age = one.summary.as_ref()?.age(&one.line, now.wall);
        Some((one.line.id.clone(), age))
    };
    Ok(Board {
        families,
        ages: shown.iter().filter_map(age).collect(),
        counted_at: counted.map(|counted| counted.at),
        at: now.monotonic,
    })
}

/// With ages as they are by now: what was read before the lane was taken grows older with every scrape.
fn aged(board: &Board, now: i64) -> Families {
    let seconds = |milliseconds: i64| milliseconds.max(0) as f64 / 1e3;
    let mut families = board.families.clone();
    if let Some(at) = board.counted_at {
        families.add("experiments_age_seconds", &[], seconds(now - at));
    }
    for (id, age) in &board.ages {
        let age = seconds(age + (now - board.at));
        families.add("experiment_age_seconds", &[("experiment", id)], age);
    }
    families
}

impl GaugeLine {
    fn add_to(&self, families: &mut Families) {
        self.add_counts(families);
        if let Some(summary) = &self.summary {
            let readable = summary.glance.is_ok();
            families.add("experiment_readable", &[self.id()], f64::from(readable));
        }
        if let Some(glance) = self.glance() {
            self.add_glance(families, glance);
            let limits = glance.limits.iter().take(COSTS_MAX);
            limits.for_each(|limit| self.add_limit(families, limit));
        }
    }

    fn id(&self) -> (&'static str, &str) {
        ("experiment", &self.line.id)
    }

    /// What is counted, and what it is doing.
    fn add_counts(&self, families: &mut Families) {
        let (id, progress) = (self.id(), &self.line.progress);
        let outcomes = OutcomeCounts::from_progress(progress);
        for (name, count) in [
            ("experiment_rounds", outcomes.decided),
            ("experiment_overtime", outcomes.overtime),
            ("experiment_outstanding_rounds", outcomes.outstanding),
            ("experiment_epoch", progress.epoch),
        ] {
            families.add(name, &[id], count as f64);
        }
        for (source, count) in [
            ("told", outcomes.told),
            ("imputed", outcomes.imputed),
            ("late", outcomes.late),
        ] {
            families.add(
                "experiment_outcomes",
                &[id, ("source", source)],
                count as f64,
            );
        }
        // All of them, so that an alert sees one end.
        let doing = run_state(&self.line, self.summary.as_deref());
        for state in STATES {
            let is = f64::from(doing.unwrap_or(RunState::Running) == state);
            families.add("experiment_state", &[id, ("state", state.word())], is);
        }
    }

    /// What the engine says.
    fn add_glance(&self, families: &mut Families, glance: &Glance) {
        let id = self.id();
        let infeasible = f64::from(glance.kind == Kind::Infeasible);
        families.add("experiment", &[id, ("policy", policy(glance.policy))], 1.0);
        families.add("experiment_horizon_rounds", &[id], glance.horizon as f64);
        families.add("experiment_infeasible", &[id], infeasible);
        for share in glance.shares.all() {
            families.add(
                "experiment_strategy_ratio",
                &[id, ("action", &share.name)],
                share.probability,
            );
        }
        // Zeros, too, so that an alert sees the last one go.
        for kind in AlertKind::ALL {
            let of_kind = glance.alerts.iter().filter(|alert| alert.kind == kind);
            families.add(
                "experiment_alerts",
                &[id, ("kind", kind.word())],
                of_kind.count() as f64,
            );
        }
    }

    /// What was spent of a cost, beside its threshold.
    fn add_limit(&self, families: &mut Families, limit: &LimitState) {
        let labels = [self.id(), ("cost", &*limit.name)];
        if let Some(realised) = limit.all.realised {
            families.add("experiment_cost_average", &labels, realised);
        }
        families.add("experiment_cost_threshold", &labels, limit.threshold);
        // As they were first given out.
        for verdict in [
            LimitVerdict::Kept,
            LimitVerdict::Exceeded,
            LimitVerdict::Unknown,
        ] {
            let is = f64::from(limit.all.verdict == verdict);
            let [id, cost] = labels;
            families.add(
                "experiment_limit_verdict",
                &[id, cost, ("verdict", verdict.word())],
                is,
            );
        }
    }
}

fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::Free => "free",
        Policy::Soft => "soft",
        Policy::Hard => "hard",
    }
}
