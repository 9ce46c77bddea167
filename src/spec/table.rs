//! A table's rows: CSV with a header of `action`, `reward` (or the reward's name) and the costs' names, in any order.
//!
//! The spec may name the columns to read; any others are then ignored. Columns are separated by commas, semicolons or tabs, as
//! the header shows; where they are not commas, numbers may have a decimal comma.
//!
//! Rows go one by one from the reader into the table; nothing else grows with their number. Under `outside = "clip"`,
//! values outside their range are clipped, as told feedback would be.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};

use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use sha2::{Digest as _, Sha256};

use crate::lab::LabError;
use crate::lab::world::Recorded;
use crate::problem::{Outside, Problem};
use crate::spec::cost_names;
use crate::spec::error::SpecError;
use crate::spec::fingerprint::hex;
use crate::spec::quotes::{QuoteWatch, open_quote};
use crate::spec::spelling::{hint, shorten};

/// How long a header may be.
const HEADER_MAX: u64 = 1 << 20;

/// What some programs write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What is wrong with a table: one of its lines, or the whole.
pub(super) enum TableFault {
    Line(SpecError),
    Whole(LabError),
}

/// The table, and the SHA-256 of what it says: per action, its rows in order.
pub(super) fn read(
    problem: &Problem,
    file: &str,
    columns: Option<&[String]>,
    reader: Box<dyn Read>,
) -> Result<(Recorded, String), TableFault> {
    let mut rows = Rows::open(problem, file, columns, reader).map_err(TableFault::Line)?;
    let table = Recorded::new(problem, &mut rows);
    if let Some(error) = rows.error.take() {
        return Err(TableFault::Line(error));
    }
    match table {
        Ok(table) => Ok((table, rows.digest())),
        // Of the row read last.
        Err(error @ LabError::WorldValue { .. }) => {
            Err(TableFault::Line(rows.at_row(error.to_string())))
        }
        Err(error) => Err(TableFault::Whole(error)),
    }
}

/// Rows as the table takes them; after the last, `error` says why if not all were read.
struct Rows<'a> {
    file: &'a str,
    reader: csv::Reader<Box<dyn Read>>,
    /// Whether numbers may be written with a comma.
    decimal_comma: bool,
    record: ByteRecord,
    /// The column of the action, then of each quantity.
    columns: Vec<usize>,
    /// The name of each column, as in the header.
    names: Vec<&'a str>,
    actions: BTreeMap<&'a [u8], u32>,
    /// Whether values outside are clipped.
    clip: bool,
    problem: &'a Problem,
    /// From 1; the header does not count.
    row: u64,
    digests: Vec<Sha256>,
    error: Option<SpecError>,
}

impl<'a> Rows<'a> {
    fn open(
        problem: &'a Problem,
        file: &'a str,
        wanted: Option<&'a [String]>,
        reader: Box<dyn Read>,
    ) -> Result<Self, SpecError> {
        let Opened {
            delimiter,
            header,
            reader,
        } = opened(file, reader)?;
        let names = match wanted {
            Some(wanted) => wanted.iter().map(String::as_str).collect(),
            None => own_names(problem, &header),
        };
        let columns = columns(&header, &names, wanted.is_some());
        let columns = columns.map_err(|message| at_line(file, 1, message))?;
        // Bytes, not text: a cell that is not UTF-8 is then an unknown action, with its row.
        let actions = problem.actions().iter().map(|name| name.as_bytes());
        Ok(Self {
            file,
            reader,
            decimal_comma: delimiter != b',',
            record: ByteRecord::new(),
            columns,
            names,
            actions: actions.zip(0..).collect(),
            clip: problem.outside() == Outside::Clip,
            problem,
            row: 0,
            // One per action, so that the digest does not depend on how the rows of different actions are mixed.
            digests: vec![Sha256::new(); problem.actions().len()],
            error: None,
        })
    }

