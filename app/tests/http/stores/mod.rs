//! One suite for every store, at the level of the trait: what is written comes back bit for bit, once, or not at all.

mod file;
mod opening;
mod server;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use debora_cli::store::sqlite::copying;
use debora_cli::store::{
    self, ApiKey, DecisionKind, EpochRow, Event, ExperimentRow, JournalRow, Lease, Location,
    Locked, OutcomeRow, Progress, Purpose, Role, RowCounts, Session, StartRow, Status, Store,
    UncountedOutcome, WaitingClock, parse_progress,
};
use opening::{
    a_newer_store_is_refused_and_left_as_it_is, an_older_store_is_refused_and_left_as_it_is,
    servers_that_start_together_agree, starts_are_numbered_and_of_one_store,
    what_belongs_to_others_is_left_to_them, what_is_missing_is_made_by_a_server_alone,
};

use crate::kit::fixtures::{epoch, experiment, progress};
use crate::kit::schema::schema;
use crate::kit::scratch::Scratch;

/// A place for a store of one test, empty; removed after it.
struct Place {
    location: Location,
    folder: Scratch,
}

impl Place {
    fn sqlite() -> Self {
        let folder = Scratch::new("stores");
        Self {
            location: Location::Sqlite(folder.join("store.db")),
            folder,
        }
    }

    /// A PostgreSQL schema of its own, which the address names.
    fn postgres() -> Self {
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let mut place = Self::sqlite();
        place.location = Location::Postgres(schema(&format!(
            "stores_{}",
            SCHEMAS.fetch_add(1, Ordering::Relaxed)
        )));
        place
    }

    fn open(&self, purpose: Purpose) -> Store {
        self.location.open(purpose).unwrap()
    }

