//! `debora diff`: where two live experiments diverge, and why.

use anyhow::{Context as _, Result, anyhow, bail};

use crate::args::Common;
use crate::audit::{self, Credentials, Diff, Log, LogSource};
use crate::commands::print;
use crate::terminal::{ink_for_stdout, json_text, laid_out, one_line};
use debora::measure::words::listed;

/// False if they diverge.
pub fn diff(first: &str, second: &str, credentials: &Credentials, common: &Common) -> Result<bool> {
    // Errors quote what they cannot read, so they are shown as the logs' own text is.
    let diff = compared([first, second], credentials).map_err(|error| anyhow!(one_line(&error)))?;
    if common.json {
        print(&(json_text(&diff) + "\n"))?;
    } else {
        print(&laid_out(&audit::compared(&diff), ink_for_stdout()))?;
    }
    Ok(diff.divergence.is_none())
}

fn compared(sources: [&str; 2], credentials: &Credentials) -> Result<Diff> {
    let [first, second] = sources.map(|source| open(source, credentials));
    audit::diff([first.context("A")?, second.context("B")?])
}

/// The one log that is meant.
fn open(text: &str, credentials: &Credentials) -> Result<Log> {
    let (source, named) = LogSource::of(text)?;
    // A store may hold many, and to guess which one is meant could compare the wrong ones.
    match &source.experiments(named.as_deref())?[..] {
        [experiment] => source.open(experiment.as_deref(), credentials),
        many => {
            let names: Vec<String> = many.iter().flatten().cloned().collect();
            bail!(
                "{text} holds the experiments {}; name one, as in {text}#{}",
                listed(&names),
                names[0]
            )
        }
    }
}
