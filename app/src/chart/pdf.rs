//! A figure as a PDF file of one page: vectors, and words that can be searched, in the Helvetica that every reader has.
//!
//! ```text
//! 1 catalogue ─► 2 pages ─► 3 page ─► 4 contents: the marks and words
//!                            └─► 5 font, and a graphics state for each opacity
//! ```

use std::fmt::Write as _;

use super::drawing::{Anchor, Drawing, DrawnItem};
use super::ink::{self, MarkInk};
use super::letters;

const LETTERS: f64 = 12.0;

impl Drawing {
    /// As a PDF file.
    pub fn pdf(&self) -> Vec<u8> {
        // Words are never faint.
        let mut opacities = vec![100];
        let contents = self.contents(&mut opacities);
        opacities.sort_unstable();
        let states: String = opacities
            .iter()
            .map(|percent| {
                let share = f64::from(*percent) / 100.0;
                format!("/G{percent} << /ca {share} /CA {share} >> ")
            })
            .collect();
        file(&[
            "<< /Type /Catalog /Pages 2 0 R >>".into(),
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".into(),
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {:.1}] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> \
                 /ExtGState << {states}>> >> >>",
                self.width, self.height
            ),
            format!(
                "<< /Length {} >>\nstream\n{contents}endstream",
                contents.len()
            ),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
                .into(),
        ])
    }

    fn contents(&self, opacities: &mut Vec<u32>) -> String {
        let mut contents = String::from("1 j\n");
        for item in &self.items {
            match item {
                DrawnItem::Path {
                    class,
                    points,
                    closed,
                } => {
                    let ink = ink::of(class, *closed);
                    contents += &self.path(&ink, points, *closed, opacities);
                }
                DrawnItem::Text { x, y, anchor, text } => {
                    contents += &self.text(*x, *y, *anchor, text)
                }
            }
        }
        contents
    }

    fn path(
        &self,
        ink: &MarkInk,
        points: &[(f64, f64)],
        closed: bool,
        opacities: &mut Vec<u32>,
    ) -> String {
        let percent = (100.0 * ink.opacity).round() as u32;
        if !opacities.contains(&percent) {
            opacities.push(percent);
        }
        let [red, green, blue] = colour(ink.colour);
        let dash: Vec<String> = ink.dash.iter().map(f64::to_string).collect();
        let mut path = format!(
            "/G{percent} gs {red:.3} {green:.3} {blue:.3} {} {} w {} J [{}] 0 d\n",
            if closed { "rg" } else { "RG" },
            ink.width,
            u8::from(ink.round),
            dash.join(" ")
        );
        for (place, (x, y)) in points.iter().enumerate() {
            // A page's first corner is at the bottom.
            let operator = if place == 0 { "m" } else { "l" };
            let _ = writeln!(path, "{x:.2} {:.2} {operator}", self.height - y);
        }
        path + if closed { "f\n" } else { "S\n" }
    }

    fn text(&self, x: f64, y: f64, anchor: Anchor, text: &str) -> String {
        let width = LETTERS * letters::width(text);
        let x = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        let [red, green, blue] = colour(ink::WORDS);
        format!(
            "/G100 gs BT /F {LETTERS} Tf {red:.3} {green:.3} {blue:.3} rg {x:.2} {:.2} Td <{}> Tj ET\n",
            self.height - y,
            encoded(text)
        )
    }
}

/// Each letter as two hexadecimal digits, in the encoding of the font.
fn encoded(text: &str) -> String {
    text.chars()
        .map(|letter| {
            let byte = match letter {
                '…' => 0x85,
                '–' => 0x96,
                '\u{20}'..='\u{7e}' | '\u{a0}'..='\u{ff}' => letter as u32,
                // The font has no other letters; the SVG file has them all.
                _ => u32::from(b'?'),
            };
            format!("{byte:02x}")
        })
        .collect()
}

fn colour(text: &str) -> [f64; 3] {
    let byte = |place: usize| u8::from_str_radix(&text[place..place + 2], 16).unwrap_or(0);
    [1, 3, 5].map(|place| f64::from(byte(place)) / 255.0)
}

/// Numbered objects, then where each begins.
fn file(objects: &[String]) -> Vec<u8> {
    let mut file = String::from("%PDF-1.7\n");
    let mut table = String::new();
    for (place, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", file.len());
        let _ = writeln!(file, "{} 0 obj\n{object}\nendobj", place + 1);
    }
    let start = file.len();
    let count = objects.len() + 1;
    let _ = write!(
        file,
        "xref\n0 {count}\n0000000000 65535 f \n{table}trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    );
    file.into_bytes()
}