    /// Why it cannot be opened.
    fn refusal(&self, purpose: Purpose) -> String {
        match self.location.open(purpose) {
            Ok(_) => panic!("{} was opened", self.location),
            Err(error) => format!("{error:#}"),
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("store.db")
    }

    /// Runs SQL behind the store's back.
    fn run(&self, sql: &str) {
        match &self.location {
            Location::Sqlite(path) => rusqlite::Connection::open(path)
                .unwrap()
                .execute_batch(sql)
                .unwrap(),
            Location::Postgres(url) => ::postgres::Client::connect(url, ::postgres::NoTls)
                .unwrap()
                .batch_execute(sql)
                .unwrap(),
        }
    }

    /// Everything in it, as bytes or rows.
    fn content(&self) -> Vec<u8> {
        let Location::Postgres(url) = &self.location else {
            return fs::read(self.file()).unwrap();
        };
        let mut client = ::postgres::Client::connect(url, ::postgres::NoTls).unwrap();
        let sql = "SELECT schema_to_xml(current_schema(), true, false, '')::text";
        client
            .query_one(sql, &[])
            .unwrap()
            .get::<_, String>(0)
            .into_bytes()
    }
}

/// Each claim on each store.
macro_rules! on_every_store {
    ($($claim:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $claim() { super::$claim(&super::Place::sqlite()) })*
        }
        mod postgres {
            $(#[test] fn $claim() { super::$claim(&super::Place::postgres()) })*
        }
    };
}

on_every_store!(
    every_row_comes_back_bit_for_bit,
    pages_join_without_gap_or_overlap,
    the_first_outcome_stays,
    of_many_rows_those_that_are_new_are_known,
    the_first_uncounted_outcome_stays,
    a_taken_id_writes_nothing,
    what_is_rolled_back_was_never_there,
    what_is_dropped_was_never_there,
    a_failed_write_takes_its_transaction_with_it,
    a_write_that_fails_late_takes_its_transaction_with_it,
    text_is_stored_as_it_is,
    leases_are_added_if_all_of_them_are_new,
    nothing_is_written_outside_a_transaction,
    a_lock_keeps_others_out_until_the_commit,
    readers_see_commits_and_nothing_else,
    an_epoch_closes_once,
    an_unknown_experiment_has_no_rows_and_takes_none,
    keys_are_replaced_by_name,
    a_name_is_added_once,
    of_two_uses_of_a_key_the_later_stays,
    sessions_and_room_are_counted,
    starts_are_counted_and_the_first_identity_stays,
    due_experiments_are_found_in_order,
    actors_keep_their_numbers,
    sessions_end,
    keys_that_experiments_share_are_found,
    lines_are_the_experiments_without_their_specs,
    the_waiting_clock_is_one_nodes_at_a_time,
    numbers_beyond_the_stored_ones_are_refused,
    an_older_store_is_refused_and_left_as_it_is,
    a_newer_store_is_refused_and_left_as_it_is,
    what_is_missing_is_made_by_a_server_alone,
    what_belongs_to_others_is_left_to_them,
    servers_that_start_together_agree,
    starts_are_numbered_and_of_one_store,
    a_copy_holds_every_row,
    the_journal_is_read_in_the_order_of_positions,
    whatever_this_program_does_not_make_is_foreign,
);

/// Doubles that are easily lost: signs of zero, whole numbers, subnormals, the ends, neighbours of a tenth.
const HARD_VALUES: [f64; 10] = [
    0.0,
    -0.0,
    1.0,
    -3.0,
    5e-324,
    f64::MAX,
    f64::MIN,
    0.1,
    0.100_000_000_000_000_02,
    9_007_199_254_740_993.0,
];

fn closed(row: u64) -> EpochRow {
    EpochRow {
        closed_at: Some(99),
        rounds_hash: Some("12".repeat(32)),
        hash: Some("34".repeat(32)),
        leases_hash: Some("56".repeat(32)),
        journal_end: Some(7),
        journal: Some("78".repeat(32)),
        ..epoch(row)
    }
}

fn lease(first: u64, actions: &[u32]) -> Lease {
    Lease {
        epoch: 0,
        kind: DecisionKind::Round,
        first,
        actions: actions.into(),
        asked: 100,
        request_key: Some(format!("request {first}")),
        at: 3,
        waited: 30 + first as i64,
        actor: 0,
    }
}

fn outcome(round: u64, reward: f64) -> OutcomeRow {
    OutcomeRow {
        round,
        reward,
        costs: HARD_VALUES.to_vec(),
        imputed: false,
        at: 4,
        actor: 0,
    }
}

fn uncounted(number: u64, reward: f64) -> UncountedOutcome {
    UncountedOutcome {
        epoch: 0,
        kind: DecisionKind::Overtime,
        number,
        reward,
        costs: HARD_VALUES.to_vec(),
        at: 5,
        actor: 0,
        position: number,
    }
}

fn api_key(name: &str, role: Role) -> ApiKey {
    ApiKey {
        name: name.into(),
        role,
        hash: "ef".repeat(32),
        created_at: 6,
        revoked_at: None,
        experiments: None,
        last_used_at: None,
    }
}

/// Serving, with experiment "a" in it.
fn served(place: &Place) -> Store {
    let mut store = place.open(Purpose::Serve);
    write(&mut store, |store| {
        assert!(
            store
                .create(&experiment("a"), &progress(), &epoch(0))
                .unwrap()
        )
    });
    store
}

/// One transaction.
fn write<T>(store: &mut Store, work: impl FnOnce(&mut Store) -> T) -> T {
    store.begin().unwrap();
    let result = work(store);
    store.commit().unwrap();
    result
}

fn bits(outcomes: &[OutcomeRow]) -> Vec<Vec<u64>> {
    outcomes
        .iter()
        .map(|row| {
            std::iter::once(&row.reward)
                .chain(&row.costs)
                .map(|value| value.to_bits())
                .collect()
        })
        .collect()
}

fn every_row_comes_back_bit_for_bit(place: &Place) {
    let mut store = served(place);
    let leases = vec![
        lease(1, &[0, 255, 3]),
        lease(4, &[256, 0]),
        Lease {
            request_key: None,
            ..lease(6, &[u32::MAX, 0, 65_536])
        },
        Lease {
            request_key: Some("ключ \u{1F511} \"'".into()),
            ..lease(9, &[0; 1000])
        },
    ];
    let overtime = vec![Lease {
        kind: DecisionKind::Overtime,
        request_key: None,
        ..lease(1, &[1])
    }];
    let held_back = vec![Lease {
        kind: DecisionKind::Holdback,
        request_key: None,
        ..lease(1, &[2, 2])
    }];
    let of_held_back = vec![UncountedOutcome {
        kind: DecisionKind::Holdback,
        ..uncounted(1, 0.25)
    }];
    let outcomes: Vec<_> = (1..)
        .zip(HARD_VALUES)
        .map(|(round, reward)| outcome(round, reward))
        .collect();
    let late_and_overtime = vec![uncounted(1, -0.0), uncounted(2, 0.5)];
    let late = vec![UncountedOutcome {
        kind: DecisionKind::Round,
        costs: vec![],
        ..uncounted(7, 1.0)
    }];
    let events = ["created", "paused", "resumed"].map(|what| Event {
        at: 8,
        actor: "ann".into(),
        what: what.into(),
        reason: (what == "paused").then(|| "naïve \"why\"".into()),
        position: 3,
    });
    let later = Progress {
        status: Status::Paused,
        epoch: 1,
        outcomes: vec![1 << 53, 3],
        late: 9,
        ..progress()
    };
    let mut text = String::new();
    write(&mut store, |store| {
        store
            .add_leases("a", &leases.iter().collect::<Vec<_>>())
            .unwrap();
        store
            .add_leases("a", &overtime.iter().chain(&held_back).collect::<Vec<_>>())
            .unwrap();
        store.add_uncounted("a", &of_held_back).unwrap();
        assert!(
            store
                .add_outcomes("a", &outcomes)
                .unwrap()
                .iter()
                .all(Option::is_none)
        );
        assert!(
            store
                .add_uncounted("a", &late_and_overtime)
                .unwrap()
                .iter()
                .all(Option::is_none)
        );
        store.add_uncounted("a", &late).unwrap();
        events
            .iter()
            .for_each(|event| store.add_event("a", event).unwrap());
        store.close_epoch("a", &closed(0), Some(&epoch(1))).unwrap();
        store.set_progress("a", &later).unwrap();
        text = store.set_observed("a", &later, "{}").unwrap();
    });
    drop(store);
    assert_eq!(parse_progress(&text).unwrap(), later);
    for purpose in [Purpose::Read, Purpose::Write, Purpose::Serve] {
        let mut store = place.open(purpose);
        assert_eq!(
            store.experiment("a").unwrap(),
            Some((experiment("a"), later.clone()))
        );
        assert_eq!(
            store.experiments(None, false, usize::MAX).unwrap(),
            [(experiment("a"), later.clone())]
        );
        assert_eq!(store.observed("a").unwrap().as_deref(), Some("{}"));
        assert_eq!(
            store.lock("a").unwrap(),
            Some(Locked {
                progress: text.clone(),
                due: None,
                observed: Some("{}".into()),
            })
        );
        assert_eq!(
            store.epochs("a", 0, 9).unwrap(),
            [
                EpochRow {
                    snapshot: None,
                    ..closed(0)
                },
                epoch(1)
            ]
        );
        assert_eq!(
            store.leases("a", 0, DecisionKind::Round, 0, 9).unwrap(),
            leases
        );
        assert_eq!(
            store.leases("a", 0, DecisionKind::Overtime, 0, 9).unwrap(),
            overtime
        );
        let holdback = DecisionKind::Holdback;
        assert_eq!(store.leases("a", 0, holdback, 0, 9).unwrap(), held_back);
        let told = store.uncounted("a", 0, holdback, 0, 9).unwrap();
        assert_eq!(told, of_held_back);
        let keys: Vec<_> = leases
            .iter()
            .filter_map(|lease| lease.request_key.as_deref())
            .collect();
        let mut found = store
            .leases_of("a", &[keys.as_slice(), &["none"]].concat())
            .unwrap();
        found.sort_by_key(|lease| lease.first);
        assert_eq!(
            found,
            leases
                .iter()
                .filter(|lease| lease.request_key.is_some())
                .cloned()
                .collect::<Vec<_>>()
        );
        let found = store.outcomes("a", 0, 99).unwrap();
        assert_eq!(found, outcomes);
        assert_eq!(bits(&found), bits(&outcomes));
        assert_eq!(
            store
                .uncounted("a", 0, DecisionKind::Overtime, 0, 9)
                .unwrap(),
            late_and_overtime
        );
        assert!(
            store
                .uncounted("a", 0, DecisionKind::Overtime, 1, 1)
                .unwrap()[0]
                .reward
                .is_sign_negative()
        );
        assert_eq!(
            store.uncounted("a", 0, DecisionKind::Round, 0, 9).unwrap(),
            late
        );
        assert_eq!(store.events("a", 0, 9).unwrap(), events);
        assert_eq!(store.events("a", 1, 1).unwrap(), events[1..2]);
    }
}

fn pages_join_without_gap_or_overlap(place: &Place) {
    let mut store = served(place);
    let leases: Vec<_> = (0..20).map(|i| lease(1 + 3 * i, &[i as u32; 3])).collect();
    let outcomes: Vec<_> = (1..=60).map(|round| outcome(round, round as f64)).collect();
    write(&mut store, |store| {
        store
            .add_leases("a", &leases.iter().collect::<Vec<_>>())
            .unwrap();
        // Told in another order than decided.
        store
            .add_outcomes("a", &outcomes.iter().rev().cloned().collect::<Vec<_>>())
            .unwrap();
    });
    for limit in [1, 7, 60, usize::MAX] {
        let (mut from, mut found) = (0, Vec::new());
        loop {
            let page = store.outcomes("a", from, limit).unwrap();
            let Some(last) = page.last() else { break };
            from = last.round + 1;
            found.extend(page);
        }
        assert_eq!(found, outcomes, "limit {limit}");
    }
    // A lease is found by any of its rounds, and by the one after only the next.
    for from in 0..=61u64 {
        let found = store.leases("a", 0, DecisionKind::Round, from, 2).unwrap();
        let expected: Vec<_> = leases
            .iter()
            .filter(|lease| lease.first + 2 >= from)
            .take(2)
            .cloned()
            .collect();
        assert_eq!(found, expected, "from {from}");
    }
    assert!(
        store
            .leases("a", 0, DecisionKind::Round, u64::MAX, 2)
            .unwrap()
            .is_empty()
    );
    assert!(
        store
            .leases("a", 1, DecisionKind::Round, 0, 2)
            .unwrap()
            .is_empty()
    );
    assert!(
        store
            .leases("a", 0, DecisionKind::Overtime, 0, 2)
            .unwrap()
            .is_empty()
    );
    assert!(store.outcomes("a", u64::MAX, 2).unwrap().is_empty());
    assert!(store.outcomes("a", 0, 0).unwrap().is_empty());
}

fn the_first_outcome_stays(place: &Place) {
    let mut store = served(place);
    let first = [
        outcome(1, -0.0),
        OutcomeRow {
            imputed: true,
            at: 77,
            ..outcome(3, 0.25)
        },
    ];
    write(&mut store, |store| store.add_outcomes("a", &first).unwrap());
    let second = [outcome(2, 0.5), outcome(3, 0.75), outcome(1, 0.0)];
    let answers = write(&mut store, |store| {
        store.add_outcomes("a", &second).unwrap()
    });
    assert_eq!(
        answers,
        [None, Some(first[1].clone()), Some(first[0].clone())]
    );
    assert!(answers[2].as_ref().unwrap().reward.is_sign_negative());
    assert_eq!(
        store.outcomes("a", 0, 9).unwrap(),
        [first[0].clone(), second[0].clone(), first[1].clone()]
    );
}

/// Wherever rows that are there already stand among seventy: alone, in neighbours, at both ends, in all places, in none.
fn of_many_rows_those_that_are_new_are_known(place: &Place) {
    // More than SQLite inserts together, and than PostgreSQL takes for new.
    const MANY: u64 = 70;
    let mut store = served(place);
    let alone = (0..MANY).map(|place| vec![place]);
    let several = [
        vec![],
        vec![0, MANY - 1],
        vec![3, 4, 5, 30],
        (0..MANY).step_by(2).collect(),
        (0..MANY).collect(),
    ];
    for (turn, taken) in (0..).zip(alone.chain(several)) {
        let first = 1 + MANY * turn;
        let old: Vec<_> = taken
            .iter()
            .map(|place| outcome(first + place, 0.5))
            .collect();
        let new: Vec<_> = (first..first + MANY)
            .map(|round| outcome(round, 0.25))
            .collect();
        let answers = write(&mut store, |store| {
            store.add_outcomes("a", &old).unwrap();
            store.add_outcomes("a", &new).unwrap()
        });
        let there = |row: &OutcomeRow| old.iter().find(|old| old.round == row.round).cloned();
        assert_eq!(
            answers,
            new.iter().map(there).collect::<Vec<_>>(),
            "{taken:?}"
        );
        let stored: Vec<_> = new
            .iter()
            .map(|row| there(row).unwrap_or(row.clone()))
            .collect();
        assert_eq!(
            store.outcomes("a", first, MANY as usize).unwrap(),
            stored,
            "{taken:?}"
        );
    }
    // A lease may meet one of the same request, too.
    let leases: Vec<_> = (1..=MANY).map(|first| lease(first, &[0])).collect();
    let leases: Vec<_> = leases.iter().collect();
    for taken in 1..=MANY {
        let used = Lease {
            request_key: Some(format!("request {taken}")),
            ..lease(99, &[1])
        };
        store.begin().unwrap();
        store.add_leases("a", &[&used]).unwrap();
        assert!(!store.add_new_leases("a", &leases).unwrap(), "{taken}");
        let left = store
            .leases("a", 0, DecisionKind::Round, 0, usize::MAX)
            .unwrap();
        assert_eq!(left, [used], "{taken}");
        store.rollback();
    }
}

fn the_first_uncounted_outcome_stays(place: &Place) {
    let mut store = served(place);
    write(&mut store, |store| {
        store.add_uncounted("a", &[uncounted(2, 0.5)]).unwrap()
    });
    // Of another kind or epoch it is another row.
    let others = [
        UncountedOutcome {
            kind: DecisionKind::Round,
            ..uncounted(2, 0.1)
        },
        UncountedOutcome {
            epoch: 1,
            ..uncounted(2, 0.2)
        },
        uncounted(2, 0.3),
    ];
    let answers = write(&mut store, |store| {
        store.add_uncounted("a", &others).unwrap()
    });
    assert_eq!(answers, [None, None, Some(uncounted(2, 0.5))]);
    assert_eq!(
        store
            .uncounted("a", 0, DecisionKind::Overtime, 0, 9)
            .unwrap(),
        [uncounted(2, 0.5)]
    );
}

fn a_taken_id_writes_nothing(place: &Place) {
    let mut store = served(place);
    let other = ExperimentRow {
        spec: "other".into(),
        ..experiment("a")
    };
    let created = write(&mut store, |store| {
        store
            .create(
                &other,
                &Progress {
                    late: 5,
                    ..progress()
                },
                &epoch(3),
            )
            .unwrap()
    });
    assert!(!created);
    assert_eq!(
        store.experiments(None, false, usize::MAX).unwrap(),
        [(experiment("a"), progress())]
    );
    assert_eq!(store.epochs("a", 0, 9).unwrap(), [epoch(0)]);
    assert!(write(&mut store, |store| store
        .create(&experiment("0"), &progress(), &epoch(0))
        .unwrap()));
    let ids: Vec<_> = store
        .experiments(None, false, usize::MAX)
        .unwrap()
        .into_iter()
        .map(|(experiment, _)| experiment.id)
        .collect();
    assert_eq!(ids, ["a", "0"], "the oldest first");
}

fn what_is_rolled_back_was_never_there(place: &Place) {
    let mut store = served(place);
    store.rollback();
    store.begin().unwrap();
    store
        .create(&experiment("b"), &progress(), &epoch(0))
        .unwrap();
    store.add_outcomes("b", &[outcome(1, 0.5)]).unwrap();
    store.add_outcomes("a", &[outcome(1, 0.5)]).unwrap();
    store.add_leases("a", &[&lease(1, &[0])]).unwrap();
    store.set_due("a", Some(1)).unwrap();
    store.rollback();
    assert_eq!(store.experiment("b").unwrap(), None);
    assert!(store.outcomes("b", 0, 9).unwrap().is_empty());
    // Another experiment may get the number that "b" had.
    write(&mut store, |store| {
        store
            .create(&experiment("c"), &progress(), &epoch(0))
            .unwrap()
    });
    write(&mut store, |store| {
        store.add_outcomes("c", &[outcome(1, 0.25)]).unwrap()
    });
    assert!(store.outcomes("b", 0, 9).unwrap().is_empty());
    assert_eq!(store.due(9, 9).unwrap(), [""; 0]);
    assert_eq!(store.outcomes("c", 0, 9).unwrap(), [outcome(1, 0.25)]);
    assert!(store.outcomes("a", 0, 9).unwrap().is_empty());
    assert!(
        store
            .leases("a", 0, DecisionKind::Round, 0, 9)
            .unwrap()
            .is_empty()
    );
}

fn what_is_dropped_was_never_there(place: &Place) {
    let mut store = served(place);
    write(&mut store, |store| {
        store.add_outcomes("a", &[outcome(1, 0.5)]).unwrap()
    });
    store.begin().unwrap();
    store.add_outcomes("a", &[outcome(2, 0.5)]).unwrap();
    drop(store);
    let mut store = place.open(Purpose::Serve);
    assert_eq!(store.outcomes("a", 0, 9).unwrap(), [outcome(1, 0.5)]);
    let added = write(&mut store, |store| {
        store.add_outcomes("a", &[outcome(2, 0.75)]).unwrap()
    });
    assert_eq!(added, [None]);
}

fn a_failed_write_takes_its_transaction_with_it(place: &Place) {
    let mut store = served(place);
    store.begin().unwrap();
    store.add_outcomes("a", &[outcome(1, 0.5)]).unwrap();
    store
        .add_leases("a", &[&lease(1, &[0]), &lease(1, &[1])])
        .unwrap_err();
    store.commit().unwrap_err();
    assert!(store.outcomes("a", 0, 9).unwrap().is_empty());
    assert!(
        store
            .leases("a", 0, DecisionKind::Round, 0, 9)
            .unwrap()
            .is_empty()
    );
    // One request has one lease.
    store.begin().unwrap();
    let again = Lease {
        request_key: Some("request 1".into()),
        ..lease(2, &[0])
    };
    store
        .add_leases("a", &[&lease(1, &[0]), &again])
        .unwrap_err();
    store.rollback();
    write(&mut store, |store| {
        store.add_leases("a", &[&lease(1, &[0])]).unwrap()
    });
    assert_eq!(
        store.leases("a", 0, DecisionKind::Round, 0, 9).unwrap(),
        [lease(1, &[0])]
    );
}

/// A row of progress may be written with the commit.
fn a_write_that_fails_late_takes_its_transaction_with_it(place: &Place) {
    let mut store = served(place);
    write(&mut store, |store| {
        let (b, progress) = (experiment("b"), progress());
        assert!(store.create(&b, &progress, &epoch(0)).unwrap());
        store.set_due("b", Some(7)).unwrap();
    });
    place.run("CREATE UNIQUE INDEX one_at_a_time ON progress (due)");
    store.begin().unwrap();
    store.add_outcomes("a", &[outcome(1, 0.5)]).unwrap();
    let set = store.set_due("a", Some(7));
    let reason = set.and(store.commit()).unwrap_err();
    store.rollback();
    assert!(format!("{reason:#}").contains("due"), "{reason:#}");
    assert!(store.outcomes("a", 0, 9).unwrap().is_empty());
    assert_eq!(store.due(9, 9).unwrap(), ["b"]);
    write(&mut store, |store| {
        store.set_due("a", Some(8)).unwrap();
        // Whoever reads within the transaction sees it.
        assert_eq!(store.due(9, 9).unwrap(), ["b", "a"]);
        store.set_due("a", Some(6)).unwrap();
    });
    assert_eq!(store.due(9, 9).unwrap(), ["a", "b"]);
}

fn text_is_stored_as_it_is(place: &Place) {
    let mut store = served(place);
    for text in [
        "it's",
        "''",
        "\\",
        "\\'",
        "'; COMMIT; --",
        "$1 $2",
        "E'\\x00'",
        "ü\n",
    ] {
        write(&mut store, |store| {
            store.set_observed("a", &progress(), text).unwrap()
        });
        assert_eq!(store.observed("a").unwrap().as_deref(), Some(text));
    }
}

fn leases_are_added_if_all_of_them_are_new(place: &Place) {
    let mut store = served(place);
    let used = Lease {
        request_key: Some("request 1".into()),
        ..lease(9, &[0])
    };
    let added = write(&mut store, |store| {
        // The last two are each other's, or one is another's: in either case none is there.
        [
            store.add_new_leases("a", &[&lease(1, &[0, 1])]).unwrap(),
            store
                .add_new_leases("a", &[&lease(3, &[0]), &lease(4, &[1]), &used])
                .unwrap(),
            store
                .add_new_leases("a", &[&lease(3, &[0]), &lease(3, &[1])])
                .unwrap(),
            store.add_new_leases("a", &[]).unwrap(),
        ]
    });
    assert_eq!(added, [true, false, false, true]);
    let stored = |store: &mut Store| {
        store
            .leases("a", 0, DecisionKind::Round, 0, usize::MAX)
            .unwrap()
    };
    assert_eq!(stored(&mut store), [lease(1, &[0, 1])]);
    // A transaction in which some were not new goes on, and what was taken back can be added.
    let added = write(&mut store, |store| {
        let refused = store.add_new_leases("a", &[&lease(3, &[0]), &used]);
        [
            refused.unwrap(),
            store.add_new_leases("a", &[&lease(3, &[0])]).unwrap(),
        ]
    });
    assert_eq!(added, [false, true]);
    assert_eq!(stored(&mut store), [lease(1, &[0, 1]), lease(3, &[0])]);
}

fn nothing_is_written_outside_a_transaction(place: &Place) {
    let mut store = served(place);
    let errors = [
        store.add_outcomes("a", &[outcome(1, 0.5)]).unwrap_err(),
        store
            .set_progress(
                "a",
                &Progress {
                    late: 5,
                    ..progress()
                },
            )
            .unwrap_err(),
        store.set_key(&api_key("ann", Role::Read)).unwrap_err(),
    ];
    for error in errors {
        assert!(
            error.to_string().contains("no transaction is open"),
            "{error:#}"
        );
    }
    store.commit().unwrap_err();
    assert!(store.outcomes("a", 0, 9).unwrap().is_empty() && store.keys().unwrap().is_empty());
    assert_eq!(locked(&mut store), progress());
}

fn a_lock_keeps_others_out_until_the_commit(place: &Place) {
    let mut store = served(place);
    let mut other = place.open(Purpose::Write);
    store.begin().unwrap();
    store.lock("a").unwrap();
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        other.begin().unwrap();
        let seen = locked(&mut other);
        sender.send(seen.late).unwrap();
        other
            .set_progress(
                "a",
                &Progress {
                    late: seen.late + 1,
                    ..seen
                },
            )
            .unwrap();
        other.commit().unwrap();
    });
    assert!(
        receiver.recv_timeout(Duration::from_millis(300)).is_err(),
        "two hold one lock"
    );
    store
        .set_progress(
            "a",
            &Progress {
                late: 5,
                ..progress()
            },
        )
        .unwrap();
    store.commit().unwrap();
    assert_eq!(receiver.recv_timeout(Duration::from_secs(9)), Ok(5));
    thread.join().unwrap();
    assert_eq!(locked(&mut store).late, 6);
}

