//! The table of keys for those who make a form of it: what each key is called, how it is typed, and what holds where it is not.

use std::sync::LazyLock;

use crate::spec::keys::{KeyPresence, KeyShape, SpecKey, TOP};

/// A key of a spec as a form shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormKey {
    /// The keys that lead to it, with `#` for the number of an action or a cost: `cost.#.threshold`.
    ///
    /// What a spec has by the name of an action or a cost goes by number, too: `safe.strategy.#`.
    pub path: String,
    /// What it is called.
    pub label: &'static str,
    /// How it is typed.
    pub kind: FormKind,
    /// The rows of the form in which it is repeated.
    pub rows: Option<FormRows>,
    /// Whether a spec has it by the name of the row's action or cost.
    pub by_name: bool,
    /// Whether it must be there.
    pub required: bool,
    /// What holds where nothing is typed, in a word; empty if there is no such word.
    pub unset: String,
}

/// How a value is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormKind {
    /// As a text.
    Text,
    /// As a number.
    Number,
    /// As two numbers, the ends of an interval.
    Ends,
    /// One of these words, each with what it means.
    Word(Vec<(&'static str, &'static str)>),
    /// One of the actions, by name.
    Action,
}

/// What a form has many rows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormRows {
    /// A row for each action.
    Actions,
    /// A row for each cost.
    Costs,
}

/// The keys that a form shows, in its order.
///
/// ```
/// use debora::spec::{FormKind, FormRows, form_keys};
///
/// let limit = form_keys().iter().find(|key| key.path == "cost.#.threshold").unwrap();
/// assert_eq!((limit.label, limit.rows), ("Limit on its mean", Some(FormRows::Costs)));
/// assert_eq!(limit.kind, FormKind::Number);
/// ```
pub fn form_keys() -> &'static [FormKey] {
    static KEYS: LazyLock<Vec<FormKey>> = LazyLock::new(|| {
        let mut keys = Vec::new();
        collect(TOP, "", None, &mut keys);
        keys
    });
    &KEYS
}

/// Adds what has a label, section by section.
fn collect(section: &[SpecKey], above: &str, rows: Option<FormRows>, keys: &mut Vec<FormKey>) {
    for key in section {
        let path = format!("{above}{}", key.name);
        match &key.shape {
            KeyShape::Section(below) => collect(below, &format!("{path}."), rows, keys),
            // The costs: no other section is repeated.
            KeyShape::Sections(below) => {
                collect(below, &format!("{path}.#."), Some(FormRows::Costs), keys);
            }
            _ if key.label.is_empty() => {}
            _ => keys.push(shown(key, path, rows)),
        }
    }
}

fn shown(key: &SpecKey, path: String, rows: Option<FormRows>) -> FormKey {
    let numbered = match key.shape {
        KeyShape::Actions(_) | KeyShape::ByAction(_) => Some(FormRows::Actions),
        KeyShape::ByCost(_) => Some(FormRows::Costs),
        _ => None,
    };
    // A default is JSON, and the word of one that is a text is without its quotes.
    let default = key.default.unwrap_or_default().trim_matches('"');
    let unset = if key.unset.is_empty() {
        default
    } else {
        key.unset
    };
    FormKey {
        path: if numbered.is_some() {
            path + ".#"
        } else {
            path
        },
        label: key.label,
        kind: kind(key),
        rows: numbered.or(rows),
        by_name: matches!(key.shape, KeyShape::ByAction(_) | KeyShape::ByCost(_)),
        required: matches!(key.presence, KeyPresence::Required(_)),
        unset: unset.to_owned(),
    }
}

fn kind(key: &SpecKey) -> FormKind {
    match key.shape {
        KeyShape::Word(words) => {
            let meanings = key.meanings.iter().copied();
            FormKind::Word(words.iter().copied().zip(meanings).collect())
        }
        KeyShape::Ends | KeyShape::EndsOfCost => FormKind::Ends,
        KeyShape::Action => FormKind::Action,
        KeyShape::Text | KeyShape::Name | KeyShape::Wait | KeyShape::Actions(_) => FormKind::Text,
        _ => FormKind::Number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::keys::SERVICE;

    #[test]
    fn every_word_of_a_choice_has_its_meaning() {
        let choices = TOP.iter().chain(SERVICE).filter_map(|key| match key.shape {
            KeyShape::Word(words) if !key.label.is_empty() => {
                Some([words.len(), key.meanings.len()])
            }
            _ => None,
        });
        assert_eq!(choices.collect::<Vec<_>>(), [[3, 3], [2, 2]]);
    }
}
