//! Forged stores and logs: what the audit finds of them, and what they can make it and `diff` print.

mod insider;
mod life;
mod log_changes;
mod pairs;
mod printing;
mod replication;
mod store_changes;
