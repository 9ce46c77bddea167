//! Tables for other programs, as CSV or as JSON: every number with all its digits.

use debora::measure::answer::{AnswerCell, AnswerTable};
use serde::Serialize;
use serde_json::{Map, Value};

/// A heading line and a line for each row, each with this end: RFC 4180 has `\r\n`.
pub fn csv(table: &AnswerTable, end: &str) -> String {
    let names = table.columns.iter().map(|column| quoted(&column.name));
    let rows = table.rows.iter();
    std::iter::once(names.collect())
        .chain(rows.map(|row| row.iter().map(field).collect()))
        .map(|fields: Vec<String>| fields.join(",") + end)
        .collect()
}

/// An object for each row, whose names are the columns'.
pub fn json(table: &AnswerTable) -> String {
    let columns = table.columns.iter();
    let names: Vec<String> = columns
        .map(|column| column.name.replace(' ', "_"))
        .collect();
    let object = |row: &Vec<AnswerCell>| {
        let values = row.iter().map(value);
        names.iter().cloned().zip(values).collect::<Map<_, _>>()
    };
    let rows: Vec<Map<String, Value>> = table.rows.iter().map(object).collect();
    Value::from_iter(rows).to_string()
}

/// A word as the JSON documents have it; nothing where they have null.
pub fn word(value: &impl Serialize) -> AnswerCell {
    let word = serde_json::to_value(value).expect("words are written as JSON");
    word.as_str().into()
}

fn value(cell: &AnswerCell) -> Value {
    match cell {
        AnswerCell::Empty => Value::Null,
        AnswerCell::Text(text) | AnswerCell::Code(text) => Value::from(&**text),
        AnswerCell::Count(count) => Value::from(*count),
        AnswerCell::Number(number) => Value::from(*number),
    }
}

fn field(cell: &AnswerCell) -> String {
    match cell {
        // What is missing leaves its cell empty, which readers of CSV take for a missing value.
        AnswerCell::Empty => String::new(),
        AnswerCell::Text(text) | AnswerCell::Code(text) => quoted(text),
        AnswerCell::Count(count) => count.to_string(),
        AnswerCell::Number(number) => number.to_string(),
    }
}

/// A text as RFC 4180 has it.
fn quoted(text: &str) -> String {
    // A spreadsheet would run what begins so as a formula, unless it is a number; behind an apostrophe it is text.
    let begins = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let apostrophe = if begins && text.parse::<f64>().is_err() {
        "'"
    } else {
        ""
    };
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{apostrophe}{text}")
    }
}

#[cfg(test)]
mod tests {
    use debora::measure::answer::row_for_each;

    use super::*;

    #[test]
    fn names_run_no_formula_and_break_no_line() {
        let names = [
            r#"=HYPERLINK("x")"#,
            "+1+1",
            "-a,b",
            "@x",
            "\tx",
            "plain",
            "a\"b",
        ];
        let rows = names.map(|name| (name, Some(0.1 + 0.2)));
        let table = row_for_each(rows.into_iter().chain([("none", None)]))
            .words("name", |(name, _)| *name)
            .numbers("observed mean", |(_, mean)| *mean)
            .table();
        let lines: Vec<String> = csv(&table, "\r\n")
            .split("\r\n")
            .map(str::to_owned)
            .collect();
        assert_eq!(
            lines,
            [
                "name,observed mean",
                r#""'=HYPERLINK(""x"")",0.30000000000000004"#,
                "'+1+1,0.30000000000000004",
                r#""'-a,b",0.30000000000000004"#,
                "'@x,0.30000000000000004",
                "'\tx,0.30000000000000004",
                "plain,0.30000000000000004",
                r#""a""b",0.30000000000000004"#,
                "none,",
                ""
            ]
        );
        let found: Value = serde_json::from_str(&json(&table)).unwrap();
        assert_eq!(found[0]["name"], r#"=HYPERLINK("x")"#, "text is text there");
        assert_eq!(found[0]["observed_mean"], 0.1 + 0.2);
        assert_eq!(found[7]["observed_mean"], Value::Null);
    }
}