    fn at_row(&self, message: String) -> SpecError {
        let line = self
            .record
            .position()
            .map_or(self.row + 1, |position| position.line());
        at_line(self.file, line, format!("row {}: {message}", self.row))
    }

    /// The next row; `None` after the last.
    fn read(&mut self) -> Result<Option<(u32, Vec<f64>)>, SpecError> {
        self.row += 1;
        match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return Err(self.unreadable(&error)),
        }
        let action = self.action()?;
        let values = (1..self.columns.len())
            .map(|column| self.value(column, action))
            .collect::<Result<Vec<f64>, SpecError>>()?;
        for value in &values {
            self.digests[action as usize].update(value.to_bits().to_le_bytes());
        }
        Ok(Some((action, values)))
    }

    fn cell(&self, column: usize) -> &[u8] {
        &self.record[self.columns[column]]
    }

    fn shown(&self, column: usize) -> String {
        shorten(&String::from_utf8_lossy(self.cell(column).trim_ascii()))
    }

    fn action(&self) -> Result<u32, SpecError> {
        let cell = self.cell(0);
        // A name may end in a space.
        self.actions
            .get(cell)
            .or_else(|| self.actions.get(cell.trim_ascii()))
            .copied()
            .ok_or_else(|| {
                let name = self.shown(0);
                let known = self.actions.keys();
                let known = known.filter_map(|name| std::str::from_utf8(name).ok());
                self.at_row(format!("unknown action {name:?}; {}", hint(&name, known)))
            })
    }

    fn value(&self, column: usize, action: u32) -> Result<f64, SpecError> {
        let number = std::str::from_utf8(self.cell(column).trim_ascii())
            .ok()
            .and_then(|text| match self.decimal_comma {
                true => text.replacen(',', ".", 1).parse::<f64>().ok(),
                false => text.parse().ok(),
            });
        let Some(number) = number else {
            let message = format!(
                "{} is {:?}; it must be a number",
                self.names[column],
                self.shown(column)
            );
            return Err(self.at_row(message));
        };
        // A negative zero is the same value, and must have the same digest. `clamp` keeps NaN, which the table refuses.
        let number = number + 0.0;
        if !self.clip {
            return Ok(number);
        }
        let own = self.problem.quantity(column - 1).range_of(action);
        Ok(number.clamp(own.low, own.high))
    }

    fn unreadable(&self, error: &csv::Error) -> SpecError {
        if let Some(open) = open_quote(self.file, error) {
            return open;
        }
        match error.kind() {
            ErrorKind::UnequalLengths {
                expected_len,
                len,
                pos,
            } => {
                let line = pos
                    .as_ref()
                    .map_or(self.row + 1, |position| position.line());
                let message = format!(
                    "row {}: {len} values where the header has {expected_len} columns",
                    self.row
                );
                at_line(self.file, line, message)
            }
            _ => at_line(
                self.file,
                self.reader.position().line(),
                format!("cannot be read: {error}"),
            ),
        }
    }

    fn digest(&self) -> String {
        let mut whole = Sha256::new();
        for digest in &self.digests {
            whole.update(digest.clone().finalize());
        }
        hex(&whole.finalize())
    }
}

impl Iterator for Rows<'_> {
    type Item = (u32, Vec<f64>);

    fn next(&mut self) -> Option<Self::Item> {
        // The table takes plain rows; an error ends them, and is asked for afterwards.
        self.read().unwrap_or_else(|error| {
            self.error = Some(error);
            None
        })
    }
}

/// A table of which the header was read.
pub(super) struct Opened {
    /// What separates the columns.
    pub delimiter: u8,
    pub header: ByteRecord,
    pub reader: csv::Reader<Box<dyn Read>>,
}

pub(super) fn opened(file: &str, reader: Box<dyn Read>) -> Result<Opened, SpecError> {
    let unread =
        |error: &dyn std::fmt::Display| at_line(file, 1, format!("cannot be read: {error}"));
    let (delimiter, text) = delimited(reader).map_err(|error| unread(&error))?;
    let mut reader = ReaderBuilder::new().delimiter(delimiter).from_reader(text);
    let header = match reader.byte_headers() {
        Ok(header) => header.clone(),
        Err(error) => return Err(open_quote(file, &error).unwrap_or_else(|| unread(&error))),
    };
    Ok(Opened {
        delimiter,
        header,
        reader,
    })
}

