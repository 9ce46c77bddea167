//! What the library claims and a debug build can check in seconds.

mod bad_input;
mod commitment;
#[path = "../common/mod.rs"]
mod common;
mod engine;
mod exploration;
mod gaps;
mod golden;
mod lab;
mod layers;
mod mean;
mod moderate;
mod plan;
mod players;
mod rivals;
mod rivals_by_round;
mod spec;
mod strategies;
mod worlds;
