//! Numbers, lists and tables as a person reads them, and emphasis for those whose terminal shows it.

/// 9981 as 9,981.
pub fn whole(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let groups = std::iter::once(&digits[..first]).filter(|group| !group.is_empty());
    let groups = groups.chain(
        digits.as_bytes()[first..]
            .chunks(3)
            .map(|group| std::str::from_utf8(group).expect("digits")),
    );
    groups.collect::<Vec<_>>().join(",")
}

/// A share of one as a percentage: 99.81 %. As many decimals as the share needs to differ from 0 and 1.
pub fn percent(share: f64) -> String {
    let away = share.min(1.0 - share).abs();
    let decimals = if share == 0.0 || share == 1.0 {
        0
    } else if away >= 0.0001 {
        2
    } else {
        4
    };
    let text = format!("{:.decimals$}", 100.0 * share);
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} %")
}

/// A quantity to three significant digits, with separators above a thousand.
pub fn amount(value: f64) -> String {
    significant(value, 3)
}

/// A quantity to so many significant digits, with separators and no decimals from the power of ten on that has more.
pub fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !value.is_finite() {
        return "none".into();
    }
    let size = value.abs();
    if !(1e-5..1e15).contains(&size) {
        return format!("{value:.*e}", (digits - 1) as usize);
    }
    if size >= libm::pow(10.0, f64::from(digits)) {
        return format!(
            "{}{}",
            if value < 0.0 { "-" } else { "" },
            whole(size.round() as u64)
        );
    }
    let decimals = (digits - 1 - size.log10().floor() as i32).clamp(0, digits + 5) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// "1 pair", "2 pairs".
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", whole(number), if number == 1 { one } else { many })
}

/// "a", "a and b", "a, b and c".
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Sentences broken at 80 columns. Tables, which are indented, stay as they are.
pub fn wrapped(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("  ") || line.is_empty() {
            lines.push(line.to_owned());
            continue;
        }
        let mut open = String::new();
        for word in line.split(' ') {
            if !open.is_empty() && open.chars().count() + 1 + word.chars().count() > 80 {
                lines.push(std::mem::take(&mut open));
            }
            open += &if open.is_empty() {
                word.to_owned()
            } else {
                format!(" {word}")
            };
        }
        lines.push(open);
    }
    lines.join("\n") + "\n"
}

/// Emphasis for terminals; nothing elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Ink {
    on: bool,
}

impl Ink {
    /// With a terminal's escape sequences.
    pub fn terminal() -> Self {
        Self { on: true }
    }

    /// Without any colour, for files.
    pub fn none() -> Self {
        Self { on: false }
    }

    /// A warning or a broken promise.
    pub fn alarm(&self, text: &str) -> String {
        self.dressed("1;31", text)
    }

    /// The answer.
    pub fn strong(&self, text: &str) -> String {
        self.dressed("1", text)
    }

    /// What matters less.
    pub fn faint(&self, text: &str) -> String {
        self.dressed("2", text)
    }

    fn dressed(&self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Rows under a heading, columns aligned: the first to the left, the others to the right.
pub fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let all = || {
        std::iter::once(heading.iter().map(|cell| (*cell).to_owned()).collect())
            .chain(rows.iter().cloned())
    };
    let width = |column: usize| {
        all()
            .map(|row: Vec<String>| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |row: Vec<String>| {
        let cell = |(column, text): (usize, &String)| {
            if column == 0 {
                format!("{text:<0$}", widths[0])
            } else {
                format!("{text:>0$}", widths[column])
            }
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        format!("  {}\n", cells.join("  ").trim_end())
    };
    all().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 12, 999, 1_000, 100_000_000].map(whole),
            ["0", "12", "999", "1,000", "100,000,000"]
        );
        assert_eq!(
            [0.9981, 1.0, 0.0, 0.9, 0.999_999].map(percent),
            ["99.81 %", "100 %", "0 %", "90 %", "99.9999 %"]
        );
        let amounts = [
            0.0, 0.003, 0.012345, 1.5, 123.456, 98_304.2, -2_000.0, 1e-7, 1e18,
        ]
        .map(amount);
        assert_eq!(
            amounts,
            [
                "0", "0.003", "0.0123", "1.5", "123", "98,304", "-2,000", "1.00e-7", "1.00e18"
            ]
        );
        let precise =
            [0.0031616, 0.75, 1234.5678, 1_234_567.8, 1e-9].map(|value| significant(value, 6));
        assert_eq!(
            precise,
            ["0.0031616", "0.75", "1234.57", "1,234,568", "1.00000e-9"]
        );
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!(counted(1, "pair", "pairs"), "1 pair");
    }

    #[test]
    fn sentences_are_wrapped_and_tables_are_not() {
        let long = "word ".repeat(30);
        assert!(wrapped(long.trim()).lines().all(|line| line.len() <= 80));
        assert_eq!(wrapped(long.trim()).split_whitespace().count(), 30);
        let row = format!("  {long}");
        assert_eq!(wrapped(&row), format!("{row}\n"));
    }

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
