//! How wide words are: legends are laid out before anybody draws them.

/// Widths of the characters from space to tilde, in thousandths of their height: Helvetica's, which every reader of PDF has, and
/// close to those of any plain face.
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// In units of their height.
pub fn width(text: &str) -> f64 {
    let thousandths: u32 = text.chars().map(|letter| u32::from(of(letter))).sum();
    f64::from(thousandths) / 1000.0
}

fn of(letter: char) -> u16 {
    let place = (letter as usize).checked_sub(32);
    // What is not there, from ä to 漢, is taken for wide: too much room hurts less than too little.
    place
        .and_then(|place| WIDTHS.get(place))
        .copied()
        .unwrap_or(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_widths() {
        assert_eq!(width("debora"), 3.113);
        assert_eq!(width("ä"), 1.0);
    }
}
