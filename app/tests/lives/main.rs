//! Whole lives of experiments, over and over: audited, forged, disturbed, killed and taken back. Slow: `./check quick` leaves this
//! binary out.

mod audit;
mod crash;
mod faults;
mod forgery;
mod fuzz;
#[path = "../kit/mod.rs"]
mod kit;
mod time;
mod transaction;
mod went_back;
