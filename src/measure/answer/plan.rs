//! What `debora plan` says.

use crate::measure::WorldGap;
use crate::measure::answer::{
    Answer, AnswerCell, AnswerTable, Sentence, Tone, gaps, row_for_each, trial,
};
use crate::measure::words::{amount, counted, percent, whole};
use crate::spec::ServiceSpec;
use crate::{Plan, Policy, Problem};

/// How many levels are shown: the last ones, in which a run spends nearly all of its rounds.
const LEVELS_SHOWN: usize = 12;

/// A plan; `gap` is a difference in reward with the horizon that shows it, if one does, and `world` what there is to see.
pub fn plan(
    name: &str,
    plan: &Plan,
    warnings: &[String],
    gap: Option<(f64, Option<u64>)>,
    world: &[WorldGap],
) -> Answer {
    let mut answer = Answer::with_warnings(warnings);
    answer.paragraph([headline(name, plan)]);
    // What can be relied on first, then what it costs.
    let sentences = [
        Some(replicability(plan)),
        exploration(plan),
        trial::when(plan),
        trial::sooner(plan),
        detectable(plan),
        gap.map(|(gap, horizon)| gap_needs(plan, gap, horizon)),
        Some(bounds(plan)),
    ];
    answer.paragraph(sentences.into_iter().flatten().map(Sentence::plain));
    answer.paragraph(gaps::sentences(world).into_iter().map(Sentence::plain));
    if !world.is_empty() {
        answer.table(gaps::table(world));
        answer.note("differences of this world's means, the hardest to see first");
    }
    answer.table(constants(plan));
    if !plan.levels.is_empty() {
        answer.table(levels(plan));
        answer.note(match plan.offset_c {
            Some(_) => "cell and width on the line where variance is constant: around a mean of 1/2, about shares of the range",
            None => "cell and width as shares of a range",
        });
    }
    if let Some(trial) = plan.trial.as_ref().filter(|trial| !trial.looks.is_empty()) {
        answer.table(trial::looks(plan, trial));
        answer.note(
            "for the median draw of where looks are; rounds each, and the lead that commits, which the key draws between the two \
             (around the middle of the range; near its ends smaller ones do)",
        );
    }
    answer
}

/// What is held back from a live experiment, and what that means for its promises.
pub fn holdback(problem: &Problem, service: &ServiceSpec) -> Option<String> {
    let held_back = service.holdback?;
    let limits = match problem.policy() {
        Policy::Hard => "; it is the whole safe strategy, so they are as safe as that is",
        _ if problem.quantities() > 1 => "; what it costs them counts toward no limit",
        _ => "",
    };
    Some(format!(
        "{} of request keys are held back and always get {:?}{limits}. They are outside the horizon and every estimate, so the \
         decisions are those of an experiment without them, and what it gains over them is shown.",
        percent(held_back.share),
        problem.actions()[held_back.action as usize],
    ))
}

fn headline(name: &str, plan: &Plan) -> Sentence {
    let problem = &plan.problem;
    let rest = format!(
        ": policy {}, {} actions, {}, {} rounds",
        problem.policy().name(),
        problem.actions().len(),
        counted(problem.quantities() as u64 - 1, "cost", "costs"),
        whole(problem.horizon())
    );
    Sentence::of(Tone::Strong, name).and(Tone::Plain, rest)
}

fn replicability(plan: &Plan) -> String {
    format!(
        "Two runs with one key take the same decisions with probability {} or more.",
        percent(1.0 - plan.problem.rho())
    )
}

/// How long exploration takes. A blind plan never ends it, and its warning says so.
fn exploration(plan: &Plan) -> Option<String> {
    let rounds = plan.exploration_rounds.filter(|_| !plan.blind)?;
    // Under hard limits chance decides when the safe strategy is played, and the plan follows the expected path.
    let about = match plan.problem.policy() {
        Policy::Hard => "about ",
        _ => "",
    };
    Some(format!(
        "Exploration takes {about}{} rounds, {} of the horizon.",
        whole(rounds),
        percent(plan.exploration_share())
    ))
}

