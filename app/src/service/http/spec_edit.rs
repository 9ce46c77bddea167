//! A spec's text, changed value by value: comments, blanks and what a form does not know stay as they are.
//!
//! Whether the values are right is not asked here: what a person types is written down, and the spec's own parser says what is
//! wrong with it, at its place.

use toml_edit::{Array, DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value};

/// A text that is TOML.
#[derive(Clone)]
pub struct SpecEdit(DocumentMut);

/// What a value is written as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// In quotes.
    Text,
    /// As a number, if it is one.
    Number,
}

impl SpecEdit {
    /// The text, unless it is not TOML.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    pub fn text(&self) -> String {
        self.0.to_string()
    }

    /// The value at a path of keys and numbers, as a person would type it; empty if there is none.
    pub fn get(&self, path: &[&str]) -> String {
        let value = self.item(path).and_then(Item::as_value);
        value.map_or(String::new(), typed)
    }

    /// How many entries the list at a key has.
    pub fn count(&self, key: &str) -> usize {
        match self.0.get(key) {
            Some(Item::ArrayOfTables(tables)) => tables.len(),
            Some(Item::Value(Value::Array(values))) => values.len(),
            _ => 0,
        }
    }

    /// Whether there is something at a path of keys.
    pub fn has(&self, path: &[&str]) -> bool {
        self.item(path).is_some()
    }

    /// Writes a value. An empty one is taken away, with the tables that it leaves empty.
    pub fn set(&mut self, path: &[&str], text: &str, notation: Notation) {
        if text.is_empty() {
            self.remove(path);
        } else {
            self.write(path, text, notation);
        }
    }

    /// Writes a value, also an empty one.
    pub fn write(&mut self, path: &[&str], text: &str, notation: Notation) {
        self.put(path, value(text, notation));
    }

    /// Writes both ends of an interval.
    pub fn set_ends(&mut self, path: &[&str], ends: [&str; 2]) {
        let ends = ends.iter().map(|end| value(end, Notation::Number));
        self.put(path, Value::Array(ends.collect()));
    }

    fn put(&mut self, path: &[&str], value: Value) {
        let Some((last, above)) = path.split_last() else {
            return;
        };
        match self.place(above) {
            // An entry of a list is there, or there is no such row.
            Some(list) if is_list(list) => {
                let entry = number(last).and_then(|number| list.get_mut(number));
                if let Some(old) = entry.and_then(Item::as_value_mut) {
                    replace(old, value);
                }
            }
            Some(table) => {
                if let Some(table) = table.as_table_like_mut() {
                    insert(table, last, value);
                }
            }
            None => {}
        }
    }

    /// Takes away what is at a path.
    pub fn remove(&mut self, path: &[&str]) {
        let Some((last, above)) = path.split_last() else {
            return;
        };
        // Not made for this: what is not there need not be taken away.
        if !self.has(path) {
            return;
        }
        let Some(table) = self.place(above).and_then(Item::as_table_like_mut) else {
            return;
        };
        table.remove(last);
        // A cost without any value is still a cost; a table by names without any says nothing.
        if table.is_empty() && above.first() != Some(&"cost") {
            self.remove(above);
        }
    }

    /// Calls a key otherwise, unless the name is taken.
    pub fn rename(&mut self, table: &[&str], from: &str, to: &str) {
        let both = |key| [table, &[key]].concat();
        if !self.has(&both(from)) || self.has(&both(to)) {
            return;
        }
        if let Some(table) = self.place(table).and_then(Item::as_table_like_mut)
            && let Some(item) = table.remove(from)
        {
            table.insert(to, item);
        }
    }

    /// Adds an action.
    pub fn add_action(&mut self, name: &str) {
        let actions = self
            .0
            .entry("actions")
            .or_insert(Item::Value(Value::Array(Array::new())));
        if let Some(actions) = actions.as_array_mut() {
            actions.push(name);
        }
    }

    /// Adds a cost.
    pub fn add_cost(&mut self, name: &str, threshold: &str) {
        let mut cost = Table::new();
        insert(&mut cost, "name", value(name, Notation::Text));
        insert(&mut cost, "threshold", value(threshold, Notation::Number));
        cost.decor_mut().set_prefix("\n");
        let costs = self
            .0
            .entry("cost")
            .or_insert(Item::ArrayOfTables(Default::default()));
        // As the others are written: in sections, or in a line.
        if let Some(costs) = costs.as_array_of_tables_mut() {
            costs.push(cost);
        } else if let Some(costs) = costs.as_array_mut() {
            costs.push(cost.into_inline_table());
        }
    }

    /// Takes a section out, as a text of its own.
    pub fn take_section(&mut self, key: &str) -> Option<String> {
        let mut section = self.0.remove(key)?.into_table().ok()?;
        // With a header, whatever it had: it will stand behind other sections.
        section.set_dotted(false);
        let mut own = DocumentMut::new();
        own.insert(key, Item::Table(section));
        Some(own.to_string())
    }

    /// Puts a text of sections at the end.
    pub fn append(&mut self, sections: &str) {
        let text = self.text();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        if let Some(whole) = Self::parse(&format!("{text}{end}{sections}")) {
            *self = whole;
        }
    }

    /// Takes away an entry of a list.
    pub fn remove_entry(&mut self, key: &str, number: usize) {
        match self.0.get_mut(key) {
            Some(Item::ArrayOfTables(tables)) if number < tables.len() => {
                tables.remove(number);
                // An empty list of sections has no text of its own.
                if tables.is_empty() {
                    self.0.remove(key);
                }
            }
            Some(Item::Value(Value::Array(values))) if number < values.len() => {
                let gone = values.remove(number);
                // The first has no blank before it.
                if let Some(first) = values.get_mut(0).filter(|_| number == 0) {
                    *first.decor_mut() = gone.decor().clone();
                }
            }
            _ => {}
        }
    }

    /// What is at a path.
    fn item(&self, path: &[&str]) -> Option<&Item> {
        path.iter().try_fold(self.0.as_item(), |item, key| {
            item.get(key).or_else(|| item.get(number(key)?))
        })
    }

    /// The same, to be changed; tables are made where there are none.
    fn place(&mut self, path: &[&str]) -> Option<&mut Item> {
        let mut item = self.0.as_item_mut();
        for (depth, key) in path.iter().enumerate() {
            item = if is_list(item) {
                item.get_mut(number(key)?)?
            } else {
                let entry = item.as_table_like_mut()?.entry(key);
                // Sections at the top, and tables in a line within them, as people write them.
                entry.or_insert_with(|| match depth {
                    0 => Item::Table(Table::new()),
                    _ => Item::Value(Value::InlineTable(InlineTable::new())),
                })
            };
        }
        Some(item)
    }
}

