//! The thread that tells: it looks for what there is to tell, writes it down, has it sent, and notes what became of it.
//!
//! ```text
//! every second   what senders report ─► settled;   what is due ─► claimed ─► a sender for each webhook
//! now and then   experiments that have changed ─► to_tell ─► messages, with the cursor
//! ```
//!
//! It reads beside the writer, as pages do, and asks the writer only to write: a request like all others, of a few rows. One
//! thread asks, one request at a time, so that no two nodes wait for each other's rows in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::runtime::Handle;

use crate::service::http::readers::{PAGES_NICE, give_way};
use crate::service::http::webhooks::notices::ToTell;
use crate::service::request::of_store::StoreRequest;
use crate::service::seldom::Seldom;
use crate::service::webhooks::outbox::{
    Attempt, ClaimMessages, Claimed, Raise, RaiseNotices, SettleMessages, Settled,
};
use crate::service::webhooks::sender;
use crate::service::writer::Service;
use crate::store::{Progress, Status, Webhook, WebhookCursor};

/// How often what is due is claimed.
const STEP: Duration = Duration::from_secs(1);

/// How long a scan is followed by a pause, at least.
const SCAN: Duration = Duration::from_secs(2);

/// How much longer for each experiment that was listed, and for each that was looked through: the thread
/// rests most of the time, however many there are. By number and not by time, which a busy machine stretches.
const PAUSES: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(20)];

/// Experiments listed at a time.
const LINES: usize = 1_000;

enum Note {
    /// A sender is done with a webhook.
    Sent(String, Vec<Settled>),
    Stop,
}

