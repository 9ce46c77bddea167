//! Reading a value for what a key wants: each reader gives the value or a fault that names it, its place and the rule.

use std::collections::BTreeMap;

use crate::problem::HORIZON_MAX;
use crate::spec::document::{Node, NodeValue};
use crate::spec::error::{Fault, Read, SpecPlace};
use crate::spec::keys::{KeyPresence, SpecKey};
use crate::spec::spelling::{hint, list, shorten};

/// A value and the path that leads to it, as messages call it.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub path: String,
    pub node: &'a Node,
}

impl<'a> Field<'a> {
    /// A fault at this value.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.node.place, message)
    }

    /// A fault that shows this value and the rule it breaks.
    pub fn wrong(&self, rule: &str) -> Fault {
        self.fault(format!("{} is {}; {rule}", self.path, self.node.shown()))
    }

    fn inner(&self, path: String, node: &'a Node) -> Self {
        Self { path, node }
    }

    pub fn text(&self) -> Read<&'a str> {
        match &self.node.value {
            NodeValue::Text(text) => Ok(text),
            _ => Err(self.wrong("it must be a text in quotes")),
        }
    }

    pub fn number(&self) -> Read<f64> {
        self.node
            .number()
            .ok_or_else(|| self.wrong("it must be a number"))
    }

    /// A whole number, spelled 100_000_000, 1e8 or 1E8.
    pub fn whole<T: TryFrom<u128>>(&self, rule: &str) -> Read<T> {
        let whole = match self.node.value {
            NodeValue::Whole(whole) => Some(whole),
            // Above 2^53 the spelling of a float is no longer its value.
            NodeValue::Number(number)
                if (0.0..=HORIZON_MAX as f64).contains(&number) && number.trunc() == number =>
            {
                Some(number as u128)
            }
            _ => None,
        };
        whole
            .and_then(|whole| T::try_from(whole).ok())
            .ok_or_else(|| self.wrong(rule))
    }

    /// One of the words of a list, for what it stands.
    pub fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Read<T> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| self.wrong(&hint(text, words.iter().map(|(word, _)| *word))))
    }

    pub fn list(&self) -> Read<Vec<Field<'a>>> {
        match &self.node.value {
            NodeValue::List(list) => {
                let entry = |(index, node)| self.inner(format!("{}[{index}]", self.path), node);
                Ok(list.iter().enumerate().map(entry).collect())
            }
            _ => Err(self.wrong("it must be a list in [ ]")),
        }
    }

    pub fn numbers(&self) -> Read<Vec<f64>> {
        self.list()?.iter().map(Field::number).collect()
    }

    /// Least and largest value.
    pub fn range(&self) -> Read<[f64; 2]> {
        let ends = self.numbers()?;
        // Whether the ends are in order is the problem's to check, and its error names them.
        <[f64; 2]>::try_from(ends).map_err(|_| self.wrong("give two numbers, [least, largest]"))
    }

    fn table(&self, keys: &str) -> Read<&'a BTreeMap<String, Node>> {
        match &self.node.value {
            NodeValue::Table(table) => Ok(table),
            _ => Err(self.wrong(&format!("it must be a table with the keys {keys}"))),
        }
    }

    /// A table with these keys and no others.
    pub fn section(&self, keys: &'static [SpecKey]) -> Read<SpecSection<'a>> {
        let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
        let table = self.table(&list(&known))?;
        let unknown = table
            .iter()
            .filter(|(key, _)| !known.contains(&key.as_str()));
        // Of several, the one that the reader meets first.
        if let Some((key, node)) = unknown.min_by_key(|(_, node)| node.place) {
            let section = if self.path.is_empty() {
                String::new()
            } else {
                format!(" in {}", self.path)
            };
            let message = format!(
                "unknown key {:?}{section}; {}",
                shorten(key),
                hint(key, known)
            );
            return Err(Fault::new(node.place, message));
        }
        Ok(SpecSection {
            keys,
            table,
            path: self.path.clone(),
            place: self.node.place,
        })
    }

    /// A table whose keys are some of these names: what it holds for each.
    pub fn by_name(&self, what: &str, names: &[&str]) -> Read<Vec<Option<Field<'a>>>> {
        let table = self.table(&list(names))?;
        // A map, as there may be thousands of actions on both sides.
        let numbers: BTreeMap<&str, usize> = names.iter().copied().zip(0..).collect();
        let mut found = vec![None; names.len()];
        let mut unknown = Vec::new();
        for (key, node) in table {
            match numbers.get(key.as_str()) {
                Some(&number) => {
                    found[number] = Some(self.inner(format!("{}.{key}", self.path), node));
                }
                None => unknown.push((key, node)),
            }
        }
        // Tables are sorted by key; the error is about what the reader meets first.
        match unknown.into_iter().min_by_key(|(_, node)| node.place) {
            None => Ok(found),
            Some((key, node)) => {
                let rule = hint(key, names.iter().copied());
                let message = format!("unknown {what} {:?} in {}; {rule}", shorten(key), self.path);
                Err(Fault::new(node.place, message))
            }
        }
    }

    /// A table whose keys are all of these names.
    pub fn each_by_name(&self, what: &str, names: &[&str]) -> Read<Vec<Field<'a>>> {
        let found = self.by_name(what, names)?.into_iter().zip(names);
        let lacks = |name| {
            self.fault(format!(
                "{} has no {what} {name:?}; give one entry for each",
                self.path
            ))
        };
        found
            .map(|(field, name)| field.ok_or_else(|| lacks(name)))
            .collect()
    }

    /// One entry per action: a list in their order, or a table by their names.
    pub fn each_action(&self, actions: &[&str]) -> Read<Vec<Field<'a>>> {
        match &self.node.value {
            NodeValue::Table(_) => self.each_by_name("action", actions),
            // A list that is too short would give the means of one action to another.
            NodeValue::List(list) if list.len() == actions.len() => self.list(),
            NodeValue::List(list) => {
                let message = format!(
                    "{} has {} entries for {} actions",
                    self.path,
                    list.len(),
                    actions.len()
                );
                Err(self.fault(message + "; give one for each, in their order"))
            }
            _ => Err(self
                .wrong("it must be a list with one entry per action, or a table by their names")),
        }
    }
}