fn locked(store: &mut Store) -> Progress {
    parse_progress(&store.lock("a").unwrap().unwrap().progress).unwrap()
}

fn readers_see_commits_and_nothing_else(place: &Place) {
    let mut store = served(place);
    let mut reader = place.open(Purpose::Read);
    store.begin().unwrap();
    store.add_outcomes("a", &[outcome(1, 0.5)]).unwrap();
    assert!(
        reader.outcomes("a", 0, 9).unwrap().is_empty(),
        "not committed yet"
    );
    store.commit().unwrap();
    assert_eq!(reader.outcomes("a", 0, 9).unwrap().len(), 1);
    // A reader's transaction stays at one commit.
    reader.begin().unwrap();
    assert_eq!(reader.outcomes("a", 0, 9).unwrap().len(), 1);
    write(&mut store, |store| {
        store.add_outcomes("a", &[outcome(2, 0.5)]).unwrap()
    });
    assert_eq!(reader.outcomes("a", 0, 9).unwrap().len(), 1);
    reader.commit().unwrap();
    assert_eq!(reader.outcomes("a", 0, 9).unwrap().len(), 2);
    reader.begin().unwrap();
    reader.add_outcomes("a", &[outcome(3, 0.5)]).unwrap_err();
    reader.rollback();
    assert_eq!(
        store.outcomes("a", 0, 9).unwrap().len(),
        2,
        "a reader does not write"
    );
}

