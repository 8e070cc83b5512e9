//! The formats of texts that are checked.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A format of the `format` keyword.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Format {
    Date,
    Time,
    DateTime,
    Duration,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Uri,
    Uuid,
}

impl Format {
    /// `None` for a format that is not checked.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Date,
            "time" => Self::Time,
            "date-time" => Self::DateTime,
            "duration" => Self::Duration,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "uri" | "url" => Self::Uri,
            "uuid" => Self::Uuid,
            _ => return None,
        })
    }

    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Date => is_date(text),
            Self::Time => is_time(text),
            Self::DateTime => text.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && is_time(time)),
            Self::Duration => is_duration(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Uri => is_uri(text),
            Self::Uuid => is_uuid(text),
        }
    }
}

/// A number of exactly this many digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut part = |count| digits(parts.next()?, count);
    let (Some(year), Some(month), Some(day)) = (part(4), part(2), part(2)) else { return false };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    parts.next().is_none() && (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    let Some((clock, zone)) = text.find(['Z', 'z', '+', '-']).map(|at| text.split_at(at)) else { return false };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let Some([hour, minute, second]) = clock_parts(clock) else { return false };
    let offset = match zone.split_at(1) {
        ("Z" | "z", "") => Some(0),
        (sign, zone) => clock_parts(zone).filter(|[hour, minute]| *hour < 24 && *minute < 60).map(|[hour, minute]| {
            let minutes = i64::from(hour * 60 + minute);
            if sign == "-" { -minutes } else { minutes }
        }),
    };
    let Some(offset) = offset else { return false };
    // A leap second stands at the end of a day in UTC.
    let minute_of_day = (i64::from(hour * 60 + minute) - offset).rem_euclid(24 * 60);
    hour < 24 && minute < 60 && (second < 60 || second == 60 && minute_of_day == 24 * 60 - 1)
}

/// `hh:mm:ss` or `hh:mm`, by the length asked for.
fn clock_parts<const N: usize>(text: &str) -> Option<[u32; N]> {
    let parts: Vec<u32> = text.split(':').map(|part| digits(part, 2)).collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// ISO 8601: units in order of size and without gaps, or weeks alone.
fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else { return false };
    if let Some(weeks) = rest.strip_suffix('W') {
        return !weeks.is_empty() && weeks.bytes().all(|byte| byte.is_ascii_digit());
    }
    match rest.split_once('T') {
        Some(("", time)) => has_units(time, "HMS"),
        Some((date, time)) => has_units(date, "YMD") && has_units(time, "HMS"),
        None => has_units(rest, "YMD"),
    }
}

fn has_units(text: &str, units: &str) -> bool {
    let mut next: Option<usize> = None;
    let mut rest = text;
    while !rest.is_empty() {
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = rest[count..].chars().next().and_then(|unit| units.find(unit));
        match unit {
            Some(unit) if count > 0 && next.is_none_or(|next| next == unit) => next = Some(unit + 1),
            _ => return false,
        }
        rest = &rest[count + 1..];
    }
    next.is_some()
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_atom = |atom: &str| {
        !atom.is_empty() && atom.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&b))
    };
    let quoted = local.len() >= 2 && local.starts_with('"') && local.ends_with('"');
    let local_holds = match quoted {
        true => !local[1..local.len() - 1].replace("\\\\", "").replace("\\\"", "").contains(['"', '\\']),
        false => local.split('.').all(is_atom),
    };
    let literal = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']'));
    let domain_holds = match literal {
        Some(address) => match address.strip_prefix("IPv6:") {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => address.parse::<Ipv4Addr>().is_ok(),
        },
        None => domain.split('.').all(is_label),
    };
    local_holds && domain_holds
}

fn is_hostname(text: &str) -> bool {
    !text.is_empty() && text.len() <= 253 && text.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// A scheme, then only characters that a URI may hold.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme_holds = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let mut bytes = rest.bytes();
    while let Some(byte) = bytes.next() {
        let holds = match byte {
            b'%' => {
                [bytes.next(), bytes.next()].iter().flatten().filter(|digit| digit.is_ascii_hexdigit()).count() == 2
            }
            _ => byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte),
        };
        if !holds {
            return false;
        }
    }
    scheme_holds && rest.matches('#').count() <= 1
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let mut parts = text.split('-');
    lengths.iter().all(|length| {
        parts.next().is_some_and(|part| part.len() == *length && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
    }) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_what_they_name() {
        let cases: [(&str, &[&str], &[&str]); 10] = [
            (
                "date",
                &["2024-02-29", "2000-02-29"],
                &["2023-02-29", "1900-02-29", "2024-13-01", "2024-1-01", "2024-01-01Z", "2024-01-00"],
            ),
            (
                "time",
                &["12:00:00Z", "23:59:60Z", "12:00:00.123+02:00", "01:59:60+02:00"],
                &["12:00:00", "24:00:00Z", "12:00Z", "12:00:00.Z", "12:00:60Z", "12:00:00+2:00", "é"],
            ),
            (
                "date-time",
                &["2024-01-31T12:00:00Z", "2024-01-31t12:00:00-07:00"],
                &["2024-01-31 12:00:00Z", "2024-01-31T12:00:00", "2024-01-31"],
            ),
            (
                "duration",
                &["P1Y2M3D", "PT1H30M", "P1DT12H", "P3W"],
                &["P", "PT", "P1", "1D", "P1DT", "P1Y3D", "P1S", "P1W2D", "P1é"],
            ),
            (
                "email",
                &["a@b.c", "first.last+tag@example.org", "\"a b\"@x", "a@[127.0.0.1]"],
                &["a", "@b", "a@", "a..b@c", "a@-b", "a b@c"],
            ),
            ("hostname", &["localhost", "a-b.example"], &["", "-a", "a_b", "a..b", "a."]),
            ("ipv4", &["127.0.0.1"], &["256.0.0.1", "1.2.3", "01.2.3.4"]),
            ("ipv6", &["::1", "2001:db8::ff00:42:8329", "::ffff:1.2.3.4"], &["1::2::3", "12345::", "127.0.0.1"]),
            (
                "uri",
                &["https://example.com/a?b=c#d", "mailto:a@b", "urn:x:y", "http://[::1]/%20"],
                &["example.com", "/path", "http://a b", "http://x/%2", "http://é", "1x:y", "a#b#c"],
            ),
            (
                "uuid",
                &["123e4567-e89b-12d3-a456-426614174000"],
                &[
                    "123e4567e89b12d3a456426614174000",
                    "123e4567-e89b-12d3-a456-42661417400g",
                    "123e4567-e89b-12d3-a456-426614174000-",
                ],
            ),
        ];
        for (name, good, bad) in cases {
            let format = Format::from_name(name).unwrap();
            for text in good {
                assert!(format.accepts(text), "{name}: {text}");
            }
            for text in bad {
                assert!(!format.accepts(text), "{name}: {text}");
            }
        }
        assert_eq!(Format::from_name("uint32"), None);
    }
}
