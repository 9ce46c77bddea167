//! Reads of the store, beside the writer: three lanes, so that a look at a row never waits behind pages of the log.
//!
//! ```text
//! look    keys, one experiment, its state      4 at a time
//! pages   log pages, certificates, lists       one for every two cores, on threads that give way to all others
//! diffs   two logs beside each other           one at a time, on a thread that does so, too
//! ```
//!
//! and two for what reads nothing: plans and the form they are written in, one at a time on such a thread; and simulations, one at
//! a time on a thread that gives way to these as well.
//!
//! Who has waited for a place longer than [`WAIT_MAX`] is refused: those behind would wait longer still, and a client that is
//! told can go elsewhere. So is who waits for a store that does not answer, which a database that hangs may do for hours.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::service::counts::Shed;
use crate::service::http::error::ApiError;
use crate::service::writer::Service;
use crate::store::Store;

/// The longest that a read waits for its place.
pub const WAIT_MAX: Duration = Duration::from_secs(1);

/// The longest that a look takes, with the wait for its place: every request needs one now and then.
const LOOK_MAX: Duration = WAIT_MAX;

/// The same for a page. Far more than the longest takes on threads that give way to all others.
const PAGE_MAX: Duration = Duration::from_secs(30);

/// Looks at a time; each has a connection of its own.
const LOOKS: usize = 4;

/// How much the threads of pages give way, from 0 to 19. At 10 a thread gets a tenth of the time of one at 0.
pub const PAGES_NICE: i32 = 10;

/// The same for simulations, which take all the time that there is: as much as can be.
const SIMULATIONS_NICE: i32 = 19;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that read, and the places on them.
pub struct Lane {
    service: Arc<Service>,
    places: Arc<Semaphore>,
    jobs: Sender<Job>,
    /// The longest that a caller is kept.
    answer_max: Duration,
    /// What is said if it takes longer.
    too_long: &'static str,
    /// When a place was last taken.
    taken_at: Mutex<Instant>,
}

/// All lanes.
pub struct Readers {
    /// For what takes microseconds and others wait for.
    pub look: Lane,
    /// For what takes milliseconds.
    pub pages: Lane,
    /// For what may take seconds.
    pub diffs: Lane,
    /// For what takes milliseconds of a core, and much more if somebody asks for the largest: nobody is to read later for it.
    pub plans: Lane,
    /// For what takes a second of a core.
    pub simulations: Lane,
}

impl Readers {
    pub fn new(service: &Arc<Service>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            look: Lane::new(service, LOOKS, 0, LOOK_MAX),
            pages: Lane::new(service, (cores / 2).max(1), PAGES_NICE, PAGE_MAX),
            diffs: Lane::new(service, 1, PAGES_NICE, PAGE_MAX),
            plans: Lane::new(service, 1, PAGES_NICE, PAGE_MAX).computing(),
            simulations: Lane::new(service, 1, SIMULATIONS_NICE, PAGE_MAX).computing(),
        }
    }
}

impl Lane {
    /// With this many threads, which end with it.
    fn new(service: &Arc<Service>, threads: usize, nice: i32, answer_max: Duration) -> Self {
        let (jobs, received) = channel();
        let received = Arc::new(Mutex::new(received));
        for _ in 0..threads {
            let received = Arc::clone(&received);
            // Threads of their own and not the runtime's: priority can be given away and never taken back.
            std::thread::spawn(move || work(&received, nice));
        }
        Self {
            service: Arc::clone(service),
            places: Arc::new(Semaphore::new(threads)),
            jobs,
            answer_max,
            too_long: "the store does not answer; repeat the request later",
            taken_at: Mutex::new(Instant::now()),
        }
    }

    /// The same for what reads nothing.
    fn computing(self) -> Self {
        let too_long = "what is computed takes too long; ask for less, or repeat the request later";
        Self { too_long, ..self }
    }

    /// Reads, once there is a place.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Store) -> Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let service = Arc::clone(&self.service);
        self.run(move || service.read(read)).await
    }

    /// Does what reads several times or not at all, once there is a place: between two reads nothing is held open.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        // The result has a place of its own, so that there is one type of channel to wait on and not one for each type of result.
        let result = Arc::new(Mutex::new(None));
        let found = Arc::clone(&result);
        let job = move || {
            let made = work();
            *found.lock().expect("set once") = Some(made);
        };
        self.run_job(Box::new(job)).await?;
        let result = result.lock().expect("set once").take();
        // Missing only after a read that panicked.
        let lost = || Err(anyhow!("a read ended without an answer"));
        result.unwrap_or_else(lost).map_err(ApiError::unread)
    }

    /// Does it, once there is a place, and waits for it.
    async fn run_job(&self, job: Job) -> Result<(), ApiError> {
        let deadline = Instant::now() + self.answer_max;
        let place = self.place().await?;
        let (sender, done) = oneshot::channel::<()>();
        let job = move || {
            // The place goes with the work and not with the request: the read of a client that hung up goes on, and must not make
            // room for another.
            let _place = place;
            // Dropped after the work, or by its panic.
            let _sender = sender;
            job();
        };
        let _ = self.jobs.send(Box::new(job));
        let done = timeout_at(deadline, done).await;
        done.map(drop).map_err(|_| self.no_answer())
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        if self.is_stuck() {
            return Err(self.no_answer());
        }
        let place = timeout(WAIT_MAX, Arc::clone(&self.places).acquire_owned()).await;
        let place = place
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| self.busy("too many others are reading; repeat the request later"))?;
        *self.taken_at.lock().expect("no panic while taking a place") = Instant::now();
        Ok(place)
    }

    /// Whether every place is held by a read whose caller was told that the store does not answer: one more would only wait.
    fn is_stuck(&self) -> bool {
        let taken_at = *self.taken_at.lock().expect("no panic while taking a place");
        self.places.available_permits() == 0 && taken_at.elapsed() > self.answer_max
    }

    fn no_answer(&self) -> ApiError {
        self.busy(self.too_long)
    }

    /// That others are before the caller, which is counted.
    pub fn busy(&self, message: &str) -> ApiError {
        self.service.counts.shed(Shed::Readers);
        ApiError::busy(message)
    }
}

