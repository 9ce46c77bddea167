//! The rows of a recorded test: the columns wanted among any others, each value a number or missing.

use std::io::Read;

use csv::{ByteRecord, ErrorKind};

use super::{ImportColumns, of_file};
use crate::spec::error::SpecError;
use crate::spec::quotes::open_quote;
use crate::spec::spelling::{hint, shorten};
use crate::spec::table::{Opened, at_line, opened};

/// How programs write that there is no value, in small letters. An action may well be called none, so there only the empty
/// cell counts.
const MISSING: [&str; 6] = ["", "na", "n/a", "nan", "null", "none"];

/// A test that is being read.
pub(super) struct TestRows<'a> {
    file: &'a str,
    reader: csv::Reader<Box<dyn Read>>,
    decimal_comma: bool,
    record: ByteRecord,
    /// The header's names of the action and of each quantity.
    pub columns: Vec<&'a str>,
    /// Where they stand.
    places: Vec<usize>,
    /// Of the row read last, if none is missing.
    pub values: Vec<f64>,
    /// The first column without a value in that row.
    pub missing: Option<usize>,
}

impl<'a> TestRows<'a> {
    pub fn open(
        file: &'a str,
        wanted: &'a ImportColumns,
        reader: Box<dyn Read>,
    ) -> Result<Self, SpecError> {
        let Opened {
            delimiter,
            header,
            reader,
        } = opened(file, reader)?;
        let mut columns = vec![wanted.action.as_str()];
        columns.extend(wanted.quantities.iter().map(|quantity| &*quantity.column));
        let places = places(&header, &columns).map_err(|message| at_line(file, 1, message))?;
        Ok(Self {
            file,
            reader,
            // As in the rows of a table.
            decimal_comma: delimiter != b',',
            record: ByteRecord::new(),
            columns,
            places,
            values: Vec::new(),
            missing: None,
        })
    }

    /// Reads the next row; false after the last.
    pub fn read(&mut self) -> Result<bool, SpecError> {
        match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => return Err(self.unreadable(&error)),
        }
        self.values.clear();
        self.missing = self.action()?.is_empty().then_some(0);
        for column in 1..self.columns.len() {
            // Every cell is read, also after a missing one: what is wrong is wrong wherever it stands.
            match self.value(column)? {
                Some(value) => self.values.push(value),
                None => self.missing = self.missing.or(Some(column)),
            }
        }
        Ok(true)
    }

    /// The line at which the row begins.
    pub fn line(&self) -> u64 {
        self.record.position().map_or(1, |position| position.line())
    }

    /// Empty if it is missing.
    pub fn action(&self) -> Result<&str, SpecError> {
        std::str::from_utf8(self.cell(0))
            .map_err(|_| self.wrong(0, "it must be UTF-8; save the file with that encoding"))
    }

    fn value(&self, column: usize) -> Result<Option<f64>, SpecError> {
        let text = std::str::from_utf8(self.cell(column)).unwrap_or("?");
        if MISSING.iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return Ok(None);
        }
        let number = match text.to_ascii_lowercase().as_str() {
            "true" => Some(1.0),
            "false" => Some(0.0),
            _ if self.decimal_comma => text.replacen(',', ".", 1).parse().ok(),
            _ => text.parse().ok(),
        };
        match number {
            // 1e400 is read as infinity. A negative zero is zero.
            Some(number) if f64::is_finite(number) => Ok(Some(number + 0.0)),
            _ => Err(self.wrong(
                column,
                "it must be a finite number, true, false, or empty if it is missing",
            )),
        }
    }

    fn cell(&self, column: usize) -> &[u8] {
        self.record[self.places[column]].trim_ascii()
    }

    fn wrong(&self, column: usize, rule: &str) -> SpecError {
        let shown = shorten(&String::from_utf8_lossy(self.cell(column)));
        let message = format!("column {:?} is {shown:?}; {rule}", self.columns[column]);
        at_line(self.file, self.line(), message)
    }

    /// The column of the action is not one.
    pub fn too_many_actions(&self, most: usize) -> SpecError {
        let message = format!(
            "column {:?} has more than {most} different values; --action must name the column that says what was chosen",
            self.columns[0]
        );
        at_line(self.file, self.line(), message)
    }

    fn unreadable(&self, error: &csv::Error) -> SpecError {
        if let Some(open) = open_quote(self.file, error) {
            return open;
        }
        match error.kind() {
            ErrorKind::UnequalLengths {
                expected_len,
                len,
                pos: Some(position),
            } => {
                let message = format!(
                    "{len} values where the header has {expected_len} columns; a value that holds a separator or a quotation \
                     mark must stand in quotation marks"
                );
                at_line(self.file, position.line(), message)
            }
            _ => of_file(self.file, format!("cannot be read: {error}")),
        }
    }
}

/// Where each column stands in the header.
fn places(header: &ByteRecord, columns: &[&str]) -> Result<Vec<usize>, String> {
    // What spreadsheets save as Unicode text.
    if header
        .get(0)
        .is_some_and(|cell| cell.starts_with(b"\xff\xfe") || cell.starts_with(b"\xfe\xff"))
    {
        return Err("this is UTF-16; save it as UTF-8".into());
    }
    for (number, column) in columns.iter().enumerate() {
        // A column read twice would tie two quantities together.
        if columns[..number].contains(column) {
            return Err(format!(
                "column {column:?} is asked for twice; name another"
            ));
        }
    }
    columns.iter().map(|column| place(header, column)).collect()
}

fn place(header: &ByteRecord, column: &str) -> Result<usize, String> {
    let found: Vec<usize> = header
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell.trim_ascii() == column.trim().as_bytes())
        .map(|(place, _)| place)
        .collect();
    match *found {
        [place] => Ok(place),
        [] => {
            let names: Vec<String> = header
                .iter()
                .map(|cell| String::from_utf8_lossy(cell.trim_ascii()).into_owned())
                .collect();
            let hint = hint(column, names.iter().map(String::as_str));
            Err(format!("there is no column {:?}; {hint}", shorten(column)))
        }
        _ => Err(format!(
            "column {column:?} appears {} times; leave one",
            found.len()
        )),
    }
}