/// The thread, as those who start and stop it see it.
pub struct Watcher {
    notes: Sender<Note>,
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watcher {
    /// Starts it. Within a runtime, as the writer is asked through it.
    pub fn start(service: &Arc<Service>) -> Result<Self> {
        let (notes, received) = channel();
        let stopping = Arc::new(AtomicBool::new(false));
        let mut watch = WatchThread {
            service: Arc::clone(service),
            runtime: Handle::current(),
            received,
            notes: notes.clone(),
            stopping: Arc::clone(&stopping),
            settled: Vec::new(),
            busy: BTreeSet::new(),
            looked: BTreeMap::new(),
            scan_at: Instant::now(),
            pause: SCAN,
        };
        let thread = std::thread::Builder::new().name("webhooks".into());
        let thread = thread.spawn(move || watch.run())?;
        Ok(Self {
            notes,
            stopping,
            thread,
        })
    }

    /// Ends it. Senders under way are left to themselves: what they do not report is sent again, by the next start.
    pub async fn stop(self) {
        self.stopping.store(true, Ordering::Relaxed);
        let _ = self.notes.send(Note::Stop);
        // It may be waiting for the writer, which answers through this runtime.
        let _ = tokio::task::spawn_blocking(|| self.thread.join()).await;
    }
}

/// How far an experiment was when it was looked through.
#[derive(PartialEq, Eq)]
struct LookedAt {
    status: Status,
    epoch: u64,
    decided: u64,
    outcomes: u64,
}

impl LookedAt {
    // Less than the progress, of which a hundred thousand would be kept: what there is to tell changes with these alone.
    fn of(progress: &Progress) -> Self {
        Self {
            status: progress.status,
            epoch: progress.epoch,
            decided: progress.rounds(),
            outcomes: progress.outcomes.iter().sum(),
        }
    }
}

struct WatchThread {
    service: Arc<Service>,
    runtime: Handle,
    received: Receiver<Note>,
    notes: Sender<Note>,
    stopping: Arc<AtomicBool>,
    /// What is to be noted in the store.
    settled: Vec<Settled>,
    /// Webhooks that a sender is at work for.
    busy: BTreeSet<String>,
    /// Experiments that need not be looked through until they change.
    looked: BTreeMap<String, LookedAt>,
    scan_at: Instant,
    /// How long after this scan comes the next.
    pause: Duration,
}

impl WatchThread {
    fn run(&mut self) {
        static FAILED: Seldom = Seldom::new(Duration::from_secs(60));
        give_way(PAGES_NICE);
        loop {
            let going = self.take_notes();
            // Messages are in the store: what fails here is tried again.
            let stepped = catch_unwind(AssertUnwindSafe(|| self.step(going)));
            let failed = match stepped {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{error:#}")),
                Err(_) => Some("a panic, which is a bug".into()),
            };
            if let Some(detail) = failed
                && let Some(left_out) = FAILED.due(Instant::now())
            {
                tracing::error!(detail, left_out, "webhooks cannot be looked after");
            }
            if !going {
                return;
            }
        }
    }

    /// Waits for a report or a second, and takes all reports; whether to go on.
    fn take_notes(&mut self) -> bool {
        let mut note = match self.received.recv_timeout(STEP) {
            Ok(note) => Some(note),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return false,
        };
        let mut going = true;
        while let Some(taken) = note {
            match taken {
                Note::Stop => going = false,
                Note::Sent(webhook, settled) => {
                    self.busy.remove(&webhook);
                    self.settled.extend(settled);
                }
            }
            note = self.received.try_recv().ok();
        }
        going
    }

    fn step(&mut self, going: bool) -> Result<()> {
        self.settle()?;
        if !going {
            return Ok(());
        }
        let (webhooks, pending) = self
            .service
            .read(|store| Ok((store.webhooks()?, store.pending()?)))?;
        if webhooks.is_empty() {
            // Whoever is added later begins with its own cursors.
            self.looked.clear();
            return Ok(());
        }
        let mut wrote = false;
        if Instant::now() >= self.scan_at {
            self.pause = SCAN;
            wrote = self.scan(&webhooks)?;
            self.scan_at = Instant::now() + self.pause;
        }
        if wrote || !pending.is_empty() {
            self.claim()?;
        }
        Ok(())
    }

    /// Has the writer do something.
    fn ask<R: StoreRequest>(&self, request: R) -> Result<R::Reply> {
        Ok(self.runtime.block_on(self.service.ask_store(request))?)
    }

    fn settle(&mut self) -> Result<()> {
        if self.settled.is_empty() {
            return Ok(());
        }
        // Kept until they are noted: a busy writer refuses, and is asked again.
        self.ask(SettleMessages(self.settled.clone()))?;
        self.settled.clear();
        Ok(())
    }

    fn claim(&mut self) -> Result<()> {
        let busy = self.busy.iter().cloned().collect();
        for claimed in self.ask(ClaimMessages { busy })? {
            self.send(claimed)?;
        }
        Ok(())
    }

    fn send(&mut self, claimed: Claimed) -> Result<()> {
        let name = claimed.webhook.name.clone();
        self.busy.insert(name.clone());
        let (notes, counts) = (self.notes.clone(), self.service.counts.clone());
        let thread = std::thread::Builder::new().name("webhook".into());
        thread.spawn(move || {
            // A sender that panicked must not leave its webhook busy for ever.
            let sent = catch_unwind(AssertUnwindSafe(|| sender::send(claimed)));
            let settled = sent.unwrap_or_default();
            for one in &settled {
                match &one.sent {
                    Attempt::Taken => counts.delivered("taken"),
                    Attempt::Failed(reason) => {
                        counts.delivered("failed");
                        let (webhook, id) = (&one.message.webhook, &one.message.id);
                        tracing::warn!(
                            webhook,
                            id,
                            reason,
                            "a webhook's receiver did not take a message"
                        );
                    }
                    Attempt::Gone => counts.delivered("gone"),
                    Attempt::Untried => {}
                }
            }
            let _ = notes.send(Note::Sent(name, settled));
        })?;
        Ok(())
    }

    /// Looks through all experiments that have changed; whether something was written.
    fn scan(&mut self, webhooks: &[Webhook]) -> Result<bool> {
        let mut wrote = false;
        let mut after: Option<String> = None;
        loop {
            let lines = self
                .service
                .read(|store| store.lines(None, after.as_deref(), false, LINES))?;
            for line in &lines {
                if self.stopping.load(Ordering::Relaxed) {
                    return Ok(wrote);
                }
                self.pause += PAUSES[0];
                let standing = LookedAt::of(&line.progress);
                if self.looked.get(&line.id) != Some(&standing) {
                    wrote |= self.look(&line.id, standing, webhooks)?;
                }
            }
            match lines.into_iter().next_back() {
                Some(line) => after = Some(line.id),
                None => return Ok(wrote),
            }
        }
    }

    /// Looks through an experiment; whether something was written.
    fn look(&mut self, id: &str, standing: LookedAt, webhooks: &[Webhook]) -> Result<bool> {
        self.pause += PAUSES[1];
        let now = (self.service.clock)().wall;
        let identity = self.service.start.identity.clone();
        let found = self.service.read(|store| {
            let cursors = store.cursors(id)?;
            let wanting = wanting(id, webhooks, cursors);
            let epochs = wanting.iter().map(|(_, cursor)| cursor.as_ref());
            let from = epochs
                .map(|cursor| cursor.map_or(0, |cursor| cursor.epoch))
                .min();
            let Some(from) = from else { return Ok(None) };
            let to_tell = ToTell::read(store, id, from, now)?;
            Ok(to_tell.map(|to_tell| {
                let raises = wanting
                    .into_iter()
                    .filter_map(|(webhook, cursor)| to_tell.raise(id, webhook, cursor, &identity));
                let raises: Vec<Raise> = raises.collect();
                (raises, to_tell.more || to_tell.is_waiting())
            }))
        });
        // One that cannot be read must not keep the others from being looked through.
        let found = found.unwrap_or_else(|error| {
            let detail = format!("{error:#}");
            tracing::debug!(
                id,
                detail,
                "an experiment cannot be looked through for webhooks"
            );
            None
        });
        let (raises, again) = found.unwrap_or_default();
        let wrote = !raises.is_empty();
        if wrote {
            self.ask(RaiseNotices(raises))?;
        }
        if again {
            self.looked.remove(id);
        } else {
            self.looked.insert(id.to_owned(), standing);
        }
        Ok(wrote)
    }
}

/// The webhooks that an experiment may have something for, with their cursors.
fn wanting<'a>(
    id: &str,
    webhooks: &'a [Webhook],
    cursors: Vec<WebhookCursor>,
) -> Vec<(&'a Webhook, Option<WebhookCursor>)> {
    let mut cursors: BTreeMap<_, _> = cursors
        .into_iter()
        .map(|cursor| (cursor.webhook.clone(), cursor))
        .collect();
    let is_for = |webhook: &&Webhook| {
        let experiments = webhook.experiments.as_ref();
        let chosen = experiments.is_none_or(|ids| ids.iter().any(|other| other == id));
        chosen && webhook.disabled_at.is_none()
    };
    let webhooks = webhooks.iter().filter(is_for);
    let webhooks = webhooks.map(|webhook| (webhook, cursors.remove(&webhook.name)));
    webhooks
        .filter(|(_, cursor)| !cursor.as_ref().is_some_and(|cursor| cursor.ended))
        .collect()
}