fn an_epoch_closes_once(place: &Place) {
    let mut store = served(place);
    write(&mut store, |store| {
        store.close_epoch("a", &closed(0), Some(&epoch(1))).unwrap()
    });
    store.begin().unwrap();
    let error = store
        .close_epoch("a", &closed(0), Some(&epoch(1)))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("epoch 0 of experiment \"a\" is not open"),
        "{error:#}"
    );
    store.rollback();
    // The last epoch keeps its snapshot.
    write(&mut store, |store| {
        store.close_epoch("a", &closed(1), None).unwrap()
    });
    assert_eq!(
        store.epochs("a", 0, 9).unwrap(),
        [
            EpochRow {
                snapshot: None,
                ..closed(0)
            },
            closed(1)
        ]
    );
    assert_eq!(store.epochs("a", 1, 1).unwrap(), [closed(1)]);
}

fn an_unknown_experiment_has_no_rows_and_takes_none(place: &Place) {
    let mut store = served(place);
    assert_eq!(store.experiment("b").unwrap(), None);
    assert_eq!(store.lock("b").unwrap(), None);
    assert!(
        store.epochs("b", 0, 9).unwrap().is_empty()
            && store.leases_of("b", &["k"]).unwrap().is_empty()
    );
    store.begin().unwrap();
    let error = store.add_outcomes("b", &[outcome(1, 0.5)]).unwrap_err();
    assert!(
        error.to_string().contains("no experiment \"b\""),
        "{error:#}"
    );
    store.rollback();
}

