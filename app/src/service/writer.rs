//! The writer: one thread that takes all waiting requests, serves them in one transaction, and answers once it is durable.
//!
//! While a commit is on its way to the disk, the next requests gather: the slower the disk, the larger the group. One that has
//! waited for longer than [`WAIT_MAX`] is refused instead. Reads go to connections of their own and never wait for the writer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::sync::oneshot;

use crate::service::clock::Clock;
use crate::service::counts::{Counts, Shed};
use crate::service::key_uses::KeyUses;
use crate::service::node::StoreStart;
use crate::service::request::of_store::{StoreRequest, StoreTask, Task};
use crate::service::request::{ExperimentRequest, Refusal, Request};
use crate::service::tick::Ticked;
use crate::service::transaction::{Answered, Executor, Probed};
use crate::store::{Failure, Location, Purpose, Store};

/// The most requests in one transaction. Far more than wait at once (64 connections make groups of 16, docs/benchmarks.md): it
/// only bounds the answer to the first of them.
const GROUP_MAX: usize = 1_024;

/// And the most rows, about: at some 500,000 rows a second a transaction stays well below a second.
const GROUP_ROWS_MAX: u64 = 200_000;

/// The most rows that wait for the writer: some seconds of work. Clients that hang up leave their requests behind, so without a
/// limit a store that is slow to answer would fill the memory.
const QUEUE_ROWS_MAX: u64 = 2_000_000;

/// The longest that a request waits until a transaction takes it up. A group is served well within it, so on a disk that works
/// it is reached only if more is asked than can be done: then those who came last are better told than kept.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How long a probe may take before the store counts as stuck. Far beyond any commit, and within the time-outs of those who
/// watch.
const PROBE_MAX: Duration = Duration::from_secs(3);

/// Connections kept for reading.
const READERS_IDLE: usize = 8;

enum Message {
    Serve(Waiting),
    /// Imputes what is due.
    Tick(oneshot::Sender<Result<Ticked, Refusal>>),
    /// Commits something.
    Probe(oneshot::Sender<Probed>),
}

/// Something that is to be served, and the way to its caller.
enum Queued {
    OfExperiment(Request, oneshot::Sender<Answered>),
    OfStore(Box<dyn StoreTask>),
}

impl Queued {
    /// About how many rows it reads or writes.
    fn rows(&self) -> u64 {
        match self {
            Self::OfExperiment(request, _) => request.rows(),
            Self::OfStore(_) => 1,
        }
    }

    /// Whether nobody waits for the answer.
    fn is_given_up(&self) -> bool {
        match self {
            Self::OfExperiment(_, sender) => sender.is_closed(),
            Self::OfStore(task) => task.is_given_up(),
        }
    }
}

/// What waits for the writer.
struct Waiting {
    asked: Queued,
    since: Instant,
    claim: Claim,
}

/// Who settles what becomes of a request: the writer that takes it up, or the one who asked and has waited too long. Never
/// both, or a request that was refused could be carried out all the same.
#[derive(Clone, Default)]
struct Claim(Arc<AtomicBool>);

impl Claim {
    /// Whether this is the first to claim it.
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

/// A node's access to its store: one writer, and readers.
pub struct Service {
    /// Where the store is.
    pub location: Location,
    /// Which store it is, and which of its starts this is.
    pub start: StoreStart,
    /// What time it is.
    pub clock: Clock,
    /// What is counted on the way.
    pub counts: Counts,
    /// When keys were used.
    pub key_uses: KeyUses,
    requests: Mutex<Option<Sender<Message>>>,
    /// Rows that wait for the writer.
    queued: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<Result<()>>>>,
    readers: Mutex<Vec<Store>>,
}

impl Service {
    /// Opens the store and starts the writer.
    pub fn start(location: Location, clock: Clock) -> Result<Arc<Self>> {
        let (requests, received) = channel();
        let counts = Counts::new();
        let queued = Arc::new(AtomicU64::new(0));
        let mut executor = Executor::start(location.open(Purpose::Serve)?, clock())?;
        let start = executor.node.start.clone();
        executor.counts = counts.clone();
        let key_uses = executor.key_uses.clone();
        let writer = Writer {
            executor,
            received,
            clock: Arc::clone(&clock),
            counts: counts.clone(),
            queued: Arc::clone(&queued),
        };
        // A thread and not a task: stores block, and the writer must not wait for a handler's turn.
        let writer = std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || writer.run())?;
        Ok(Arc::new(Self {
            location,
            start,
            clock,
            counts,
            key_uses,
            requests: Mutex::new(Some(requests)),
            queued,
            writer: Mutex::new(Some(writer)),
            readers: Mutex::new(Vec::new()),
        }))
    }

