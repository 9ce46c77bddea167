//! The writer: one thread that takes all waiting requests, serves them in one transaction, and answers once it is durable.
//!
//! While a commit is on its way to the disk, the next requests gather: the slower the disk, the larger the group. Reads go to
//! connections of their own and never wait for the writer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::Result;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::oneshot;

use crate::service::clock::Clock;
use crate::service::request::{Granted, Refusal, Request};
use crate::service::tick::Ticked;
use crate::service::transaction::Executor;
use crate::store::{Location, Purpose, Store};

/// The most requests in one transaction. Far more than wait at once (64 connections make groups of 16, docs/benchmarks.md): it
/// only bounds the answer to the first of them.
const GROUP_MAX: usize = 1_024;

/// And the most rows, about: at some 500,000 rows a second a transaction stays well below a second.
const GROUP_ROWS_MAX: u64 = 200_000;

/// The most rows that wait for the writer: some seconds of work. Clients that hang up leave their requests behind, so without a
/// limit a store that is slow to answer would fill the memory.
const QUEUE_ROWS_MAX: u64 = 2_000_000;

/// Connections kept for reading.
const READERS_IDLE: usize = 4;

enum Message {
    Serve(Request, oneshot::Sender<Result<Granted, Refusal>>),
    /// Imputes what is due.
    Tick(oneshot::Sender<Result<Ticked, Refusal>>),
}

/// A node's access to its store: one writer, and readers.
pub struct Service {
    /// Where the store is.
    pub location: Location,
    /// What time it is.
    pub clock: Clock,
    /// Groups served: requests that share a transaction.
    pub groups: Counter,
    requests: Mutex<Option<Sender<Message>>>,
    /// Rows that wait for the writer.
    queued: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
    readers: Mutex<Vec<Box<dyn Store>>>,
}

impl Service {
    /// Opens the store and starts the writer.
    pub fn start(location: Location, clock: Clock) -> Result<Arc<Self>> {
        let (requests, received) = channel();
        let groups = Counter::default();
        let queued = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            executor: Executor::start(location.open(Purpose::Serve)?, clock())?,
            received,
            clock: Arc::clone(&clock),
            groups: groups.clone(),
            queued: Arc::clone(&queued),
        };
        // A thread and not a task: stores block, and the writer must not wait for a handler's turn.
        let writer = std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || writer.run())?;
        Ok(Arc::new(Self {
            location,
            clock,
            groups,
            requests: Mutex::new(Some(requests)),
            queued,
            writer: Mutex::new(Some(writer)),
            readers: Mutex::new(Vec::new()),
        }))
    }

    /// Has a request served; what the answer says is durable.
    pub async fn serve(&self, request: Request) -> Result<Granted, Refusal> {
        let (sender, answer) = oneshot::channel();
        let rows = request.rows();
        // Added before it is compared, so that many at once cannot all find the last room.
        if self.queued.fetch_add(rows, Ordering::Relaxed) > QUEUE_ROWS_MAX {
            self.queued.fetch_sub(rows, Ordering::Relaxed);
            return Err(Refusal::Busy);
        }
        self.send(Message::Serve(request, sender))?;
        // The writer drops what it was sent only if it panics, and then nobody knows what is stored.
        answer.await.unwrap_or(Err(Refusal::Stopping))
    }

    /// Imputes what is due, as much as is done at once.
    pub async fn tick(&self) -> Result<Ticked, Refusal> {
        let (sender, answer) = oneshot::channel();
        self.send(Message::Tick(sender))?;
        answer.await.unwrap_or(Err(Refusal::Stopping))
    }

    fn send(&self, message: Message) -> Result<(), Refusal> {
        let requests = self.requests.lock().expect("no panic while sending");
        requests
            .as_ref()
            .and_then(|requests| requests.send(message).ok())
            .ok_or(Refusal::Stopping)
    }

    /// Reads on a connection of its own. Blocks: from async code, within `spawn_blocking`.
    pub fn read<T>(&self, read: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        let idle = self.readers.lock().expect("no panic while reading").pop();
        let mut store = match idle {
            Some(store) => store,
            None => self.location.open(Purpose::Read)?,
        };
        // One transaction, so that all reads of one answer see one state.
        store.begin()?;
        let result = read(&mut *store);
        store.rollback();
        let mut idle = self.readers.lock().expect("no panic while reading");
        // A connection that failed may be broken, and is not used again.
        if result.is_ok() && idle.len() < READERS_IDLE {
            idle.push(store);
        }
        result
    }

    /// Whether the writer is there: it ends when stopped, and if it panics.
    pub fn is_serving(&self) -> bool {
        self.writer
            .lock()
            .expect("no panic while stopping")
            .as_ref()
            .is_some_and(|writer| !writer.is_finished())
    }

    /// Serves what waits, then stops. Later requests are refused.
    pub fn stop(&self) {
        // Without a sender the writer's channel ends, but only after what was sent before.
        self.requests.lock().expect("no panic while sending").take();
        if let Some(writer) = self.writer.lock().expect("no panic while stopping").take() {
            let _ = writer.join();
        }
    }
}

