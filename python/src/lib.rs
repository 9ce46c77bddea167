//! The private extension `_debora` of the Python package `debora`: the library's types, in Python's clothes.

mod arrays;
mod engine;
mod error;
mod job;
mod measure;
mod problem;
mod record;
mod spec;
mod value;

use pyo3::prelude::*;

/// What a notebook shows of an answer in words: sentences as paragraphs, tables as they stand.
#[pyfunction]
fn html(answer: &str) -> String {
    let escaped = answer
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let (mut text, mut table) = (String::new(), String::new());
    for line in escaped.lines().chain([""]) {
        if line.starts_with("  ") {
            table += &format!("{line}\n");
            continue;
        }
        if !table.is_empty() {
            text += &format!("<pre>{table}</pre>");
            table.clear();
        }
        if !line.is_empty() {
            text += &format!("{line} ");
        } else if !text.is_empty() {
            text += "<br>";
        }
    }
    format!("<div>{}</div>", text.trim_end_matches("<br>"))
}

/// The private extension of debora.
#[pymodule]
mod _debora {
    #[pymodule_export]
    use super::engine::{Decision, Decisions, Engine};
    #[pymodule_export]
    use super::error::{Conflict, Error, Waiting};
    #[pymodule_export]
    use super::html;
    #[pymodule_export]
    use super::job::{Job, Part, simulate};
    #[pymodule_export]
    use super::problem::{Level, Plan, Problem};
    #[pymodule_export]
    use super::record::{EpochRecord, Estimate, Recommendation, ToldMany};
    #[pymodule_export]
    use super::spec::{Spec, World};

    /// Changes whenever a draw, a constant, a strategy or a digest does.
    #[pymodule_export]
    const VALUES_VERSION: u32 = debora::VALUES_VERSION;
}
