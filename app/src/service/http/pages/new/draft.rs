//! What is typed on the page: a form and a text that say the same, and how a change of either reaches the other.
//!
//! ```text
//! was     the text as the page last showed it: the form's fields are read from it
//! spec    the text as it came back; fields that differ from those of `was` are written into it
//! ```
//!
//! So both may be edited at once, with or without a script, and what the form does not know stays in the text. The text's tree is
//! all that the form has. While the text is not TOML, what was typed stands beside the last tree, and is written into the text
//! once it is.

use std::collections::BTreeMap;

use debora::measure::words::amount;
use debora::spec::FormRows;

use super::fields::{FormField, is_large, names, remove_row};
use crate::hex;
use crate::service::http::spec_edit::SpecEdit;
use crate::service::limits;
use crate::service::random::random;

/// What the page starts with: a small experiment that can be created as it is, and shows what a spec may say.
pub const EXAMPLE: &str = r#"name    = "model routing"
policy  = "soft"                 # free | soft | hard
horizon = 10_000_000
rho     = 0.1
actions = ["small", "large"]

[reward]
name = "quality"

[[cost]]
name      = "price"
range     = [0.0, 0.02]
threshold = 0.008

[service]
on_wait      = "hold"            # or "serve"
outcome_wait = "7d"
"#;

/// An experiment that is being written.
#[derive(Clone)]
pub struct SpecDraft {
    /// The text.
    pub spec: String,
    /// The last text that was TOML, which the form shows.
    pub was: String,
    /// Its tree; none if there was no such text yet.
    pub shown: Option<SpecEdit>,
    /// What was typed into fields since, while the text is not TOML.
    typed: BTreeMap<String, String>,
    /// The section on the safe strategy, while the policy has no use for it.
    pub safe: String,
    /// Whether it has more rows than a form can hold: then it is a text, and the form has the rest.
    pub large: bool,
    /// Its name in addresses; empty if it is to be drawn.
    pub id: String,
    /// The one that was drawn.
    pub drawn: String,
    /// Its key, likewise.
    pub key: String,
    /// Whether a blind plan is accepted.
    pub blind: bool,
    /// Guessed means, by action and quantity.
    pub means: Vec<Vec<String>>,
}

impl SpecDraft {
    /// As the page is first shown.
    pub fn example() -> Self {
        Self {
            // If there are no random numbers, creating it says so.
            drawn: random::<8>().map_or(String::new(), |bytes| hex::encode(&bytes)),
            ..Self::of_text(EXAMPLE)
        }
    }

    fn of_text(spec: &str) -> Self {
        let shown = editable(spec);
        let mut draft = Self {
            spec: spec.to_owned(),
            was: spec.to_owned(),
            safe: String::new(),
            large: shown.as_ref().is_some_and(is_large),
            shown,
            typed: BTreeMap::new(),
            id: String::new(),
            drawn: String::new(),
            key: String::new(),
            blind: false,
            means: Vec::new(),
        };
        draft.complete_means();
        draft
    }

    /// As it came back, with the changes of both sides in both.
    pub fn posted(mut posted: BTreeMap<String, String>) -> Self {
        let mut take = |name: &str| posted.remove(name).unwrap_or_default();
        // Browsers send line ends as two characters. The chain hashes the spec, so it must be the same whether it was sent by a
        // form or by a program.
        let [spec, was, safe] =
            ["spec", "was", "safe"].map(|name| take(name).replace("\r\n", "\n"));
        let [id, drawn, key] = ["id", "drawn", "key"].map(|name| take(name).trim().to_owned());
        let blind = !take("blind").is_empty();
        // A program that sends a text alone has no form to change it.
        let shown = if was.is_empty() { &spec } else { &was };
        let mut draft = Self {
            safe,
            id,
            drawn,
            key,
            blind,
            ..Self::of_text(shown)
        };
        draft.read_means(&posted);
        draft.merge(spec, &posted);
        draft.complete_means();
        draft
    }

    /// Writes the fields that were changed into the text.
    fn merge(&mut self, spec: String, posted: &BTreeMap<String, String>) {
        let shown = self.shown.take();
        let changes = shown.iter().flat_map(|shown| changes(shown, posted));
        let Some(mut edit) = editable(&spec) else {
            // Kept as typed until the text can take it.
            self.typed = changes
                .map(|(field, value)| (field.name(), value.to_owned()))
                .collect();
            self.spec = spec;
            self.shown = shown;
            return;
        };
        // Names first: others are found by them.
        let (names, values): (Vec<_>, Vec<_>) = changes.partition(|(field, _)| field.is_name());
        let is_policy_changed = values.iter().any(|(field, _)| field.key.path == "policy");
        for (field, value) in names.into_iter().chain(values) {
            field.change(&mut edit, shown.as_ref(), posted, value);
        }
        if is_policy_changed {
            self.keep_safe(&mut edit);
        }
        self.show(edit);
    }

    /// A safe strategy is refused where nothing is kept safe, so it is put aside until something is.
    fn keep_safe(&mut self, edit: &mut SpecEdit) {
        if edit.get(&["policy"]) != "hard" {
            if let Some(section) = edit.take_section("safe") {
                self.safe = section;
            }
        } else if !edit.has(&["safe"]) {
            edit.append(&std::mem::take(&mut self.safe));
        }
    }

    fn show(&mut self, edit: SpecEdit) {
        self.spec = edit.text();
        self.was = self.spec.clone();
        self.large = is_large(&edit);
        self.shown = Some(edit);
    }