    /// Has a request of an experiment served; what the answer says is durable.
    pub async fn ask<R: ExperimentRequest>(&self, ask: R) -> Result<R::Reply, Refusal> {
        let (sender, answer) = oneshot::channel();
        let asked = Queued::OfExperiment(ask.into(), sender);
        let granted = self.serve(asked, answer).await?;
        Ok(R::reply(granted).expect("a turn answers each request by its kind"))
    }

    /// Has a request of the store served; what the answer says is durable.
    pub async fn ask_store<R: StoreRequest>(&self, request: R) -> Result<R::Reply, Refusal> {
        let (task, answer) = Task::new(request);
        self.serve(Queued::OfStore(Box::new(task)), answer).await
    }

    /// Has the writer serve something, and waits for the answer.
    async fn serve<T>(
        &self,
        asked: Queued,
        mut answer: oneshot::Receiver<Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let rows = asked.rows();
        // Added before it is compared, so that many at once cannot all find the last room.
        if self.queued.fetch_add(rows, Ordering::Relaxed) > QUEUE_ROWS_MAX {
            self.queued.fetch_sub(rows, Ordering::Relaxed);
            return Err(self.shed());
        }
        let claim = Claim::default();
        self.send(Message::Serve(Waiting {
            asked,
            since: Instant::now(),
            claim: claim.clone(),
        }))?;
        // The writer drops what it was sent only if it panics, and then nobody knows what is stored.
        let lost = |_| Err(Refusal::Stopping);
        match tokio::time::timeout(WAIT_MAX, &mut answer).await {
            Ok(answered) => answered.unwrap_or_else(lost),
            Err(_) if claim.take() => Err(self.shed()),
            // It is within a transaction, which no time-out can call back.
            Err(_) => answer.await.unwrap_or_else(lost),
        }
    }

    fn shed(&self) -> Refusal {
        self.counts.shed(Shed::Writer);
        Refusal::Busy
    }

    /// Commits something, and says why if that fails; `None` if there is no writer to do it.
    pub async fn probe(&self) -> Option<Probed> {
        let (sender, answer) = oneshot::channel();
        self.send(Message::Probe(sender)).ok()?;
        match tokio::time::timeout(PROBE_MAX, answer).await {
            Ok(answered) => answered.ok(),
            Err(_) => Some(Err(Failure::Stuck)),
        }
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
    pub fn read<T>(&self, read: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        let mut store = self.reader()?;
        let result = read(&mut store);
        store.rollback();
        // A connection that failed may be broken, and is not used again.
        if result.is_ok() {
            self.keep_reader(store);
        }
        result
    }

    fn reader(&self) -> Result<Store> {
        let idle = self.readers.lock().expect("no panic while reading").pop();
        let mut store = match idle {
            Some(store) => store,
            None => self.location.open(Purpose::Read)?,
        };
        // One transaction, so that all reads of one answer see one state.
        store.begin()?;
        Ok(store)
    }

    fn keep_reader(&self, store: Store) {
        let mut idle = self.readers.lock().expect("no panic while reading");
        if idle.len() < READERS_IDLE {
            idle.push(store);
        }
    }

    /// Whether the writer is there: it ends when stopped, and if it panics.
    pub fn is_serving(&self) -> bool {
        self.writer
            .lock()
            .expect("no panic while stopping")
            .as_ref()
            .is_some_and(|writer| !writer.is_finished())
    }

    /// Serves what waits, then stops. Later requests are refused. An error if the store is not left whole in one file.
    pub fn stop(&self) -> Result<()> {
        // Without a sender the writer's channel ends, but only after what was sent before.
        self.requests.lock().expect("no panic while sending").take();
        // Before the writer's: the last connection to a file removes its log.
        self.readers.lock().expect("no panic while reading").clear();
        match self.writer.lock().expect("no panic while stopping").take() {
            Some(writer) => writer
                .join()
                .unwrap_or_else(|_| bail!("the writer panicked, which is a bug: see the log")),
            None => Ok(()),
        }
    }
}

/// The writer's thread.
struct Writer {
    executor: Executor,
    received: Receiver<Message>,
    clock: Clock,
    counts: Counts,
    queued: Arc<AtomicU64>,
}

/// What is served together.
#[derive(Default)]
struct Group {
    requests: Vec<Request>,
    senders: Vec<oneshot::Sender<Answered>>,
    tasks: Vec<Box<dyn StoreTask>>,
    ticks: Vec<oneshot::Sender<Result<Ticked, Refusal>>>,
    probes: Vec<oneshot::Sender<Probed>>,
    rows: u64,
    /// The longest that one of the requests has waited.
    waited: Duration,
}

impl Writer {
    fn run(mut self) -> Result<()> {
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
        self.executor.close()
    }

