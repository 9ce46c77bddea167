//! Times: milliseconds since 1970, and for people date and time of day, UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// What time it is.
pub fn now() -> i64 {
    // A clock before 1970 is not set at all: 0 says so, and delays what waits for it.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_millis() as i64)
}

/// Milliseconds since 1970 as a date and a time.
pub fn utc(milliseconds: i64) -> String {
    let seconds = milliseconds.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Milliseconds since 1970 as ISO 8601 writes a time, with all that is known of it.
pub fn iso(milliseconds: i64) -> String {
    let time = utc(milliseconds).replace(' ', "T");
    format!("{time}.{:03}Z", milliseconds.rem_euclid(1000))
}

/// The Gregorian date this many days after 1970-01-01. Counted from 1 March of year 0, the leap day ends its year, and months
/// start at day floor((153 m + 2) / 5) of it.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    // There are 719,468 days from 0000-03-01 to 1970-01-01.
    let days = days + 719_468;
    let cycle = days.div_euclid(DAYS_IN_400_YEARS);
    let day = days.rem_euclid(DAYS_IN_400_YEARS);
    // Without its leap days a cycle is 400 years of 365 days. The first leap day is day 1,460; the first century, which ends
    // without one, has 36,524 days; the last day of the cycle, 146,096, is one again.
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (400 * cycle + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(iso(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(iso(1_794_780_282_007), "2026-11-15T22:04:42.007Z");
        assert_eq!(utc(-1), "1969-12-31 23:59:59");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(utc(1_794_780_282_999), "2026-11-15 22:04:42");
        assert_eq!(utc(4_107_542_400_000), "2100-03-01 00:00:00");
    }

    /// Every day from 1600 to 2400 follows the one before, by the calendar's own rule.
    #[test]
    fn days_follow_each_other() {
        let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let (mut year, mut month, mut day) = (1600, 1, 1);
        for days in -135_140..157_054 {
            assert_eq!(date(days), (year, month, day));
            let last = [
                31,
                28 + i64::from(leap(year)),
                31,
                30,
                31,
                30,
                31,
                31,
                30,
                31,
                30,
                31,
            ][month as usize - 1];
            (day, month) = if day < last {
                (day + 1, month)
            } else {
                (1, month + 1)
            };
            (month, year) = if month <= 12 {
                (month, year)
            } else {
                (1, year + 1)
            };
        }
    }
}
