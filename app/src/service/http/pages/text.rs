//! An experiment's state in sentences.

use debora::measure::words::{amount, counted, significant, whole};
use debora::record::Kind;

use crate::calendar::utc;
use crate::reading::{OutcomeCounts, Reading};
use crate::store::Status;

/// A status as a word, which is also its class in the style sheet.
pub fn word(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Paused => "paused",
        Status::Closed => "closed",
        Status::Done => "done",
    }
}

/// Where it stands, the most important first.
pub fn sentences(reading: &Reading) -> Vec<String> {
    let outcomes = reading.outcomes();
    let mut sentences = vec![status(reading, outcomes), epoch(reading)];
    // After a commitment its sentence has the test's numbers already.
    let commitment = reading.commitment();
    sentences.extend(commitment.or_else(|| Some(reading.test()?.sentence)));
    // What did not happen is not mentioned: most experiments have neither.
    if outcomes.imputed > 0 {
        sentences.push(imputed(outcomes));
    }
    if outcomes.overtime > 0 {
        sentences.push(overtime(outcomes.overtime));
    }
    sentences
}

fn status(reading: &Reading, outcomes: OutcomeCounts) -> String {
    let decided = whole(outcomes.decided);
    let horizon = whole(reading.problem().horizon());
    let outstanding = counted(outcomes.outstanding, "outcome is", "outcomes are");
    match reading.progress.status {
        // Waiting is not a status in the store, but to a reader it is the one that calls for action.
        Status::Running if reading.is_waiting() => format!(
            "Waiting: all rounds of epoch {} are decided, and {outstanding} outstanding.",
            whole(reading.progress.epoch)
        ),
        Status::Running => format!(
            "Running: {decided} of {horizon} rounds are decided, and {outstanding} outstanding."
        ),
        Status::Paused => format!(
            "Paused after {decided} of {horizon} rounds: outcomes are still taken ({outstanding} outstanding), and nothing is \
             decided until it is resumed."
        ),
        Status::Closed => {
            format!("Closed after {decided} of {horizon} rounds; it can no longer change.")
        }
        Status::Done => format!("Done: all {horizon} rounds are decided and told."),
    }
}

fn imputed(outcomes: OutcomeCounts) -> String {
    let late = counted(
        outcomes.late,
        "arrived later and is",
        "arrived later and are",
    );
    format!(
        "{} did not arrive in time and {} imputed; {late} logged, and {} nothing.",
        counted(outcomes.imputed, "outcome", "outcomes"),
        if outcomes.imputed == 1 { "was" } else { "were" },
        if outcomes.late == 1 {
            "changes"
        } else {
            "change"
        },
    )
}

fn overtime(decisions: u64) -> String {
    let served = counted(decisions, "decision was", "decisions were");
    let count = if decisions == 1 {
        "it counts"
    } else {
        "they count"
    };
    format!("While epochs waited, {served} served outside the horizon; {count} for nothing.")
}

fn epoch(reading: &Reading) -> String {
    let epoch = whole(reading.progress.epoch);
    if !reading.is_open() {
        return last_epoch(reading.kind(), &epoch);
    }
    match reading.kind() {
        Kind::Explore => format!("Epoch {epoch} explores: not every action is estimated yet."),
        Kind::Estimate => format!("Epoch {epoch} plays what the estimates say is best."),
        Kind::Infeasible => {
            format!("In epoch {epoch} the estimates leave no strategy within the thresholds.")
        }
        Kind::Commit => {
            format!("Epoch {epoch} plays one action to the horizon, as it is clearly ahead.")
        }
        Kind::Pick => {
            format!(
                "Epoch {epoch} plays the action picked at the end of the trial, to the horizon."
            )
        }
    }
}

fn last_epoch(kind: Kind, epoch: &str) -> String {
    match kind {
        Kind::Explore => {
            format!("Epoch {epoch} explored, and ended before every action was estimated.")
        }
        Kind::Estimate => format!("Epoch {epoch} played what the estimates said was best."),
        Kind::Infeasible => {
            format!("In epoch {epoch} the estimates left no strategy within the thresholds.")
        }
        Kind::Commit => format!("Epoch {epoch} played one action, as it was clearly ahead."),
        Kind::Pick => format!("Epoch {epoch} played the action picked at the end of the trial."),
    }
}

