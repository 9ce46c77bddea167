//! What `--out` writes: the summary, a table, the figures with their points, and one self-contained page.

mod csv;
pub mod figures;
pub mod html;
pub mod plots;

use anyhow::Result;
use serde_json::Value;

use crate::files::OutDir;
use crate::report::html::ReportPage;

pub use csv::{CsvFile, curves_csv, pairs_csv, runs_csv};

/// Writes summary.json, the table, the figures as SVG, PDF and points, and the page.
pub fn write(out: &OutDir, document: &Value, page: &ReportPage, table: &CsvFile) -> Result<()> {
    out.write("summary.json", format!("{document:#}\n").as_bytes())?;
    out.write(table.name, table.text.as_bytes())?;
    let curves = curves_csv(page.figures);
    out.write(curves.name, curves.text.as_bytes())?;
    for figure in page.figures {
        let drawing = figure.drawing();
        out.write(&format!("{}.svg", figure.name), drawing.svg().as_bytes())?;
        out.write(&format!("{}.pdf", figure.name), &drawing.pdf())?;
    }
    let html = html::render(page).into_string();
    out.write("report.html", html.as_bytes())
}
