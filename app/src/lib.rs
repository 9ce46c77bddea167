//! The program `debora` as a library, so that tests and benches reach its parts: the verbs, the reports, the stores and the
//! service.

pub mod args;
pub mod commands;
pub mod files;
pub mod report;
pub mod service;
pub mod store;
