//! Forged stores and logs: what the audit finds of them, and what they can make it and `diff` print.

#[path = "../common/binary.rs"]
mod binary;
mod insider;
mod life;
mod log_changes;
mod pairs;
mod printing;
mod replication;
#[path = "../common/scratch.rs"]
mod scratch;
mod store_changes;
#[path = "../audit/trial.rs"]
#[allow(dead_code, reason = "shared with the audit's tests")]
mod trial;