/// Of policy free the trial's own sentence says it.
fn detectable(plan: &Plan) -> Option<String> {
    let reward = plan.problem.quantity(0);
    let found = plan.detectable.filter(|_| plan.trial.is_none())? * reward.range.span();
    Some(format!(
        "By the end, differences of {} or more in {} are found.",
        amount(found),
        reward.name
    ))
}

fn gap_needs(plan: &Plan, gap: f64, horizon: Option<u64>) -> String {
    let gap = format!(
        "a difference of {} in {}",
        amount(gap),
        plan.problem.quantity(0).name
    );
    match horizon {
        Some(horizon) => format!("To find {gap} takes {} rounds.", whole(horizon)),
        // 2^53 is the largest horizon: rounds are counted exactly up to it, in doubles as well.
        None => format!("No horizon up to 2^53 finds {gap}."),
    }
}

fn bounds(plan: &Plan) -> String {
    let problem = &plan.problem;
    let reward = problem.quantity(0);
    let horizon = problem.horizon() as f64;
    // The theorems bound the total; what a round loses is what one can picture.
    let regret = plan.regret_bound * reward.range.span();
    let bound = format!(
        "With probability {} the regret is at most {} {} in all, {} a round",
        percent(plan.bound_probability),
        amount(regret),
        reward.name,
        amount(regret / horizon)
    );
    match plan.violation_bound {
        None => bound + ".",
        // Hard limits hold in every round, except in an event of probability delta: there is no average to bound.
        Some(0.0) if problem.policy() == Policy::Hard => format!(
            "{bound}; with probability {} every round is safe.",
            percent(1.0 - problem.delta())
        ),
        Some(violation) => format!(
            "{bound}, and costs exceed their thresholds by at most {} of their ranges on average.",
            percent(violation / horizon)
        ),
    }
}

fn constants(plan: &Plan) -> AnswerTable {
    // Profile paper has no growth to choose: its epochs end when a count has doubled.
    let growth = plan.growth.map_or("2".into(), |growth| growth.to_string());
    let trial = plan.trial.as_ref();
    let estimates = plan.rho_share.is_some();
    let informative = || AnswerCell::or_none(plan.first_informative_count);
    let offset_c = plan.offset_c.or(trial.map(|trial| trial.offset_c));
    let rows: [(&str, Option<AnswerCell>); 12] = [
        ("profile", Some(plan.profile.name().into())),
        ("growth", Some(growth.into())),
        ("explore", plan.explore.map(AnswerCell::from)),
        ("caution", plan.caution.map(AnswerCell::from)),
        ("share of rho", plan.rho_share.map(AnswerCell::from)),
        ("share of delta", plan.delta_share.map(AnswerCell::from)),
        ("offset of the line", offset_c.map(AnswerCell::from)),
        ("rounds each tried", trial.map(|trial| trial.count.into())),
        (
            "least threshold of looks",
            trial.map(|trial| trial.threshold.into()),
        ),
        ("scale of the pick", trial.map(|trial| trial.scale.into())),
        ("first informative count", estimates.then(informative)),
        ("epochs at most", Some(plan.epochs_max.into())),
    ];
    // What a plan does not have is no row.
    let rows = rows
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    row_for_each(rows)
        .words("constant", |(name, _)| *name)
        .numbers("value", |(_, value)| value.clone())
        .table()
}

fn levels(plan: &Plan) -> AnswerTable {
    let first = plan.levels.len().saturating_sub(LEVELS_SHOWN);
    row_for_each(&plan.levels[first..])
        .words("level", |level| level.level)
        .numbers("samples", |level| level.count)
        .numbers("cell", |level| level.cell)
        .numbers("width", |level| level.width)
        .table()
}
