//! Tables for papers: LaTeX with the rules of booktabs, intervals in brackets, and the best of each group in bold.

use crate::lab::metrics::Spread;
use crate::lab::summary::Summary;
use crate::measure::words::{amount, percent};
use crate::measure::{Findings, Part, Swept, SweptPoint, SweptRow};
use crate::problem::Policy;

/// The table of a whole measurement: a row for each player.
pub fn measured(part: &Part, findings: &Findings) -> String {
    let problem = part.measurement.spec.problem();
    let rows = findings
        .summaries
        .iter()
        .map(|(player, summary)| Contender {
            player,
            summary,
            span: problem.quantity(0).range.span(),
        });
    let group = Group {
        values: Vec::new(),
        entries: rows.collect(),
        policy: problem.policy(),
    };
    let columns = LatexColumns {
        names: Vec::new(),
        has_players: true,
        reward: &problem.quantity(0).name,
        has_costs: !problem.thresholds().is_empty(),
    };
    table(&columns, &[group], part.measurement.spec.name())
}

/// The table of a sweep: a group for each point, a row for each player.
pub fn swept(swept: &Swept) -> String {
    let columns = LatexColumns {
        names: swept.names.iter().map(|name| &**name).collect(),
        has_players: swept.players().len() > 1,
        reward: swept.points.first().map_or("", |point| &point.reward),
        has_costs: swept.points.iter().any(|point| point.has_costs),
    };
    let groups: Vec<Group> = swept.points.iter().map(Group::of).collect();
    table(&columns, &groups, "")
}

/// What a table's columns are.
struct LatexColumns<'a> {
    names: Vec<&'a str>,
    has_players: bool,
    reward: &'a str,
    has_costs: bool,
}

/// Players that are compared with each other.
struct Group<'a> {
    values: Vec<&'a str>,
    entries: Vec<Contender<'a>>,
    policy: Policy,
}

struct Contender<'a> {
    player: &'a str,
    summary: &'a Summary,
    span: f64,
}

impl<'a> Group<'a> {
    fn of(point: &'a SweptPoint) -> Self {
        let entry = |row: &'a SweptRow| Contender {
            player: &row.player,
            summary: &row.summary,
            span: row.span,
        };
        Self {
            values: point.values.iter().map(|value| &**value).collect(),
            entries: point.rows.iter().map(entry).collect(),
            policy: point.policy,
        }
    }

    /// Which entries are best by a number of which less is better: all that share the least, unless all do.
    fn best(&self, number: impl Fn(&Contender) -> f64) -> Vec<bool> {
        let numbers: Vec<f64> = self.entries.iter().map(number).collect();
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let is_best = |value: &f64| value.is_finite() && *value == least;
        // Bold everywhere says nothing.
        let all = numbers.iter().all(is_best);
        numbers.iter().map(|value| is_best(value) && !all).collect()
    }

    /// Which entry is best in identical pairs, regret and violation.
    fn best_of_each(&self) -> [Vec<bool>; 3] {
        // Under hard limits only a player that kept every round safe is in the race: regret is easily saved by breaking them.
        let is_fair =
            |entry: &Contender| self.policy != Policy::Hard || entry.summary.unsafe_runs == 0;
        let regret = |entry: &Contender| match &entry.summary.regret {
            Some(regret) if is_fair(entry) => regret.spread.mean,
            _ => f64::INFINITY,
        };
        [
            self.best(|entry| -entry.summary.identical_rate),
            self.best(regret),
            self.best(|entry| entry.summary.violation.spread.mean),
        ]
    }

    fn rows(&self, columns: &LatexColumns) -> Vec<Vec<String>> {
        let [identical, regret, violation] = self.best_of_each();
        let mut rows = Vec::new();
        for (place, entry) in self.entries.iter().enumerate() {
            // A value stands for all rows below it.
            let value = |value: &&str| {
                if place == 0 {
                    escaped(value)
                } else {
                    String::new()
                }
            };
            let mut row: Vec<String> = self.values.iter().map(value).collect();
            if columns.has_players {
                row.push(escaped(entry.player));
            }
            let summary = entry.summary;
            row.push(bold(identical[place], rate(summary)));
            let in_units = summary
                .regret
                .as_ref()
                .map(|regret| spread(&regret.spread, entry.span));
            row.push(bold(regret[place], in_units.unwrap_or("none".into())));
            if columns.has_costs {
                row.push(bold(
                    violation[place],
                    spread(&summary.violation.spread, 1.0),
                ));
                row.push(share(summary.unsafe_runs as f64 / summary.runs as f64));
            }
            rows.push(row);
        }
        rows
    }
}

