//! Figures for the pages, as SVG within HTML: they take the page's colours and width, and keep the size of their letters.
//!
//! ```text
//! svg                         as wide as its column, a fixed height; the numbers at the axes stand in its margins
//! └─ svg.plot                 nothing stretched: letters keep their size
//!    └─ svg.marks             0 to 1000 both ways, stretched to fit: lines and areas
//! ```
//!
//! Numbers on hover are `title`s of invisible strips, which every browser shows; `debora.js` shows them sooner and at the pointer.

mod axis;
pub mod drawing;
pub mod ink;
pub mod legend;
mod letters;
mod pdf;

use std::fmt::Write as _;

use maud::{Markup, html};

pub use axis::Axis;

/// The side of the box that marks are drawn in. A tenth of a unit is less than a pixel of any screen.
const BOX: f64 = 1000.0;

/// A letter's height beside an axis, with what a browser's face may have more in width than Helvetica.
const TICK_LETTERS: f64 = 1.17 * 12.0;

/// The steps in which the room left of an axis grows.
const ROOM: f64 = 20.0;

/// How many colours there are before they repeat.
pub const COLOURS: usize = 8;

/// A figure.
pub struct Chart {
    /// What it shows, in a sentence: for those who do not see it.
    pub label: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// What is drawn, the hindmost first.
    pub marks: Vec<Mark>,
    /// What is said where the pointer is.
    pub tips: Vec<Tip>,
}

/// Something drawn, in the units of the axes. `class` gives the colour: `c0` to `c7` of [`colour`], `threshold`, `muted`.
#[derive(Clone)]
pub enum Mark {
    /// A line through points.
    Line {
        class: String,
        points: Vec<(f64, f64)>,
    },
    /// What lies between two lines: x, low, high.
    Area {
        class: String,
        points: Vec<(f64, f64, f64)>,
    },
    /// A dot.
    Dot { class: String, at: (f64, f64) },
    /// A line straight across at this height.
    Level { class: String, y: f64 },
    /// A line straight up at this place.
    Upright { class: String, x: f64 },
    /// A letter that stands for a point, the same size in every figure.
    Sign {
        class: String,
        at: (f64, f64),
        sign: char,
    },
    /// A rectangle.
    Block {
        class: String,
        x: [f64; 2],
        y: [f64; 2],
    },
}

/// What is said of a part of the figure.
pub struct Tip {
    /// Where it begins and ends, on the x axis.
    pub x: [f64; 2],
    /// Its lines.
    pub lines: Vec<String>,
}

/// The class of the n-th colour. Colours repeat; the second time round lines are dashed.
pub fn colour(place: usize) -> String {
    let dashed = if place / COLOURS % 2 == 1 {
        " dashed"
    } else {
        ""
    };
    format!("c{}{dashed}", place % COLOURS)
}

impl Chart {
    /// With axes, as wide as its column.
    pub fn svg(&self) -> Markup {
        self.framed(None)
    }

    /// The same, with this many pixels between the axes, for figures whose rows are to have a height of their own.
    pub fn svg_of_height(&self, height: f64) -> Markup {
        self.framed(Some(height))
    }

    fn framed(&self, height: Option<f64>) -> Markup {
        // Names and large numbers need more room than shares do. In steps, as the style sheet has to know each.
        let room = self
            .y
            .ticks
            .iter()
            .map(|(_, text)| TICK_LETTERS * letters::width(text));
        let left = ((room.fold(24.0, f64::max) + 12.0) / ROOM).ceil() * ROOM;
        let labelled = !self.y.label.is_empty();
        html! {
            svg class={ "chart left" (left) @if labelled { " labelled" } } role="img" aria-label=(self.label) height=[height] {
                @if labelled { text.axis x=(-left) y="-0.9em" { (self.y.label) } }
                svg.plot width="100%" height="100%" {
                    @for (place, text) in &self.y.ticks {
                        line.grid x1="0" x2="100%" y1=(share(1.0 - place)) y2=(share(1.0 - place)) {}
                        text.tick x="-8" y=(share(1.0 - place)) dy="0.32em" text-anchor="end" { (text) }
                    }
                    @for (place, text) in &self.x.ticks {
                        text.tick x=(share(*place)) y="100%" dy="1.5em" text-anchor=(anchor(*place)) { (text) }
                    }
                    (self.marks())
                    (self.signs())
                    text.axis x="100%" y="100%" dy="2.9em" text-anchor="end" { (self.x.label) }
                    (self.strips())
                }
            }
        }
    }

    /// Without axes and one line high: for a table's cell, whose heading has the [`Chart::scale`].
    pub fn strip(&self) -> Markup {
        html! {
            svg.strip role="img" aria-label=(self.label) { title { (self.label) } (self.marks()) }
        }
    }

