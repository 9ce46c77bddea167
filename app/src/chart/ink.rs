//! What a class of marks looks like in a file, which is for paper: light. Pages have it from their style sheet, whose colours a test
//! compares with these.

/// The colour of words.
pub const WORDS: &str = "#373c44";

/// Colours that can be told apart with most kinds of colour blindness (after Okabe and Ito 2008), each dark enough to stand on
/// white.
pub const COLOURS: [&str; 8] = [
    "#0072b2", "#bf5109", "#00805c", "#b4558c", "#a66f00", "#4a7fd6", "#7a5c14", "#6f6f6f",
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

/// How a mark is drawn.
pub struct MarkInk {
    pub colour: &'static str,
    pub opacity: f64,
    pub width: f64,
    pub dash: &'static [f64],
    /// Whether its ends are round: of dots alone, as a line must end where its interval does.
    pub round: bool,
}

/// The ink of a class: `c3`, `c3 area`, `c3 band`, `threshold`, ...
pub fn of(class: &str, closed: bool) -> MarkInk {
    let has = |word: &str| class.split(' ').any(|one| one == word);
    let number = (0..COLOURS.len()).find(|place| has(&format!("c{place}")));
    let colour = match number {
        Some(number) => COLOURS[number],
        // In no action's colour.
        None if has("threshold") => "#000000",
        None if has("grid") => "#e3e6ec",
        None => "#5a6170",
    };
    let dash: &[f64] = if has("threshold") {
        &[4.0, 3.0]
    } else if has("bound") {
        &[1.0, 3.0]
    } else if has("styled") {
        let dashes = (0..DASHES.len()).find(|place| has(&format!("d{place}")));
        dashes.map_or(&[], |place| DASHES[place])
    } else {
        &[]
    };
    MarkInk {
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
        let style = include_str!("../../assets/figures.css");
        let (light, _) = style.split_once("prefers-color-scheme: dark").unwrap();
        for (place, colour) in COLOURS.iter().enumerate() {
            assert!(
                light.contains(&format!("--c{place}: {colour};")),
                "{colour}"
            );
        }
    }
}
