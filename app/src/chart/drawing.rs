//! A figure of a fixed size, for files: lines, areas and words at their places, written as SVG ([`Drawing::svg`]) or as PDF
//! (`pdf.rs`).

use std::fmt::Write as _;

use super::axis::shortened;
use super::ink::{self, MarkInk};
use super::legend::{Entry, sign};
use super::letters;
use super::{Chart, Mark};

/// In points, or pixels of a screen: a column of a page.
const WIDTH: f64 = 640.0;
const LETTERS: f64 = 12.0;
const LINE: f64 = 18.0;
const GAP: f64 = 10.0;
/// Of a sign in the legend.
const SIGN: f64 = 24.0;

/// The most room for a name in a legend, in heights of a letter: a longer one would push the others out. Tables have it whole.
const NAME_MAX: f64 = 28.0;

/// A figure, drawn.
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    /// For those who do not see it.
    pub label: String,
    pub items: Vec<DrawnItem>,
}

/// Something at its place; the first corner is at the top left.
pub enum DrawnItem {
    /// A line, or an area if it is closed.
    Path {
        class: String,
        points: Vec<(f64, f64)>,
        closed: bool,
    },
    Text {
        x: f64,
        y: f64,
        anchor: Anchor,
        text: String,
    },
}

/// Which part of a text stands at its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// Where the axes are.
struct Plot {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Plot {
    fn at(&self, across: f64, up: f64) -> (f64, f64) {
        // What lies beyond the axes is drawn at their ends: nothing may run over the words.
        (
            self.left + self.width * across.clamp(0.0, 1.0),
            self.top + self.height * (1.0 - up.clamp(0.0, 1.0)),
        )
    }
}

impl Chart {
    /// At a fixed size, `height` between the axes, with a legend below.
    pub fn drawing(&self, legend: &[Entry], height: f64) -> Drawing {
        let ticks = self.y.ticks.iter().map(|(_, text)| room(text));
        let left = ticks.fold(LETTERS, f64::max) + GAP;
        let plot = Plot {
            left,
            top: LINE + GAP,
            width: WIDTH - left - 2.0 * GAP,
            height,
        };
        let mut items = self.axes(&plot);
        items.extend(self.marks.iter().map(|mark| self.item(mark, &plot)));
        let below = plot.top + plot.height + 3.2 * LINE;
        let end = add_legend(legend, below, &mut items);
        Drawing {
            width: WIDTH,
            height: end,
            label: self.label.clone(),
            items,
        }
    }

    fn axes(&self, plot: &Plot) -> Vec<DrawnItem> {
        let mut items = Vec::new();
        for (place, text) in &self.y.ticks {
            let ends = [plot.at(0.0, *place), plot.at(1.0, *place)];
            items.push(line("grid", &ends));
            items.push(word(ends[0].0 - 6.0, ends[0].1 + 4.0, Anchor::End, text));
        }
        for (place, text) in &self.x.ticks {
            let (x, y) = plot.at(*place, 0.0);
            items.push(line("axis", &[(x, y), (x, y + 4.0)]));
            // The last number ends with the axis: beyond it there is no room.
            let anchor = if *place > 0.96 {
                Anchor::End
            } else {
                Anchor::Middle
            };
            items.push(word(x, y + 4.0 + LETTERS, anchor, text));
        }
        items.push(line("axis", &[plot.at(0.0, 0.0), plot.at(1.0, 0.0)]));
        let (x, y) = plot.at(1.0, 0.0);
        items.push(word(x, y + 2.0 * LINE, Anchor::End, &self.x.label));
        // Above the axis and level: turned by a right angle, words are read by few.
        items.push(word(0.0, LINE - 4.0, Anchor::Start, &self.y.label));
        items
    }

