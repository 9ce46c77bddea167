//! Text that others wrote, shown so that it can only be read as text: it moves no cursor, turns no line around, begins no line of
//! its own and hides nothing that stands beside it.
//!
//! A log or a store may have been made up. [`escaped`] is applied to everything that leaves for a terminal (by [`laid_out`]
//! and [`one_line`]); [`name`] and [`value`] also mark where a quoted text begins and ends.
//!
//! [`laid_out`]: super::laid_out

use debora::measure::words::counted;
use serde::Serialize;

/// The longest name that is shown whole: on a line of 80 columns there is room for it and for what is said of it.
const NAME_MAX: usize = 60;

/// The longest value. It may take several lines, each of which is marked as a part of it.
const VALUE_MAX: usize = 1_000;

/// The longest error: a service may answer with a whole page.
const ERROR_MAX: usize = 2_000;

/// A blank at which no line is broken.
pub(super) const FIXED_BLANK: char = '\u{a0}';

/// The text with an escape such as `\u{1b}` in place of each character that is not simply printed: control characters, line
/// breaks, invisible ones and those that change the direction of writing.
pub fn escaped(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// An experiment's, action's or quantity's name: as it is if it is a plain word, and in quotes otherwise.
pub fn name(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    if !text.is_empty() && text.chars().all(plain) && text.chars().count() <= NAME_MAX {
        return escaped(text);
    }
    // A name such as `x. All equal.` must not read as a sentence of ours, nor be broken so that a line begins with it.
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    let (begin, rest) = cut(&quoted, NAME_MAX);
    fixed(&format!("\"{begin}\"")) + &rest
}

/// A value as a log or a store has it. Texts among them come with quotes.
pub fn value(text: &str) -> String {
    let (begin, rest) = cut(text, VALUE_MAX);
    fixed(&begin) + &rest
}

/// An error and its causes on one line.
pub fn one_line(error: &anyhow::Error) -> String {
    let (begin, rest) = cut(&format!("{error:#}"), ERROR_MAX);
    begin + &rest
}

/// A document as text. JSON leaves most of what a terminal obeys as it is; here all of it is escaped, which JSON allows.
pub fn json_text(document: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(document).expect("documents are written as JSON");
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        // Line breaks are the layout's: those within texts are escaped already.
        if letter == '\n' || is_printed(letter) {
            written.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            written += &format!("\\u{unit:04x}");
        }
    }
    written
}

/// A character, or what stands for it.
fn shown(letter: char) -> String {
    if is_printed(letter) {
        return letter.to_string();
    }
    letter.escape_debug().to_string()
}

fn is_printed(letter: char) -> bool {
    if letter.is_ascii() {
        return !letter.is_ascii_control();
    }
    // Behind another letter, as accents and vowel signs are escaped only where they stand alone.
    let text = String::from_iter(['a', letter]);
    letter == FIXED_BLANK || text.escape_debug().eq(text.chars())
}

/// The text escaped, as far as there is room for it, and in words how many of its characters are left out.
fn cut(text: &str, most: usize) -> (String, String) {
    let mut begin = String::new();
    // As shown, since an escape is many times as wide as what it stands for.
    let mut room = most;
    for (place, letter) in text.char_indices() {
        let letter = shown(letter);
        let width = letter.chars().count();
        if width > room {
            let more = text[place..].chars().count() as u64;
            let more = counted(more, "more character", "more characters");
            return (begin, format!(".. ({more})"));
        }
        room -= width;
        begin += &letter;
    }
    (begin, String::new())
}

fn fixed(text: &str) -> String {
    text.replace(' ', &FIXED_BLANK.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_what_people_write_is_not() {
        assert_eq!(escaped("a\x1b[2K\r\n\u{7f}"), "a\\u{1b}[2K\\r\\n\\u{7f}");
        assert_eq!(escaped("\u{9b}\u{202e}\u{2066}\u{2028}\u{200b}\u{feff}"), {
            "\\u{9b}\\u{202e}\\u{2066}\\u{2028}\\u{200b}\\u{feff}"
        });
        for text in ["größer \"x\" \\ é", "e\u{301}", "模型", "मॉडल"] {
            assert_eq!(escaped(text), text);
        }
    }

    #[test]
    fn names_that_are_not_plain_words_are_quoted_and_cut() {
        assert_eq!(name("large-2.b"), "large-2.b");
        assert_eq!(name("a \"b\"\n"), "\"a\u{a0}\\\"b\\\"\\n\"");
        assert_eq!(name(""), "\"\"");
        let long = format!("{}{}", "x".repeat(60), "all equal.");
        let shown = format!("\"{}\".. (10 more characters)", "x".repeat(60));
        assert_eq!(name(&long), shown);
    }

    #[test]
    fn documents_are_read_back_as_they_were() {
        let document = ["\x1b\n", "\u{9b}2K\u{2028}\u{202e}", "\u{e0041}é"];
        let text = json_text(&document);
        assert!(
            text.chars()
                .all(|letter| letter == '\n' || is_printed(letter)),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<[String; 3]>(&text).unwrap(),
            document
        );
    }
}
