//! One self-contained page: the answer, the figures, the recommendation, the plan, and how to make it again. No network.

use debora::lab::observed::{MISS, interval_at_any_time};
use debora::measure::answer::{
    Answer, AnswerCell, AnswerFigure, AnswerTable, Sentence, look_test, picked, row_for_each,
};
use debora::measure::words::{amount, percent};
use debora::measure::{FirstRun, KnownMean, SpecText};
use debora::record::Estimate;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::legend::legend;
use crate::document::{HtmlTable, blocks, facts, figure, values_table};
use crate::report::plots::Figure;

/// What the page is made of.
pub struct ReportPage<'a> {
    pub verb: &'static str,
    /// What the program says.
    pub answer: &'a Answer,
    pub figures: &'a [Figure],
    /// What makes the same again.
    pub command: &'a str,
    pub spec: &'a SpecText,
    /// Its last strategy is the recommendation.
    pub first_run: &'a FirstRun,
}

/// What the page of a sweep is made of.
pub struct SweepPage<'a> {
    pub verb: &'static str,
    /// What was swept.
    pub title: &'a str,
    /// What the program says.
    pub answer: &'a Answer,
    pub figures: &'a [Figure],
    /// What makes the same again.
    pub command: &'a str,
    /// Name and text of each.
    pub specs: &'a [(String, String)],
}

/// The page of a sweep.
pub fn render_sweep(page: &SweepPage) -> Markup {
    let body = html! {
        h2 { "To reproduce this report" }
        pre { (page.command) }
        @for (name, text) in page.specs { details { summary { (name) } pre { (text) } } }
    };
    framed(page.verb, page.title, page.answer, page.figures, &body)
}

/// The page.
pub fn render(page: &ReportPage) -> Markup {
    let body = html! {
        h2 { "Recommendation: the strategy at the end of the first run" }
        (advice(page))
        p { "What it is known to give, all intervals together with probability 1 - delta:" }
        (values_table(&known_means(page)))
        (blocks(&observed_means(page)))
        (blocks(&clear_tests(page)))
        h2 { "Plan" }
        (constants(page.spec))
        h2 { "To reproduce this report" }
        pre { (page.command) }
        details { summary { "The spec" } pre { (page.spec.text) } }
    };
    framed(
        page.verb,
        page.spec.name(),
        page.answer,
        page.figures,
        &body,
    )
}

/// A page that begins with the answer and the figures.
fn framed(verb: &str, title: &str, answer: &Answer, figures: &[Figure], body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " – debora " (verb) }
                // Inside the page, which may be mailed or moved alone.
                style { (PreEscaped(include_str!("../../assets/figures.css"))) (PreEscaped(include_str!("report.css"))) }
            }
            body {
                header { h1 { (title) } p { "debora " (verb) } }
                div.answer { (blocks(answer)) }
                h2 { "Figures" }
                div.figures { @for one in figures { (figure(&drawn(one))) } }
                (body)
            }
        }
    }
}

fn drawn(figure: &Figure) -> AnswerFigure {
    let chart = figure.chart.svg_of_height(figure.height);
    AnswerFigure {
        drawing: chart.into_string() + &legend(figure.legend.clone()).into_string(),
        caption: figure.caption.clone(),
        data: None,
    }
}

fn advice(page: &ReportPage) -> Markup {
    let actions = page.spec.problem().actions();
    let shares = actions.iter().zip(page.first_run.last_strategy());
    let table = row_for_each(shares)
        .words("action", |(action, _)| *action)
        .shares("probability", |(_, share)| **share)
        // A tenth of a percent is finer than a pixel of the bar.
        .drawings(
            "share",
            |(_, share)| html! { i style=(format!("width:{:.1}%", 100.0 * **share)) {} },
        );
    HtmlTable::plain("Recommendation", table.table()).markup()
}

fn known_means(page: &ReportPage) -> AnswerTable {
    row_for_each(page.first_run.known_means(page.spec.problem()))
        .words("quantity", |known| known.name.clone())
        .numbers("mean", |known| span(known.interval))
        .words("limit", beside)
        .table()
}

