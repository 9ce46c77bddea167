//! The audit and the comparison of live experiments.

mod diff;
mod held_back;
mod hidden;
mod lives;
mod other_version;
mod program;
mod tampering;
