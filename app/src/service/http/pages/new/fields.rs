//! The fields of the form, and where each stands in a spec.
//!
//! Which there are, the format's table of keys says ([`form_keys`]). A field is called by the keys that lead to its value,
//! `cost.0.threshold`, so that a fault of the spec finds it. What a spec says by name, the safe strategy and what is imputed, goes
//! by the number of the action or the cost: `safe.strategy.0`.

use std::collections::BTreeMap;

use debora::spec::{FormKey, FormKind, FormRows, form_keys};

use crate::service::http::spec_edit::{Notation, SpecEdit};

/// The most inputs that rows of actions and costs may have together, with a guess for each of their pairs: a page of two megabytes.
const INPUTS_MAX: usize = 8_192;

/// A field: its key, and which of several it is.
#[derive(Clone, Copy)]
pub struct FormField {
    pub key: &'static FormKey,
    /// The number of the action or the cost.
    row: Option<usize>,
    /// The end of an interval.
    end: Option<usize>,
}

impl FormField {
    pub fn new(key: &'static FormKey, row: Option<usize>) -> Self {
        let end = None;
        Self { key, row, end }
    }

    /// The field of this name.
    pub fn named(name: &str) -> Option<Self> {
        form_keys().iter().find_map(|key| {
            let (path, end) = match key.kind {
                FormKind::Ends => name.rsplit_once('.')?,
                _ => (name, ""),
            };
            let row = row_of(key, path)?;
            let end = ["0", "1"].iter().position(|known| *known == end);
            // An interval is typed as its ends.
            (end.is_some() == (key.kind == FormKind::Ends)).then_some(Self { key, row, end })
        })
    }

    pub fn end(self, end: usize) -> Self {
        let end = Some(end);
        Self { end, ..self }
    }

    pub fn name(self) -> String {
        let row = self.row.map_or(String::new(), |row| row.to_string());
        let name = self.key.path.replace('#', &row);
        self.end.map_or(name.clone(), |end| format!("{name}.{end}"))
    }

    /// What it is called: of several actions each by its number.
    pub fn label(self) -> String {
        let label = self.key.label;
        match self.row {
            Some(row) if self.key.path == "actions.#" => format!("{label} {}", row + 1),
            _ => label.to_owned(),
        }
    }

    /// Where it stands in a spec.
    fn path(self, spec: &SpecEdit) -> Vec<String> {
        let mut path: Vec<String> = self.name().split('.').map(str::to_owned).collect();
        if let (true, Some(rows), Some(row)) = (self.key.by_name, self.key.rows, self.row) {
            path.pop();
            path.push(name_of(spec, rows, row));
        }
        path
    }

    /// What a spec says there, as a person would type it.
    pub fn get(self, spec: &SpecEdit) -> String {
        spec.get(&parts(&self.path(spec)))
    }

    /// Whether it is what an action or a cost is called.
    pub fn is_name(self) -> bool {
        let path = &*self.key.path;
        self.key.rows.is_some() && (path == "actions.#" || path.ends_with(".name"))
    }

    /// Whether a form of this spec has it.
    pub fn is_of(self, spec: &SpecEdit) -> bool {
        let (Some(rows), Some(row)) = (self.key.rows, self.row) else {
            return true;
        };
        row < spec.count(list(rows)) && !is_large(spec)
    }

    /// Writes it into the spec.
    pub fn change(
        self,
        spec: &mut SpecEdit,
        shown: Option<&SpecEdit>,
        posted: &BTreeMap<String, String>,
        value: &str,
    ) {
        let value = value.trim();
        if self.end.is_some() {
            return Self { end: None, ..self }.change_ends(spec, posted);
        }
        if let Some(shown) = shown.filter(|_| self.is_name()) {
            self.rename(spec, shown, value);
        }
        let path = self.path(spec);
        let notation = match self.key.kind {
            FormKind::Number => Notation::Number,
            _ => Notation::Text,
        };
        // A row keeps its name, even an empty one: without it there would be no row to type into.
        if value.is_empty() && self.is_name() {
            spec.write(&parts(&path), value, notation);
        } else {
            spec.set(&parts(&path), value, notation);
        }
    }