    fn item(&self, mark: &Mark, plot: &Plot) -> DrawnItem {
        if let Mark::Sign { at, sign, .. } = mark {
            let (x, y) = plot.at(self.x.place(at.0), self.y.place(at.1));
            return word(x, y + 4.0, Anchor::Middle, &sign.to_string());
        }
        let (mut class, points) = self.outline(mark);
        if matches!(mark, Mark::Dot { .. }) {
            class.push_str(" dot");
        }
        let closed = matches!(mark, Mark::Area { .. } | Mark::Block { .. });
        DrawnItem::Path {
            class,
            points: points
                .into_iter()
                .map(|(x, y)| plot.at(self.x.place(x), self.y.place(y)))
                .collect(),
            closed,
        }
    }
}

/// What a text may take: the browser's face is wider than Helvetica by a sixth at most.
fn room(text: &str) -> f64 {
    1.17 * LETTERS * letters::width(text)
}

fn line(class: &str, ends: &[(f64, f64)]) -> DrawnItem {
    DrawnItem::Path {
        class: class.to_owned(),
        points: ends.to_vec(),
        closed: false,
    }
}

fn word(x: f64, y: f64, anchor: Anchor, text: &str) -> DrawnItem {
    DrawnItem::Text {
        x,
        y,
        anchor,
        text: text.to_owned(),
    }
}

/// Entries from left to right, as many to a line as fit; gives where they end.
fn add_legend(legend: &[Entry], top: f64, items: &mut Vec<DrawnItem>) -> f64 {
    let (mut x, mut y) = (GAP, top);
    for (marks, name) in legend {
        let name = shortened(name, NAME_MAX);
        let length = SIGN + 6.0 + room(&name);
        if x > GAP && x + length > WIDTH {
            (x, y) = (GAP, y + LINE);
        }
        let sign = sign(marks.clone());
        let plot = Plot {
            left: x,
            top: y - LETTERS + 2.0,
            width: SIGN,
            height: LETTERS,
        };
        items.extend(sign.marks.iter().map(|mark| sign.item(mark, &plot)));
        items.push(word(x + SIGN + 6.0, y, Anchor::Start, &name));
        x += length + 2.0 * GAP;
    }
    if legend.is_empty() {
        top - LINE / 2.0
    } else {
        y + GAP
    }
}

impl Drawing {
    /// As an SVG file, without a background of its own.
    pub fn svg(&self) -> String {
        // On a white ground of its own: pages that show the file may be dark.
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" style=\"background:#fff\" font-family=\"sans-serif\" \
             font-size=\"{LETTERS}\" fill=\"{}\"><title>{}</title>",
            self.width,
            self.height,
            ink::WORDS,
            escaped(&self.label)
        );
        for item in &self.items {
            match item {
                DrawnItem::Path {
                    class,
                    points,
                    closed,
                } => svg += &path(&ink::of(class, *closed), points, *closed),
                DrawnItem::Text { x, y, anchor, text } => {
                    let anchor = match anchor {
                        Anchor::Start => "start",
                        Anchor::Middle => "middle",
                        Anchor::End => "end",
                    };
                    let _ = write!(
                        svg,
                        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
                        escaped(text)
                    );
                }
            }
        }
        svg + "</svg>\n"
    }
}

fn path(ink: &MarkInk, points: &[(f64, f64)], closed: bool) -> String {
    let mut corners = String::new();
    for (x, y) in points {
        let letter = if corners.is_empty() { 'M' } else { 'L' };
        let _ = write!(corners, "{letter}{x:.1} {y:.1}");
    }
    let (fill, stroke) = if closed {
        (ink.colour, "none")
    } else {
        ("none", ink.colour)
    };
    let dash = match ink.dash {
        [] => String::new(),
        dash => format!(
            " stroke-dasharray=\"{}\"",
            dash.iter()
                .map(f64::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        ),
    };
    let end = if closed { "Z" } else { "" };
    let cap = if ink.round { "round" } else { "butt" };
    format!(
        "<path d=\"{corners}{end}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"{}\" opacity=\"{}\" \
         stroke-linecap=\"{cap}\" stroke-linejoin=\"round\"{dash}/>",
        ink.width, ink.opacity
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
