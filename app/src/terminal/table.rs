//! Rows in aligned columns.

use debora::measure::answer::{Align, AnswerTable};

use super::untrusted::{FIXED_BLANK, escaped};

/// A table, indented so that it stands out from the sentences.
pub fn table(table: &AnswerTable) -> String {
    let columns = table.columns.iter();
    let heading: Vec<String> = columns.map(|column| escaped(&column.name)).collect();
    // Escaped before widths are taken, as a cell is as wide as it is shown. Rows are not wrapped: their blanks may all be plain.
    let cell = |cell: &String| escaped(cell).replace(FIXED_BLANK, " ");
    let rows: Vec<Vec<String>> = table
        .texts()
        .iter()
        .map(|row| row.iter().map(cell).collect())
        .collect();
    let lines = || std::iter::once(&heading).chain(&rows);
    let width = |column: usize| {
        let widths = lines().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let mut text = String::new();
    for line in lines() {
        let cells: Vec<String> = line
            .iter()
            .zip(&table.columns)
            .zip(&widths)
            .map(|((cell, column), &width)| match column.align {
                Align::Left | Align::Wide => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            })
            .collect();
        // Blanks at the end would be copied along with the table.
        text += &format!("  {}\n", cells.join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use debora::measure::answer::row_for_each;

    use super::*;

    #[test]
    fn tables_are_aligned() {
        let rows = row_for_each([("x", 1_000_u64), ("long", 9)])
            .words("a", |(name, _)| *name)
            .numbers("b", |(_, count)| *count)
            .table();
        assert_eq!(
            table(&rows),
            "  a         b\n  x     1,000\n  long      9\n"
        );
    }
}