fn keys_are_replaced_by_name(place: &Place) {
    let mut store = served(place);
    let keys = [
        api_key("ann", Role::Admin),
        api_key("bob", Role::Read),
        api_key("eve", Role::Decide),
    ];
    write(&mut store, |store| {
        keys.iter()
            .rev()
            .for_each(|key| store.set_key(key).unwrap())
    });
    assert_eq!(store.keys().unwrap(), keys);
    let revoked = ApiKey {
        revoked_at: Some(9),
        role: Role::Read,
        ..api_key("ann", Role::Admin)
    };
    write(&mut store, |store| store.set_key(&revoked).unwrap());
    assert_eq!(store.keys().unwrap(), [&[revoked], &keys[1..]].concat());
}

fn a_name_is_added_once(place: &Place) {
    let mut store = served(place);
    let ann = ApiKey {
        experiments: Some(vec!["a".into(), "b-2".into()]),
        ..api_key("ann", Role::Decide)
    };
    let nothing = ApiKey {
        experiments: Some(vec![]),
        ..api_key("bob", Role::Read)
    };
    let added = write(&mut store, |store| {
        [&ann, &nothing, &api_key("ann", Role::Admin)].map(|key| store.add_key(key).unwrap())
    });
    assert_eq!(added, [true, true, false]);
    assert_eq!(store.keys().unwrap(), [ann, nothing]);
}

fn of_two_uses_of_a_key_the_later_stays(place: &Place) {
    let mut store = served(place);
    let used = |store: &mut Store, name: &str, at: i64| {
        write(store, |store| store.set_key_used(name, at).unwrap());
        let keys = store.keys().unwrap();
        keys.iter().map(|key| key.last_used_at).collect::<Vec<_>>()
    };
    let keys = ["ann", "bob"].map(|name| api_key(name, Role::Read));
    write(&mut store, |store| {
        keys.iter().for_each(|key| store.set_key(key).unwrap())
    });
    assert_eq!(used(&mut store, "ann", 7), [Some(7), None]);
    assert_eq!(used(&mut store, "ann", 5), [Some(7), None]);
    assert_eq!(used(&mut store, "ann", 9), [Some(9), None]);
    assert_eq!(used(&mut store, "eve", 9), [Some(9), None]);
    // What replaces a key knows of no later use.
    write(&mut store, |store| store.set_key(&keys[0]).unwrap());
    assert_eq!(store.keys().unwrap()[0].last_used_at, Some(9));
}

