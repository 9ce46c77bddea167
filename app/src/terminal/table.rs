//! Rows in aligned columns.

use debora::measure::answer::{Align, AnswerTable};

/// Rows under a heading, columns aligned: the first to the left, the others to the right.
pub fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    aligned(&AnswerTable::of_numbers(
        heading.iter().copied(),
        rows.to_vec(),
    ))
}

/// A table, indented so that it stands out from the sentences.
pub(super) fn aligned(table: &AnswerTable) -> String {
    let heading: Vec<String> = table
        .columns
        .iter()
        .map(|column| column.name.clone())
        .collect();
    let lines = || std::iter::once(&heading).chain(&table.rows);
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
                Align::Left => format!("{cell:<width$}"),
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
    use super::*;

    #[test]
    fn tables_are_aligned() {
        let rows = [
            vec!["x".to_owned(), "10".to_owned()],
            vec!["long".to_owned(), "9".to_owned()],
        ];
        assert_eq!(
            table(&["a", "b"], &rows),
            "  a      b\n  x     10\n  long   9\n"
        );
    }
}
