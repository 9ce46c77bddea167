//! The audit and the comparison of live experiments.

mod diff;
mod held_back;
mod hidden;
mod lives;
mod migrated;
mod program;
mod tampering;
mod version_1;
