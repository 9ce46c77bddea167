//! Sentences broken into lines.

use super::untrusted::FIXED_BLANK;

/// The width of a line: every terminal has so much, and longer lines are hard to read.
const WIDTH: usize = 80;

/// What begins a line of a value that somebody else wrote, where it could be taken for one of ours.
const CONTINUED: &str = "  | ";

/// A sentence as lines that fit. A word that is wider than a line begins one of its own.
pub(super) fn broken(sentence: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    // At every single blank, so that blanks within a line are kept as they are.
    for word in sentence.split(' ') {
        // Greedy, as typewriters do it: lines of even length are for justified text.
        if !open.is_empty() && shown(&open) + 1 + shown(word) > WIDTH {
            lines.push(std::mem::take(&mut open));
        }
        if !open.is_empty() {
            open.push(' ');
        } else if reads_as_ours(word) {
            open += CONTINUED;
        }
        if shown(word) > WIDTH {
            open = continued(word, open, &mut lines);
        } else {
            open += word;
        }
    }
    lines.push(open);
    // Only here, where lines are broken, do fixed blanks differ from others.
    lines
        .into_iter()
        .map(|line| line.replace(FIXED_BLANK, " "))
        .collect()
}

/// Whether a value of several words would begin a line as a sentence of ours does: without a quote, a bracket or a digit.
fn reads_as_ours(word: &str) -> bool {
    word.contains(FIXED_BLANK) && word.starts_with(char::is_alphabetic)
}

/// Breaks a word wherever its line is full; what is left for the last line is returned.
fn continued(word: &str, mut open: String, lines: &mut Vec<String>) -> String {
    for letter in word.chars() {
        if shown(&open) == WIDTH {
            lines.push(std::mem::replace(&mut open, CONTINUED.to_owned()));
        }
        open.push(letter);
    }
    open
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
    }

    #[test]
    fn lines_of_a_value_cannot_be_taken_for_others() {
        let value = format!("{}all{FIXED_BLANK}equal.", "x".repeat(76));
        let lines = broken(&format!("It is {value} here"));
        let parts = [
            "It is".to_owned(),
            format!("  | {}", "x".repeat(76)),
            "  | all equal. here".into(),
        ];
        assert_eq!(lines, parts);
        let value = format!("all{FIXED_BLANK}equal.");
        let lines = broken(&format!("{} {value}", "word ".repeat(15)));
        assert_eq!(lines.last().unwrap(), "  | all equal.");
    }

    #[test]
    fn colours_take_no_room() {
        let plain = "word ".repeat(16);
        let bold = format!("\x1b[1m{}\x1b[0m", plain.trim());
        assert_eq!(broken(plain.trim()).len(), 1);
        assert_eq!(broken(&bold), [bold]);
    }
}