    /// What is said of an action or a cost by its name follows it.
    fn rename(self, spec: &mut SpecEdit, shown: &SpecEdit, name: &str) {
        let (Some(rows), Some(row)) = (self.key.rows, self.row) else {
            return;
        };
        // Also from and to an empty one: that is how it is while another is typed.
        let old = name_of(shown, rows, row);
        // Of two that are called alike, nobody knows whose it is.
        if names(shown, rows).filter(|name| *name == old).count() > 1 {
            return;
        }
        for table in tables_by_name(rows) {
            spec.rename(&table, &old, name);
        }
        let by_action = |key: &&FormKey| key.kind == FormKind::Action && rows == FormRows::Actions;
        for key in form_keys().iter().filter(by_action) {
            let path: Vec<&str> = key.path.split('.').collect();
            if spec.has(&path) && spec.get(&path) == old {
                spec.write(&path, name, Notation::Text);
            }
        }
    }

    /// Writes an interval. If one end is empty, it is where it is by default.
    fn change_ends(self, spec: &mut SpecEdit, posted: &BTreeMap<String, String>) {
        let path = self.path(spec);
        let path = parts(&path);
        let typed = [0, 1].map(|end| posted.get(&self.end(end).name()));
        let typed = typed.map(|end| end.map_or("", |end| end.trim()));
        if typed == ["", ""] {
            return spec.remove(&path);
        }
        // Means lie within their range.
        let mut range = path.clone();
        range.pop();
        range.push("range");
        let defaults = ["0", "1"].map(|end| {
            let stated = spec.get(&[&range[..], &[end]].concat());
            if stated.is_empty() || range == path {
                end.to_owned()
            } else {
                stated
            }
        });
        let end = |number: usize| match typed[number] {
            "" => &*defaults[number],
            end => end,
        };
        spec.set_ends(&path, [end(0), end(1)]);
    }
}

/// The number that a path has where the key's has any, and whether they are otherwise the same.
fn row_of(key: &FormKey, path: &str) -> Option<Option<usize>> {
    let (mut parts, mut row) = (path.split('.'), None);
    for wanted in key.path.split('.') {
        let part = parts.next()?;
        if wanted == "#" {
            row = Some(part.parse().ok()?);
        } else if wanted != part {
            return None;
        }
    }
    parts.next().is_none().then_some(row)
}

fn parts(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn list(rows: FormRows) -> &'static str {
    match rows {
        FormRows::Actions => "actions",
        FormRows::Costs => "cost",
    }
}

/// What an action or a cost is called.
pub fn name_of(spec: &SpecEdit, rows: FormRows, row: usize) -> String {
    let row = row.to_string();
    match rows {
        FormRows::Actions => spec.get(&["actions", &row]),
        FormRows::Costs => spec.get(&["cost", &row, "name"]),
    }
}

pub fn names(spec: &SpecEdit, rows: FormRows) -> impl Iterator<Item = String> {
    (0..spec.count(list(rows))).map(move |row| name_of(spec, rows, row))
}

/// Where a spec says something of actions or costs by their names.
fn tables_by_name(rows: FormRows) -> impl Iterator<Item = Vec<&'static str>> {
    let keys = form_keys().iter();
    let keys = keys.filter(move |key| key.by_name && key.rows == Some(rows));
    keys.map(|key| key.path.split('.').filter(|part| *part != "#").collect())
}

/// The name of the field that a fault of the spec belongs to.
pub fn field_of(spec: &SpecEdit, fault: &str) -> String {
    let named = form_keys()
        .iter()
        .filter(|key| key.by_name)
        .find_map(|key| {
            let name = fault.strip_prefix(key.path.trim_end_matches('#'))?;
            let row = names(spec, key.rows?).position(|known| known == name)?;
            Some(FormField::new(key, Some(row)).name())
        });
    named.unwrap_or_else(|| fault.to_owned())
}

/// Takes away an action or a cost, and what is said of it by its name.
pub fn remove_row(spec: &mut SpecEdit, rows: FormRows, row: usize) {
    let name = name_of(spec, rows, row);
    for mut path in tables_by_name(rows) {
        path.push(&name);
        spec.remove(&path);
    }
    spec.remove_entry(list(rows), row);
}

/// Whether a spec has more rows than a form can hold.
pub fn is_large(spec: &SpecEdit) -> bool {
    let inputs = |rows: FormRows| -> usize {
        let keys = form_keys().iter().filter(|key| key.rows == Some(rows));
        let many = keys.map(|key| 1 + usize::from(key.kind == FormKind::Ends));
        many.sum()
    };
    let [actions, costs] = [FormRows::Actions, FormRows::Costs].map(|rows| spec.count(list(rows)));
    let guesses = actions.saturating_mul(costs + 1);
    inputs(FormRows::Actions) * actions + inputs(FormRows::Costs) * costs + guesses > INPUTS_MAX
}
