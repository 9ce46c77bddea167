//! Where logs come from: a file of lines, a store, or a service.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};

use super::{Auditor, Check, rows};
use crate::log::{self, ERROR_LINE, Line, LogPage, NEXT_HEADER};
use crate::store::{Location, Purpose, Store};

/// Lines asked for at once.
const LINES_A_PAGE: usize = 5_000;

/// How a SQLite file begins.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// What was named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogSource {
    /// A file of JSON lines.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// A store.
    Store(Location),
    /// A service.
    Web(String),
}

/// What a source may ask for.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The API key that a service wants.
    pub api_key: Option<String>,
}

impl LogSource {
    /// From what was typed, with the experiment that may be named behind `#`.
    pub fn of(text: &str) -> Result<(Self, Option<String>)> {
        let (place, experiment) = match text.rsplit_once('#') {
            // A file may have a # in its name.
            Some((place, experiment)) if !PathBuf::from(text).exists() => {
                (place, Some(experiment.to_owned()))
            }
            _ => (text, None),
        };
        if ["http://", "https://"]
            .iter()
            .any(|scheme| place.starts_with(scheme))
        {
            return Ok((Self::Web(place.to_owned()), experiment));
        }
        if place == "-" {
            return Ok((Self::Stdin, experiment));
        }
        // By what is in the file, not by its name: logs and stores may be called anything.
        let location = Location::parse(place);
        let source = match &location {
            Location::Postgres(_) => Self::Store(location),
            Location::Sqlite(path) if is_sqlite(path)? => Self::Store(location),
            Location::Sqlite(path) => Self::File(path.clone()),
        };
        Ok((source, experiment))
    }

    /// The experiments there, by name where there may be several.
    pub fn experiments(&self, named: Option<&str>) -> Result<Vec<Option<String>>> {
        match (self, named) {
            (Self::Store(location), None) => {
                let rows = location
                    .open(Purpose::Read)?
                    .experiments(None, false, usize::MAX)?;
                ensure!(!rows.is_empty(), "{location} holds no experiments");
                Ok(rows
                    .into_iter()
                    .map(|(experiment, _)| Some(experiment.id))
                    .collect())
            }
            (_, named) => Ok(vec![named.map(str::to_owned)]),
        }
    }

    /// Opens the log of an experiment.
    pub fn open(&self, experiment: Option<&str>, credentials: &Credentials) -> Result<Log> {
        match self {
            Self::File(path) => {
                let file =
                    File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
                Ok(Log::text(Box::new(BufReader::new(file)), experiment))
            }
            Self::Stdin => Ok(Log::text(
                Box::new(BufReader::new(std::io::stdin())),
                experiment,
            )),
            Self::Store(location) => Log::store(
                location,
                experiment.context("name the experiment with --experiment")?,
            ),
            Self::Web(url) => Ok(Log(LogReader::Web(Web {
                url: address(url, experiment)?,
                agent: agent(),
                api_key: credentials.api_key.clone(),
                page: None,
                next: Next::First,
            }))),
        }
    }
}

/// Whether a file is a store. One that is missing is an error here, as both readings need it.
fn is_sqlite(path: &PathBuf) -> Result<bool> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut begin = Vec::new();
    file.take(SQLITE_MAGIC.len() as u64)
        .read_to_end(&mut begin)?;
    Ok(begin == SQLITE_MAGIC)
}

/// A log, line by line.
pub struct Log(LogReader);

enum LogReader {
    Text {
        lines: TextLines,
        experiment: Option<String>,
    },
    Store(StoreLog),
    Pages(PagedLines, Box<ReadPage>),
    Web(Web),
}

/// Reads the page of a log that begins at a cursor, or the first one; `None` if there is no such log.
type ReadPage = dyn FnMut(Option<&str>) -> Result<Option<LogPage>>;

impl Log {
    /// A log in pages, each of which is read for itself: between two of them nothing is held open. What a store has beside its log is
    /// not checked.
    pub fn paged(read: impl FnMut(Option<&str>) -> Result<Option<LogPage>> + 'static) -> Self {
        Self(LogReader::Pages(PagedLines::default(), Box::new(read)))
    }

    /// A log from its lines; if an experiment is named, it must be that one's.
    pub fn text(reader: Box<dyn BufRead>, experiment: Option<&str>) -> Self {
        Self(LogReader::Text {
            lines: TextLines { reader, number: 0 },
            experiment: experiment.map(str::to_owned),
        })
    }