impl LatexColumns<'_> {
    fn headings(&self) -> Vec<String> {
        let mut headings: Vec<String> = self.names.iter().map(|name| escaped(name)).collect();
        if self.has_players {
            headings.push("player".into());
        }
        headings.extend([
            "identical".into(),
            format!("regret ({})", escaped(self.reward)),
        ]);
        if self.has_costs {
            headings.extend(["violation".into(), "unsafe".into()]);
        }
        headings
    }

    /// What brackets and bold mean.
    fn caption(&self, name: &str) -> String {
        let mut caption = match name {
            "" => String::new(),
            name => format!("{}. ", escaped(name)),
        };
        caption += "Identical: the share of pairs with identical decisions, with its 95\\,\\% interval. Regret";
        caption += if self.has_costs {
            " and violation (in shares of a cost's range)"
        } else {
            ""
        };
        caption += ": the mean over runs, with their 5\\,\\% and 95\\,\\% quantiles.";
        if self.has_costs {
            caption += " Unsafe: runs with a round whose strategy exceeds a threshold.";
        }
        if self.has_players {
            caption += " Bold: the best.";
        }
        caption
    }
}

fn table(columns: &LatexColumns, groups: &[Group], name: &str) -> String {
    let headings = columns.headings();
    // Names to the left, numbers to the right.
    let words = headings.len() - if columns.has_costs { 4 } else { 2 };
    let sides = "l".repeat(words) + &"r".repeat(headings.len() - words);
    let groups: Vec<String> = groups
        .iter()
        .map(|group| group.rows(columns).iter().map(|row| line(row)).collect())
        .collect();
    // Between groups of several rows the eye needs a gap.
    let between = if columns.has_players {
        "\\addlinespace\n"
    } else {
        ""
    };
    format!(
        "% Needs \\usepackage{{booktabs}}.\n\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\begin{{tabular}}{{{sides}}}\n\\toprule\n{}\\midrule\n{}\\bottomrule\n\
         \\end{{tabular}}\n\\end{{table}}\n",
        columns.caption(name),
        line(&headings),
        groups.join(between)
    )
}

fn line(cells: &[String]) -> String {
    format!("{} \\\\\n", cells.join(" & "))
}

fn bold(is_best: bool, cell: String) -> String {
    if is_best {
        format!("\\textbf{{{cell}}}")
    } else {
        cell
    }
}

fn rate(summary: &Summary) -> String {
    let [low, high] = summary
        .interval
        .map(|end| percent(end).trim_end_matches(" %").to_owned());
    format!("{} [{low}, {high}]", share(summary.identical_rate))
}

fn spread(spread: &Spread, scale: f64) -> String {
    let [mean, low, high] =
        [spread.mean, spread.p05, spread.p95].map(|value| number(value * scale));
    format!("{mean} [{low}, {high}]")
}

fn share(share: f64) -> String {
    percent(share).replace(" %", "\\,\\%")
}

/// As [`amount`], with LaTeX's minus, thousands and powers. Not in math mode, whose digits `\textbf` leaves as they are.
fn number(value: f64) -> String {
    let text = amount(value).replace('-', "\\textminus ");
    match text.split_once('e') {
        // Beware of none, which has the letter too.
        Some((digits, power))
            if power.starts_with(|first: char| first.is_ascii_digit() || first == '\\') =>
        {
            format!("{digits}$\\cdot$10\\textsuperscript{{{power}}}")
        }
        _ => text.replace(',', "{,}"),
    }
}

/// Any text as LaTeX prints it.
pub fn escaped(text: &str) -> String {
    let letter = |letter: char| match letter {
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{letter}"),
        '~' => "\\textasciitilde{}".into(),
        '^' => "\\textasciicircum{}".into(),
        '\\' => "\\textbackslash{}".into(),
        '<' => "\\textless{}".into(),
        '>' => "\\textgreater{}".into(),
        '|' => "\\textbar{}".into(),
        '"' => "\\textquotedbl{}".into(),
        // A row ends where its line does.
        letter if letter.is_control() => " ".into(),
        letter => letter.to_string(),
    };
    text.chars().map(letter).collect()
}
