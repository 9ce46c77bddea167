//! What the metrics say of experiments: those that were active last, each by its id, and how many there are in all.
//!
//! Read beside the writer in the pages' lane, within the time that the list of experiments takes, and kept: a scrape that finds the
//! lane taken shows what the last one found, with its age. The values are those of the list and of `/state`.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use debora::Policy;
use debora::record::Kind;

use crate::log::kept::LimitVerdict;
use crate::service::http::AppState;
use crate::service::http::alerts::AlertKind;
use crate::service::http::census::{Counted, STATUSES};
use crate::service::http::samples::{GaugeFamily, SampleKind};
use crate::service::http::summary::{BUDGET, LineStanding, LineSummary};
use crate::store::{ExperimentLine, Status, Store};

/// How long a scrape waits for the lane. Scrapers give up after ten seconds, and know nothing then.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Costs of an experiment that are shown, those whose limit was exceeded first.
const COSTS_MAX: usize = 20;

/// What an experiment may be doing.
const STATES: [&str; 4] = ["running", "waiting", "committed", "paused"];

/// An experiment as it is shown.
struct GaugeLine {
    line: ExperimentLine,
    summary: Option<Arc<LineSummary>>,
}

impl GaugeLine {
    fn standing(&self) -> Option<&LineStanding> {
        self.summary.as_ref()?.standing.as_ref().ok()
    }

    /// One of [`STATES`], by the rules of the list.
    fn state(&self) -> &'static str {
        let committed = |standing: &LineStanding| standing.kind == Kind::Commit;
        let waits = |summary: &Arc<LineSummary>| summary.is_waiting(&self.line);
        match self.line.progress.status {
            Status::Running if self.standing().is_some_and(committed) => "committed",
            Status::Running if self.summary.as_ref().is_some_and(waits) => "waiting",
            Status::Running => "running",
            _ => "paused",
        }
    }
}

/// As it was last read.
#[derive(Default)]
struct Board {
    families: Vec<GaugeFamily>,
    /// How old what is said of each was when it was read, in milliseconds.
    ages: Vec<(String, i64)>,
    /// When all experiments were last counted, by monotonic time; `None` before the first time.
    counted_at: Option<i64>,
    /// When it was read.
    at: i64,
}

/// What was read last.
#[derive(Default)]
pub struct Gauges(Mutex<Arc<Board>>);

impl Gauges {
    fn board(&self) -> Arc<Board> {
        let board = self.0.lock().expect("no panic while gauges are kept");
        Arc::clone(&board)
    }
}

/// The gauges, as new as the lane lets them be.
pub async fn read(app: &AppState) -> Vec<GaugeFamily> {
    let shared = Arc::clone(app);
    let look = app.read_page(move |store| {
        let board = Arc::new(looked(&shared, store)?);
        *shared
            .gauges
            .0
            .lock()
            .expect("no panic while gauges are kept") = board;
        Ok(())
    });
    // A store that fails, or too many readers: both are told by other metrics, and what was read before is still worth showing.
    let _ = tokio::time::timeout(WAIT_MAX, look).await;
    let board = app.gauges.board();
    let now = (app.service.clock)().monotonic;
    let mut families = board.families.clone();
    families.extend(ages(&board, now));
    families
}

fn looked(app: &AppState, store: &mut dyn Store) -> Result<Board> {
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
    let age = |one: &GaugeLine| {
        Some((
            one.line.id.clone(),
            one.summary.as_ref()?.age(&one.line, now.wall),
        ))
    };
    let mut families = totals(counted.as_ref(), &shown);
    families.push(GaugeFamily::single(
        "store_size_bytes",
        "Room that the store's tables take",
        store.size()? as f64,
    ));
    families.extend(counts(&shown));
    families.extend(standings(&shown));
    families.extend(limits(&shown));
    Ok(Board {
        families,
        ages: shown.iter().filter_map(age).collect(),
        counted_at: counted.map(|counted| counted.at),
        at: now.monotonic,
    })
}

fn ages(board: &Board, now: i64) -> Vec<GaugeFamily> {
    let seconds = |milliseconds: i64| milliseconds.max(0) as f64 / 1e3;
    let counted = board.counted_at.map(|at| {
        GaugeFamily::single(
            "experiments_age_seconds",
            "Time since all experiments were last counted",
            seconds(now - at),
        )
    });
    let mut one = GaugeFamily::new(
        SampleKind::Gauge,
        "experiment_age_seconds",
        "How old the strategy, limits and alerts shown of an experiment are, if it has changed since",
    );
    for (id, age) in &board.ages {
        // What was read before the lane was taken grows older with every scrape.
        one.add(&[("experiment", id)], seconds(age + (now - board.at)));
    }
    counted.into_iter().chain([one]).collect()
}

fn totals(counted: Option<&Counted>, shown: &[GaugeLine]) -> Vec<GaugeFamily> {
    let mut statuses = GaugeFamily::new(
        SampleKind::Gauge,
        "experiments",
        "Experiments of the store by status",
    );
    for ((_, word), count) in STATUSES
        .iter()
        .zip(counted.iter().flat_map(|counted| counted.statuses))
    {
        statuses.add(&[("status", word)], count as f64);
    }
    let most = GaugeFamily::single(
        "experiments_shown",
        "Experiments that have metrics of their own: the last active that are not over",
        shown.len() as f64,
    );
    vec![statuses, most]
}

