//! A table's text on its way to the CSV reader, watched for a quotation mark that nothing closes.
//!
//! To the reader all that follows such a mark is one cell, up to the end of the file: rows would be gone without a word if it
//! opens in a column that nobody asked for, and the memory would be full if there are many.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::io::{Error, ErrorKind, Read, Result};

use super::error::SpecError;
use super::table::at_line;

/// How long a cell in quotation marks may be.
const CELL_MAX: usize = 1 << 20;

/// A mark that stays open, the line where it stands, and up to where nothing closes it.
#[derive(Debug)]
struct OpenQuote(u64, &'static str);

impl Display for OpenQuote {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> FmtResult {
        let Self(line, end) = self;
        write!(
            formatter,
            "the quotation mark that opens a value in line {line} is not closed {end}; close it, or if it belongs to the \
             value, double it and put the value in quotation marks"
        )
    }
}

impl std::error::Error for OpenQuote {}

/// What is wrong with a table that cannot be read: an open mark at its line.
pub(super) fn open_quote(file: &str, error: &csv::Error) -> Option<SpecError> {
    let csv::ErrorKind::Io(error) = error.kind() else {
        return None;
    };
    let open: &OpenQuote = error.get_ref()?.downcast_ref()?;
    Some(at_line(file, open.0, open.to_string()))
}

/// Where in a row the text is, as the CSV reader sees it.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Where a cell begins.
    Start,
    /// In a cell without quotation marks; within it they mean nothing.
    Plain,
    Quoted,
    /// After a mark that closes the cell, unless another follows at once.
    Closing,
}

pub(super) struct QuoteWatch<R> {
    inner: R,
    delimiter: u8,
    place: Place,
    line: u64,
    /// The line of the last mark that opened a cell, and how much of the cell was read.
    opened: u64,
    length: usize,
}

impl<R: Read> QuoteWatch<R> {
    pub fn new(inner: R, delimiter: u8) -> Self {
        Self {
            inner,
            delimiter,
            place: Place::Start,
            line: 1,
            opened: 1,
            length: 0,
        }
    }

    fn pass(&mut self, byte: u8) {
        let ends = byte == self.delimiter || [b'\n', b'\r'].contains(&byte);
        self.place = match (self.place, byte) {
            (Place::Quoted, b'"') => Place::Closing,
            (Place::Quoted, _) => Place::Quoted,
            (Place::Closing, b'"') => Place::Quoted,
            (Place::Start, b'"') => {
                (self.opened, self.length) = (self.line, 0);
                Place::Quoted
            }
            _ if ends => Place::Start,
            _ => Place::Plain,
        };
        self.length += 1;
        self.line += u64::from(byte == b'\n');
    }

    /// The same for many bytes, quickly where none is a quotation mark, as in most tables.
    fn pass_all(&mut self, bytes: &[u8]) {
        let Some((last, before)) = bytes.split_last() else {
            return;
        };
        if self.place == Place::Quoted || bytes.contains(&b'"') {
            bytes.iter().for_each(|&byte| self.pass(byte));
        } else {
            self.line += before.iter().filter(|&&byte| byte == b'\n').count() as u64;
            self.place = Place::Plain;
            self.pass(*last);
        }
    }
}

impl<R: Read> Read for QuoteWatch<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.inner.read(buffer)?;
        self.pass_all(&buffer[..read]);
        let is_end = read == 0 && !buffer.is_empty();
        if self.place == Place::Quoted && (is_end || self.length > CELL_MAX) {
            let end = if is_end {
                "before the end of the file"
            } else {
                "within 1 MiB"
            };
            let open = OpenQuote(self.opened, end);
            return Err(Error::new(ErrorKind::InvalidData, open));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read in pieces of this length: the line of a mark that stays open.
    fn watched(text: &str, piece: usize) -> Option<u64> {
        let mut watch = QuoteWatch::new(text.as_bytes(), b',');
        let mut buffer = vec![0; piece];
        loop {
            match watch.read(&mut buffer) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    let open: &OpenQuote = error.get_ref().unwrap().downcast_ref().unwrap();
                    return Some(open.0);
                }
            }
        }
    }

    #[test]
    fn the_line_of_an_open_mark_is_known_and_closed_ones_pass() {
        let long = format!("a,b\n1,\"{}", "x,\n".repeat(CELL_MAX));
        for (text, line) in [
            ("", None),
            ("a,b\n1,2\n", None),
            ("a,b\n1,\"x\ny\"\n", None),
            ("a,b\n1,\"x \"\"y\"\"\"\r\n\"\",\"\"", None),
            // A mark within a cell is a letter, also behind one that was closed.
            ("a,b\n1,5\" pipe\n2,\"x\"y\"\n", None),
            ("a,b\n1,\"x\n2,y\n3,z\n", Some(2)),
            ("a,b\n\"x\n\",\"\"\"y\n", Some(3)),
            ("\"a,b\n", Some(1)),
            (&long, Some(2)),
        ] {
            for piece in [1, 2, 7, 1 << 16] {
                let start = &text[..text.len().min(60)];
                assert_eq!(watched(text, piece), line, "{start:?} by {piece}");
            }
        }
    }

    /// To the end of the cell and no further.
    #[test]
    fn an_open_mark_does_not_read_the_whole_file() {
        let endless = std::io::repeat(b'x');
        let mut watch = QuoteWatch::new("a,b\n1,\"".as_bytes().chain(endless), b',');
        let copied = std::io::copy(&mut watch, &mut std::io::sink());
        assert!(copied.unwrap_err().to_string().contains("line 2"));
    }
}
