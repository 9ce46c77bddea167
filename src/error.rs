//! One public error: which rule a value broke, the value, and what to do about it.

/// A wrong input. Nothing has changed when one is returned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not 32 hexadecimal digits.
    #[error("key {text:?} is not 32 hexadecimal digits; give 32 of 0-9 and a-f, or a non-negative integer")]
    KeyText {
        /// The text given.
        text: String,
    },
}
