//! A spec measured, as the program and Python both do it: what to run, parts of it, the documents of the JSON contract, and
//! the answer for people.
//!
//! ```text
//! SpecText (a spec as read) -> Measurement (what to run) -> Part (what was measured of it)
//! Parts -> merge -> Findings -> json, answer
//! ```
//!
//! A part is a function of its measurement and its number, so parts measured anywhere merge to the bytes of the whole. Files,
//! the clock, the wish to stop, and players and worlds that are code are the caller's ([`Io`]): nothing here opens or times
//! anything.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use debora::lab::replicate::Simulator;
//! use debora::measure::{Io, Measurement, Own, SpecText, json};
//!
//! let text = "policy = 'free'\nhorizon = 1e9\nrho = 0.1\nactions = ['a', 'b']\n[world]\nkind = 'bernoulli'\nreward = [0.4, 0.6]";
//! let spec = SpecText::parse(text.into(), "two.toml".into(), Vec::new())?;
//! let measurement = Measurement::replicate(spec, 20, Simulator::Epochs, None);
//! let open = |_: &std::path::Path| unreachable!("only tables are read from files");
//! let io = Io { open: &open, clock: &|| 0.0, progress: &|_| (), cancel: &AtomicBool::new(false), threads: None, own: &Own::default() };
//! let (part, _) = measurement.measure(None, &io)?;
//! assert!(json::measured(&part, &part.findings())["identical_rate"].as_f64() >= Some(0.9));
//! # Ok::<(), debora::measure::MeasureError>(())
//! ```

pub mod answer;
pub mod curves;
mod difference;
mod error;
mod first_run;
mod gaps;
pub mod json;
pub mod latex;
mod measurement;
mod part;
mod players;
mod spec_text;
mod sweep;
mod warnings;
pub mod words;

pub use difference::DifferentFact;
pub use error::MeasureError;
pub use first_run::{FirstRun, KnownMean};
pub use gaps::{WorldGap, world_gaps};
pub use measurement::{Io, MeasuredVerb, Measurement, Own};
pub use part::{Findings, Part};
pub use players::{Choice, DEBORA, check_names, check_speed, choose};
pub use spec_text::{OpenTable, SpecText};
pub use sweep::{
    Over, SpecGrid, Sweep, SweepPoint, Swept, SweptAxis, SweptLine, SweptLines, SweptPoint,
    SweptRow,
};
pub use warnings::{finds_nothing, only_tallied, warnings};
