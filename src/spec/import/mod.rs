//! A recorded test as a table world: which columns of any CSV to read, what was found in them, and a spec to plan from.
//!
//! ```
//! use debora::spec::{ImportColumns, Spec, import};
//!
//! let test = "user,variant,converted,spend\n1,a,0,0.3\n2,b,1,0.9\n3,a,1,0.5\n4,b,,0.8\n";
//! let columns = ImportColumns::new("variant", "converted", ["price=spend"]);
//! let mut rows = Vec::new();
//! let found = import("ab.csv", &columns, Box::new(test.as_bytes()), &mut rows)?;
//! assert_eq!((found.rows, found.left_out.lines.as_slice()), (3, [5].as_slice()));
//! assert_eq!(rows, b"action,reward,price\na,0,0.3\nb,1,0.9\na,1,0.5\n");
//! let spec = Spec::parse(&found.spec, "spec.toml")?;
//! assert_eq!(spec.problem.actions(), ["a", "b"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Rows go one by one from the reader to the writer; what is kept of them grows with the actions alone.

mod draft;
mod pleasant;
mod rows;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::Serialize;

use super::error::SpecError;
use super::table::at_line;
use rows::TestRows;

/// The file in which a spec's world looks for the rows.
pub const ROWS_FILE: &str = "rows.csv";

/// More different values than this are taken for numbers of users or times, not for actions.
const ACTIONS_MAX: usize = 1_000;

/// How many lines that were left out are named.
const LINES_MAX: usize = 10;

/// The columns to read of a recorded test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportColumns {
    /// What was chosen.
    pub action: String,
    /// The reward, then the costs.
    pub quantities: Vec<ImportColumn>,
}

/// A column, and what its values will be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportColumn {
    /// The quantity's name.
    pub name: String,
    /// The header's.
    pub column: String,
}

impl ImportColumns {
    /// Columns by their names in the header, or as `NAME=COLUMN`.
    pub fn new<'a>(
        action: &str,
        reward: &'a str,
        costs: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let columns = std::iter::once(reward).chain(costs);
        Self {
            action: action.to_owned(),
            quantities: columns.map(ImportColumn::of).collect(),
        }
    }
}

impl ImportColumn {
    fn of(text: &str) -> Self {
        // At the first: a header's name may hold more of them.
        let (name, column) = text.split_once('=').unwrap_or((text, text));
        Self {
            name: name.trim().to_owned(),
            column: column.to_owned(),
        }
    }
}

/// Why a recorded test was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read as asked.
    #[error(transparent)]
    Test(#[from] SpecError),
    /// Its rows cannot be written.
    #[error("the rows cannot be written: {0}")]
    Rows(#[from] io::Error),
}

/// What was found in a recorded test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Imported {
    /// The file that was read.
    pub file: String,
    /// Rows that were taken over.
    pub rows: u64,
    /// Rows that were not.
    pub left_out: LeftOut,
    /// In the order of their names.
    pub actions: Vec<ImportedAction>,
    /// Actions without a row that was taken over; the spec does not have them.
    pub empty_actions: Vec<String>,
    /// The reward, then the costs.
    pub quantities: Vec<ImportedQuantity>,
    /// Rounds in all.
    pub horizon: u64,
    /// Whether as many rounds as there are rows would have been blind.
    pub rows_are_blind: bool,
    /// The text of a spec whose world are the rows.
    pub spec: String,
}

/// Rows in which a value is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LeftOut {
    /// How many.
    pub rows: u64,
    /// The lines of the first ten.
    pub lines: Vec<u64>,
    /// How many by the first column without a value.
    pub columns: BTreeMap<String, u64>,
}

/// An action of the test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImportedAction {
    /// As the column has it.
    pub name: String,
    /// Rows that were taken over.
    pub rows: u64,
    /// Rows that were not.
    pub left_out: u64,
    /// Of each quantity.
    pub means: Vec<ImportedMean>,
}

/// A mean in the test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ImportedMean {
    /// The plain mean.
    pub mean: f64,
    /// Where the true mean lies with probability 99 %, if the range is true and the rows are independent.
    pub interval: [f64; 2],
}

/// A quantity of the test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImportedQuantity {
    /// What the spec calls it.
    pub name: String,
    /// What the test calls it.
    pub column: String,
    /// The least and the largest value.
    pub seen: [f64; 2],
    /// The same, rounded outward.
    pub range: [f64; 2],
    /// Of a cost: the range's end, as a limit that excludes nothing.
    pub threshold: Option<f64>,
}

