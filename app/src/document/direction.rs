//! Names written from right to left, which must not turn around what stands beside them.

use maud::{Markup, html};

/// A text that may hold names: what is written from right to left stands apart, or the words and numbers around it would
/// change places.
pub fn sentence(text: &str) -> Markup {
    html! {
        @for (apart, part) in directed(text) {
            @if apart { bdi { (part) } } @else { (part) }
        }
    }
}

/// The parts of a text, and whether each is written from right to left. Names are not marked in sentences, which programs get, too:
/// a run of words that hold a letter of such a script is taken for one.
fn directed(text: &str) -> Vec<(bool, &str)> {
    let mut parts: Vec<(bool, usize, usize)> = Vec::new();
    let mut place = 0;
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end_matches([' ', ',', '.', ':', ';']);
        let apart = bare.contains(is_from_the_right);
        let ends = [place + bare.len(), place + word.len()];
        match parts.last_mut() {
            // A blank alone between two of them: both are of one name.
            Some((true, _, end))
                if apart && text[*end..place].trim().is_empty() && text[*end..place].len() <= 1 =>
            {
                *end = ends[0]
            }
            _ if apart => parts.push((true, place, ends[0])),
            _ => {}
        }
        place = ends[1];
    }
    let mut directed = Vec::new();
    let mut from = 0;
    for (_, begin, end) in parts {
        directed.extend([(false, &text[from..begin]), (true, &text[begin..end])]);
        from = end;
    }
    directed.push((false, &text[from..]));
    directed.retain(|(_, part)| !part.is_empty());
    directed
}

/// Letters of scripts that are written so, and the signs that change the direction of what follows.
fn is_from_the_right(letter: char) -> bool {
    matches!(letter,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_written_from_the_right_stand_apart() {
        let shown = |text: &str| sentence(text).into_string();
        assert_eq!(
            shown("The best is \u{5d0}\u{5d1} 60 %, \u{5d2} \u{5d3} 30 % and <c> 10 %."),
            "The best is <bdi>\u{5d0}\u{5d1}</bdi> 60 %, <bdi>\u{5d2} \u{5d3}</bdi> 30 % and &lt;c&gt; 10 %."
        );
        // Two names after each other, and one that turns what follows around.
        assert_eq!(
            shown("\u{5d0}, \u{5d1} and a\u{202e}b."),
            "<bdi>\u{5d0}</bdi>, <bdi>\u{5d1}</bdi> and <bdi>a\u{202e}b</bdi>."
        );
        assert_eq!(shown("Of a & b: 1,000."), "Of a &amp; b: 1,000.");
    }
}
