//! The tables, a file each: its rows, the columns that hold them, and the statements that read and write them.

pub mod actors;
pub mod clock;
pub mod cursors;
pub mod epochs;
pub mod events;
pub mod experiments;
pub mod identity;
pub mod journal;
pub mod keys;
pub mod kind;
pub mod leases;
pub mod messages;
pub mod outcomes;
pub mod progress;
pub mod row_counts;
pub mod sessions;
pub mod uncounted;
pub mod webhooks;
