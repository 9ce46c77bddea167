//! The real program as it is typed: every verb, its files, its figures, and what it says.

mod auditor;
mod cli;
mod figures;
mod import;
mod keys_and_backup;
#[path = "../kit/mod.rs"]
mod kit;
mod one_file;
mod report;
mod sweep;
mod typed;
