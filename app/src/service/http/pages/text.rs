//! An experiment's state in words.

use debora::job::words::{counted, whole};
use debora::record::Kind;

use crate::service::http::state::State;
use crate::store::Status;

/// A status as a word, which is also its class.
pub fn word(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Paused => "paused",
        Status::Closed => "closed",
        Status::Done => "done",
    }
}

/// Where it stands, first things first.
pub fn sentences(state: &State) -> Vec<String> {
    let (decided, horizon) = (whole(state.decided), whole(state.horizon));
    let outstanding = counted(state.outstanding, "outcome is", "outcomes are");
    let first = match state.status {
        Status::Running if state.waiting => {
            format!("Waiting: all rounds of epoch {} are decided, and {outstanding} outstanding.", whole(state.epoch))
        }
        Status::Running => {
            format!("Running: {decided} of {horizon} rounds are decided, and {outstanding} outstanding.")
        }
        Status::Paused => format!(
            "Paused after {decided} of {horizon} rounds: outcomes are taken ({outstanding} outstanding), and nothing is \
             decided until it is resumed."
        ),
        Status::Closed => format!("Closed after {decided} of {horizon} rounds; nothing changes any more."),
        Status::Done => format!("Done: all {horizon} rounds are decided and told."),
    };
    let mut sentences = vec![first, epoch(state)];
    if state.imputed > 0 {
        let late = counted(state.late, "came later and is", "came later and are");
        sentences.push(format!(
            "{} did not come in time and {} imputed; {late} logged, and {} nothing.",
            counted(state.imputed, "outcome", "outcomes"),
            if state.imputed == 1 { "was" } else { "were" },
            if state.late == 1 { "changes" } else { "change" },
        ));
    }
    if state.overtime > 0 {
        let served = counted(state.overtime, "decision was", "decisions were");
        sentences.push(format!("While epochs waited, {served} served outside the horizon; they count for nothing."));
    }
    sentences
}

fn epoch(state: &State) -> String {
    let epoch = whole(state.epoch);
    match state.kind {
        Kind::Explore => format!("Epoch {epoch} explores: not every action is estimated yet."),
        Kind::Estimate => format!("Epoch {epoch} plays what the estimates say is best."),
        Kind::Infeasible => format!("In epoch {epoch} the estimates leave no strategy within the thresholds."),
    }
}

/// Milliseconds since 1970 as a date and a time of day.
pub fn time(milliseconds: i64) -> String {
    let (days, seconds) = (milliseconds.div_euclid(86_400_000), milliseconds.rem_euclid(86_400_000) / 1_000);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3_600, seconds / 60 % 60)
}

/// The date that many days after 1970-01-01. Counted in years from March, so that leap days come last, and in eras of 400
/// years, which are all alike.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (400 * era + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let times = [0, -1, 951_782_400_000, 1_709_164_799_000, 1_794_782_470_675].map(time);
        let expected =
            ["1970-01-01 00:00", "1969-12-31 23:59", "2000-02-29 00:00", "2024-02-28 23:59", "2026-11-15 22:41"];
        assert_eq!(times, expected.map(|time| format!("{time} UTC")));
    }

    /// Every day of eight centuries follows the one before, by the rule of the calendar.
    #[test]
    fn days_follow_one_another() {
        let length = |year: i64, month: i64| match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let (mut year, mut month, mut day) = date(-146_097);
        for days in -146_096..146_097 {
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                _ if day == length(year, month) => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
            assert_eq!(date(days), (year, month, day), "{days}");
        }
    }
}
