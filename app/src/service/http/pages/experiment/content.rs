//! The content of the page, in the order in which it is asked for: the answer, what to do, what comes next, numbers, figures.

use debora::measure::answer::row_for_each;
use debora::measure::words::{amount, counted, whole};
use debora::{Policy, record::Kind};
use maud::{Markup, html};

use super::shape::Shape;
use super::strategy::{Along, RoundScale, TimeAxis, drawn};
use super::view::ExperimentView;
use super::{alerts, answer, counts, holdback, limits, means, parts, text};
use crate::calendar::utc;
use crate::document::{self, HtmlTable, figure};
use crate::reading::{AdvisedQuantity, AdvisedStrategy, Reading};
use crate::store::Status;

/// The most quantities listed: the state has all.
const EXPECTED_MAX: usize = 6;

/// All that changes while the experiment goes on.
pub fn content(view: &ExperimentView, shape: &Shape) -> Markup {
    html! {
        (status(view))
        (alarms(view))
        (next(view))
        (plan(view))
        h2 { "Numbers" }
        (counts::numbers(view.reading.outcomes()))
        (strategy(view, shape))
        (limits::section(view, shape))
        (holdback::section(view))
        (means::section(view, shape))
    }
}

fn status(view: &ExperimentView) -> Markup {
    let reading = &view.reading;
    // Waiting has a colour of its own: it is the one state that calls for someone to act.
    let class = reading.run_state().word();
    html! {
        section.status.(class) aria-label="The answer" {
            p.first { strong { (document::sentence(&answer::headline(view))) } }
            @if let Some(sentence) = answer::limits(reading) { p { (document::sentence(&sentence)) } }
            @for sentence in text::sentences(reading) { p { (document::sentence(&sentence)) } }
            // A pause is said below, with what to do about it.
            @if reading.progress.status == Status::Closed { p { "It was closed" (view.stopped_by()) } }
            progress value=(reading.progress.rounds()) max=(reading.problem().horizon()) aria-label="Rounds decided" {}
        }
    }
}

fn alarms(view: &ExperimentView) -> Markup {
    let (alerts, more) = alerts::with_remedies(view);
    let ratio = view.reading.sample_ratio();
    html! {
        @for alert in &alerts { (parts::alert(&alert.sentence, &alert.remedy)) }
        @for note in alerts::notes(view) {
            div.note role="note" { p { strong { (document::sentence(&note.sentence)) } } p { (document::sentence(&note.remedy)) } }
        }
        @if more > 0 { p.small { "There are " (whole(more as u64)) " more alerts; the state has all." } }
        // That the check was passed is worth knowing, too.
        @if !ratio.mismatch { p.small { (document::sentence(&ratio.sentence)) } }
    }
}

fn next(view: &ExperimentView) -> Markup {
    html! {
        h2 { "What comes next" }
        ul.sentences { @for sentence in &view.next.sentences { li { (document::sentence(sentence)) } } }
    }
}

fn plan(view: &ExperimentView) -> Markup {
    let lines = view.plan.lines(&view.reading, view.rate.as_ref());
    let table = row_for_each(&lines)
        .words("What", |(what, ..)| what)
        .words("Planned", |(_, planned, _)| planned)
        .words("Now", |(.., now)| now);
    let what = html! { span.unseen { "What" } };
    let table = HtmlTable::cards("Plan and progress", table.table()).head(0, what);
    html! {
        h2 { "Plan and progress" }
        (table)
        @if let Some(sentence) = pace(view) { p.small { (sentence) } }
    }
}

/// How fast it decides, and when it last did, as long as it can decide more.
fn pace(view: &ExperimentView) -> Option<String> {
    let at = view.decided_at.filter(|_| view.reading.is_open())?;
    Some(match view.rate {
        None => text::idle(at),
        Some(rate) => format!(
            "The current rate is {}: {} in the last {}, the last one at {} UTC.",
            text::rate(rate.per_second()),
            counted(rate.rounds, "round", "rounds"),
            text::age(rate.span),
            utc(at)
        ),
    })
}

fn strategy(view: &ExperimentView, shape: &Shape) -> Markup {
    let reading = &view.reading;
    let deploys = reading.progress.status == Status::Done || reading.kind() == Kind::Commit;
    let advice = reading.advice();
    html! {
        // Before the end the strategy is that of the epoch, and not advice, unless nothing can change it.
        h2 { @if deploys { "What to deploy" } @else { "The strategy" } }
        (counts::table(view, shape))
        // Before the first estimate, and after a commitment, nothing is known but the range.
        @if reading.engine.estimates().next().is_some() { (expected(reading.policy(), &advice.current.quantities)) }
        // Without a limit there is nothing to be cautious about.
        @if let Some(cautious) = advice.cautious.as_ref().filter(|_| !reading.limits().is_empty()) {
            (self::cautious(reading, cautious))
        }
        @if reading.progress.rounds() > 0 { (over_time(view, shape)) }
    }
}

fn over_time(view: &ExperimentView, shape: &Shape) -> Markup {
    match shape {
        Shape::Page { id, along } => html! {
            h3 { "Over time" }
            (choices(id, *along))
            (figure(&drawn(view, *along, Some(format!("/experiments/{id}/figures/strategy")))))
        },
        // Nothing can be chosen in a file, so it has both.
        Shape::File => html! {
            h3 { "Over time" }
            @for x in [Along::Rounds, Along::Clock] {
                @let along = TimeAxis { x, scale: RoundScale::Log };
                (figure(&drawn(view, along, None)))
            }
        },
    }
}

fn choices(id: &str, along: TimeAxis) -> Markup {
    let options = [
        ("Rounds, logarithmic", Along::Rounds, RoundScale::Log),
        ("Rounds, linear", Along::Rounds, RoundScale::Linear),
        ("Time", Along::Clock, RoundScale::Linear),
    ];
    let options = options.map(|(words, x, scale)| {
        let to = TimeAxis { x, scale };
        let chosen = along.x == x && (x == Along::Clock || along.scale == scale);
        (words, format!("/experiments/{id}{}", to.query()), chosen)
    });
    parts::choices("Axis of the figure", &options)
}

/// The strategy for those who would rather be sure than learn.
fn cautious(reading: &Reading, cautious: &AdvisedStrategy) -> Markup {
    html! {
        @if cautious.shares == *reading.shares() {
            p { "It is also the cautious strategy: the best that is sure to keep every limit." }
        } @else {
            p { "The cautious strategy, the best that is sure to keep every limit: " (document::sentence(&cautious.shares.words())) "." }
            (expected(reading.policy(), &cautious.quantities))
        }
    }
}

fn expected(policy: Policy, quantities: &[AdvisedQuantity]) -> Markup {
    html! {
        ul.sentences {
            @for quantity in quantities.iter().take(EXPECTED_MAX) {
                li {
                    "Its " strong { bdi { (quantity.name) } } " is on average between " (amount(quantity.interval.low)) " and "
                    (amount(quantity.interval.high))
                    @if let Some(threshold) = quantity.threshold {
                        "; the threshold is " (amount(threshold))
                        @if policy == Policy::Free { ", which policy free does not keep" }
                    }
                    "."
                }
            }
        }
        @if quantities.len() > EXPECTED_MAX { p.small { "The state has all " (whole(quantities.len() as u64)) " quantities." } }
    }
}
