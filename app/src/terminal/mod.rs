//! Answers for people at a terminal: sentences wrapped, tables aligned, tones as colours, and how far the work is.

mod answer;
mod ink;
mod progress;
mod table;
mod untrusted;
mod wrap;

pub use answer::laid_out;
pub use ink::{Ink, ink_for_stdout};
pub use progress::progress_bar;
pub use table::table;
pub use untrusted::{escaped, json_text, name, one_line, value};
