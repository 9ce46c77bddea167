//! "Simulate this": guessed means, and what pairs of runs on them gave.

use debora::measure::answer::row_for_each;
use debora::measure::words::{amount, percent, whole};
use maud::{Markup, html};
use serde_json::Value;

use super::NewPage;
use crate::chart::{Axis, Chart, Mark};
use crate::document::HtmlTable;
use crate::service::http::pages::parts;
use crate::service::http::simulate::{SimulatedLimit, SimulatedPairs};

/// More guesses than this are folded.
const OPEN_MAX: usize = 24;

pub fn section(view: &NewPage) -> Markup {
    let draft = &view.draft;
    let quantities = draft.costs() + 1;
    let open = draft.actions() * quantities <= OPEN_MAX;
    html! {
        section #simulate aria-labelledby="simulate-heading" {
            h2 #simulate-heading { "Simulate this" }
            p { "Guess each action's means, and see what pairs of runs would do: the same key, fresh data. Nothing is created." }
            @for quantity in 0..quantities {
                details.guesses id={ "guesses-" (quantity) } open[open] {
                    summary { bdi { (draft.quantity(quantity)) } @if quantity == 0 { ", the reward" } }
                    (guesses(view, quantity))
                }
            }
            p { button name="do" value="simulate" { "Simulate" } }
            div #simulated aria-live="polite" {
                @match &view.simulated {
                    Some(Ok(simulated)) => { (found(simulated)) }
                    Some(Err(error)) => { div.alarm role="alert" { p { (error.message) } } }
                    None => {}
                }
            }
        }
    }
}

fn guesses(view: &NewPage, quantity: usize) -> Markup {
    let draft = &view.draft;
    let [low, high] = draft.range(quantity);
    html! {
        div.sliders {
            @for (action, row) in draft.means.iter().enumerate() {
                label.guess {
                    bdi { (draft.get(&format!("actions.{action}"))) }
                    // The script puts a slider beside it.
                    input type="number" step="any" min=(low) max=(high) name={ "mean." (action) "." (quantity) }
                        value=(row.get(quantity).map_or("", |mean| mean)) id={ "g-" (action) "-" (quantity) };
                }
            }
        }
    }
}

fn found(simulated: &SimulatedPairs) -> Markup {
    let short = simulated.pairs < simulated.asked;
    html! {
        @for sentence in &simulated.sentences { p.said { (parts::sentence(sentence)) } }
        @for name in simulated.limits.iter().filter(|limit| limit.median > limit.threshold).map(|limit| &limit.name) {
            p.said { "In half of the runs or more " bdi { (name) } " is above its threshold on average." }
        }
        @if short {
            p.small { "There was time for " (whole(simulated.pairs)) " of " (whole(simulated.asked)) " pairs." }
        }
        (table(simulated))
        details #simulated-spec {
            summary { "Run it yourself" }
            p { code { "debora replicate spec.toml --pairs " (simulated.pairs) } " gives the same for this file:" }
            pre tabindex="0" { (simulated.spec) }
        }
    }
}

/// A line of the table: an interval, its middle, and what it is to be held against.
struct Measured {
    name: String,
    low: f64,
    middle: f64,
    high: f64,
    against: Option<f64>,
    /// What `against` is.
    limit: &'static str,
    /// As a share of all pairs, and not in units.
    share: bool,
}

fn table(simulated: &SimulatedPairs) -> Markup {
    let table = row_for_each(lines(simulated))
        .words("Found", |row| row.name.clone())
        .numbers("low", |row| row.text(row.low))
        .numbers("middle", |row| row.text(row.middle))
        .numbers("high", |row| row.text(row.high))
        .numbers("limit", |row| {
            let against = row.against;
            against.map(|against| format!("{} {}", row.limit, row.text(against)))
        })
        .drawings("low to high, and the limit", Measured::strip);
    let table = HtmlTable::cards("What was found", table.table());
    table.class("simulated cards").markup()
}

fn lines(simulated: &SimulatedPairs) -> Vec<Measured> {
    let found = &simulated.found;
    let number = |value: &Value| value.as_f64();
    let mut rows = vec![Measured {
        name: "Identical pairs: their share, 95 % interval".into(),
        low: number(&found["interval"][0]).unwrap_or(0.0),
        middle: number(&found["identical_rate"]).unwrap_or(0.0),
        high: number(&found["interval"][1]).unwrap_or(1.0),
        against: number(&found["promised"]),
        limit: "promised",
        share: true,
    }];
    let regret = |key: &str| number(&found["regret"][key]);
    // Without a safe strategy there is no regret.
    if let (Some(low), Some(middle), Some(high)) = (regret("p05"), regret("median"), regret("p95"))
    {
        rows.push(Measured {
            name: "Regret, all rounds: median, 5 % to 95 % of runs".into(),
            low,
            middle,
            high,
            against: regret("bound"),
            limit: "bound",
            share: false,
        });
    }
    rows.extend(simulated.limits.iter().map(Measured::of_limit));
    rows
}

impl Measured {
    fn of_limit(limit: &SimulatedLimit) -> Self {
        Self {
            name: format!("{}, a run's average: median, 5 % to 95 %", limit.name),
            low: limit.p05,
            middle: limit.median,
            high: limit.p95,
            against: Some(limit.threshold),
            limit: "threshold",
            share: false,
        }
    }

    fn text(&self, value: f64) -> String {
        if self.share {
            percent(value)
        } else {
            amount(value)
        }
    }

    fn strip(&self) -> Markup {
        let against = self.against.map_or(String::new(), |against| {
            format!("; {} {}", self.limit, self.text(against))
        });
        let chart = Chart {
            label: format!(
                "{}: {} to {}{against}",
                self.name,
                self.text(self.low),
                self.text(self.high)
            ),
            x: self.axis(),
            y: Axis::shares(),
            marks: self.marks(),
            tips: Vec::new(),
        };
        chart.strip()
    }

    /// An axis of its own: the quantities of two lines have nothing in common.
    fn axis(&self) -> Axis {
        let ends = [self.low, self.high, self.against.unwrap_or(self.high)];
        let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let room = 0.08 * (high - low);
        Axis::linear("", low - room, high + room)
    }

    fn marks(&self) -> Vec<Mark> {
        let class = || "c0".to_owned();
        let mut marks = vec![
            Mark::Block {
                class: class() + " band",
                x: [self.low, self.high],
                y: [0.2, 0.8],
            },
            Mark::Dot {
                class: class(),
                at: (self.middle, 0.5),
            },
        ];
        marks.extend(self.against.map(|x| Mark::Upright {
            class: "threshold".into(),
            x,
        }));
        marks
    }
}
