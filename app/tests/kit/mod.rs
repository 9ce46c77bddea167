//! What the tests have in common: the program, servers of it, stores, clocks, and whole lives of experiments.
#![allow(dead_code)] // Each test binary uses its own part.

pub mod alone;
pub mod binary;
pub mod client;
pub mod dice;
pub mod fixtures;
pub mod kept;
pub mod play;
pub mod requests;
pub mod schema;
pub mod scratch;
pub mod server;
pub mod stores;
pub mod trial;