fn work(received: &Mutex<Receiver<Job>>, nice: i32) {
    give_way(nice);
    while let Some(job) = next(received) {
        // A panic is answered as a lost read, and the thread has others to serve.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    }
}

/// Has this thread give way to others, from 0 to 19. For good: priority can be given away and never taken back.
pub fn give_way(nice: i32) {
    // On Linux alone, where a thread has a priority of its own: elsewhere the whole service would give way.
    if cfg!(target_os = "linux") {
        let _ = rustix::process::nice(nice);
    }
}

fn next(received: &Mutex<Receiver<Job>>) -> Option<Job> {
    // Held while waiting: whoever gets the job lets the next thread wait for another.
    received.lock().ok()?.recv().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::scratch::Scratch;
    use crate::service::clock::Moment;
    use crate::store::Location;

    #[tokio::test]
    async fn readers_are_few_even_if_callers_hang_up_and_looks_never_wait_for_pages() {
        let folder = Scratch::new("readers");
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let readers = Arc::new(Readers::new(&service));
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let places = readers.pages.places.available_permits();
        let read_slowly = |_| {
            let (readers, gate) = (Arc::clone(&readers), Arc::clone(&gate));
            tokio::spawn(async move {
                let read = readers
                    .pages
                    .read(move |_| Ok(gate.lock().unwrap().recv()?));
                read.await.is_ok()
            })
        };
        let slow: Vec<_> = (0..places).map(read_slowly).collect();
        while readers.pages.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        slow.iter().for_each(|reader| reader.abort());
        // Refused after its time, though the callers before it are gone.
        let refused = readers.pages.read(|store| store.keys()).await;
        assert!(refused.is_err_and(|error| error.code == "busy"));
        assert!(readers.look.read(|store| store.keys()).await.is_ok());
        slow.iter().for_each(|_| open.send(()).unwrap());
        assert!(readers.pages.read(|store| store.keys()).await.is_ok());
        service.stop().unwrap();
    }

    #[tokio::test]
    async fn simulations_run_one_at_a_time_and_hold_up_no_reader() {
        let folder = Scratch::new("simulations");
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let readers = Arc::new(Readers::new(&service));
        let (open, gate) = channel::<()>();
        let first = Arc::clone(&readers);
        let first =
            tokio::spawn(async move { first.simulations.run(move || Ok(gate.recv()?)).await });
        while readers.simulations.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(readers.plans.run(|| Ok(())).await.is_ok());
        let second = readers.simulations.run(|| Ok(())).await;
        assert!(second.is_err_and(|error| error.code == "busy"));
        assert!(readers.pages.read(|store| store.keys()).await.is_ok());
        assert!(readers.look.read(|store| store.keys()).await.is_ok());
        open.send(()).unwrap();
        assert!(first.await.unwrap().is_ok());
        assert!(readers.simulations.run(|| Ok(())).await.is_ok());
        service.stop().unwrap();
    }

    #[tokio::test]
    async fn a_plan_that_takes_long_holds_up_no_reader_and_blames_no_store() {
        let folder = Scratch::new("plans");
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let mut readers = Readers::new(&service);
        readers.plans.answer_max = Duration::from_millis(20);
        let (open, gate) = channel::<()>();
        let told = readers.plans.run(move || Ok(gate.recv()?)).await;
        assert!(told.is_err_and(|error| error.message.contains("ask for less")));
        assert!(readers.pages.read(|store| store.keys()).await.is_ok());
        assert!(readers.simulations.run(|| Ok(())).await.is_ok());
        open.send(()).unwrap();
        service.stop().unwrap();
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_keeps_nobody_waiting() {
        let folder = Scratch::new("readers-stuck");
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let lane = Lane::new(&service, 2, 0, Duration::from_millis(200));
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let stuck = || {
            let gate = Arc::clone(&gate);
            lane.read(move |_| Ok(gate.lock().unwrap().recv()?))
        };
        // Both are told, though neither read ends.
        let (one, other) = tokio::join!(stuck(), stuck());
        for told in [one, other] {
            assert!(told.is_err_and(|error| error.code == "busy"));
        }
        assert_eq!(lane.places.available_permits(), 0);
        // Everyone else is told at once: nobody waits for a place that does not become free.
        let begun = Instant::now();
        for _ in 0..100 {
            let told = lane.read(|store| store.keys()).await;
            assert!(told.is_err_and(|error| error.message.contains("does not answer")));
        }
        assert!(begun.elapsed() < WAIT_MAX, "{:?}", begun.elapsed());
        drop(open);
        while lane.places.available_permits() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(lane.read(|store| store.keys()).await.is_ok());
        service.stop().unwrap();
    }

    #[tokio::test]
    async fn a_read_that_panics_is_answered_and_leaves_its_place() {
        let folder = Scratch::new("readers-panic");
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let readers = Readers::new(&service);
        for _ in 0..2 {
            let read = readers.pages.read(|_| -> Result<()> { panic!("a bug") });
            assert!(read.await.is_err_and(|lost| lost.code == "store"));
        }
        assert!(readers.pages.read(|store| store.keys()).await.is_ok());
        service.stop().unwrap();
    }
}