    /// Takes what waits, up to the limits of a group. Waiting for more was tried, and did not help (docs/benchmarks.md).
    fn gather(&self, first: Message) -> Group {
        let mut group = Group::default();
        let mut next = Some(first);
        while let Some(message) = next {
            self.add(message, &mut group);
            let served = group.requests.len() + group.tasks.len();
            let room = served < GROUP_MAX && group.rows < GROUP_ROWS_MAX;
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
            Message::Serve(waiting) => {
                let rows = waiting.asked.rows();
                self.queued.fetch_sub(rows, Ordering::Relaxed);
                // Nobody hears the answer, and a client that hung up asks again: rounds handed out
                // to it without a request key would be lost.
                if waiting.asked.is_given_up() || !waiting.claim.take() {
                    return;
                }
                group.rows += rows;
                group.waited = group.waited.max(waiting.since.elapsed());
                match waiting.asked {
                    Queued::OfExperiment(request, sender) => {
                        group.requests.push(request);
                        group.senders.push(sender);
                    }
                    Queued::OfStore(task) => group.tasks.push(task),
                }
            }
            Message::Tick(sender) => group.ticks.push(sender),
            Message::Probe(sender) => group.probes.push(sender),
        }
    }

    fn serve(&mut self, mut group: Group) {
        if !group.requests.is_empty() || !group.tasks.is_empty() {
            let moment = (self.clock)();
            let answers = self
                .executor
                .serve_all(&group.requests, &mut group.tasks, moment);
            self.counts.groups.inc();
            self.counts.waited.set(group.waited.as_secs_f64());
            for (sender, answer) in group.senders.into_iter().zip(answers) {
                let _ = sender.send(answer);
            }
            group.tasks.into_iter().for_each(|task| task.answer());
        }
        // Those who asked while the store was stuck have their answer.
        for sender in group
            .probes
            .into_iter()
            .filter(|sender| !sender.is_closed())
        {
            let _ = sender.send(self.executor.probe((self.clock)()));
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
    use crate::service::request::{Create, Decide};

    /// How many groups the writer makes of requests that are all waiting when it starts, for this many rounds each.
    fn groups_of(requests: usize, rounds: u64, hung_up: bool) -> u64 {
        let folder = Scratch::new("writer");
        let location = Location::Sqlite(folder.join("store.db"));
        let (sender, received) = channel();
        let queued = Arc::new(AtomicU64::new(rounds.min(10_000) * requests as u64));
        let mut answers = Vec::new();
        for _ in 0..requests {
            let (answer, answered) = oneshot::channel();
            let decide = Decide {
                id: "none".into(),
                rounds,
                request_key: None,
                seen: 0,
                actor: "tester".into(),
            };
            let waiting = Waiting {
                asked: Queued::OfExperiment(decide.into(), answer),
                since: Instant::now(),
                claim: Claim::default(),
            };
            sender.send(Message::Serve(waiting)).unwrap();
            answers.push(answered);
        }
        drop(sender);
        if hung_up {
            answers.clear();
        }
        let counts = Counts::default();
        let writer = Writer {
            executor: Executor::start(location.open(Purpose::Serve).unwrap(), Moment::both(0))
                .unwrap(),
            received,
            clock: Arc::new(|| Moment::both(0)),
            counts: counts.clone(),
            queued: Arc::clone(&queued),
        };
        writer.run().unwrap();
        assert_eq!(queued.load(Ordering::Relaxed), 0);
        for mut answered in answers {
            assert!(matches!(
                answered.try_recv().unwrap(),
                Err(Refusal::NoExperiment { .. })
            ));
        }
        counts.groups.get()
    }

    #[test]
    fn what_waits_shares_a_group_up_to_its_limits() {
        assert_eq!(groups_of(GROUP_MAX, 1, false), 1);
        assert_eq!(groups_of(GROUP_MAX + 1, 1, false), 2);
        let full = (GROUP_ROWS_MAX / 10_000) as usize;
        assert_eq!(groups_of(full, 10_000, false), 1);
        assert_eq!(groups_of(full + 1, 10_000, false), 2);
        assert_eq!(groups_of(7, 1, true), 0);
        // What asks for more than it can get takes no more room than what gets the most.
        assert_eq!(groups_of(full, u64::MAX, false), 1);
    }

    #[tokio::test]
    async fn a_full_queue_refuses_more_until_there_is_room() {
        let folder = Scratch::new("queue");
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let ask = || {
            service.ask(Decide {
                id: "none".into(),
                rounds: 1,
                request_key: None,
                seen: 0,
                actor: "tester".into(),
            })
        };
        service.queued.store(QUEUE_ROWS_MAX + 1, Ordering::Relaxed);
        assert!(matches!(ask().await, Err(Refusal::Busy)));
        assert_eq!(service.queued.load(Ordering::Relaxed), QUEUE_ROWS_MAX + 1);
        service.queued.store(QUEUE_ROWS_MAX, Ordering::Relaxed);
        assert!(matches!(ask().await, Err(Refusal::NoExperiment { .. })));
        assert_eq!(service.queued.load(Ordering::Relaxed), QUEUE_ROWS_MAX);
        service.stop().unwrap();
    }

    /// Another holds the file, so that the writer stays within its transaction while requests wait behind it.
    #[tokio::test]
    async fn what_has_waited_too_long_is_refused_and_never_carried_out() {
        let folder = Scratch::new("age");
        let path = folder.join("store.db");
        let service =
            Service::start(Location::Sqlite(path.clone()), Arc::new(|| Moment::both(0))).unwrap();
        let create = |id: &str| {
            let (service, id) = (Arc::clone(&service), id.to_owned());
            let spec = "policy = 'free'\nhorizon = 100\nrho = 0.9\nactions = ['a', 'b']\n";
            let create = Create {
                id,
                spec: spec.into(),
                key: None,
                blind: true,
                actor: "test".into(),
            };
            tokio::spawn(async move { service.ask(create).await })
        };
        let other = rusqlite::Connection::open(path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let taken = create("taken");
        // It is sent when this task runs next, and taken up once the queue is empty.
        tokio::task::yield_now().await;
        while service.queued.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
        let begun = Instant::now();
        assert!(matches!(create("shed").await.unwrap(), Err(Refusal::Busy)));
        assert!((WAIT_MAX..2 * WAIT_MAX).contains(&begun.elapsed()));
        assert!(!taken.is_finished());
        other.execute_batch("ROLLBACK").unwrap();
        assert!(matches!(taken.await.unwrap(), Ok(false)));
        // The next has the same id, and finds it free.
        let again = create("shed").await.unwrap();
        assert!(matches!(again, Ok(false)));
        service.stop().unwrap();
    }
}
