//! The one audit under way, on a thread of its own.
//!
//! ```text
//! page of the log (a short read) ─► audit ─► how far it is ─► finding, kept in memory
//! ```
//!
//! Between two pages nothing is held open, so the store's log can be emptied and the writer is never waited for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use axum::http::StatusCode;
use tokio::sync::Notify;

use super::{AuditFinding, AuditProgress, AuditState, AuditTimes, finding};
use crate::audit::{self, Audited, Log, Verdict};
use crate::calendar::iso;
use crate::log::{self, LINES_MAX};
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::readers::give_way;
use crate::service::recent::Recent;
use crate::service::request::Refusal;
use crate::service::writer::Service;
use crate::store::{Progress, Role};

/// How much an audit gives way: as much as there is. Nobody waits for it but those who look at it.
const NICE: i32 = 19;

/// Findings kept: those of experiments that were audited or looked at last.
const FINDINGS_MAX: usize = 1_000;

/// How long a server that stops waits for an audit to notice. It does so within a line, unless the store does not answer.
const END_MAX: Duration = Duration::from_secs(2);

/// The audits of this server.
#[derive(Clone)]
pub struct Audits {
    inner: Arc<Mutex<AuditsInner>>,
    /// Told whenever one ends.
    ended: Arc<Notify>,
}

struct AuditsInner {
    running: Option<RunningAudit>,
    last: Recent<AuditFinding>,
    /// Whether the server stops: then none begins.
    ending: bool,
}

struct RunningAudit {
    id: String,
    /// The key that began it.
    by: Arc<str>,
    begun_at: i64,
    watched: Arc<WatchedAudit>,
}

/// What an audit and those who watch it share.
#[derive(Default)]
struct WatchedAudit {
    stopped: AtomicBool,
    epochs: AtomicU64,
    decisions: AtomicU64,
    outcomes: AtomicU64,
}

impl WatchedAudit {
    /// Notes how far it is; false if it is to stop.
    fn note(&self, audited: &Audited) -> bool {
        self.epochs.store(audited.epochs, Ordering::Relaxed);
        self.decisions.store(audited.decisions, Ordering::Relaxed);
        self.outcomes.store(audited.outcomes, Ordering::Relaxed);
        !self.stopped.load(Ordering::Relaxed)
    }

