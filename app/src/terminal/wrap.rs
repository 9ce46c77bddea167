//! Sentences broken into lines.

/// The width of a line: every terminal has so much, and longer lines are hard to read.
const WIDTH: usize = 80;

/// Each line of the text broken at 80 columns. Tables, which are indented, stay as they are.
pub fn wrapped(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("  ") {
            lines.push(line.to_owned());
        } else {
            lines.extend(broken(line));
        }
    }
    lines.join("\n") + "\n"
}

/// A line as one or more that fit. A word that is wider than a line has one of its own.
pub(super) fn broken(line: &str) -> Vec<String> {
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
    fn sentences_are_wrapped_and_tables_are_not() {
        let long = "word ".repeat(30);
        assert!(wrapped(long.trim()).lines().all(|line| line.len() <= 80));
        assert_eq!(wrapped(long.trim()).split_whitespace().count(), 30);
        let row = format!("  {long}");
        assert_eq!(wrapped(&row), format!("{row}\n"));
    }

    #[test]
    fn colours_take_no_room() {
        let plain = "word ".repeat(16);
        let bold = format!("\x1b[1m{}\x1b[0m", plain.trim());
        assert_eq!(broken(plain.trim()).len(), 1);
        assert_eq!(broken(&bold), [bold]);
    }
}
