//! The audit and the comparison of live experiments.

#[path = "../common/binary.rs"]
mod binary;
mod diff;
mod held_back;
mod hidden;
mod lives;
mod migrated;
mod program;
#[path = "../common/scratch.rs"]
mod scratch;
mod tampering;
mod trial;
mod version_1;
