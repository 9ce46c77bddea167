//! The program `debora` as a library, so that tests and benches reach its parts: the verbs, the reports, the stores, the
//! log, the service and the audit.

#![allow(missing_docs)] // Not an interface: the doc comments are for readers of the source.

pub mod args;
pub mod audit;
mod calendar;
pub mod chart;
pub mod commands;
pub mod document;
pub mod files;
pub mod hex;
pub mod log;
pub mod papers;
pub mod reading;
pub mod report;
#[cfg(test)]
#[path = "../tests/kit/scratch.rs"]
mod scratch;
pub mod service;
pub mod store;
pub mod terminal;