fn sessions_and_room_are_counted(place: &Place) {
    let mut store = served(place);
    let session = |hash: &str, expires_at| Session {
        hash: hash.into(),
        key_name: "ann".into(),
        expires_at,
    };
    write(&mut store, |store| {
        store.add_session(&session("a", 7)).unwrap();
        store.add_session(&session("b", 9)).unwrap();
    });
    let counts = [6, 7, 9].map(|after| store.session_count(after).unwrap());
    assert_eq!(counts, [2, 1, 0]);
    let before = store.size().unwrap();
    assert!(before > 0);
    let spec = "# a long spec\n".repeat(99_999);
    let long = ExperimentRow {
        spec,
        ..experiment("long")
    };
    write(&mut store, |store| {
        assert!(store.create(&long, &progress(), &epoch(0)).unwrap());
    });
    assert!(store.size().unwrap() > before);
}

fn starts_are_counted_and_the_first_identity_stays(place: &Place) {
    let mut store = served(place);
    assert_eq!(store.identity().unwrap(), None);
    let numbers = write(&mut store, |store| {
        store.set_identity("first").unwrap();
        store.set_identity("second").unwrap();
        ["m", "n"].map(|node| store.add_start(node, 7).unwrap())
    });
    assert_eq!(numbers, [1, 2]);
    assert_eq!(store.identity().unwrap().as_deref(), Some("first"));
    let start = StartRow {
        incarnation: 2,
        node: "n".into(),
        at: 7,
    };
    assert_eq!(store.starts(2).unwrap(), [start]);
    assert_eq!(store.starts(0).unwrap().len(), 2);
    assert_eq!(store.starts(3).unwrap(), []);
}

fn due_experiments_are_found_in_order(place: &Place) {
    let mut store = served(place);
    write(&mut store, |store| {
        for (id, due) in [
            ("b", Some(20)),
            ("c", Some(10)),
            ("d", Some(30)),
            ("e", None),
        ] {
            assert!(
                store
                    .create(&experiment(id), &progress(), &epoch(0))
                    .unwrap()
            );
            store.set_due(id, due).unwrap();
        }
    });
    assert_eq!(store.lock("d").unwrap().unwrap().due, Some(30));
    assert_eq!(store.due(9, 9).unwrap(), [""; 0]);
    assert_eq!(store.due(20, 9).unwrap(), ["c", "b"]);
    assert_eq!(store.due(99, 2).unwrap(), ["c", "b"]);
    write(&mut store, |store| store.set_due("c", None).unwrap());
    assert_eq!(store.due(99, 9).unwrap(), ["b", "d"]);
}

fn actors_keep_their_numbers(place: &Place) {
    let mut store = served(place);
    let [ann, bob, again] = write(&mut store, |store| {
        ["ann", "bob", "ann"].map(|name| store.actor(name).unwrap())
    });
    assert!(ann == again && ann != bob && ann > 0 && bob > 0);
    store.begin().unwrap();
    store.actor("eve").unwrap();
    store.rollback();
    let fay = write(&mut store, |store| store.actor("fay").unwrap());
    let named = [(ann, "ann"), (bob, "bob"), (fay, "fay")];
    let named = named.map(|(number, name)| (number, name.to_owned()));
    assert_eq!(store.actors().unwrap(), named.into());
    assert_eq!(place.open(Purpose::Read).actors().unwrap().len(), 3);
    let name = store.actor_name(bob).unwrap();
    assert_eq!(name.as_deref(), Some("bob"));
    assert_eq!(store.actor_name(0).unwrap(), None);
    // A row without its name is damage: nobody may be hashed in its place.
    assert!(store.actor_name(fay + 1).is_err());
}

fn sessions_end(place: &Place) {
    let mut store = served(place);
    let session = |hash: &str, expires_at| Session {
        hash: hash.into(),
        key_name: "ann".into(),
        expires_at,
    };
    write(&mut store, |store| {
        store.add_session(&session("x", 10)).unwrap();
        store.add_session(&session("y", 20)).unwrap();
        store.add_session(&session("z", 30)).unwrap();
    });
    assert_eq!(store.session("y").unwrap(), Some(session("y", 20)));
    write(&mut store, |store| {
        let of_another = Session {
            key_name: "bob".into(),
            ..session("w", 5)
        };
        store.add_session(&of_another).unwrap();
        store.add_session(&session("v", 15)).unwrap();
        store.end_oldest_sessions("ann", 2).unwrap();
    });
    let left = ["v", "w", "x", "y", "z"].map(|hash| store.session(hash).unwrap().is_some());
    assert_eq!(left, [false, true, false, true, true]);
    write(&mut store, |store| {
        store.end_session("z").unwrap();
        store.end_session("none").unwrap();
        store.end_sessions(10).unwrap();
    });
    let left = ["x", "y", "z"].map(|hash| store.session(hash).unwrap().is_some());
    assert_eq!(left, [false, true, false]);
}

fn keys_that_experiments_share_are_found(place: &Place) {
    let mut store = served(place);
    let other = ExperimentRow {
        key: debora::Key::from(1u64 << 40),
        ..experiment("b")
    };
    write(&mut store, |store| {
        assert!(store.create(&other, &progress(), &epoch(0)).unwrap());
        assert!(
            store
                .create(&experiment("c"), &progress(), &epoch(0))
                .unwrap()
        );
    });
    let ids = |rows: Vec<(ExperimentRow, Progress)>| {
        rows.into_iter().map(|(row, _)| row.id).collect::<Vec<_>>()
    };
    let sharing = store.experiments_of_key(experiment("a").key).unwrap();
    assert_eq!(ids(sharing), ["a", "c"]);
    assert_eq!(ids(store.experiments_of_key(other.key).unwrap()), ["b"]);
    let mut listed = |after, newest| ids(store.experiments(after, newest, 2).unwrap());
    assert_eq!(listed(None, false), ["a", "b"]);
    assert_eq!(listed(Some("b"), false), ["c"]);
    assert_eq!(listed(None, true), ["c", "b"]);
    assert_eq!(listed(Some("b"), true), ["a"]);
    for newest in [false, true] {
        assert!(listed(Some("none"), newest).is_empty());
    }
}

