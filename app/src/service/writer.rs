//! The writer: one thread that takes all requests that wait, serves them in one transaction, and answers when it is durable.
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

use crate::service::request::{Answer, Refusal, Request};
use crate::service::transaction::Executor;
use crate::store::{Location, Purpose, Store};

/// The most requests in one transaction.
const GROUP_MAX: usize = 1_024;

/// And the most rows, about: a transaction is to take a second at most.
const GROUP_ROWS_MAX: u64 = 200_000;

/// The most rows that wait for the writer. Clients that hang up leave their requests behind: without a limit a store that is
/// slow to answer would fill the memory.
const QUEUE_ROWS_MAX: u64 = 2_000_000;

/// Connections kept for reading.
const READERS_IDLE: usize = 4;

/// Milliseconds since 1970. Passed in, so that tests can move it.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

enum Message {
    Serve(Request, oneshot::Sender<Result<Answer, Refusal>>),
    /// Imputes what is due in every experiment.
    Tick(oneshot::Sender<Result<u64, Refusal>>),
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
        let store = location.open(Purpose::Serve)?;
        let (requests, received) = channel();
        let (time, groups) = (Arc::clone(&clock), Counter::default());
        let (counted, queued) = (groups.clone(), Arc::new(AtomicU64::new(0)));
        let waiting = Arc::clone(&queued);
        let writer = std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || {
                write(
                    &mut Executor::new(store),
                    &received,
                    &time,
                    &counted,
                    &waiting,
                )
            })?;
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
    pub async fn serve(&self, request: Request) -> Result<Answer, Refusal> {
        let (sender, answer) = oneshot::channel();
        let rows = request.rows();
        if self.queued.fetch_add(rows, Ordering::Relaxed) > QUEUE_ROWS_MAX {
            self.queued.fetch_sub(rows, Ordering::Relaxed);
            return Err(Refusal::Busy);
        }
        self.send(Message::Serve(request, sender))?;
        answer.await.unwrap_or(Err(Refusal::Stopping))
    }

    /// Imputes what is due; how many rounds.
    pub async fn tick(&self) -> Result<u64, Refusal> {
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
        // All reads of one answer see one state. A connection that failed is not used again.
        store.begin()?;
        let result = read(&mut *store);
        store.rollback();
        let mut idle = self.readers.lock().expect("no panic while reading");
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
        self.requests.lock().expect("no panic while sending").take();
        if let Some(writer) = self.writer.lock().expect("no panic while stopping").take() {
            let _ = writer.join();
        }
    }
}

fn write(
    executor: &mut Executor,
    received: &Receiver<Message>,
    clock: &Clock,
    groups: &Counter,
    queued: &AtomicU64,
) {
    while let Ok(first) = received.recv() {
        let (mut requests, mut senders, mut ticks) = (Vec::new(), Vec::new(), Vec::new());
        let (mut next, mut rows) = (Some(first), 0);
        while let Some(message) = next {
            match message {
                Message::Serve(request, sender) => {
                    queued.fetch_sub(request.rows(), Ordering::Relaxed);
                    // Who has hung up was answered nothing, and will ask again.
                    if !sender.is_closed() {
                        rows += request.rows();
                        requests.push(request);
                        senders.push(sender);
                    }
                }
                Message::Tick(sender) => ticks.push(sender),
            }
            let room = requests.len() < GROUP_MAX && rows < GROUP_ROWS_MAX;
            next = if room { received.try_recv().ok() } else { None };
        }
        if !requests.is_empty() {
            let answers = executor.serve(&requests, clock());
            groups.inc();
            senders
                .into_iter()
                .zip(answers)
                .for_each(|(sender, answer)| drop(sender.send(answer)));
        }
        for sender in ticks {
            let _ = sender.send(tick(executor, clock()));
        }
    }
}

fn tick(executor: &mut Executor, now: i64) -> Result<u64, Refusal> {
    let failed = |error: anyhow::Error| Refusal::Store {
        detail: format!("{error:#}"),
    };
    let requests: Vec<Request> = executor
        .waiting()
        .map_err(failed)?
        .into_iter()
        .map(|id| Request::Tick { id })
        .collect();
    let answers = executor.serve(&requests, now);
    answers
        .into_iter()
        .try_fold(0, |sum, answer| match answer? {
            Answer::Ticked(imputed) => Ok(sum + imputed),
            _ => Ok(sum),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    /// How many groups the writer makes of requests that all wait when it comes to them, for so many rounds each.
    fn groups_of(requests: usize, rounds: u64, hung_up: bool) -> u64 {
        let folder = Scratch::new("writer");
        let location = Location::Sqlite(folder.join("store.db"));
        let (sender, received) = channel();
        let queued = AtomicU64::new(rounds * requests as u64);
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
        let (clock, groups): (Clock, Counter) = (Arc::new(|| 0), Counter::default());
        write(
            &mut Executor::new(location.open(Purpose::Serve).unwrap()),
            &received,
            &clock,
            &groups,
            &queued,
        );
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
        let service = Service::start(location, Arc::new(|| 0)).unwrap();
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
