//! What `--out` writes: the summary, a table, the figures with their points, and one self-contained page.

mod csv;
pub mod figures;
pub mod html;
pub mod plots;
pub mod sweeps;

use anyhow::Result;
use serde_json::Value;

use crate::document::csv as csv_text;
use crate::files::OutDir;
use crate::report::html::{ReportPage, SweepPage};
use crate::report::plots::Figure;

pub use csv::{CsvFile, curves_csv, pairs_csv, runs_csv};

/// Writes summary.json, the table, the figures as SVG, PDF and points, and the page.
pub fn write(out: &OutDir, document: &Value, page: &ReportPage, table: &CsvFile) -> Result<()> {
    out.write("summary.json", format!("{document:#}\n").as_bytes())?;
    write_table(out, table)?;
    write_figures(out, page.figures)?;
    let html = html::render(page).into_string();
    out.write("report.html", html.as_bytes())
}

/// Writes sweep.json, sweep.csv, the figures and the page of a sweep.
pub fn write_sweep(
    out: &OutDir,
    document: &Value,
    page: &SweepPage,
    table: &CsvFile,
) -> Result<()> {
    out.write("sweep.json", format!("{document:#}\n").as_bytes())?;
    write_table(out, table)?;
    write_figures(out, page.figures)?;
    let html = html::render_sweep(page).into_string();
    out.write("report.html", html.as_bytes())
}

/// As SVG and PDF, with all their points in one file.
fn write_figures(out: &OutDir, figures: &[Figure]) -> Result<()> {
    write_table(out, &curves_csv(figures))?;
    for figure in figures {
        let drawing = figure.drawing();
        out.write(&format!("{}.svg", figure.name), drawing.svg().as_bytes())?;
        out.write(&format!("{}.pdf", figure.name), &drawing.pdf())?;
    }
    Ok(())
}

fn write_table(out: &OutDir, file: &CsvFile) -> Result<()> {
    // As the tools of a shell end their lines.
    out.write(file.name, csv_text(&file.table, "\n").as_bytes())
}
