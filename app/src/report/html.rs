//! One self-contained page: the answer, the figures, the recommendation, the plan, and how to make it again. No network.

use debora::lab::observed::{MISS, interval_at_any_time};
use debora::measure::answer::{Align, Answer, AnswerTable, Item, Sentence, Span, Tone, clear_test};
use debora::measure::words::{amount, percent, whole};
use debora::measure::{FirstRun, KnownMean, SpecText};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::legend::legend;
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
        (known_means(page))
        (observed_means(page))
        (clear_tests(page))
        h2 { "Plan" }
        (facts(page.spec))
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
                div.answer { @for item in &answer.items { (block(item)) } }
                h2 { "Figures" }
                div.figures { @for drawn in figures { (figure(drawn)) } }
                (body)
            }
        }
    }
}

fn block(item: &Item) -> Markup {
    match item {
        Item::Paragraph(sentences) => html! {
            @for sentence in sentences { p { (toned(sentence)) } }
        },
        Item::Table(rows) => table(rows),
        Item::Note(note) => html! { p { small { (note) } } },
    }
}

fn toned(sentence: &Sentence) -> Markup {
    html! { @for span in &sentence.0 { (words(span)) } }
}

fn words(span: &Span) -> Markup {
    match span.tone {
        Tone::Plain => html! { (span.text) },
        Tone::Strong => html! { strong { (span.text) } },
        Tone::Alarm => html! { strong.alarm { (span.text) } },
        Tone::Faint => html! { small { (span.text) } },
    }
}

/// A table that scrolls by itself: on a phone it is wider than the page, which must not be.
pub fn table(table: &AnswerTable) -> Markup {
    let classes: Vec<Option<&str>> = table
        .columns
        .iter()
        .map(|column| (column.align == Align::Right).then_some("right"))
        .collect();
    let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
    let label = names.join(", ");
    html! {
        // Reached by keyboard, too, which cannot scroll what it cannot reach.
        div.scroll tabindex="0" role="region" aria-label=(label) { table {
            thead {
                tr { @for (column, class) in table.columns.iter().zip(&classes) { th scope="col" class=[class] { (column.name) } } }
            }
            @for row in &table.rows {
                tr {
                    @for (cell, class) in row.iter().zip(&classes) {
                        // Names may be of any script, whose direction must not turn what stands beside them.
                        td class=[class] { @if class.is_some() { (cell) } @else { bdi { (cell) } } }
                    }
                }
            }
        } }
    }
}

fn figure(figure: &Figure) -> Markup {
    html! {
        figure {
            (figure.chart.svg_of_height(figure.height))
            (legend(figure.legend.clone()))
            figcaption { (figure.caption) }
        }
    }
}

fn advice(page: &ReportPage) -> Markup {
    let actions = page.spec.problem().actions();
    html! {
        table {
            @for (action, x) in actions.iter().zip(page.first_run.last_strategy()) {
                tr {
                    td { (action) }
                    td { (percent(*x)) }
                    // A tenth of a percent is finer than a pixel of the bar.
                    td.bar { i style=(format!("width:{:.1}%", 100.0 * x)) {} }
                }
            }
        }
    }
}

fn known_means(page: &ReportPage) -> Markup {
    html! {
        table {
            @for known in page.first_run.known_means(page.spec.problem()) {
                @let [low, high] = known.interval.map(amount);
                tr { td { (known.name) } td { (low) " to " (high) } td { (beside(&known)) } }
            }
        }
    }
}

/// What the first run observed of each action when it was last estimated, beside the estimate and its cell.
fn observed_means(page: &ReportPage) -> Markup {
    let problem = page.spec.problem();
    let span = |[low, high]: [f64; 2]| format!("{} to {}", amount(low), amount(high));
    html! {
        @if !page.first_run.estimates.is_empty() {
            h2 { "What the first run observed" }
            // The reader sees two numbers for one thing, and is told which does what.
            p {
                "The estimate decides: it is the middle of the cell that held the mean, so that another run with the same key finds "
                "the same. The observed interval holds the true mean at every look together with probability " (percent(1.0 - MISS)) "."
            }
            div.scroll { table {
                tr {
                    th { "action" } th { "quantity" } th { "rounds" } th { "observed" } th { "interval" } th { "estimate" } th { "cell" }
                }
                @for estimate in &page.first_run.estimates {
                    @let quantity = problem.quantity(estimate.quantity as usize);
                    @let user = |end: f64| quantity.range.to_user(end);
                    @let sum = estimate.mean * estimate.count as f64;
                    tr {
                        td { (problem.actions()[estimate.action as usize]) }
                        td { (quantity.name) }
                        td { (whole(estimate.count)) }
                        td { (amount(user(estimate.mean))) }
                        td { (span(interval_at_any_time(estimate.count, sum, MISS).map(user))) }
                        td { (amount(user(estimate.estimate.clamp(0.0, 1.0)))) }
                        td { (span(estimate.cell_ends().map(user))) }
                    }
                }
            } }
        }
    }
}

/// The first run's clear tests in words; nothing where none was made.
fn clear_tests(page: &ReportPage) -> Markup {
    let tests = &page.first_run.tests;
    html! {
        @if !tests.is_empty() {
            h2 { "Clear tests of the first run" }
            // Also those that did not pass: they show how far from a commitment it was.
            ul { @for test in tests { li { (clear_test(page.spec.problem(), test)) } } }
        }
    }
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
fn facts(spec: &SpecText) -> Markup {
    let plan = &spec.plan;
    let problem = spec.problem();
    let reward = problem.quantity(0);
    let count = |count: Option<u64>| count.map_or("none".into(), whole);
    let regret = amount(plan.regret_bound * reward.range.span());
    let facts = [
        ("policy", problem.policy().name().to_owned()),
        ("rounds", whole(problem.horizon())),
        ("rho", amount(problem.rho())),
        ("delta", amount(problem.delta())),
        ("profile", plan.profile.name().to_owned()),
        ("rounds of exploration", count(plan.exploration_rounds)),
        (
            "first informative count",
            count(plan.first_informative_count),
        ),
        ("epochs at most", whole(plan.epochs_max)),
        ("regret at most", format!("{regret} {}", reward.name)),
        ("with probability", percent(plan.bound_probability)),
        ("version", crate::args::VERSION.to_owned()),
        // The key of a simulation is not a secret: with it anyone gets the same runs.
        ("key", spec.spec.key.to_hex()),
    ];
    html! {
        table { @for (name, value) in facts { tr { td { (name) } td { (value) } } } }
    }
}