/// Reads a recorded test, writes its rows as a table world has them, and drafts a spec that plays on them.
///
/// A row without a value in one of the columns is left out: an empty cell, or `NA`, `N/A`, `NaN`, `null` or `None`. `true` and
/// `false` are 1 and 0. What is neither is an error with its line, column and value.
pub fn import(
    file: &str,
    columns: &ImportColumns,
    reader: Box<dyn Read>,
    rows: &mut dyn Write,
) -> Result<Imported, ImportError> {
    check_names(file, columns)?;
    let mut test = TestRows::open(file, columns, reader)?;
    let mut writer = csv::Writer::from_writer(rows);
    let costs = columns.quantities[1..].iter().map(|cost| &*cost.name);
    let header = ["action", "reward"].into_iter().chain(costs);
    writer.write_record(header).map_err(io::Error::from)?;
    let mut tallies = Tallies::new(columns);
    while test.read()? {
        let line = test.line();
        match test.missing {
            Some(column) => tallies.leave_out(line, test.action()?, test.columns[column]),
            None => {
                let name = test.action()?;
                tallies.add(name, &test.values);
                // As a double is read back bit for bit: what the test wrote may have a decimal comma.
                let values = test.values.iter().map(|value| written(*value));
                let cells = std::iter::once(name.to_owned()).chain(values);
                writer.write_record(cells).map_err(io::Error::from)?;
            }
        }
        if tallies.actions.len() > ACTIONS_MAX {
            return Err(test.too_many_actions(ACTIONS_MAX).into());
        }
    }
    writer.flush()?;
    Ok(draft::drafted(file, columns, tallies)?)
}

/// Rows of a table world have the header `action,reward`, then the costs' names.
fn check_names(file: &str, columns: &ImportColumns) -> Result<(), SpecError> {
    let costs = &columns.quantities[1..];
    let taken = |cost: &&ImportColumn| ["action", "reward"].contains(&&*cost.name);
    if let Some(cost) = costs.iter().find(taken) {
        let message = format!(
            "cost {:?} cannot be told from the column {}; give it another name, as --cost NAME={}",
            cost.name, cost.name, cost.column
        );
        return Err(of_file(file, message));
    }
    Ok(())
}

/// What is wrong with a file as a whole.
fn of_file(file: &str, message: String) -> SpecError {
    SpecError {
        line: None,
        ..at_line(file, 0, message)
    }
}

fn written(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// What is kept of the rows.
struct Tallies {
    // Sorted by name: the same rows in another order make the same spec.
    actions: BTreeMap<String, ActionTally>,
    /// The least and the largest value of each quantity.
    seen: Vec<[f64; 2]>,
    left_out: LeftOut,
}

#[derive(Clone)]
struct ActionTally {
    rows: u64,
    left_out: u64,
    means: Vec<f64>,
}

impl Tallies {
    fn new(columns: &ImportColumns) -> Self {
        Self {
            actions: BTreeMap::new(),
            seen: vec![[f64::INFINITY, f64::NEG_INFINITY]; columns.quantities.len()],
            left_out: LeftOut::default(),
        }
    }

    fn of(&mut self, action: &str) -> &mut ActionTally {
        // Looked up first, as an entry needs a name of its own: tests have millions of rows and few actions.
        if !self.actions.contains_key(action) {
            let tally = ActionTally {
                rows: 0,
                left_out: 0,
                means: vec![0.0; self.seen.len()],
            };
            self.actions.insert(action.to_owned(), tally);
        }
        self.actions.get_mut(action).expect("there or put there")
    }

    fn add(&mut self, action: &str, values: &[f64]) {
        let tally = self.of(action);
        tally.rows += 1;
        let rows = tally.rows as f64;
        for (mean, value) in tally.means.iter_mut().zip(values) {
            // Not a sum: that of values near the largest double would be infinite.
            *mean += (value - *mean) / rows;
        }
        for (seen, &value) in self.seen.iter_mut().zip(values) {
            *seen = [seen[0].min(value), seen[1].max(value)];
        }
    }

    fn leave_out(&mut self, line: u64, action: &str, column: &str) {
        let left_out = &mut self.left_out;
        left_out.rows += 1;
        *left_out.columns.entry(column.to_owned()).or_default() += 1;
        if left_out.lines.len() < LINES_MAX {
            left_out.lines.push(line);
        }
        // A row without an action is of none.
        if !action.is_empty() {
            self.of(action).left_out += 1;
        }
    }
}
