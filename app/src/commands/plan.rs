//! `debora plan`: every constant of a run, before it starts.

use anyhow::{Result, bail};
use debora::{Plan, Policy};
use serde_json::json;

use crate::args::{Common, SpecArgs};
use crate::commands::{Loaded, print, warnings};
use crate::files::OutDir;
use crate::report::words::{Ink, amount, counted, percent, table, whole, wrapped};

pub fn plan(args: &SpecArgs, gap: Option<f64>, common: &Common) -> Result<bool> {
    let loaded = Loaded::read(args)?;
    let horizon_for_gap = gap.map(|gap| horizon_for_gap(&loaded, gap)).transpose()?;
    let document = document(&loaded.plan, gap, horizon_for_gap);
    if let Some(out) = &common.out {
        OutDir::for_report(out, common.force)?.write("summary.json", format!("{document:#}\n").as_bytes())?;
    }
    if common.json {
        print(&format!("{document:#}\n"))?;
    } else {
        print(&wrapped(&words(&loaded, gap, horizon_for_gap, &Ink::for_stdout())))?;
    }
    Ok(true)
}

/// The plan of the JSON contract. Bounds are in the reward's units and in shares of a cost's range; widths on the unit scale.
pub fn document(plan: &Plan, gap: Option<f64>, horizon_for_gap: Option<Option<u64>>) -> serde_json::Value {
    let mut document = json!(plan);
    let span = plan.problem.quantity(0).range.span();
    document["regret_bound"] = json!(plan.regret_bound * span);
    document["detectable_gap"] = json!(plan.detectable_gap.map(|gap| gap * span));
    if let (Some(gap), Some(horizon)) = (gap, horizon_for_gap) {
        document["gap"] = json!(gap);
        document["horizon_for_gap"] = json!(horizon);
    }
    document["values_version"] = json!(debora::VALUES_VERSION);
    document
}

/// The smallest horizon, up to a factor of 1.05, at which the detectable gap is at most this.
fn horizon_for_gap(loaded: &Loaded, gap: f64) -> Result<Option<u64>> {
    let range = loaded.spec.problem.quantity(0).range;
    if !(gap > 0.0 && gap <= range.span()) {
        bail!("--gap {gap} is not above 0 and at most {}, the length of the reward's range", range.span());
    }
    let sees = |horizon: u64| {
        let overrides = [&loaded.overrides[..], &[("horizon".to_owned(), horizon.to_string())]].concat();
        let loaded = Loaded::from_text(loaded.text.clone(), loaded.file.clone(), overrides)?;
        Ok::<_, anyhow::Error>(loaded.plan.detectable_gap.is_some_and(|seen| seen * range.span() <= gap))
    };
    let mut horizon = 10.0f64;
    while horizon < (1u64 << 53) as f64 {
        if sees(horizon as u64)? {
            return Ok(Some(horizon as u64));
        }
        horizon *= 1.05;
    }
    Ok(None)
}

fn words(loaded: &Loaded, gap: Option<f64>, horizon_for_gap: Option<Option<u64>>, ink: &Ink) -> String {
    let (plan, problem) = (&loaded.plan, &loaded.spec.problem);
    let (reward, horizon) = (problem.quantity(0), problem.horizon() as f64);
    let span = reward.range.span();
    let mut text = String::new();
    let world = loaded.world().ok();
    for warning in warnings(plan, world.as_ref().map(|simulated| &*simulated.world)) {
        text += &format!("{}\n\n", ink.alarm(&warning));
    }
    let costs = counted(problem.quantities() as u64 - 1, "cost", "costs");
    text += &format!(
        "{}: policy {}, {} actions, {costs}, {} rounds\n\n",
        ink.strong(loaded.name()),
        problem.policy().name(),
        problem.actions().len(),
        whole(problem.horizon())
    );
    text += &format!(
        "Two runs with one key take the same decisions with probability {} or more.\n",
        percent(1.0 - problem.rho())
    );
    if let (Some(rounds), false) = (plan.exploration_rounds, plan.blind) {
        let about = if problem.policy() == Policy::Hard { "about " } else { "" };
        text += &format!(
            "Exploration takes {about}{} rounds, {} of the horizon.\n",
            whole(rounds),
            percent(rounds as f64 / horizon)
        );
    }
    if let Some(gap) = plan.detectable_gap {
        text += &format!("At the end, gaps of {} in {} show.\n", amount(gap * span), reward.name);
    }
    if let (Some(gap), Some(needed)) = (gap, horizon_for_gap) {
        text += &match needed {
            Some(horizon) => {
                format!("To see a gap of {} in {} takes {} rounds.\n", amount(gap), reward.name, whole(horizon))
            }
            None => format!("No horizon up to 2^53 shows a gap of {} in {}.\n", amount(gap), reward.name),
        };
    }
    text += &format!(
        "With probability {} the regret is at most {} {} in all, {} a round",
        percent(plan.bound_probability),
        amount(plan.regret_bound * span),
        reward.name,
        amount(plan.regret_bound * span / horizon)
    );
    text += &match plan.violation_bound {
        None => ".\n".into(),
        Some(0.0) => format!(";\nwith probability {} every round is safe.\n", percent(1.0 - problem.delta())),
        Some(bound) => format!(
            ",\nand costs exceed their thresholds by at most {} of their ranges on average.\n",
            percent(bound / horizon)
        ),
    };
    let constants = [
        ("profile", plan.profile.to_owned()),
        ("growth", plan.growth.map_or("2".into(), |growth| growth.to_string())),
        ("share of rho", amount(plan.rho_share)),
        ("share of delta", amount(plan.delta_share)),
        ("first informative count", plan.first_informative_count.map_or("none".into(), whole)),
        ("epochs at most", whole(plan.epochs_max)),
    ];
    let rows: Vec<Vec<String>> = constants.map(|(name, value)| vec![name.to_owned(), value]).into();
    text += &format!("\n{}", table(&["constant", "value"], &rows));
    if !plan.levels.is_empty() {
        let shown = plan.levels.iter().rev().take(12).rev();
        let row = |level: &debora::plan::Level| {
            vec![level.level.to_string(), whole(level.count), amount(level.cell), amount(level.width)]
        };
        let rows: Vec<Vec<String>> = shown.map(row).collect();
        text += &format!("\n{}", table(&["level", "samples", "cell", "width"], &rows));
        text += &ink.faint("  cell and width as shares of a range\n");
    }
    text
}
