//! `debora plan`: every constant of a run, before it starts.

use anyhow::{Result, anyhow};
use debora::job::words::wrapped;
use debora::job::{answer, document, warnings};

use crate::args::{Common, SpecArgs};
use crate::commands::{load, open, print};
use crate::files::OutDir;
use crate::report::words::ink_for_stdout;

pub fn plan(args: &SpecArgs, gap: Option<f64>, common: &Common) -> Result<bool> {
    let loaded = load(args)?;
    let horizon = |gap| {
        loaded
            .plan
            .horizon_for_gap(gap)
            .map(|horizon| (gap, horizon))
    };
    // The message begins with the word gap, which here is a flag.
    let gap = gap
        .map(horizon)
        .transpose()
        .map_err(|error| anyhow!("--{error}"))?;
    let document = document::plan(&loaded.plan, gap);
    if let Some(out) = &common.out {
        OutDir::for_report(out, common.force)?
            .write("summary.json", format!("{document:#}\n").as_bytes())?;
    }
    if common.json {
        print(&format!("{document:#}\n"))?;
    } else {
        let world = loaded.world(&open).ok();
        let warnings = warnings(
            &loaded.plan,
            world.as_ref().map(|simulated| &*simulated.world),
        );
        print(&wrapped(&answer::plan(
            loaded.name(),
            &loaded.plan,
            &warnings,
            gap,
            ink_for_stdout(),
        )))?;
    }
    Ok(true)
}
