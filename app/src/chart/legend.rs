//! A figure's signs, named: each is drawn as the figure draws it.

use maud::{Markup, html};

use super::{Axis, Chart, Mark};

/// Marks in a box from 0 to 1 both ways, and what they mean.
pub type Entry = (Vec<Mark>, String);

/// Signs, each with what it means.
pub fn legend(entries: Vec<Entry>) -> Markup {
    html! {
        ul.legend {
            @for (marks, name) in entries {
                li { svg.key aria-hidden="true" {
                    @let sign = sign(marks);
                    (sign.marks()) (sign.signs())
                } bdi { (name) } }
            }
        }
    }
}

/// A box for the marks of an entry.
pub fn sign(marks: Vec<Mark>) -> Chart {
    Chart {
        label: String::new(),
        x: Axis::linear("", 0.0, 1.0),
        y: Axis::linear("", 0.0, 1.0),
        marks,
        tips: Vec::new(),
    }
}

/// The sign of an area.
pub fn block(class: &str) -> Vec<Mark> {
    vec![Mark::Block {
        class: class.into(),
        x: [0.0, 1.0],
        y: [0.0, 1.0],
    }]
}

/// The sign of a line from left to right.
pub fn level(class: &str) -> Vec<Mark> {
    vec![Mark::Level {
        class: class.into(),
        y: 0.5,
    }]
}

/// The sign of a line that stands.
pub fn upright(class: &str) -> Vec<Mark> {
    vec![Mark::Upright {
        class: class.into(),
        x: 0.5,
    }]
}

/// A letter that stands for a point.
pub fn letter(sign: char) -> Vec<Mark> {
    vec![Mark::Sign {
        class: String::new(),
        at: (0.5, 0.5),
        sign,
    }]
}

/// The sign of a dot.
pub fn dot(class: &str) -> Vec<Mark> {
    vec![Mark::Dot {
        class: class.into(),
        at: (0.5, 0.5),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_drawn_as_the_figure_draws_them() {
        let signs = [
            block("c0 band"),
            level("c1"),
            upright("threshold"),
            dot("c2"),
        ];
        let entries = signs.map(|marks| (marks, "<name>".to_owned()));
        let text = legend(entries.into()).into_string();
        for drawn in [
            "class=\"area c0 band\" d=\"M0.0 1000.0L1000.0 1000.0L1000.0 0.0L0.0 0.0Z\"",
            "class=\"line c1\" d=\"M0.0 500.0L1000.0 500.0\"",
            "class=\"line threshold\" d=\"M500.0 1000.0L500.0 0.0\"",
            "class=\"dot c2\" d=\"M500.0 500.0L500.0 500.0\"",
            "<bdi>&lt;name&gt;</bdi>",
        ] {
            assert!(text.contains(drawn), "{drawn} is not in {text}");
        }
    }
}