/// Whether an item has entries by number: values, or sections.
fn is_list(item: &Item) -> bool {
    item.is_array() || item.is_array_of_tables()
}

fn number(key: &str) -> Option<usize> {
    key.parse().ok()
}

/// A value as a person would type it.
fn typed(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        // As it is written: 1e6 stays 1e6.
        None => value.clone().decorated("", "").to_string(),
    }
}

/// What a person typed, as a value. What is not a number is written as a text, which the spec's parser refuses by name.
fn value(text: &str, notation: Notation) -> Value {
    let number = text.trim().parse::<Value>().ok();
    let is_number = |value: &Value| value.is_integer() || value.is_float();
    match number.filter(|value| notation == Notation::Number && is_number(value)) {
        Some(mut number) => {
            // So that it gets the blanks that its new place asks for.
            number.decor_mut().clear();
            number
        }
        None => Value::from(text),
    }
}

fn insert(table: &mut dyn TableLike, key: &str, value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => replace(old, value),
        None => {
            // The last value of a table in a line has a blank before the brace, which is not to stand before a comma.
            for (_, item) in table.iter_mut() {
                if let Some(last) = item.as_value_mut()
                    && last.decor().suffix().and_then(RawString::as_str) == Some(" ")
                {
                    last.decor_mut().set_suffix("");
                }
            }
            table.insert(key, Item::Value(value));
        }
    }
}