/// How the columns are separated, by the header alone, and the whole text again.
fn delimited(reader: Box<dyn Read>) -> std::io::Result<(u8, Box<dyn Read>)> {
    let mut reader = BufReader::new(reader);
    let mut header = Vec::new();
    // So much and no more: a file without line breaks is not a table, and need not fit into memory.
    reader
        .by_ref()
        .take(HEADER_MAX)
        .read_until(b'\n', &mut header)?;
    let count = |byte: u8| header.iter().filter(|&&other| other == byte).count();
    // The most frequent, as a name may hold one of the others; the comma if they are equal.
    let delimiter = [b'\t', b';', b',']
        .into_iter()
        .max_by_key(|&byte| count(byte))
        .expect("three of them");
    // Without the mark, behind which a cell may begin with a quotation mark.
    if header.starts_with(BYTE_ORDER_MARK) {
        header.drain(..BYTE_ORDER_MARK.len());
    }
    let whole = std::io::Cursor::new(header).chain(reader);
    Ok((delimiter, Box::new(QuoteWatch::new(whole, delimiter))))
}

/// The names of the columns where the spec gives none. The reward's may be `reward` or its own name.
fn own_names<'a>(problem: &'a Problem, header: &ByteRecord) -> Vec<&'a str> {
    let reward = &*problem.quantity(0).name;
    let stands = |name: &str| {
        header
            .iter()
            .any(|cell| cell.trim_ascii() == name.as_bytes())
    };
    let reward = if !stands("reward") && stands(reward) {
        reward
    } else {
        "reward"
    };
    let mut names = vec!["action", reward];
    names.extend(cost_names(problem));
    names
}

/// Where each name stands in the header: each once, and nothing else unless the others are ignored.
fn columns(header: &ByteRecord, names: &[&str], ignore: bool) -> Result<Vec<usize>, String> {
    // Costs are named freely, but in a header these two words have a meaning.
    if let Some(name) = names[2..].iter().find(|name| names[..2].contains(name)) {
        return Err(format!(
            "cost {name:?} cannot be told from the column {name}; give the cost another name, or name the columns with \
             columns = {{ .. }}"
        ));
    }
    let mut columns = vec![None; names.len()];
    for (place, cell) in header.iter().enumerate() {
        let number = match column(&String::from_utf8_lossy(cell), names) {
            Err(_) if ignore => continue,
            number => number?,
        };
        if columns[number].replace(place).is_some() {
            return Err(format!(
                "column {:?} appears twice; leave one out",
                names[number]
            ));
        }
    }
    let found = columns.iter().zip(names).map(|(column, name)| {
        column.ok_or_else(|| {
            format!(
                "column {name:?} is missing; the header must {} {}, in any order",
                if ignore { "have" } else { "be" },
                names.join(",")
            )
        })
    });
    found.collect()
}

/// Which of the names a cell of the header is.
fn column(cell: &str, names: &[&str]) -> Result<usize, String> {
    let find = |cell: &str| names.iter().position(|name| *name == cell);
    // As written first, since a name may end in a space; then as programs that put blanks after commas mean it.
    find(cell).or_else(|| find(cell.trim())).ok_or_else(|| {
        let rule = hint(cell, names.iter().copied());
        format!(
            "unknown column {:?}; {rule} (others are ignored if the spec names those wanted in columns = {{ .. }})",
            shorten(cell)
        )
    })
}

pub(super) fn at_line(file: &str, line: u64, message: String) -> SpecError {
    SpecError {
        origin: file.into(),
        line: Some(line),
        // Of the table: no key of the spec is at fault.
        column: None,
        field: None,
        excerpt: None,
        message: message.into(),
    }
}