    /// Another text in the place of this one.
    pub fn replace(&mut self, spec: &str) {
        if let Some(edit) = editable(spec) {
            self.show(edit);
            self.complete_means();
        }
    }

    /// What a button asks for: another row, or one fewer.
    pub fn act(&mut self, asked: &str) {
        // Rows of a text that is not TOML cannot be found.
        let Some(mut edit) = editable(&self.spec) else {
            return;
        };
        let number = |prefix: &str| asked.strip_prefix(prefix)?.parse::<usize>().ok();
        if asked == "add-action" {
            edit.add_action(&free_name(&edit, "action", FormRows::Actions));
        } else if asked == "add-cost" {
            edit.add_cost(&free_name(&edit, "cost", FormRows::Costs), "0.5");
        } else if let Some(action) = number("remove-action-") {
            remove_row(&mut edit, FormRows::Actions, action);
            if action < self.means.len() {
                self.means.remove(action);
            }
        } else if let Some(cost) = number("remove-cost-") {
            remove_row(&mut edit, FormRows::Costs, cost);
            for row in &mut self.means {
                if cost + 1 < row.len() {
                    row.remove(cost + 1);
                }
            }
        }
        self.show(edit);
        self.complete_means();
    }

    /// What a field of the form holds.
    pub fn value(&self, field: FormField) -> String {
        let typed = self.typed.get(&field.name()).cloned();
        let shown = || Some(field.get(self.shown.as_ref()?));
        typed.or_else(shown).unwrap_or_default()
    }

    /// The same by its name.
    pub fn get(&self, field: &str) -> String {
        FormField::named(field).map_or(String::new(), |field| self.value(field))
    }

    fn rows(&self, list: &str) -> usize {
        let shown = self.shown.as_ref().filter(|_| !self.large);
        shown.map_or(0, |shown| shown.count(list))
    }

    pub fn actions(&self) -> usize {
        self.rows("actions")
    }

    pub fn costs(&self) -> usize {
        self.rows("cost")
    }

    /// What a quantity is called: 0 is the reward.
    pub fn quantity(&self, number: usize) -> String {
        let name = self.get(&format!("{}.name", section(number)));
        if name.is_empty() && number == 0 {
            // As the spec has it by default.
            return "reward".into();
        }
        name
    }

    /// The ends of a quantity's range, as far as they are numbers.
    pub fn range(&self, number: usize) -> [f64; 2] {
        let end = |end: usize, default: f64| {
            self.number(&format!("{}.range.{end}", section(number)))
                .unwrap_or(default)
        };
        [end(0, 0.0), end(1, 1.0)]
    }

    fn number(&self, field: &str) -> Option<f64> {
        self.get(field)
            .replace('_', "")
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
    }

    fn read_means(&mut self, posted: &BTreeMap<String, String>) {
        let row = |action: usize| -> Vec<String> {
            let mean = |quantity: usize| posted.get(&format!("mean.{action}.{quantity}")).cloned();
            (0..).map_while(mean).collect()
        };
        self.means = (0..)
            .map(row)
            .take_while(|row: &Vec<String>| !row.is_empty())
            .collect();
    }

    /// A guess for everything that has none.
    fn complete_means(&mut self) {
        let actions = self.actions();
        // Once for all actions: there may be thousands of guesses.
        let spans: Vec<[f64; 2]> = (0..=self.costs())
            .map(|number| self.guesses(number))
            .collect();
        self.means.resize(actions, Vec::new());
        for (action, row) in self.means.iter_mut().enumerate() {
            // The later an action, the better and the dearer, so that there is something to find out.
            let share = (action + 1) as f64 / (actions + 1) as f64;
            row.truncate(spans.len());
            let missing = &spans[row.len()..];
            row.extend(
                missing
                    .iter()
                    .map(|[low, top]| amount(low + share * (top - low)).replace(',', "")),
            );
        }
    }

    /// Between what a quantity's means are guessed: in the middle a cost is as large as its threshold.
    fn guesses(&self, number: usize) -> [f64; 2] {
        let range = self.range(number);
        let of = |name: &str| self.number(&format!("{}.{name}", section(number)));
        let low = of("mean.0").unwrap_or(range[0]);
        let high = of("mean.1").unwrap_or(range[1]);
        let top = of("threshold").map_or(high, |threshold| (2.0 * threshold - low).min(high));
        [low, top.max(low)]
    }
}

/// The fields that were changed, and what they hold.
fn changes<'a>(
    shown: &'a SpecEdit,
    posted: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (FormField, &'a str)> {
    let fields = posted
        .iter()
        .filter_map(|(name, value)| Some((FormField::named(name)?, &**value)));
    fields.filter(|(field, value)| field.is_of(shown) && field.get(shown) != *value)
}

/// A name that no row has, from the number of the new one on.
fn free_name(spec: &SpecEdit, what: &str, rows: FormRows) -> String {
    let taken: Vec<String> = names(spec, rows).collect();
    let mut free = (taken.len() + 1..).map(|number| format!("{what} {number}"));
    free.find(|name| !taken.contains(name))
        .expect("rows are few")
}

/// A text that a form can change: one that is TOML, and not longer than any experiment's.
pub fn editable(spec: &str) -> Option<SpecEdit> {
    limits::check_length(spec).ok()?;
    SpecEdit::parse(spec)
}

/// The section of a quantity.
fn section(number: usize) -> String {
    match number {
        0 => "reward".into(),
        _ => format!("cost.{}", number - 1),
    }
}