/// A value in the place of another, with the comment that stands behind it.
fn replace(old: &mut Value, mut value: Value) {
    *value.decor_mut() = old.decor().clone();
    *old = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "# ours\nhorizon = 1e6   # rounds\nactions = [\"a\", \"b\"]\nprofile = \"tight\"\n\n[[cost]]\nname = \"price\"  # dollars\nrange = [0, 2]\nthreshold = 1.5\n";

    fn edited(edit: impl FnOnce(&mut SpecEdit)) -> String {
        let mut spec = SpecEdit::parse(SPEC).unwrap();
        edit(&mut spec);
        spec.text()
    }

    #[test]
    fn values_are_read_as_they_are_written() {
        let spec = SpecEdit::parse(SPEC).unwrap();
        let read = [
            &["horizon"][..],
            &["actions", "1"],
            &["cost", "0", "name"],
            &["cost", "0", "range", "1"],
            &["cost", "1", "name"],
            &["rho"],
        ]
        .map(|path| spec.get(path));
        assert_eq!(read, ["1e6", "b", "price", "2", "", ""]);
        assert_eq!([spec.count("actions"), spec.count("cost")], [2, 1]);
        assert!(SpecEdit::parse("policy = soft").is_none());
    }

    #[test]
    fn a_change_moves_nothing_else() {
        let horizon = edited(|spec| spec.set(&["horizon"], "2_000", Notation::Number));
        assert_eq!(horizon, SPEC.replace("1e6 ", "2_000 "));
        let name = edited(|spec| spec.set(&["cost", "0", "name"], "a \"b\" = ]", Notation::Text));
        assert_eq!(name, SPEC.replace("\"price\"", "'a \"b\" = ]'"));
        let action = edited(|spec| spec.set(&["actions", "0"], "7", Notation::Text));
        assert_eq!(action, SPEC.replace("\"a\"", "\"7\""));
        let range = edited(|spec| spec.set_ends(&["cost", "0", "range"], ["0", "3"]));
        assert_eq!(range, SPEC.replace("[0, 2]", "[0, 3]"));
        // Left to the spec's parser.
        let wrong = edited(|spec| spec.set(&["horizon"], "many", Notation::Number));
        assert_eq!(wrong, SPEC.replace("1e6 ", "\"many\" "));
    }

    #[test]
    fn what_is_not_there_is_made_and_what_is_emptied_goes() {
        let path = ["service", "impute", "cost", "price"];
        let imputed = edited(|spec| spec.set(&path, "2", Notation::Number));
        assert!(
            imputed.ends_with("\n[service]\nimpute = { cost = { price = 2 } }\n"),
            "{imputed}"
        );
        let mut more = SpecEdit::parse(&imputed).unwrap();
        more.set(&["service", "impute", "reward"], "0.5", Notation::Number);
        let line = "impute = { cost = { price = 2 }, reward = 0.5 }\n";
        assert!(more.text().ends_with(line), "{}", more.text());
        let mut back = SpecEdit::parse(&imputed).unwrap();
        back.set(&path, "", Notation::Number);
        assert!(!back.has(&["service"]), "{}", back.text());
        let renamed = edited(|spec| {
            spec.set(&["safe", "strategy", "a"], "1.0", Notation::Number);
            spec.rename(&["safe", "strategy"], "a", "c");
        });
        assert!(renamed.contains("strategy = { c = 1.0 }"), "{renamed}");
    }

    #[test]
    fn entries_come_and_go() {
        let more = edited(|spec| {
            spec.add_action("c");
            spec.add_cost("wait", "0.5");
        });
        assert!(more.contains("[\"a\", \"b\", \"c\"]"), "{more}");
        assert!(
            more.ends_with("\n[[cost]]\nname = \"wait\"\nthreshold = 0.5\n"),
            "{more}"
        );
        let fewer = edited(|spec| {
            spec.remove_entry("actions", 0);
            spec.remove_entry("cost", 0);
            // Beyond the end there is nothing to take away.
            spec.remove_entry("cost", 0);
        });
        assert_eq!(
            fewer,
            "# ours\nhorizon = 1e6   # rounds\nactions = [\"b\"]\nprofile = \"tight\"\n"
        );
    }
}