    /// The x axis alone, to stand above strips that share it.
    pub fn scale(&self) -> Markup {
        // Hidden from those who do not see it: every row says its numbers.
        html! {
            svg.strip aria-hidden="true" overflow="visible" {
                @for (place, text) in &self.x.ticks {
                    text.tick x=(share(*place)) y="100%" dy="-0.3em" text-anchor=(anchor(*place)) { (text) }
                }
            }
        }
    }

    fn marks(&self) -> Markup {
        html! {
            svg.marks viewBox={ "0 0 " (BOX) " " (BOX) } preserveAspectRatio="none" width="100%" height="100%" {
                @for mark in &self.marks {
                    @if !matches!(mark, Mark::Sign { .. }) { (self.mark(mark)) }
                }
            }
        }
    }

    /// Letters, which the box of the marks would stretch.
    fn signs(&self) -> Markup {
        html! {
            @for mark in &self.marks {
                @if let Mark::Sign { at, sign, .. } = mark {
                    text.sign x=(share(self.x.place(at.0))) y=(share(1.0 - self.y.place(at.1))) dy="0.32em" text-anchor="middle" { (sign) }
                }
            }
        }
    }

    fn mark(&self, mark: &Mark) -> Markup {
        let (class, points) = self.outline(mark);
        let kind = match mark {
            Mark::Line { .. } | Mark::Level { .. } | Mark::Upright { .. } => "line",
            Mark::Area { .. } | Mark::Block { .. } => "area",
            Mark::Dot { .. } | Mark::Sign { .. } => "dot",
        };
        let end = if kind == "area" { "Z" } else { "" };
        html! { path class={ (kind) " " (class) } d={ (self.path(points.into_iter())) (end) } {} }
    }

    /// The class and the corners of a mark.
    fn outline(&self, mark: &Mark) -> (String, Vec<(f64, f64)>) {
        let (class, points) = match mark {
            Mark::Line { class, points } => (class, points.clone()),
            Mark::Area { class, points } => {
                let there = points.iter().map(|&(x, low, _)| (x, low));
                let back = points.iter().rev().map(|&(x, _, high)| (x, high));
                (class, there.chain(back).collect())
            }
            // A line of no length with round ends: a circle would be stretched with the box.
            Mark::Dot { class, at } | Mark::Sign { class, at, .. } => (class, vec![*at; 2]),
            Mark::Level { class, y } => {
                (class, [self.x.low, self.x.high].map(|x| (x, *y)).to_vec())
            }
            Mark::Upright { class, x } => {
                (class, [self.y.low, self.y.high].map(|y| (*x, y)).to_vec())
            }
            Mark::Block { class, x, y } => {
                let corners = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])];
                (class, corners.to_vec())
            }
        };
        (class.clone(), points)
    }

    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut path = String::new();
        for (x, y) in points {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            let across = BOX * self.x.place(x);
            let down = BOX * (1.0 - self.y.place(y));
            let _ = write!(path, "{letter}{across:.1} {down:.1}");
        }
        path
    }

    fn strips(&self) -> Markup {
        html! {
            @for tip in &self.tips {
                @let [from, to] = tip.x.map(|x| self.x.place(x).clamp(0.0, 1.0));
                // A strip of its own, if the marks below it are thinner than a pointer.
                rect.tip x=(share(from)) width=(share((to - from).max(0.002))) y="0" height="100%" {
                    title { (tip.lines.join("\n")) }
                }
            }
        }
    }
}

fn share(place: f64) -> String {
    format!("{:.2}%", 100.0 * place)
}

/// Numbers at the ends of an axis stay within it.
fn anchor(place: f64) -> &'static str {
    if place < 0.04 {
        "start"
    } else if place > 0.96 {
        "end"
    } else {
        "middle"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(marks: Vec<Mark>) -> Chart {
        Chart {
            label: "a <figure>".into(),
            x: Axis::rounds(1, 1_000, true),
            y: Axis::shares(),
            marks,
            tips: vec![Tip {
                x: [10.0, 100.0],
                lines: vec!["<b>".into(), "50 %".into()],
            }],
        }
    }

    #[test]
    fn marks_stand_where_the_axes_say() {
        let line = Mark::Line {
            class: colour(9),
            points: vec![(1.0, 0.0), (10.0, 0.5), (1_000.0, 1.0)],
        };
        let svg = chart(vec![line]).svg().into_string();
        assert!(
            svg.contains("class=\"line c1 dashed\" d=\"M0.0 1000.0L333.3 500.0L1000.0 0.0\""),
            "{svg}"
        );
        // From 10 to 100 of 1 to 1,000: the second of three decades.
        assert!(svg.contains("x=\"33.33%\" width=\"33.33%\""), "{svg}");
    }

    #[test]
    fn names_are_text() {
        let svg = chart(Vec::new()).svg().into_string();
        assert!(svg.contains("a &lt;figure&gt;") && svg.contains("&lt;b&gt;\n50 %"));
    }
}
