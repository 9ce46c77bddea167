//! Measurements of a spec, as the program and Python both make and tell them: what determines one, what was measured, the
//! documents of the JSON contract, and the answer in words.
//!
//! ```text
//! Loaded (a spec as read) -> Job (what determines a measurement) -> Part (what a share of it measured)
//! Parts -> merge -> Findings -> document, answer
//! ```
//!
//! A part is a function of its job and share, so shares measured anywhere merge to the bytes of the whole. Files, clock and
//! the wish to stop are the caller's ([`Host`]); nothing here opens or times anything.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use debora::job::{Host, Job, Loaded, document};
//! use debora::lab::replicate::Simulator;
//!
//! let text = "policy = 'free'\nhorizon = 1e9\nrho = 0.1\nactions = ['a', 'b']\n[world]\nkind = 'bernoulli'\nreward = [0.4, 0.6]";
//! let loaded = Loaded::from_text(text.into(), "two.toml".into(), Vec::new())?;
//! let job = Job::replicate(&loaded, 20, Simulator::Epochs, None);
//! let open = |_: &std::path::Path| unreachable!("only tables are read from files");
//! let host = Host { open: &open, clock: &|| 0.0, progress: &|_| (), cancel: &AtomicBool::new(false) };
//! let (part, _) = job.measure(None, &host)?;
//! let findings = part.findings()?;
//! assert!(document::measured(&part, &findings)["identical_rate"].as_f64() >= Some(0.9));
//! # Ok::<(), debora::job::JobError>(())
//! ```

pub mod answer;
pub mod document;
mod error;
mod loaded;
mod part;
mod players;
mod story;
mod warnings;
pub mod words;

pub use error::JobError;
pub use loaded::{Loaded, Open};
pub use part::{Findings, Host, Job, Part};
pub use players::{Choice, DEBORA, choose};
pub use story::{Known, Story};
pub use warnings::warnings;
