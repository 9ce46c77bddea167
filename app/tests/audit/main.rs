//! The audit and the comparison of live experiments.

mod lives;
mod tampering;
mod trial;