fn lines_are_the_experiments_without_their_specs(place: &Place) {
    let mut store = served(place);
    let later = Progress {
        epoch: 7,
        ..progress()
    };
    write(&mut store, |store| {
        for id in ["d", "b", "c"] {
            assert!(
                store
                    .create(&experiment(id), &progress(), &epoch(0))
                    .unwrap()
            );
        }
        store.set_progress("b", &later).unwrap();
    });
    let some = ["c", "none", "a", "b"].map(String::from);
    let mut ids = |among: Option<&[String]>, after, newest, limit| {
        let lines = store.lines(among, after, newest, limit).unwrap();
        lines.into_iter().map(|line| line.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, None, false, 9), ["a", "d", "b", "c"]);
    assert_eq!(ids(None, Some("b"), true, 1), ["d"]);
    // In the order of creation, whatever the order of what is asked for, and however long the list.
    assert_eq!(ids(Some(&some), None, false, 9), ["a", "b", "c"]);
    assert_eq!(ids(Some(&some), None, true, 2), ["c", "b"]);
    assert_eq!(ids(Some(&some), Some("b"), true, 9), ["a"]);
    for nothing in [
        ids(Some(&[]), None, false, 9),
        ids(None, Some("none"), true, 9),
    ] {
        assert!(nothing.is_empty());
    }
    let line = store.lines(None, None, true, 2).unwrap().pop().unwrap();
    assert_eq!(
        (line.id, line.created_at, line.progress),
        ("b".to_owned(), experiment("b").created_at, later)
    );
}

fn the_waiting_clock_is_one_nodes_at_a_time(place: &Place) {
    let mut store = served(place);
    let clock = store.waiting_clock().unwrap();
    assert_eq!((clock.waited, clock.read_at), (0, 0));
    let later = WaitingClock {
        waited: 7,
        read_at: 8,
    };
    store.begin().unwrap();
    store.waiting_clock().unwrap();
    let mut other = place.open(Purpose::Write);
    let waits = thread::spawn(move || {
        other.begin().unwrap();
        other.waiting_clock().unwrap()
    });
    store.set_waiting_clock(&later).unwrap();
    store.commit().unwrap();
    assert_eq!(waits.join().unwrap(), later);
}

fn numbers_beyond_the_stored_ones_are_refused(place: &Place) {
    let mut store = served(place);
    store.begin().unwrap();
    let error = store
        .add_outcomes("a", &[outcome(u64::MAX, 0.5)])
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("18446744073709551615 cannot be stored"),
        "{error:#}"
    );
    store.rollback();
    store.begin().unwrap();
    let error = store.add_leases("a", &[&lease(1, &[])]).unwrap_err();
    assert!(
        error.to_string().contains("a lease of no rounds"),
        "{error:#}"
    );
    store.rollback();
}

fn a_copy_holds_every_row(place: &Place) {
    let mut store = served(place);
    // A number that is given in a transaction which fails is not given again, so PostgreSQL's have gaps.
    store.begin().unwrap();
    store.actor("nobody").unwrap();
    store.rollback();
    let ann = write(&mut store, |store| {
        store.set_identity("the one").unwrap();
        store.add_start("m", 7).unwrap();
        let clock = WaitingClock {
            waited: 8,
            read_at: 9,
        };
        store.set_waiting_clock(&clock).unwrap();
        store.set_due("a", Some(11)).unwrap();
        store.actor("ann").unwrap()
    });
    let late = UncountedOutcome {
        kind: DecisionKind::Round,
        actor: ann,
        ..uncounted(1, 0.5)
    };
    write(&mut store, |store| {
        assert!(
            store
                .create(
                    &experiment("b"),
                    &Progress {
                        epoch: 2,
                        ..progress()
                    },
                    &epoch(0)
                )
                .unwrap()
        );
        store.close_epoch("b", &closed(0), Some(&epoch(1))).unwrap();
        store.close_epoch("b", &closed(1), Some(&epoch(2))).unwrap();
        store.close_epoch("b", &closed(2), None).unwrap();
        store
            .add_outcomes(
                "b",
                &(1..=10_001)
                    .map(|round| OutcomeRow {
                        actor: ann,
                        ..outcome(round, -0.0)
                    })
                    .collect::<Vec<_>>(),
            )
            .unwrap();
        store
            .add_leases(
                "b",
                &[
                    &lease(1, &[0; 9]),
                    &Lease {
                        epoch: 2,
                        actor: ann,
                        ..lease(10, &[1; 300])
                    },
                ],
            )
            .unwrap();
        store
            .add_leases(
                "b",
                &[&Lease {
                    kind: DecisionKind::Overtime,
                    request_key: None,
                    ..lease(1, &[7])
                }],
            )
            .unwrap();
        store
            .add_uncounted(
                "b",
                &[
                    late.clone(),
                    uncounted(1, 0.25),
                    UncountedOutcome {
                        epoch: 2,
                        ..uncounted(1, 0.75)
                    },
                ],
            )
            .unwrap();
        store
            .add_event(
                "b",
                &Event {
                    at: 1,
                    actor: "ann".into(),
                    what: "created".into(),
                    reason: Some("why".into()),
                    position: 9,
                },
            )
            .unwrap();
        let used = ApiKey {
            last_used_at: Some(8),
            ..api_key("ann", Role::Decide)
        };
        store.set_key(&used).unwrap();
    });
    let mut reader = place.open(Purpose::Read);
    let file = place.folder.join("copy.db");
    let mut copy = copying::empty(&file).unwrap();
    store::copy::copy(&mut reader, &mut copy).unwrap();
    drop(copy);
    assert_eq!(
        copying::check(&file).unwrap(),
        copying::Held {
            identity: Some("the one".into()),
            incarnation: 1,
            experiments: 2,
            outcomes: 10_001
        }
    );
    let mut copy = Location::Sqlite(file).open(Purpose::Read).unwrap();
    assert_eq!(
        copy.experiments(None, false, usize::MAX).unwrap(),
        reader.experiments(None, false, usize::MAX).unwrap()
    );
    assert_eq!(copy.keys().unwrap(), reader.keys().unwrap());
    assert_eq!(copy.identity().unwrap().as_deref(), Some("the one"));
    assert_eq!(copy.starts(0).unwrap(), reader.starts(0).unwrap());
    assert_eq!(
        copy.waiting_clock().unwrap(),
        reader.waiting_clock().unwrap()
    );
    assert_eq!(copy.due(99, 9).unwrap(), ["a"]);
    // Stores number actors as they please: there is one, so rows have it or nobody.
    assert_eq!(copy.actors().unwrap(), [(1, "ann".to_owned())].into());
    let numbered = |actor: u64| u64::from(actor != 0);
    for id in ["a", "b"] {
        assert_eq!(
            copy.epochs(id, 0, 9).unwrap(),
            reader.epochs(id, 0, 9).unwrap()
        );
        assert_eq!(
            copy.events(id, 0, 9).unwrap(),
            reader.events(id, 0, 9).unwrap()
        );
        let [copied, outcomes] =
            [&mut copy, &mut reader].map(|store| store.outcomes(id, 0, usize::MAX).unwrap());
        let outcomes: Vec<_> = outcomes
            .into_iter()
            .map(|outcome| OutcomeRow {
                actor: numbered(outcome.actor),
                ..outcome
            })
            .collect();
        assert_eq!(copied, outcomes);
        assert_eq!(bits(&copied), bits(&outcomes));
        let kinds = DecisionKind::ALL;
        for (epoch, kind) in (0..3).flat_map(|epoch| kinds.map(|kind| (epoch, kind))) {
            let [copied, leases] =
                [&mut copy, &mut reader].map(|store| store.leases(id, epoch, kind, 0, 99).unwrap());
            let leases = leases.into_iter().map(|lease| Lease {
                actor: numbered(lease.actor),
                ..lease
            });
            assert_eq!(copied, leases.collect::<Vec<_>>());
            let [copied, late_and_overtime] = [&mut copy, &mut reader]
                .map(|store| store.uncounted(id, epoch, kind, 0, 99).unwrap());
            let uncounted = late_and_overtime
                .into_iter()
                .map(|outcome| UncountedOutcome {
                    actor: numbered(outcome.actor),
                    ..outcome
                });
            assert_eq!(copied, uncounted.collect::<Vec<_>>());
        }
    }
}

