//! What is about chance or about thousands of programs, for release mode: in a debug build it takes minutes.

#[path = "../common/mod.rs"]
mod common;
// Values are promised of both modes.
#[path = "../fast/golden.rs"]
mod golden;
mod grid;
mod lp;
mod observed;
mod safety;
mod samplers;
mod simulators;
mod statistics;
mod trial;
