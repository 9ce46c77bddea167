//! The plan beside the form: words, a figure, constants.

use debora::measure::answer::AnswerCell;
use debora::measure::words::{amount, percent, whole};
use maud::{Markup, html};

use super::NewPage;
use crate::chart::{Axis, Chart, Mark, Tip, colour, legend};
use crate::document::{HtmlCell, numbers, values_table};
use crate::log::seal::SealedLook;
use crate::service::http::pages::parts::alert;
use crate::service::http::plan::Planned;

/// How many quantities the figure has: as many as there are colours.
const LINES_MAX: usize = crate::chart::COLOURS;

/// Said aloud when it changes, since it changes while one types elsewhere.
pub fn section(view: &NewPage) -> Markup {
    html! {
        section #plan aria-live="polite" aria-labelledby="plan-heading" {
            h2 #plan-heading { "Plan" }
            @match &view.planned {
                Ok(planned) => { (words(planned)) (figure(planned)) (constants(planned)) }
                Err(_) => { p { "There is no plan yet: the spec has a fault, which is shown at its place." } }
            }
        }
    }
}

fn words(planned: &Planned) -> Markup {
    html! {
        @for warning in &planned.warnings { (alert(warning, "")) }
        @if let Some(remedy) = &planned.remedy { (remedy_button(remedy.horizon, remedy.spec.is_some())) }
        (facts(planned))
        // Warnings stand above, and what is named is on the page already.
        @for sentence in planned.sentences.iter().skip(planned.warnings.len() + 1) { p.said { (sentence) } }
    }
}

fn remedy_button(horizon: Option<u64>, applies: bool) -> Markup {
    let words = match horizon {
        Some(horizon) => format!("Use a horizon of {}", whole(horizon)),
        None => "Use a larger rho".to_owned(),
    };
    html! { @if applies { p { button name="do" value="remedy" { (words) } } } }
}

fn facts(planned: &Planned) -> Markup {
    let ends = match planned.exploration.rounds {
        Some(rounds) => format!("round {}", whole(rounds)),
        None => "never".into(),
    };
    // Of a blind plan nothing is seen, ever.
    let gap = planned.looks.last().map(|look| look.gap);
    numbers([
        ("Exploration ends", HtmlCell::from(ends)),
        (
            "Its share of the horizon",
            percent(planned.exploration.share).into(),
        ),
        ("Gap seen by the end", AnswerCell::or_none(gap).into()),
    ])
}

/// What is seen, against rounds, both by their logarithms.
fn figure(planned: &Planned) -> Markup {
    let (Some(first), Some(last)) = (planned.looks.first(), planned.looks.last()) else {
        return html! {};
    };
    let names = planned.quantities.iter().take(LINES_MAX);
    let shown = names.len();
    let all = planned
        .looks
        .iter()
        .flat_map(|look| look.widths.iter().take(shown))
        .map(|width| 2.0 * width);
    let (low, high) = all.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), gap| {
        (low.min(gap), high.max(gap))
    });
    let explored = planned.exploration.rounds.unwrap_or(first.round) as f64;
    // Half as early as anything is seen, so that there is room to see that nothing is.
    let from = (explored / 4.0).max(1.0);
    let y = Axis::logarithmic("difference that is seen", low / 1.6, high * 1.6);
    let explores = Mark::Block {
        class: "muted".into(),
        x: [from, explored],
        y: [y.low, y.high],
    };
    let lines = (0..shown).map(|quantity| Mark::Line {
        class: colour(quantity),
        points: steps(planned, quantity),
    });
    let chart = Chart {
        label: format!(
            "What difference is seen, against rounds: from round {} on {} in {}, by round {} {}.",
            whole(first.round),
            amount(first.gap),
            planned.quantities[0],
            whole(last.round),
            amount(last.gap)
        ),
        x: Axis::rounds(from as u64, planned.horizon, true),
        marks: [explores].into_iter().chain(lines).collect(),
        tips: tips(planned, shown, from),
        y,
    };
    let signs = names
        .enumerate()
        .map(|(place, name)| (legend::level(&colour(place)), name.clone()))
        .chain([(legend::block("muted"), "exploration".to_owned())]);
    html! {
        figure.plan {
            (chart.svg())
            (legend::legend(signs.collect()))
            figcaption {
                "The smallest difference between two actions that is seen, in each quantity's units, if all are played equally often. "
                "The right edge is the horizon, round " (whole(planned.horizon)) "."
                @if shown < planned.quantities.len() { " Of " (planned.quantities.len()) " quantities the first " (shown) " are drawn." }
            }
        }
    }
}

/// What is seen stays until the next look, and after the last one to the horizon.
fn steps(planned: &Planned, quantity: usize) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for (place, look) in planned.looks.iter().enumerate() {
        let gap = 2.0 * look.widths[quantity];
        points.extend([(look.round as f64, gap), (until(planned, place), gap)]);
    }
    points
}

fn until(planned: &Planned, place: usize) -> f64 {
    planned
        .looks
        .get(place + 1)
        .map_or(planned.horizon, |next: &SealedLook| next.round) as f64
}

fn tips(planned: &Planned, shown: usize, from: f64) -> Vec<Tip> {
    let first = planned.looks[0].round as f64;
    let mut tips = vec![Tip {
        x: [from, first],
        lines: vec!["Exploration: nothing is compared yet".into()],
    }];
    for (place, look) in planned.looks.iter().enumerate() {
        let mut lines = vec![format!(
            "From round {}, {} outcomes of each action",
            whole(look.round),
            whole(look.samples)
        )];
        let gaps = planned.quantities.iter().zip(&look.widths).take(shown);
        lines.extend(gaps.map(|(name, width)| format!("{name}: {} or more", amount(2.0 * width))));
        tips.push(Tip {
            x: [look.round as f64, until(planned, place)],
            lines,
        });
    }
    tips
}

fn constants(planned: &Planned) -> Markup {
    html! {
        details #constants {
            summary { "Constants" }
            @for table in &planned.tables { (values_table(table)) }
        }
    }
}