/// Milliseconds since 1970 as a date and a time of day, to the minute.
pub fn time(milliseconds: i64) -> String {
    // Seconds are noise to a reader; the log has milliseconds.
    let time = utc(milliseconds);
    format!(
        "{} UTC",
        time.rsplit_once(':').map_or(&*time, |(minute, _)| minute)
    )
}

/// So many seconds as a person says it, to two digits: an estimate has no more.
pub fn duration(seconds: f64) -> String {
    let units = [
        (1.0, "second", 120.0),
        (60.0, "minute", 120.0),
        (3_600.0, "hour", 48.0),
        (86_400.0, "day", 730.0),
        (31_557_600.0, "year", 1_000.0),
    ];
    for (size, name, below) in units {
        let number = seconds / size;
        if number < below {
            let number = significant(number, 2);
            let many = if number == "1" { "" } else { "s" };
            return format!("{number} {name}{many}");
        }
    }
    // Beyond that nobody waits, and a rate of nothing takes for ever.
    "more than 1,000 years".into()
}

/// How old something is, in the largest unit that it fills: "3 d".
pub fn age(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A length of time that is known, in the two units that matter.
pub fn span(milliseconds: i64) -> String {
    // Clocks may be set back while an epoch is open.
    let milliseconds = milliseconds.max(0);
    let seconds = milliseconds / 1000;
    let pair = |large: i64, unit: &str, small: i64, part: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {part}"),
    };
    match seconds {
        0..60 => format!("{} s", amount(milliseconds as f64 / 1000.0)),
        60..3_600 => pair(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => pair(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => pair(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

/// What is said where there is no rate.
pub fn idle(last: i64) -> String {
    format!(
        "No decision in the last 10 minutes; the last one was at {}.",
        time(last)
    )
}

/// A rate, in the unit in which it is a number that one can picture.
pub fn rate(per_second: f64) -> String {
    let units = [(1.0, "a second"), (60.0, "a minute"), (3_600.0, "an hour")];
    let fits = |(size, _): &(f64, &str)| per_second * size >= 1.0;
    let (size, name) = units.into_iter().find(fits).unwrap_or((86_400.0, "a day"));
    format!("{} {name}", significant(per_second * size, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_decision_is_not_many() {
        let sentences = [1, 2_000].map(overtime);
        assert!(sentences[0].contains("1 decision was served"));
        assert!(sentences[0].ends_with("it counts for nothing."));
        assert!(sentences[1].contains("2,000 decisions were served"));
        assert!(sentences[1].ends_with("they count for nothing."));
    }

    #[test]
    fn durations_and_rates_are_as_one_says_them() {
        let spoken = [
            0.0,
            1.0,
            61.4,
            119.9,
            120.0,
            86_400.0,
            2e5,
            4e8,
            1e12,
            f64::INFINITY,
        ];
        assert_eq!(
            spoken.map(duration),
            [
                "0 seconds",
                "1 second",
                "61 seconds",
                "120 seconds",
                "2 minutes",
                "24 hours",
                "2.3 days",
                "13 years",
                "more than 1,000 years",
                "more than 1,000 years"
            ]
        );
        assert_eq!(
            [2_345.6, 12.34, 0.5, 0.001, 1e-5, 0.0].map(rate),
            [
                "2,346 a second",
                "12 a second",
                "30 a minute",
                "3.6 an hour",
                "0.86 a day",
                "0 a day"
            ]
        );
    }

    #[test]
    fn lengths_of_time_have_two_units_and_ages_one() {
        let second = 1_000;
        let lengths = [-5, 0, 1_234, 60 * second, 3_725 * second, 90_000 * second];
        assert_eq!(
            lengths.map(span),
            ["0 s", "0 s", "1.23 s", "1 min", "1 h 2 min", "1 d 1 h"]
        );
        assert_eq!(
            [-5, 1_999, 7_199_999, 172_800_000].map(age),
            ["0 s", "1 s", "119 min", "2 d"]
        );
    }

    #[test]
    fn times_are_to_the_minute() {
        assert_eq!(
            [-1, 1_794_782_470_675].map(time),
            ["1969-12-31 23:59 UTC", "2026-11-15 22:41 UTC"]
        );
    }
}
