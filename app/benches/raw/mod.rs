//! What a store does with nothing above it: the yardstick for the service.

use std::time::{Duration, Instant};

use debora::Key;
use debora_cli::store::{EpochRow, ExperimentRow, Lease, OutcomeRow, Progress, Status, Store};

const ID: &str = "raw";

/// Adds the experiment that is written to.
pub fn create(store: &mut Store) {
    let digits = "0".repeat(64);
    let experiment = ExperimentRow {
        id: ID.into(),
        spec: String::new(),
        key: Key::from(1u64),
        salt: [0; 16],
        created_at: 0,
        values_version: 1,
    };
    let record = "{}".to_owned();
    let opened = EpochRow {
        epoch: 0,
        record,
        snapshot: None,
        opened_at: 0,
        closed_at: None,
        rounds_hash: None,
        hash: None,
        leases_hash: None,
        journal_end: None,
        journal: None,
    };
    let progress = Progress {
        status: Status::Running,
        epoch: 0,
        next_round: 1,
        decided: vec![0; 10],
        outcomes: vec![0; 10],
        imputed: vec![0; 10],
        imputed_before: vec![0; 10],
        late: 0,
        overtime: 0,
        next_serial: 1,
        holdback: 0,
        next_holdback: 1,
        impute_from: 1,
        infeasible: 0,
        head: digits.clone(),
        digest: digits,
        next_position: 0,
        journal: String::new(),
    };
    store.begin().expect("begins");
    assert!(
        store
            .create(&experiment, &progress, &opened)
            .expect("creates")
    );
    store.commit().expect("commits");
}

/// Seconds for leases in commits of `group`, each with the progress.
pub fn lease_seconds(store: &mut Store, leases: &[Lease], group: usize) -> f64 {
    let mut progress = progress_of(store);
    let begun = Instant::now();
    for group in leases.chunks(group) {
        store.begin().expect("begins");
        store.lock(ID).expect("locks");
        store
            .add_leases(ID, &group.iter().collect::<Vec<_>>())
            .expect("adds");
        progress.next_round += group
            .iter()
            .map(|lease| lease.actions.len() as u64)
            .sum::<u64>();
        store.set_progress(ID, &progress).expect("sets");
        store.commit().expect("commits");
    }
    begun.elapsed().as_secs_f64()
}

/// Outcomes per second in commits of `batch`, with a reward and two costs each and the progress, for this long.
pub fn outcomes_per_second(store: &mut Store, batch: u64, time: Duration) -> f64 {
    let mut progress = progress_of(store);
    per_second(time, || {
        store.begin().expect("begins");
        store.lock(ID).expect("locks");
        let first = progress.outcomes[0] + 1;
        let outcome = |round| OutcomeRow {
            round,
            reward: 1.0 / round as f64,
            costs: vec![0.003, 1.5],
            imputed: false,
            at: 1_700_000_000_000,
            actor: 1,
        };
        let outcomes: Vec<_> = (first..first + batch).map(outcome).collect();
        progress.outcomes[0] += batch;
        let taken = store.add_outcomes(ID, &outcomes).expect("adds");
        assert!(taken.iter().all(Option::is_none));
        store.set_progress(ID, &progress).expect("sets");
        store.commit().expect("commits");
        batch
    })
}

/// As it is stored. The service, too, parses no text that it wrote itself.
fn progress_of(store: &mut Store) -> Progress {
    store.experiment(ID).expect("reads").expect("is there").1
}

/// How much work is done per second, after a tenth of the time to warm up.
fn per_second(time: Duration, mut work: impl FnMut() -> u64) -> f64 {
    let start = Instant::now();
    while start.elapsed() < time / 10 {
        work();
    }
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed() < time {
        done += work();
    }
    done as f64 / start.elapsed().as_secs_f64()
}
