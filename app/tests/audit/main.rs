//! The audit and the comparison of live experiments.

mod diff;
mod lives;
mod program;
mod tampering;
mod trial;
