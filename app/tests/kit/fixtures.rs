//! What the tests of stores have in common: an experiment that has just been created.

use debora::Key;
use debora_cli::store::{EpochRow, ExperimentRow, Progress, Status};

pub fn experiment(id: &str) -> ExperimentRow {
    let key = Key::from_hex("00ff00000000000000000000000000a1").unwrap();
    let (spec, created_at) = ("name = \"é\"\n".into(), 1_700_000_000_000);
    ExperimentRow {
        id: id.into(),
        spec,
        key,
        salt: [7; 16],
        created_at,
        values_version: 1,
    }
}

pub fn progress() -> Progress {
    Progress {
        status: Status::Running,
        epoch: 0,
        next_round: 1,
        decided: vec![0, 1 << 53],
        outcomes: vec![0, 0],
        imputed: vec![0, 0],
        imputed_before: vec![0, 0],
        late: 0,
        overtime: 0,
        next_serial: 1,
        holdback: 0,
        next_holdback: 1,
        impute_from: 1,
        infeasible: 0,
        head: "ab".repeat(32),
        digest: "cd".repeat(32),
        next_position: 0,
        journal: String::new(),
    }
}

pub fn epoch(epoch: u64) -> EpochRow {
    EpochRow {
        epoch,
        record: format!("{{\"epoch\":{epoch}}}"),
        snapshot: Some(vec![0, 255, 10, epoch as u8]),
        opened_at: -5,
        closed_at: None,
        rounds_hash: None,
        hash: None,
        leases_hash: None,
        journal_end: None,
        journal: None,
    }
}