    /// The log of a store, all of it of one moment.
    fn store(location: &Location, id: &str) -> Result<Self> {
        let mut store = location.open(Purpose::Read)?;
        // The transaction is never ended: all pages are of the moment in which the audit begins, whatever its server does meanwhile.
        store.begin()?;
        if store.experiment(id)?.is_none() {
            let names: Vec<String> = store
                .experiments(None, false, usize::MAX)?
                .into_iter()
                .map(|(experiment, _)| experiment.id)
                .collect();
            bail!("{location} has no experiment {id:?}; it has {names:?}");
        }
        Ok(Self(LogReader::Store(StoreLog {
            store,
            id: id.to_owned(),
            lines: PagedLines::default(),
        })))
    }

    /// Checks what a store has beside its log.
    pub(super) fn check_rows(&mut self, auditor: &Auditor) -> Result<Check> {
        match &mut self.0 {
            LogReader::Store(log) => rows::check(&mut log.store, &log.id, auditor),
            LogReader::Text { .. } | LogReader::Pages(..) | LogReader::Web(_) => Ok(Ok(())),
        }
    }
}

impl Iterator for Log {
    type Item = Result<Line>;

    fn next(&mut self) -> Option<Result<Line>> {
        match &mut self.0 {
            LogReader::Text { lines, experiment } => {
                let line = lines.next()?;
                Some(line.and_then(|line| of_experiment(line, experiment.as_deref())))
            }
            LogReader::Store(log) => log.next(),
            LogReader::Pages(lines, read) => lines.next(read),
            LogReader::Web(log) => log.next(),
        }
    }
}

/// A file has one experiment; if one is named, it must be that.
fn of_experiment(line: Line, named: Option<&str>) -> Result<Line> {
    if let (Line::Experiment(heading), Some(named)) = (&line, named) {
        ensure!(
            heading.id == named,
            "this is the log of experiment {:?}, not of {named:?}",
            heading.id
        );
    }
    Ok(line)
}

/// Where the next page begins.
#[derive(Default)]
enum Next {
    #[default]
    First,
    At(String),
    End,
}

impl Next {
    fn of(cursor: Option<String>) -> Self {
        cursor.map_or(Self::End, Self::At)
    }
}

struct TextLines {
    reader: Box<dyn BufRead>,
    number: u64,
}

impl TextLines {
    fn next(&mut self) -> Option<Result<Line>> {
        let mut text = String::new();
        loop {
            text.clear();
            self.number += 1;
            match self.reader.read_line(&mut text) {
                Ok(0) => return None,
                // Between pages that were put together by hand there may be empty lines.
                Ok(_) if text.trim().is_empty() => {}
                Ok(_) => break,
                Err(error) => {
                    return Some(
                        Err(error).with_context(|| format!("line {} cannot be read", self.number)),
                    );
                }
            }
        }
        if text.starts_with(ERROR_LINE) {
            return Some(Err(anyhow!(
                "line {} says that the service could not read the rest; download the log again",
                self.number
            )));
        }
        Some(serde_json::from_str(&text).with_context(|| {
            format!("line {} is not a line of a log; give a log, a store or the address of an experiment", self.number)
        }))
    }
}

struct StoreLog {
    store: Store,
    id: String,
    lines: PagedLines,
}

impl StoreLog {
    fn next(&mut self) -> Option<Result<Line>> {
        let Self { store, id, lines } = self;
        // The key is included: whoever can read the file has it anyway.
        lines.next(|cursor| log::page(&mut *store, id, cursor, LINES_A_PAGE, true))
    }
}

/// The lines of a page, and where the next one begins.
#[derive(Default)]
struct PagedLines {
    lines: std::vec::IntoIter<Line>,
    next: Next,
}

