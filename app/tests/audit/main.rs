//! The audit and the comparison of live experiments.

#[path = "../common/binary.rs"]
mod binary;
mod diff;
mod lives;
mod program;
#[path = "../common/scratch.rs"]
mod scratch;
mod tampering;
mod trial;
mod version_1;
