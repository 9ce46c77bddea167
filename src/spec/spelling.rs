//! The nearest spelling: what a mistyped name was probably meant to be.

/// Names longer than this are not compared: the distance takes time in proportion to the product of the lengths.
const LENGTH_MAX: usize = 64;

/// How many known names a hint lists; there may be thousands of actions.
const NAMES_MAX: usize = 17;

/// `did you mean "soft"?`, or, if nothing is near, `choose from free, soft, hard`.
pub(super) fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    hint_among(wrong, &known.into_iter().collect::<Vec<_>>())
}

fn hint_among(wrong: &str, known: &[&str]) -> String {
    // What others call a seed is called a key here, and no spelling of one is near to the other.
    if wrong == "seed" && known.contains(&"key") {
        return "did you mean \"key\"?".to_owned();
    }
    match nearest(wrong, known) {
        Some(name) => format!("did you mean {name:?}?"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("choose from {}", list(known)),
    }
}

/// The first of many names.
pub(super) fn list(known: &[&str]) -> String {
    let names: Vec<String> = known
        .iter()
        .take(NAMES_MAX)
        .map(|name| shorten(name))
        .collect();
    let more = if known.len() > NAMES_MAX {
        format!(" and {} more", known.len() - NAMES_MAX)
    } else {
        String::new()
    };
    names.join(", ") + &more
}

/// A text as a message shows it: cut where it would fill the screen, without what would move the cursor.
pub(super) fn shorten(text: &str) -> String {
    let shown: String = text.chars().take(LENGTH_MAX).map(printable).collect();
    if text.chars().nth(LENGTH_MAX).is_some() {
        shown + "..."
    } else {
        shown
    }
}

/// A letter, or a mark in place of a control character.
pub(super) fn printable(letter: char) -> char {
    if letter.is_control() {
        char::REPLACEMENT_CHARACTER
    } else {
        letter
    }
}

/// The known name with the fewest typing errors, if those are at most a third of its letters, or one in a short name.
fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let wrong = comparable(wrong)?;
    let mut best = None;
    for &name in known {
        let Some(letters) = comparable(name) else {
            continue;
        };
        // A swap of neighbours is one typing error, which the plain edit distance would count as two.
        let errors = strsim::osa_distance(&wrong, &letters);
        let length = letters.chars().count();
        // Where every letter is wrong nothing of the name is left to be meant.
        let near = errors <= (length / 3).max(1) && errors < length.max(1);
        if near && best.is_none_or(|(fewest, _)| errors < fewest) {
            best = Some((errors, name));
        }
    }
    best.map(|(_, name)| name)
}

/// The name in small letters; `None` if it is too long to be compared.
fn comparable(name: &str) -> Option<String> {
    let letters = name.chars().take(LENGTH_MAX + 1);
    let small: Vec<char> = letters.flat_map(char::to_lowercase).collect();
    (small.len() <= LENGTH_MAX).then(|| small.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_counted() {
        for (a, b, errors) in [
            ("", "", 0),
            ("", "abc", 3),
            ("soft", "soft", 0),
            ("sfot", "soft", 1),
            ("horizn", "horizon", 1),
            ("kitten", "sitting", 3),
        ] {
            let count = strsim::osa_distance;
            assert_eq!((count(a, b), count(b, a)), (errors, errors), "{a} {b}");
        }
        let names = ["horizon", "policy"];
        for typed in ["horizn", "hroizon", "horizonn", "Horizon", "hoorizn"] {
            assert_eq!(nearest(typed, &names), Some("horizon"), "{typed}");
        }
        assert_eq!(nearest("hrzn", &names), None);
        assert_eq!(nearest("", &["abc"]), None);
        assert_eq!(nearest("kitten", &["sitting"]), None);
    }

    #[test]
    fn hints_offer_what_is_near_or_else_what_there_is() {
        let policies = ["free", "soft", "hard"];
        assert_eq!(hint("Soft", policies), r#"did you mean "soft"?"#);
        assert_eq!(hint("hrad", policies), r#"did you mean "hard"?"#);
        assert_eq!(hint("robust", policies), "choose from free, soft, hard");
        assert_eq!(hint("x", ["a"]), "choose from a");
        assert_eq!(hint("x", []), "there are none");
        let many: Vec<String> = (0..23).map(|number| format!("action {number}")).collect();
        let hint = hint("x", many.iter().map(String::as_str));
        assert!(hint.ends_with("action 16 and 6 more"), "{hint}");
    }

    #[test]
    fn long_names_are_not_compared() {
        let long = "a".repeat(1_000_000);
        assert_eq!(
            hint(&long, [long.as_str()]),
            format!("choose from {}...", "a".repeat(LENGTH_MAX))
        );
    }
}
