//! What a class of marks looks like in a file. The pages have the same colours from their style sheet, which a test compares.

/// Which page a figure is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

/// Colours that can be told apart with most kinds of colour blindness (after Okabe and Ito 2008), each dark enough to stand on
/// white and light enough on black.
pub const COLOURS: [[&str; 2]; 8] = [
    ["#0072b2", "#56b4e9"],
    ["#bf5109", "#ff9350"],
    ["#00805c", "#2fcfa0"],
    ["#b4558c", "#e79ac6"],
    ["#a66f00", "#f0b840"],
    ["#4a7fd6", "#93b8ff"],
    ["#7a5c14", "#cdb26a"],
    ["#6f6f6f", "#b0b0b0"],
];

/// Dashes of the n-th line: in grey, they tell lines apart where colours do not.
const DASHES: [&[f64]; 8] = [
    &[],
    &[7.0, 4.0],
    &[2.0, 4.0],
    &[9.0, 4.0, 2.0, 4.0],
    &[12.0, 4.0],
    &[5.0, 3.0],
    &[9.0, 4.0, 2.0, 4.0, 2.0, 4.0],
    &[1.0, 3.0],
];

impl Theme {
    /// The colour of words.
    pub fn words(self) -> &'static str {
        ["#373c44", "#c2c7d0"][self as usize]
    }
}

/// How a mark is drawn.
pub struct Ink {
    pub colour: String,
    pub opacity: f64,
    pub width: f64,
    pub dash: &'static [f64],
    /// Whether its ends are round: of dots alone, as a line must end where its interval does.
    pub round: bool,
}

/// The ink of a class: `c3`, `c3 area`, `c3 band`, `threshold`, ...
pub fn of(class: &str, closed: bool, theme: Theme) -> Ink {
    let has = |word: &str| class.split(' ').any(|one| one == word);
    let number = (0..COLOURS.len()).find(|place| has(&format!("c{place}")));
    let pick = |pair: [&str; 2]| pair[theme as usize].to_owned();
    let colour = match number {
        Some(number) => pick(COLOURS[number]),
        // In no action's colour: black on white.
        None if has("threshold") || has("truth") => pick(["#000000", "#ffffff"]),
        None if has("grid") => pick(["#e3e6ec", "#2c3340"]),
        None => pick(["#5a6170", "#a4abba"]),
    };
    let dash: &[f64] = if has("threshold") {
        &[4.0, 3.0]
    } else if has("bound") {
        &[1.0, 3.0]
    } else if has("styled") {
        number.map_or(&[], |number| DASHES[number])
    } else {
        &[]
    };
    Ink {
        colour,
        opacity: if has("band") {
            0.18
        } else if has("faint") {
            0.4
        } else if closed {
            0.85
        } else {
            1.0
        },
        width: if has("dot") {
            8.0
        } else if has("grid") || has("axis") {
            1.0
        } else if has("wide") {
            10.0
        } else {
            2.0
        },
        dash,
        round: has("dot"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_colours_of_the_pages() {
        let style = include_str!("../../assets/debora.css");
        let (light, dark) = style.split_once("prefers-color-scheme: dark").unwrap();
        for (place, pair) in COLOURS.iter().enumerate() {
            for (part, colour) in [light, dark].into_iter().zip(pair) {
                assert!(part.contains(&format!("--c{place}: {colour};")), "{colour}");
            }
        }
    }
}