fn span([low, high]: [f64; 2]) -> String {
    format!("{} to {}", amount(low), amount(high))
}

/// What the first run observed of each action when it was last estimated, beside the estimate and its cell.
fn observed_means(page: &ReportPage) -> Answer {
    let problem = page.spec.problem();
    let mut answer = Answer::default();
    let estimates = &page.first_run.estimates;
    if estimates.is_empty() {
        return answer;
    }
    answer.heading("What the first run observed");
    // The reader sees two numbers for one thing, and is told which does what.
    answer.paragraph([Sentence::plain(format!(
        "The estimate decides: it is the middle of the cell that held the mean, so that another run with the same key finds the \
         same. The observed interval holds the true mean at every look together with probability {}.",
        percent(1.0 - MISS)
    ))]);
    let user = |estimate: &Estimate, end: f64| {
        let quantity = problem.quantity(estimate.quantity as usize);
        quantity.range_of(estimate.action).to_user(end)
    };
    let table = row_for_each(estimates)
        .words("action", |estimate| {
            &problem.actions()[estimate.action as usize]
        })
        .words("quantity", |estimate| {
            &problem.quantity(estimate.quantity as usize).name
        })
        .numbers("rounds", |estimate| estimate.count)
        .numbers("observed", |estimate| user(estimate, estimate.mean))
        .numbers("interval", |estimate| {
            let sum = estimate.mean * estimate.count as f64;
            let ends = interval_at_any_time(estimate.count, sum, MISS);
            span(ends.map(|end| user(estimate, end)))
        })
        .numbers("estimate", |estimate| {
            user(estimate, estimate.estimate.clamp(0.0, 1.0))
        })
        .numbers("cell", |estimate| {
            span(
                estimate
                    .cell_ends(&page.spec.plan)
                    .map(|end| user(estimate, end)),
            )
        });
    answer.table(table.table());
    answer
}

/// The first run's looks and its pick in words; nothing where none was made.
fn clear_tests(page: &ReportPage) -> Answer {
    let mut answer = Answer::default();
    let tests = &page.first_run.tests;
    if !tests.is_empty() {
        answer.heading("Looks of the first run");
        // Also those that did not pass: they show how far from a commitment it was.
        let problem = page.spec.problem();
        answer.list(tests.iter().map(|test| look_test(problem, test)));
        let pick = page.first_run.pick.as_ref();
        answer.list(pick.map(|pick| picked(problem, pick)));
    }
    answer
}

/// A cost's interval beside its threshold.
fn beside(known: &KnownMean) -> String {
    match known.threshold {
        None => String::new(),
        // The upper end decides: a cost is known to be kept only if all of its interval is.
        Some(threshold) if known.interval[1] <= threshold => {
            format!("within its threshold of {}", amount(threshold))
        }
        Some(threshold) => format!("may exceed its threshold of {}", amount(threshold)),
    }
}

/// The constants a reader needs to judge the result, and to compare it with another's.
fn constants(spec: &SpecText) -> Markup {
    let plan = &spec.plan;
    let problem = spec.problem();
    let reward = problem.quantity(0);
    let regret = amount(plan.regret_bound * reward.range.span());
    let constants: [(&str, AnswerCell); 12] = [
        ("policy", problem.policy().name().into()),
        ("rounds", problem.horizon().into()),
        ("rho", problem.rho().into()),
        ("delta", problem.delta().into()),
        ("profile", plan.profile.name().into()),
        (
            "rounds of exploration",
            AnswerCell::or_none(plan.exploration_rounds),
        ),
        (
            "first informative count",
            AnswerCell::or_none(plan.first_informative_count),
        ),
        ("epochs at most", plan.epochs_max.into()),
        ("regret at most", format!("{regret} {}", reward.name).into()),
        ("with probability", percent(plan.bound_probability).into()),
        ("version", crate::args::VERSION.into()),
        // The key of a simulation is not a secret: with it anyone gets the same runs.
        ("key", AnswerCell::Code(spec.spec.key.to_hex())),
    ];
    facts(constants)
}
