//! What `debora plan` says.

use crate::job::words::{Ink, amount, counted, percent, table, whole};
use crate::plan::Level;
use crate::{Plan, Policy};

/// A plan; `gap` is a difference in reward with the horizon that shows it, if one does.
pub fn plan(
    name: &str,
    plan: &Plan,
    warnings: &[String],
    gap: Option<(f64, Option<u64>)>,
    ink: Ink,
) -> String {
    let problem = &plan.problem;
    let (reward, horizon) = (problem.quantity(0), problem.horizon() as f64);
    let span = reward.range.span();
    let mut text: String = warnings
        .iter()
        .map(|warning| format!("{}\n\n", ink.alarm(warning)))
        .collect();
    let costs = counted(problem.quantities() as u64 - 1, "cost", "costs");
    text += &format!(
        "{}: policy {}, {} actions, {costs}, {} rounds\n\n",
        ink.strong(name),
        problem.policy().name(),
        problem.actions().len(),
        whole(problem.horizon())
    );
    text += &format!(
        "Two runs with one key take the same decisions with probability {} or more.\n",
        percent(1.0 - problem.rho())
    );
    if let (Some(rounds), false) = (plan.exploration_rounds, plan.blind) {
        let about = if problem.policy() == Policy::Hard {
            "about "
        } else {
            ""
        };
        text += &format!(
            "Exploration takes {about}{} rounds, {} of the horizon.\n",
            whole(rounds),
            percent(rounds as f64 / horizon)
        );
    }
    if let Some(gap) = plan.detectable_gap {
        text += &format!(
            "At the end, gaps of {} in {} show.\n",
            amount(gap * span),
            reward.name
        );
    }
    if let Some((gap, needed)) = gap {
        text += &match needed {
            Some(horizon) => {
                format!(
                    "To see a gap of {} in {} takes {} rounds.\n",
                    amount(gap),
                    reward.name,
                    whole(horizon)
                )
            }
            None => format!(
                "No horizon up to 2^53 shows a gap of {} in {}.\n",
                amount(gap),
                reward.name
            ),
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
        Some(0.0) => format!(
            ";\nwith probability {} every round is safe.\n",
            percent(1.0 - problem.delta())
        ),
        Some(bound) => format!(
            ",\nand costs exceed their thresholds by at most {} of their ranges on average.\n",
            percent(bound / horizon)
        ),
    };
    let constants = [
        ("profile", plan.profile.name().to_owned()),
        (
            "growth",
            plan.growth.map_or("2".into(), |growth| growth.to_string()),
        ),
        ("share of rho", amount(plan.rho_share)),
        ("share of delta", amount(plan.delta_share)),
        (
            "first informative count",
            plan.first_informative_count.map_or("none".into(), whole),
        ),
        ("epochs at most", whole(plan.epochs_max)),
    ];
    let rows: Vec<Vec<String>> = constants
        .map(|(name, value)| vec![name.to_owned(), value])
        .into();
    text += &format!("\n{}", table(&["constant", "value"], &rows));
    if !plan.levels.is_empty() {
        let shown = plan.levels.iter().rev().take(12).rev();
        let row = |level: &Level| {
            vec![
                level.level.to_string(),
                whole(level.count),
                amount(level.cell),
                amount(level.width),
            ]
        };
        let rows: Vec<Vec<String>> = shown.map(row).collect();
        text += &format!("\n{}", table(&["level", "samples", "cell", "width"], &rows));
        text += &ink.faint("  cell and width as shares of a range\n");
    }
    text
}