/// A table of known keys.
pub(super) struct SpecSection<'a> {
    keys: &'static [SpecKey],
    table: &'a BTreeMap<String, Node>,
    path: String,
    place: SpecPlace,
}

impl<'a> SpecSection<'a> {
    pub fn get(&self, key: &str) -> Option<Field<'a>> {
        let key = self.known(key).name;
        let path = if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        };
        self.table.get(key).map(|node| Field { path, node })
    }

    /// A key that must be there.
    pub fn need(&self, key: &str) -> Read<Field<'a>> {
        self.get(key).ok_or_else(|| self.lacks(key, key))
    }

    /// The fault that a key is missing, or a path below it.
    pub fn lacks(&self, key: &str, path: &str) -> Fault {
        let section = if self.path.is_empty() {
            String::new()
        } else {
            format!("{}.", self.path)
        };
        let remedy = match self.known(key).presence {
            KeyPresence::Required(remedy) | KeyPresence::Depends(remedy) => remedy,
            KeyPresence::Optional => panic!("{section}{key} may be missing"),
        };
        // At the section that lacks it, since what is missing has no line of its own.
        let message = format!("{section}{path} is missing; {remedy}");
        Fault::new(self.place, message).without(path)
    }

    /// The key's line of the table of keys. A reader that asks for any other would read what the schema does not know.
    fn known(&self, key: &str) -> &'static SpecKey {
        let known = self.keys.iter().find(|known| known.name == key);
        known.unwrap_or_else(|| panic!("{key} is not a key of {:?}", self.path))
    }

    /// What a key holds, if it is there.
    pub fn read<T>(&self, key: &str, read: impl FnOnce(&Field<'a>) -> Read<T>) -> Read<Option<T>> {
        self.get(key).map(|field| read(&field)).transpose()
    }
}