/// The writer's thread.
struct Writer {
    executor: Executor,
    received: Receiver<Message>,
    clock: Clock,
    groups: Counter,
    queued: Arc<AtomicU64>,
}

/// What is served together.
#[derive(Default)]
struct Group {
    requests: Vec<Request>,
    senders: Vec<oneshot::Sender<Result<Granted, Refusal>>>,
    ticks: Vec<oneshot::Sender<Result<Ticked, Refusal>>>,
    rows: u64,
}

impl Writer {
    fn run(mut self) {
        while let Ok(first) = self.received.recv() {
            let group = self.gather(first);
            self.serve(group);
        }
        if let Err(error) = self.executor.stop((self.clock)()) {
            let detail = format!("{error:#}");
            tracing::error!(
                detail,
                "the waiting clock is not stored; imputation comes some seconds later"
            );
        }
    }

    /// Takes what waits, up to the limits of a group. Waiting for more was tried, and did not help (docs/benchmarks.md).
    fn gather(&self, first: Message) -> Group {
        let mut group = Group::default();
        let mut next = Some(first);
        while let Some(message) = next {
            self.add(message, &mut group);
            let room = group.requests.len() < GROUP_MAX && group.rows < GROUP_ROWS_MAX;
            next = if room {
                self.received.try_recv().ok()
            } else {
                None
            };
        }
        group
    }

    fn add(&self, message: Message, group: &mut Group) {
        match message {
            Message::Serve(request, sender) => {
                self.queued.fetch_sub(request.rows(), Ordering::Relaxed);
                // Nobody hears the answer, and a client that hung up asks again: rounds handed out
                // to it without a request key would be lost.
                if sender.is_closed() {
                    return;
                }
                group.rows += request.rows();
                group.requests.push(request);
                group.senders.push(sender);
            }
            Message::Tick(sender) => group.ticks.push(sender),
        }
    }

    fn serve(&mut self, group: Group) {
        if !group.requests.is_empty() {
            let answers = self.executor.serve(&group.requests, (self.clock)());
            self.groups.inc();
            for (sender, answer) in group.senders.into_iter().zip(answers) {
                let _ = sender.send(answer);
            }
        }
        // In a transaction of their own, after the answers: requests do not wait for imputation.
        for sender in group.ticks {
            let _ = sender.send(self.tick());
        }
    }

    fn tick(&mut self) -> Result<Ticked, Refusal> {
        let ticked = self.executor.tick((self.clock)());
        ticked.map_err(|error| Refusal::Store {
            detail: format!("{error:#}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::service::clock::Moment;

    /// How many groups the writer makes of requests that are all waiting when it starts, for this many rounds each.
    fn groups_of(requests: usize, rounds: u64, hung_up: bool) -> u64 {
        let folder = Scratch::new("writer");
        let location = Location::Sqlite(folder.join("store.db"));
        let (sender, received) = channel();
        let queued = Arc::new(AtomicU64::new(rounds * requests as u64));
        let mut answers = Vec::new();
        for _ in 0..requests {
            let (answer, answered) = oneshot::channel();
            let request = Request::Decide {
                id: "none".into(),
                rounds,
                request_key: None,
            };
            sender.send(Message::Serve(request, answer)).unwrap();
            answers.push(answered);
        }
        drop(sender);
        if hung_up {
            answers.clear();
        }
        let groups = Counter::default();
        let writer = Writer {
            executor: Executor::start(location.open(Purpose::Serve).unwrap(), Moment::both(0))
                .unwrap(),
            received,
            clock: Arc::new(|| Moment::both(0)),
            groups: groups.clone(),
            queued: Arc::clone(&queued),
        };
        writer.run();
        assert_eq!(queued.load(Ordering::Relaxed), 0);
        for mut answered in answers {
            assert!(matches!(
                answered.try_recv().unwrap(),
                Err(Refusal::NoExperiment { .. })
            ));
        }
        groups.get()
    }

    #[test]
    fn what_waits_shares_a_group_up_to_its_limits() {
        assert_eq!(groups_of(GROUP_MAX, 1, false), 1);
        assert_eq!(groups_of(GROUP_MAX + 1, 1, false), 2);
        let full = (GROUP_ROWS_MAX / 10_000) as usize;
        assert_eq!(groups_of(full, 10_000, false), 1);
        assert_eq!(groups_of(full + 1, 10_000, false), 2);
        assert_eq!(groups_of(7, 1, true), 0);
    }

    #[tokio::test]
    async fn a_full_queue_refuses_more_until_there_is_room() {
        let folder = Scratch::new("queue");
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let ask = || {
            service.serve(Request::Decide {
                id: "none".into(),
                rounds: 1,
                request_key: None,
            })
        };
        service.queued.store(QUEUE_ROWS_MAX + 1, Ordering::Relaxed);
        assert!(matches!(ask().await, Err(Refusal::Busy)));
        assert_eq!(service.queued.load(Ordering::Relaxed), QUEUE_ROWS_MAX + 1);
        service.queued.store(QUEUE_ROWS_MAX, Ordering::Relaxed);
        assert!(matches!(ask().await, Err(Refusal::NoExperiment { .. })));
        assert_eq!(service.queued.load(Ordering::Relaxed), QUEUE_ROWS_MAX);
        service.stop();
    }
}