/// What is counted of each experiment, and where it stands.
fn counts(shown: &[GaugeLine]) -> Vec<GaugeFamily> {
    let family = GaugeFamily::new;
    let (counter, gauge) = (SampleKind::Counter, SampleKind::Gauge);
    let mut rounds = family(counter, "experiment_rounds", "Rounds decided, by all nodes");
    let mut outcomes = family(
        counter,
        "experiment_outcomes",
        "Outcomes by all nodes: told, imputed, or late, which do not count",
    );
    let mut overtime = family(
        counter,
        "experiment_overtime",
        "Decisions outside the horizon, by all nodes",
    );
    let mut outstanding = family(
        gauge,
        "experiment_outstanding_rounds",
        "Decided rounds without an outcome",
    );
    let mut epoch = family(gauge, "experiment_epoch", "The open epoch, from 0");
    let mut states = family(
        gauge,
        "experiment_state",
        "1 for what an experiment is doing, else 0",
    );
    let mut readable = family(
        gauge,
        "experiment_readable",
        "0 if an experiment has other values than the program, or is damaged",
    );
    for one in shown {
        let (id, progress) = (&*one.line.id, &one.line.progress);
        let [imputed, counted]: [u64; 2] =
            [&progress.imputed, &progress.outcomes].map(|counts| counts.iter().sum());
        rounds.add(&[("experiment", id)], progress.rounds() as f64);
        for (source, count) in [
            ("told", counted - imputed),
            ("imputed", imputed),
            ("late", progress.late),
        ] {
            outcomes.add(&[("experiment", id), ("source", source)], count as f64);
        }
        overtime.add(&[("experiment", id)], progress.overtime as f64);
        outstanding.add(&[("experiment", id)], progress.outstanding() as f64);
        epoch.add(&[("experiment", id)], progress.epoch as f64);
        // All of them, so that an alert sees one end.
        for state in STATES {
            let is = one.state() == state;
            states.add(&[("experiment", id), ("state", state)], f64::from(is));
        }
        if let Some(summary) = &one.summary {
            readable.add(&[("experiment", id)], f64::from(summary.standing.is_ok()));
        }
    }
    vec![
        rounds,
        outcomes,
        overtime,
        outstanding,
        epoch,
        states,
        readable,
    ]
}

/// What the engine of each says.
fn standings(shown: &[GaugeLine]) -> Vec<GaugeFamily> {
    let family = GaugeFamily::new;
    let gauge = SampleKind::Gauge;
    let mut info = family(
        SampleKind::Info,
        "experiment",
        "The policy of an experiment",
    );
    let mut horizon = family(gauge, "experiment_horizon_rounds", "Rounds in all");
    let mut infeasible = family(
        gauge,
        "experiment_infeasible",
        "1 while by the estimates no strategy keeps every limit",
    );
    let mut strategy = family(
        gauge,
        "experiment_strategy_ratio",
        "The probability of an action in the open epoch; of many actions the most probable",
    );
    let mut alerts = family(
        gauge,
        "experiment_alerts",
        "What somebody should look into, by kind",
    );
    for one in shown {
        let Some(standing) = one.standing() else {
            continue;
        };
        let id = ("experiment", &*one.line.id);
        info.add(&[id, ("policy", policy(standing.policy))], 1.0);
        horizon.add(&[id], standing.horizon as f64);
        infeasible.add(&[id], f64::from(standing.kind == Kind::Infeasible));
        for (action, share) in &standing.strategy {
            strategy.add(&[id, ("action", action)], *share);
        }
        // Zeros, too, so that an alert sees the last one go.
        for (kind, word) in KINDS {
            let count = standing
                .alert_kinds
                .iter()
                .filter(|one| **one == kind)
                .count();
            alerts.add(&[id, ("kind", word)], count as f64);
        }
    }
    vec![info, horizon, infeasible, strategy, alerts]
}

/// Every kind of alert.
const KINDS: [(AlertKind, &str); 3] = [
    (AlertKind::BrokenPromise, "broken_promise"),
    (AlertKind::UnevenLoss, "uneven_loss"),
    (AlertKind::FalseMean, "false_mean"),
];

fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::Free => "free",
        Policy::Soft => "soft",
        Policy::Hard => "hard",
    }
}

/// What was spent of each cost, beside its threshold.
fn limits(shown: &[GaugeLine]) -> Vec<GaugeFamily> {
    let family = |name, help| GaugeFamily::new(SampleKind::Gauge, name, help);
    // In the units of the spec, whatever they are: a name that says one would lie.
    let mut average = family(
        "experiment_cost_average",
        "The average of a cost over all counted rounds, in the spec's units",
    );
    let mut threshold = family(
        "experiment_cost_threshold",
        "What the mean of a cost must not exceed, in the spec's units",
    );
    let mut verdicts = family(
        "experiment_limit_verdict",
        "1 for what is known of a limit, else 0: kept, exceeded, or unknown",
    );
    let verdict_words = [
        (LimitVerdict::Kept, "kept"),
        (LimitVerdict::Exceeded, "exceeded"),
        (LimitVerdict::Unknown, "unknown"),
    ];
    for one in shown {
        let limits = one.standing().and_then(|standing| standing.limits.as_ref());
        for limit in limits.into_iter().flatten().take(COSTS_MAX) {
            let id = ("experiment", &*one.line.id);
            let cost = ("cost", &*limit.name);
            if let Some(realised) = limit.realised {
                average.add(&[id, cost], realised);
            }
            threshold.add(&[id, cost], limit.threshold);
            for (verdict, word) in verdict_words {
                let is = limit.verdict == verdict;
                verdicts.add(&[id, cost, ("verdict", word)], f64::from(is));
            }
        }
    }
    vec![average, threshold, verdicts]
}
