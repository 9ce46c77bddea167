//! Numbers for other programs: one table, as CSV or as JSON.

use serde_json::{Map, Value};

/// A table of numbers.
pub struct DataTable {
    /// What stands in each column.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

impl DataTable {
    /// Of these columns.
    pub fn new(columns: &[&str], rows: Vec<Vec<Value>>) -> Self {
        Self {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows,
        }
    }

    /// With a heading line.
    pub fn csv(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|name| quoted(name)).collect();
        let mut text = format!("{}\r\n", columns.join(","));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(cell).collect();
            text += &format!("{}\r\n", cells.join(","));
        }
        text
    }

    /// An object for each row, whose names are the columns'.
    pub fn json(&self) -> String {
        let object = |row: &Vec<Value>| {
            let names = self.columns.iter().map(|column| column.replace(' ', "_"));
            names.zip(row.clone()).collect::<Map<_, _>>()
        };
        let rows: Vec<Map<String, Value>> = self.rows.iter().map(object).collect();
        Value::from_iter(rows).to_string()
    }
}

fn cell(value: &Value) -> String {
    match value {
        // What is missing leaves its cell empty, which readers of CSV take for a missing value.
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        number => number.to_string(),
    }
}

/// A text as RFC 4180 has it.
fn quoted(text: &str) -> String {
    // A spreadsheet would run what begins so as a formula; behind an apostrophe it is text.
    let apostrophe = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn names_run_no_formula_and_break_no_line() {
        let table = DataTable {
            columns: ["name", "observed mean"].map(str::to_owned).into(),
            rows: [r#"=HYPERLINK("x")"#, "+1", "-a,b", "@x", "plain", "a\"b"]
                .iter()
                .map(|name| vec![json!(name), json!(0.1 + 0.2)])
                .chain([vec![json!("none"), Value::Null]])
                .collect(),
        };
        let lines: Vec<String> = table.csv().split("\r\n").map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "name,observed mean",
                r#""'=HYPERLINK(""x"")",0.30000000000000004"#,
                "'+1,0.30000000000000004",
                r#""'-a,b",0.30000000000000004"#,
                "'@x,0.30000000000000004",
                "plain,0.30000000000000004",
                r#""a""b",0.30000000000000004"#,
                "none,",
                ""
            ]
        );
        let json: Value = serde_json::from_str(&table.json()).unwrap();
        assert_eq!(json[0]["name"], r#"=HYPERLINK("x")"#, "text is text there");
        assert_eq!(json[0]["observed_mean"], 0.1 + 0.2);
        assert_eq!(json[6]["observed_mean"], Value::Null);
    }
}