    fn seen(&self) -> [u64; 3] {
        [&self.epochs, &self.decisions, &self.outcomes].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Default for Audits {
    fn default() -> Self {
        let inner = AuditsInner {
            running: None,
            last: Recent::new(FINDINGS_MAX),
            ending: false,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            ended: Arc::default(),
        }
    }
}

impl Audits {
    fn lock(&self) -> MutexGuard<'_, AuditsInner> {
        self.inner
            .lock()
            .expect("no panic while audits are looked at")
    }

    /// Where the audit of an experiment stands.
    pub fn state(&self, id: &str, caller: &Caller, progress: &Progress) -> AuditState {
        let mut inner = self.lock();
        let running = inner.running.as_ref();
        AuditState {
            id: id.to_owned(),
            running: running
                .filter(|running| running.id == id)
                .map(|running| running.progress(caller, progress)),
            other_running: running.is_some_and(|running| running.id != id),
            last: inner.last.get_mut(id).cloned(),
        }
    }

    /// Begins the audit of an experiment, unless it is under way.
    pub fn start(&self, service: &Arc<Service>, id: &str, caller: &Caller) -> Result<(), ApiError> {
        let mut inner = self.lock();
        if inner.ending {
            return Err(Refusal::Stopping.into());
        }
        match &inner.running {
            Some(running) if running.id == id => return Ok(()),
            // The caller's own doing, and within its power to end.
            Some(running) if running.by == caller.name => {
                let message = format!(
                    "your audit of experiment {:?} is under way, and one is made at a time; stop it, or repeat the request later",
                    running.id
                );
                return Err(ApiError::yours_runs(message));
            }
            // Which one is not said: the caller's key may not be for it.
            Some(_) => {
                return Err(ApiError::busy(
                    "another experiment is being audited, and one is audited at a time; repeat the request later",
                ));
            }
            None => {}
        }
        let watched = Arc::new(WatchedAudit::default());
        let audit = Audit {
            audits: self.clone(),
            service: Arc::clone(service),
            id: id.to_owned(),
            watched: Arc::clone(&watched),
        };
        // A thread of its own and not a lane's: an audit may take minutes, and pages of the log are to have their places meanwhile.
        let thread = std::thread::Builder::new().name("audit".into());
        thread.spawn(move || audit.run()).map_err(ApiError::store)?;
        inner.running = Some(RunningAudit {
            id: id.to_owned(),
            by: Arc::clone(&caller.name),
            begun_at: (service.clock)().wall,
            watched,
        });
        Ok(())
    }

    /// Has the audit of an experiment stop, if it is under way.
    pub fn stop(&self, id: &str, caller: &Caller) -> Result<(), ApiError> {
        if let Some(running) = self.lock().running.as_ref().filter(|one| one.id == id) {
            if !running.is_stoppable_by(caller) {
                return Err(not_begun_by(caller));
            }
            running.watched.stopped.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Waits until no audit is under way, as long as `most`.
    pub async fn wait(&self, most: Duration) {
        let quiet = async {
            loop {
                // Made before the look: an audit that ends in between is not missed.
                let ended = self.ended.notified();
                if self.lock().running.is_none() {
                    return;
                }
                ended.await;
            }
        };
        let _ = tokio::time::timeout(most, quiet).await;
    }

    /// Ends the audit under way, and lets none begin.
    pub async fn end(&self) {
        {
            let mut inner = self.lock();
            inner.ending = true;
            if let Some(running) = &inner.running {
                running.watched.stopped.store(true, Ordering::Relaxed);
            }
        }
        // For a time: a store that does not answer must not keep the server from stopping.
        self.wait(END_MAX).await;
    }
}

fn not_begun_by(caller: &Caller) -> ApiError {
    let message = "this audit was begun with another key; the key that began it can stop it, and so can one of role admin";
    ApiError::new(StatusCode::FORBIDDEN, "wrong_role", message)
        .against("the key that began it, or role admin", &*caller.name)
}

impl RunningAudit {
    fn is_stoppable_by(&self, caller: &Caller) -> bool {
        caller.role == Role::Admin || caller.name == self.by
    }

    fn progress(&self, caller: &Caller, progress: &Progress) -> AuditProgress {
        let [epochs, decisions, outcomes] = self.watched.seen();
        let total = 2 * progress.rounds() - progress.outstanding();
        // What was counted before the audit read on may be less than it has read.
        let share = (decisions + outcomes) as f64 / total.max(1) as f64;
        AuditProgress {
            begun: iso(self.begun_at),
            epochs,
            decisions,
            outcomes,
            share: share.min(1.0),
            stoppable: self.is_stoppable_by(caller),
        }
    }
}

/// What the thread of an audit needs.
struct Audit {
    audits: Audits,
    service: Arc<Service>,
    id: String,
    watched: Arc<WatchedAudit>,
}

impl Audit {
    fn run(self) {
        give_way(NICE);
        let begun = Instant::now();
        let begun_at = (self.service.clock)().wall;
        // A panic is a finding, too: without it the audit would seem to go on for ever.
        let found = catch_unwind(AssertUnwindSafe(|| self.verdict()))
            .unwrap_or_else(|_| Err(anyhow!("the audit panicked, which is a bug")));
        let seen = self.watched.seen();
        let times = AuditTimes {
            begun_at,
            ended_at: (self.service.clock)().wall,
            seconds: begun.elapsed().as_secs_f64(),
        };
        let finding = finding(&self.id, found, seen, times);
        let mut inner = self.audits.lock();
        inner.last.insert(&self.id, finding);
        inner.last.trim();
        inner.running = None;
        drop(inner);
        self.audits.ended.notify_waiters();
    }

    fn verdict(&self) -> Result<Option<Verdict>> {
        let (service, id) = (Arc::clone(&self.service), self.id.clone());
        // With the key, which the finding does not show: all that it recomputes is what an unchanged log has in that place.
        let mut log = Log::paged(move |cursor| {
            service.read(|store| log::page(store, &id, cursor, LINES_MAX, true))
        });
        audit::audit_while(&mut log, None, |audited| self.watched.note(audited))
    }
}
