//! Times: milliseconds since 1970 in records, RFC 3339 in requests and replies.

use std::time::{SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since 1970, UTC. A clock before 1970 reads as 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// As RFC 3339 writes it, in UTC, always with three digits after the second: such times sort as they read. Times
/// beyond the year 9999 read as 1970.
pub(crate) fn rfc3339(millis: u64) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let ((year, month, day), (hour, minute, second, millisecond)) =
        (at.to_calendar_date(), at.to_hms_milli());
    let month = u8::from(month);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

/// The milliseconds since 1970 of a time that is written as RFC 3339 says; finer parts are cut off.
pub(crate) fn millis(text: &str) -> Option<u64> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

/// A stretch of time, from its first millisecond to before its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    since: u64,
    until: Option<u64>,
}

impl Period {
    /// Reads `since`, which is inside, and `until`, which is not; or says what is wrong with them.
    pub(crate) fn read(since: Option<&str>, until: Option<&str>) -> Result<Self, String> {
        let read = |name: &str, text: Option<&str>| {
            let at = |text| {
                first_millisecond(text).ok_or_else(|| {
                    format!(
                        "{name} must be a time like 2026-01-31T12:00:00Z or 2026-01-31T12:00:00.5+02:00, or a \
                         day like 2026-01-31; without an offset it is UTC"
                    )
                })
            };
            text.map(at).transpose()
        };
        let (since, until) = (read("since", since)?, read("until", until)?);
        if since.zip(until).is_some_and(|(since, until)| since >= until) {
            return Err("since must be before until: nothing is between the two".into());
        }
        Ok(Self { since: since.unwrap_or_default(), until })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.since == 0 && self.until.is_none()
    }

    pub(crate) fn holds(&self, millis: u64) -> bool {
        self.since <= millis && self.until.is_none_or(|until| millis < until)
    }
}

/// The first millisecond that is not before this time: records know no finer time.
fn first_millisecond(text: &str) -> Option<u64> {
    let whole = match text.split_once(['T', 't', ' ']) {
        None => format!("{text}T00:00:00Z"),
        Some((day, clock)) if clock.ends_with(['Z', 'z']) || clock.contains(['+', '-']) => {
            format!("{day}T{clock}")
        }
        Some((day, clock)) => format!("{day}T{clock}Z"),
    };
    let nanos = OffsetDateTime::parse(&whole, &Rfc3339).ok()?.unix_timestamp_nanos();
    // Before 1970 there is nothing.
    let nanos = u128::try_from(nanos).unwrap_or_default();
    Some(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_with_and_without_fraction_and_offset() {
        for (text, millis) in [
            ("1970-01-01T00:00:01Z", 1_000),
            ("1970-01-01T00:00:01", 1_000),
            ("1970-01-01t00:00:01.5z", 1_500),
            ("1970-01-01T02:00:01.25+02:00", 1_250),
            ("1969-12-31T23:00:01-01:00", 1_000),
            ("1970-01-01T00:00:01.0000001Z", 1_001),
            ("1970-01-02", 86_400_000),
            ("1960-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(first_millisecond(text), Some(millis), "{text}");
        }
        for text in
            ["", "T", "yesterday", "12:00", "2026-13-01", "2026-01-31T25:00:00Z", "2026-01-31T12", "\u{e9}T"]
        {
            assert_eq!(first_millisecond(text), None, "{text}");
        }
        assert_eq!(first_millisecond(&rfc3339(1_700_000_000_123)), Some(1_700_000_000_123));
    }

    #[test]
    fn since_is_inside_a_period_and_until_is_not() {
        let period = |since, until| Period::read(since, until);
        let second = period(Some("1970-01-01T00:00:01Z"), Some("1970-01-01T00:00:02Z")).unwrap();
        let inside: Vec<_> = [999, 1_000, 1_999, 2_000].into_iter().filter(|at| second.holds(*at)).collect();
        assert_eq!(inside, [1_000, 1_999]);
        let all = period(None, None).unwrap();
        assert!(all.is_everything() && all.holds(0) && all.holds(u64::MAX) && !second.is_everything());
        assert!(period(Some("1970-01-02"), Some("1970-01-02")).is_err());
        assert!(
            period(Some("never"), None).is_err_and(|problem| problem.starts_with("since must be a time"))
        );
    }

    #[test]
    fn times_are_written_in_utc_always_with_three_digits_after_the_second() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_700_000_000_120), "2023-11-14T22:13:20.120Z");
        assert_eq!(rfc3339(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(rfc3339(u64::MAX), "1970-01-01T00:00:00.000Z");
    }
}