impl PagedLines {
    fn next(
        &mut self,
        mut read: impl FnMut(Option<&str>) -> Result<Option<LogPage>>,
    ) -> Option<Result<Line>> {
        loop {
            if let Some(line) = self.lines.next() {
                return Some(Ok(line));
            }
            // Taken out, so that after an error there is no next page: a log with a hole is not a log.
            let page = match std::mem::replace(&mut self.next, Next::End) {
                Next::End => return None,
                Next::First => read(None),
                Next::At(cursor) => read(Some(&cursor)),
            };
            match page {
                Ok(Some(LogPage { lines, next_cursor })) => {
                    self.lines = lines.into_iter();
                    self.next = Next::of(next_cursor);
                }
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

struct Web {
    url: String,
    agent: ureq::Agent,
    api_key: Option<String>,
    page: Option<TextLines>,
    next: Next,
}

impl Web {
    fn next(&mut self) -> Option<Result<Line>> {
        loop {
            if let Some(line) = self.page.as_mut().and_then(TextLines::next) {
                return Some(line);
            }
            // Taken out, so that after an error there is no next page: a log with a hole is not a log.
            let cursor = match std::mem::replace(&mut self.next, Next::End) {
                Next::End => return None,
                Next::First => None,
                Next::At(cursor) => Some(cursor),
            };
            if let Err(error) = self.fetch(cursor.as_deref()) {
                return Some(Err(error).with_context(|| format!("cannot read {}", self.url)));
            }
        }
    }

    fn fetch(&mut self, cursor: Option<&str>) -> Result<()> {
        let mut request = self
            .agent
            .get(&self.url)
            .query("limit", LINES_A_PAGE.to_string());
        if let Some(cursor) = cursor {
            request = request.query("after", cursor);
        }
        if let Some(key) = &self.api_key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let mut response = request.call()?;
        // The service says what is wrong in a sentence, which is worth more than the status alone.
        if !response.status().is_success() {
            let text = response.body_mut().read_to_string().unwrap_or_default();
            bail!("the service answers {}: {}", response.status(), text.trim());
        }
        let next = response.headers().get(NEXT_HEADER);
        let next = next.map(|value| value.to_str().map(str::to_owned));
        let next = next.transpose()?;
        self.next = Next::of(next);
        // Read line by line as it comes: a page may hold two hundred thousand decisions.
        let reader = Box::new(BufReader::new(response.into_body().into_reader()));
        self.page = Some(TextLines { reader, number: 0 });
        Ok(())
    }
}

fn agent() -> ureq::Agent {
    // No limit on a whole request: a page may take long over a slow line, as long as it comes.
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(10)))
        .timeout_recv_response(Some(Duration::from_secs(60)));
    config.build().into()
}

/// The address of the log, from the address of the service, of the experiment, or of its page.
fn address(url: &str, experiment: Option<&str>) -> Result<String> {
    // People copy what their browser shows, which is the page and not the interface.
    let url = url.trim_end_matches('/');
    let url = url.strip_suffix("/log").unwrap_or(url);
    let (base, named) = match url.split_once("/experiments/") {
        Some((base, id)) => (base.strip_suffix("/v1").unwrap_or(base), Some(id)),
        None => (url.strip_suffix("/v1").unwrap_or(url), None),
    };
    let id = match (named, experiment) {
        (Some(named), Some(other)) if named != other => bail!("{url} is not experiment {other:?}"),
        (Some(named), _) => named,
        (None, Some(experiment)) => experiment,
        (None, None) => bail!("{url} is a service; name the experiment, as in {url}#ID"),
    };
    Ok(format!("{base}/v1/experiments/{id}/log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_an_experiment_leads_to_its_log() {
        let log = "http://host:1/v1/experiments/a-b/log";
        for url in [
            "http://host:1/v1/experiments/a-b",
            "http://host:1/experiments/a-b/",
            "http://host:1/v1/experiments/a-b/log",
        ] {
            assert_eq!(address(url, None).unwrap(), log);
            assert_eq!(address(url, Some("a-b")).unwrap(), log);
            assert!(address(url, Some("c")).is_err());
        }
        for url in ["http://host:1", "http://host:1/", "http://host:1/v1"] {
            assert_eq!(address(url, Some("a-b")).unwrap(), log);
            assert!(
                address(url, None)
                    .unwrap_err()
                    .to_string()
                    .contains("name the experiment")
            );
        }
    }

    #[test]
    fn an_experiment_is_named_behind_a_hash() {
        let (source, experiment) = LogSource::of("postgres://host/db#a").unwrap();
        assert_eq!(
            source,
            LogSource::Store(Location::Postgres("postgres://host/db".into()))
        );
        assert_eq!(experiment.as_deref(), Some("a"));
        assert_eq!(LogSource::of("-").unwrap(), (LogSource::Stdin, None));
        assert!(
            LogSource::of("nowhere.db")
                .unwrap_err()
                .to_string()
                .contains("cannot read nowhere.db")
        );
    }
}