#[test]
fn addresses_keep_their_passwords() {
    for url in [
        "postgres://ann:sesame@127.0.0.1:1/db",
        "postgres://127.0.0.1:1/db?user=ann&password=sesame",
        "postgres://ann:sesame@127.0.0.1:1/db?password=a@sesame",
        "postgres://ann:ses?sesame@127.0.0.1:1/db",
        "postgres://127.0.0.1:1/db?sesame=1",
        "postgres://127.0.0.1:none/db?password=sesame",
        "host=127.0.0.1 port=1 password=sesame",
        "password=sesame host=127.0.0.1",
    ] {
        let location = Location::parse(url);
        assert!(matches!(location, Location::Postgres(_)));
        let error = location
            .open(Purpose::Serve)
            .err()
            .expect("nobody listens on port 1");
        for said in [
            format!("{location}"),
            format!("{location:?}"),
            format!("{error:#}"),
            format!("{error:?}"),
        ] {
            assert!(!said.contains("sesame"), "{url}: {said}");
        }
    }
}

fn the_journal_is_read_in_the_order_of_positions(place: &Place) {
    let mut store = place.open(Purpose::Serve);
    let event = |position| Event {
        at: 1,
        actor: "ann".into(),
        what: "paused".into(),
        reason: None,
        position,
    };
    let late = |number, position| UncountedOutcome {
        position,
        ..uncounted(number, 0.5)
    };
    write(&mut store, |store| {
        store
            .create(&experiment("a"), &progress(), &epoch(0))
            .unwrap();
        store.add_uncounted("a", &[late(1, 7), late(3, 2)]).unwrap();
        for position in [0, 5] {
            store.add_event("a", &event(position)).unwrap();
        }
    });
    let mut positions = |from, limit| -> Vec<u64> {
        let rows = store.journal("a", from, limit).unwrap();
        rows.iter().map(JournalRow::position).collect()
    };
    assert_eq!(positions(0, 10), [0, 2, 5, 7]);
    assert_eq!(positions(1, 2), [2, 5]);
    assert_eq!(positions(8, 2), [0; 0]);
    let counts = RowCounts {
        epochs: 1,
        uncounted: 2,
        events: 2,
        ..RowCounts::default()
    };
    assert_eq!(store.row_counts("a").unwrap(), counts);
    assert_eq!(store.row_counts("b").unwrap(), RowCounts::default());
}

fn whatever_this_program_does_not_make_is_foreign(place: &Place) {
    let mut store = place.open(Purpose::Serve);
    write(&mut store, |store| {
        store
            .create(&experiment("a"), &progress(), &epoch(0))
            .unwrap();
    });
    assert_eq!(store.foreign().unwrap(), [""; 0]);
    let trigger = match place.location {
        Location::Sqlite(_) => {
            "CREATE TRIGGER t AFTER INSERT ON leases BEGIN DELETE FROM events; END"
        }
        Location::Postgres(_) => {
            "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
             CREATE TRIGGER t BEFORE INSERT ON leases FOR EACH ROW EXECUTE FUNCTION nothing()"
        }
    };
    // Each with what takes it back.
    let changes = [
        (trigger, "DROP TRIGGER t", "trigger t"),
        (
            "CREATE VIEW v AS SELECT * FROM events",
            "DROP VIEW v",
            "view v",
        ),
        (
            "CREATE TABLE more (a INTEGER)",
            "DROP TABLE more",
            "table more",
        ),
        (
            "ALTER TABLE leases ADD COLUMN more TEXT",
            "ALTER TABLE leases DROP COLUMN more",
            "leases",
        ),
        (
            "CREATE INDEX more ON leases (at)",
            "DROP INDEX more",
            "index",
        ),
        (
            "DROP INDEX experiment_keys",
            "CREATE INDEX experiment_keys ON experiments (key)",
            "that it lacks index",
        ),
        (
            "INSERT INTO progress (experiment, progress) VALUES (77, '{}')",
            "DELETE FROM progress WHERE experiment = 77",
            "a row of progress of no experiment, number 77",
        ),
        (
            "UPDATE progress SET experiment = experiment + 100",
            "UPDATE progress SET experiment = experiment - 100",
            "an experiment without progress",
        ),
    ];
    for (change, back, expected) in changes {
        // PostgreSQL's statements know a table by its columns, so each look has a connection of its own.
        place.run(change);
        let found = place.open(Purpose::Read).foreign().unwrap();
        assert!(
            found.iter().any(|found| found.contains(expected)),
            "{change}: {found:?}"
        );
        let back = match place.location {
            Location::Postgres(_) if back == "DROP TRIGGER t" => "DROP TRIGGER t ON leases",
            _ => back,
        };
        place.run(back);
        assert_eq!(place.open(Purpose::Read).foreign().unwrap(), [""; 0]);
    }
}
