//! What clients of a simulated service know: what they were given, what they told, and how long what is imputed was waited for.

use std::collections::{BTreeMap, BTreeSet};

use debora_cli::service::request::Receipt;
use debora_cli::store::{DecisionKind, Lease, Location, OutcomeRow, Progress, Purpose};

/// The experiment.
pub const ID: &str = "simulated";

/// Short epochs, a limit, and outcomes that are imputed.
pub const SPEC: &str = r#"
policy = "soft"
horizon = 150
rho = 0.9
profile = "paper"
actions = ["a", "b"]
[[cost]]
name = "price"
threshold = 0.5
[service]
outcome_wait = "30s"
impute = { reward = 0.25 }
"#;

/// How long its outcomes are waited for.
pub const WAIT: i64 = 30_000;

/// The world: the reward of a round, whoever tells it and however often.
pub fn reward(round: u64) -> f64 {
    (round * 7_919 % 101) as f64 / 101.0
}

/// All that is stored of the experiment.
pub struct Stored {
    pub progress: Progress,
    leases: BTreeMap<u64, Vec<u32>>,
    outcomes: BTreeMap<u64, OutcomeRow>,
}

impl Stored {
    pub fn read(location: &Location) -> Self {
        let mut store = location.open(Purpose::Read).unwrap();
        let (_, progress) = store.experiment(ID).unwrap().unwrap();
        let mut leases = BTreeMap::new();
        for epoch in 0..=progress.epoch {
            let rows = store.leases(ID, epoch, DecisionKind::Round, 1, usize::MAX);
            let rows = rows.unwrap().into_iter();
            leases.extend(rows.map(|lease| (lease.first, lease.actions)));
        }
        let outcomes = store.outcomes(ID, 0, usize::MAX).unwrap().into_iter();
        Self {
            progress,
            leases,
            outcomes: outcomes.map(|row| (row.round, row)).collect(),
        }
    }
}

/// What was acknowledged, and when what was decided.
#[derive(Default)]
pub struct Model {
    leases: BTreeMap<u64, Vec<u32>>,
    told: BTreeSet<u64>,
    late: BTreeSet<u64>,
    /// True time, by round, whether or not anyone was told of the round.
    decided_at: Vec<i64>,
    imputed: BTreeSet<u64>,
    /// How often one was, whether or not the database went back after it.
    pub imputations: u64,
}

impl Model {
    pub fn granted(&mut self, lease: &Lease) {
        let before = self.leases.insert(lease.first, lease.actions.clone());
        assert!(
            before.is_none_or(|before| before == lease.actions),
            "round {} was given again, with other actions",
            lease.first
        );
    }

    /// Rounds that somebody was given and told nothing of.
    pub fn untold(&self) -> Vec<u64> {
        let rounds = self.leases.iter();
        rounds
            .flat_map(|(first, actions)| (*first..).take(actions.len()))
            .filter(|round| !self.told.contains(round) && !self.late.contains(round))
            .collect()
    }

    pub fn answered(&mut self, round: u64, receipt: Receipt) {
        match receipt {
            // One that was late, and whose first answer was lost.
            Receipt::Repeated if self.imputed.contains(&round) => self.late.insert(round),
            Receipt::Recorded | Receipt::Repeated => self.told.insert(round),
            Receipt::Late => self.late.insert(round),
            // Its lease is gone, and nobody was told yet.
            Receipt::Unknown => false,
            other => panic!("round {round}: {other:?}"),
        };
    }

    /// Compares what is stored with what was acknowledged; `wait` is how long outcomes must be waited for.
    pub fn check(&mut self, stored: &Stored, now: i64, wait: i64) {
        for (first, actions) in &self.leases {
            let kept = stored.leases.get(first);
            assert_eq!(kept, Some(actions), "of the lease of round {first}");
        }
        for round in &self.told {
            let kept = stored.outcomes.get(round);
            let kept = kept.unwrap_or_else(|| panic!("the outcome of round {round} is gone"));
            assert!(!kept.imputed && kept.reward == reward(*round), "{kept:?}");
        }
        let rounds = stored.progress.next_round as usize - 1;
        self.decided_at
            .resize(rounds.max(self.decided_at.len()), now);
        assert_eq!(self.decided_at.len(), rounds, "rounds are gone");
        for row in stored.outcomes.values().filter(|row| row.imputed) {
            let waited = now - self.decided_at[row.round as usize - 1];
            let is_new = self.imputed.insert(row.round);
            self.imputations += u64::from(is_new);
            assert!(
                !is_new || waited >= wait,
                "round {} is imputed after {waited} ms",
                row.round
            );
        }
    }

    /// Forgets what a database that went back has lost.
    pub fn go_back(&mut self, stored: &Stored) {
        let is_decided = |round: &u64| *round < stored.progress.next_round;
        self.leases.retain(|first, _| is_decided(first));
        let row = |round: &u64| stored.outcomes.get(round);
        let is_told = |round: &u64| row(round).is_some_and(|row| !row.imputed);
        let is_imputed = |round: &u64| row(round).is_some_and(|row| row.imputed);
        self.told.retain(is_told);
        self.late.retain(is_imputed);
        self.imputed.retain(is_imputed);
        self.decided_at
            .truncate(stored.progress.next_round as usize - 1);
    }
}
