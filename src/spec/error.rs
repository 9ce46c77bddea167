//! What is wrong with a spec, and where: file, line, the line's text, the value and the rule it broke.

use std::fmt;

/// A spec, or a table it names, that cannot be used.
///
/// ```text
/// routing.toml:7: policy is "sofd"; did you mean "soft"?
///   7 | policy = "sofd"
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    // Boxed, all of them: errors are returned through many functions.
    pub(super) origin: Box<str>,
    pub(super) line: Option<u64>,
    pub(super) column: Option<u64>,
    pub(super) field: Option<Box<str>>,
    pub(super) excerpt: Option<Box<str>>,
    pub(super) message: Box<str>,
}

impl SpecError {
    /// The file at fault, or `override path=value`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The line at fault, from 1; `None` for what is missing from the whole file, and for overrides.
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// The character of that line at which the value begins, from 1.
    pub fn column(&self) -> Option<u64> {
        self.column
    }

    /// The keys that lead to the value at fault, or to the place where it is missing, entries of lists by their number:
    /// `cost.0.threshold`. `None` for a text that is not TOML, and for overrides.
    ///
    /// ```
    /// # use debora::spec::Spec;
    /// let text = "policy = 'soft'\nhorizon = 1e8\nrho = 0.1\nactions = ['a', 'b']\n[[cost]]\nname = 'price'\nthreshold = 3";
    /// let error = Spec::parse(text, "x.toml").unwrap_err();
    /// assert_eq!((error.field(), error.line(), error.column()), (Some("cost.0.threshold"), Some(7), Some(13)));
    /// ```
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The value and the rule it broke, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            // As compilers write it: editors and terminals make a link of it.
            Some(line) => write!(formatter, "{}:{line}: {}", self.origin, self.message)?,
            None => write!(formatter, "{}: {}", self.origin, self.message)?,
        }
        match (self.line, &self.excerpt) {
            (Some(line), Some(excerpt)) => write!(formatter, "\n  {line} | {excerpt}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for SpecError {}

/// Where a value was read. The order is that of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SpecPlace {
    /// The whole file: what is missing has no line.
    Whole,
    /// An offset in the text.
    Text(usize),
    /// An override, by its number.
    Override(usize),
}

/// An error before it is shown: the document knows the line and its text.
#[derive(Debug)]
pub(super) struct Fault {
    pub place: SpecPlace,
    pub message: String,
    /// The key that the value at this place lacks.
    pub missing: Option<String>,
}

impl Fault {
    pub fn new(place: SpecPlace, message: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
            missing: None,
        }
    }

    /// With the key that is missing at its place.
    pub fn without(self, key: &str) -> Self {
        Self {
            missing: Some(key.to_owned()),
            ..self
        }
    }
}

/// What one reading step gives.
pub(super) type Read<T> = Result<T, Fault>;
