//! Times as entries carry them: ISO 8601 in UTC with milliseconds.

use pi_ai::Timestamp;

const MILLIS_PER_DAY: u64 = 86_400_000;
/// The last millisecond of the year 9999, after which the year has more than four digits.
const LAST_MILLIS: u64 = 253_402_300_799_999;

/// `2023-11-14T22:13:20.000Z`.
pub(crate) fn iso(time: Timestamp) -> String {
    let millis = time.as_millis().min(LAST_MILLIS);
    let (year, month, day) = date_of(millis / MILLIS_PER_DAY);
    let in_day = millis % MILLIS_PER_DAY;
    let (hour, minute, second) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1000 % 60);
    // Without the formatter, which costs more than the rest of a line's beginning.
    let mut text = String::with_capacity(24);
    let parts = [
        (year, 1000, '-'),
        (month, 10, '-'),
        (day, 10, 'T'),
        (hour, 10, ':'),
        (minute, 10, ':'),
        (second, 10, '.'),
        (in_day % 1000, 100, 'Z'),
    ];
    for (number, first_digit, end) in parts {
        let mut digit = first_digit;
        while digit > 0 {
            text.push(char::from(b'0' + (number / digit % 10) as u8));
            digit /= 10;
        }
        text.push(end);
    }
    text
}

/// The time that a text says; `None` when it is none. Times before 1970 count as 1970.
pub(crate) fn parse_iso(text: &str) -> Option<Timestamp> {
    parse_usual(text.as_bytes()).or_else(|| {
        let time: jiff::Timestamp = text.parse().ok()?;
        Some(Timestamp::from_millis(time.as_millisecond().try_into().unwrap_or(0)))
    })
}

/// The one form that writers use, read without a general parser: a session has tens of thousands of them.
fn parse_usual(text: &[u8]) -> Option<Timestamp> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let punctuation = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if punctuation.iter().any(|(at, wanted)| text[*at] != *wanted) {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to]
            .iter()
            .try_fold(0u64, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    // Leap days are rare enough for the general parser.
    let last_day = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].get((month as usize).checked_sub(1)?)?;
    let plausible = year >= 1970 && (1..=*last_day).contains(&day);
    if !plausible || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let in_day = ((hour * 60 + minute) * 60 + second) * 1000 + number(20, 23)?;
    Some(Timestamp::from_millis(days_of(year, month, day) * MILLIS_PER_DAY + in_day))
}

/// The days from 1970-01-01 to a date of the Gregorian calendar, counted in years that begin in March.
fn days_of(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_of`].
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_usual_form_is_read_and_written() {
        let time = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(iso(time), "2023-11-14T22:13:20.000Z");
        assert_eq!(parse_iso("2023-11-14T22:13:20.000Z"), Some(time));
    }

    #[test]
    fn other_forms_and_ends_of_months_are_read() {
        let read = |text| parse_iso(text).map(Timestamp::as_millis);
        assert_eq!(read("2024-02-29T00:00:00.000Z"), Some(1_709_164_800_000));
        assert_eq!(read("2023-02-29T00:00:00.000Z"), None);
        assert_eq!(read("2023-11-14T23:13:20+01:00"), Some(1_700_000_000_000));
        assert_eq!(read("1931-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(read("yesterday"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(millis in 0..=LAST_MILLIS) {
            let time = Timestamp::from_millis(millis);
            let text = iso(time);
            prop_assert_eq!(parse_iso(&text), Some(time));
            let by_jiff: jiff::Timestamp = text.parse().unwrap();
            prop_assert_eq!(by_jiff.as_millisecond() as u64, millis);
        }
    }
}
