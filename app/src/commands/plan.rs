//! `debora plan`: every constant of a run, before it starts.

use anyhow::{Result, anyhow};
use debora::measure::answer::Sentence;
use debora::measure::{answer, json, warnings, world_gaps};

use crate::args::{Common, SpecArgs};
use crate::commands::{load, open, print};
use crate::files::OutDir;
use crate::terminal::{ink_for_stdout, laid_out};

pub fn plan(args: &SpecArgs, gap: Option<f64>, common: &Common) -> Result<bool> {
    let spec = load(args)?;
    let gap = match gap {
        None => None,
        Some(gap) => {
            let horizon = spec.plan.horizon_for_gap(gap);
            // The message begins with the word gap, which here is a flag.
            Some((gap, horizon.map_err(|error| anyhow!("--{error}"))?))
        }
    };
    // A plan needs no world: one that cannot be read is left out, and said to be.
    let simulated = spec.world(&open);
    let unread = simulated
        .as_ref()
        .err()
        .filter(|_| spec.spec.world.is_some());
    if let Some(error) = unread {
        eprintln!(
            "warning: the plan leaves out the world, which `debora run` would refuse: {error}"
        );
    }
    let world = simulated.as_ref().ok();
    let world = world.map(|simulated| &*simulated.world);
    let gaps = world.map_or(Vec::new(), |world| world_gaps(&spec.plan, world));
    let mut document = json::plan(&spec.plan, gap);
    // Without a world there is nothing to see, which is not the same as seeing nothing.
    if world.is_some() {
        document = json::with_gaps(document, &gaps);
    }
    if let Some(out) = &common.out {
        OutDir::for_report(out, common.force)?
            .write("summary.json", format!("{document:#}\n").as_bytes())?;
    }
    if common.json {
        print(&format!("{document:#}\n"))?;
        return Ok(true);
    }
    let warnings = warnings(&spec.plan, world);
    let mut answer = answer::plan(spec.name(), &spec.plan, &warnings, gap, &gaps);
    let held_back = answer::holdback(spec.problem(), &spec.spec.service);
    answer.paragraph(held_back.map(Sentence::plain));
    print(&laid_out(&answer, ink_for_stdout()))?;
    Ok(true)
}
