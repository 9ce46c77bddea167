//! Sentences broken into lines.

/// The width of a line: every terminal has so much, and longer lines are hard to read.
const WIDTH: usize = 80;

/// A sentence as lines that fit. A word that is wider than a line has one of its own.
pub(super) fn broken(sentence: &str) -> Vec<String> {
    // Values that a sentence quotes may bring line breaks along.
    sentence.split('\n').flat_map(fitted).collect()
}

fn fitted(line: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    // At every single blank, so that blanks within a line are kept as they are.
    for word in line.split(' ') {
        // Greedy, as typewriters do it: lines of even length are for justified text.
        if !open.is_empty() && shown(&open) + 1 + shown(word) > WIDTH {
            lines.push(std::mem::take(&mut open));
        }
        if !open.is_empty() {
            open.push(' ');
        }
        open += word;
    }
    lines.push(open);
    lines
}

/// The columns a text takes: escape sequences, which run from \x1b to m, take none.
fn shown(text: &str) -> usize {
    let mut columns = 0;
    let mut escaped = false;
    for letter in text.chars() {
        match letter {
            '\x1b' => escaped = true,
            'm' if escaped => escaped = false,
            _ if escaped => {}
            _ => columns += 1,
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_wrapped() {
        let long = "word ".repeat(30);
        assert!(broken(long.trim()).iter().all(|line| line.len() <= 80));
        assert_eq!(broken(long.trim()).join(" "), long.trim());
        assert_eq!(broken("one\ntwo"), ["one", "two"]);
    }

    #[test]
    fn colours_take_no_room() {
        let plain = "word ".repeat(16);
        let bold = format!("\x1b[1m{}\x1b[0m", plain.trim());
        assert_eq!(broken(plain.trim()).len(), 1);
        assert_eq!(broken(&bold), [bold]);
    }
}
