//! Where a page begins, in text: `epoch.section.position`, and once the last epoch is reached what had been decided then.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::hex;
use crate::store::Progress;

/// A kind of lines, in the order of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSection {
    Epoch,
    Decisions,
    Outcomes,
    Overtime,
    Holdback,
    Closed,
    Journal,
    State,
}

// The names are part of cursors that readers hold, so they stay, whatever the sections are called here.
const SECTIONS: [(LogSection, &str); 8] = [
    (LogSection::Epoch, "epoch"),
    (LogSection::Decisions, "decisions"),
    (LogSection::Outcomes, "outcomes"),
    (LogSection::Overtime, "overtime"),
    (LogSection::Holdback, "holdback"),
    (LogSection::Closed, "closed"),
    (LogSection::Journal, "journal"),
    (LogSection::State, "state"),
];

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub epoch: u64,
    pub section: LogSection,
    /// The first round, serial or number to be shown.
    pub position: u64,
    /// Of the last epoch, as its first line was written.
    pub mark: Option<CursorMark>,
}

/// The state of an experiment as the first line of its last epoch was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorMark {
    /// Whether the epoch was open: then the log shows it as open, whatever happens before it is read to the end.
    pub open: bool,
    /// Rounds from here on were not decided.
    pub next_round: u64,
    /// Nor were serials of overtime from here on.
    pub next_serial: u64,
    /// Nor were serials held back from here on.
    pub next_holdback: u64,
    /// Nor was anything stored that has a position from here on.
    pub next_position: u64,
    /// Of all counts, to see whether they moved.
    pub hash: String,
}

impl CursorMark {
    pub fn of(progress: &Progress) -> Self {
        let text = serde_json::to_string(progress).expect("counts are written as JSON");
        Self {
            open: progress.status.is_open(),
            next_round: progress.next_round,
            next_serial: progress.next_serial,
            next_holdback: progress.next_holdback,
            next_position: progress.next_position,
            // Eight bytes: nobody gains by a collision, which would only hide that an experiment went on.
            hash: hex::encode(&Sha256::digest(text)[..8]),
        }
    }
}

/// A cursor that no page ever gave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a cursor of this log; begin without one, and take each next one from the page before"
)]
pub struct BadCursor {
    /// What was given.
    pub text: String,
}

/// Where the lines of an epoch begin, as the text that a page of the log is asked for with.
pub fn cursor_at_epoch(epoch: u64) -> String {
    Cursor::at_epoch(epoch).to_string()
}

impl Cursor {
    /// The beginning of an epoch.
    pub fn at_epoch(epoch: u64) -> Self {
        Self {
            epoch,
            section: LogSection::Epoch,
            position: 0,
            mark: None,
        }
    }

    /// The beginning of another section.
    pub fn enter(&mut self, section: LogSection, position: u64) {
        (self.section, self.position) = (section, position);
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Text that people can read in an address, not bytes in base 64: a cursor holds nothing secret.
        let name = SECTIONS
            .iter()
            .find(|(section, _)| *section == self.section)
            .map_or("", |(_, name)| name);
        write!(f, "{}.{name}.{}", self.epoch, self.position)?;
        match &self.mark {
            Some(CursorMark {
                open,
                next_round,
                next_serial,
                next_holdback,
                next_position,
                hash,
            }) => {
                write!(
                    f,
                    ".{}.{next_round}.{next_serial}.{next_holdback}.{next_position}.{hash}",
                    if *open { "open" } else { "done" }
                )
            }
            None => Ok(()),
        }
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        // Cut short: it is quoted in the answer, and may be as long as an address may be.
        parse(text).ok_or_else(|| BadCursor {
            text: text.chars().take(80).collect(),
        })
    }
}

fn parse(text: &str) -> Option<Cursor> {
    let parts: Vec<&str> = text.split('.').collect();
    let [epoch, section, position, mark @ ..] = &parts[..] else {
        return None;
    };
    let mark = match mark {
        // Before the last epoch a cursor needs no mark: what is closed does not change.
        [] => None,
        [
            open @ ("open" | "done"),
            next_round,
            next_serial,
            next_holdback,
            next_position,
            hash,
        ] => Some(CursorMark {
            open: *open == "open",
            next_round: next_round.parse().ok()?,
            next_serial: next_serial.parse().ok()?,
            next_holdback: next_holdback.parse().ok()?,
            next_position: next_position.parse().ok()?,
            hash: (*hash).to_owned(),
        }),
        _ => return None,
    };
    let section = SECTIONS.iter().find(|(_, name)| name == section)?.0;
    Some(Cursor {
        epoch: epoch.parse().ok()?,
        section,
        position: position.parse().ok()?,
        mark,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        let mark = CursorMark {
            open: true,
            next_round: 600,
            next_serial: 2,
            next_holdback: 3,
            next_position: 5,
            hash: "0011223344556677".into(),
        };
        for (section, _) in SECTIONS {
            for mark in [
                None,
                Some(mark.clone()),
                Some(CursorMark {
                    open: false,
                    ..mark.clone()
                }),
            ] {
                let cursor = Cursor {
                    epoch: 3,
                    section,
                    position: 17,
                    mark,
                };
                assert_eq!(cursor.to_string().parse(), Ok(cursor));
            }
        }
        for text in [
            "",
            "3",
            "3.epoch",
            "3.epochs.0",
            "-1.epoch.0",
            "3.epoch.0.open",
            "3.epoch.0.open.1.1.1.00",
            "3.epoch.0.shut.1.1.1.1.00",
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(BadCursor { text: text.into() }));
        }
    }
}
