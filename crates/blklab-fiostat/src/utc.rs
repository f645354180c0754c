// SPDX-License-Identifier: MIT OR Apache-2.0
//! Universal time as text. fio prints local time; a result here does not depend
//! on where it was made.

/// Universal time in the form of C's `ctime`, without a line feed.
pub(crate) fn utc_time_text(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let days = seconds / 86_400;
    let (year, month, day) = civil_from_days(days);
    let (week_day, month) = (DAYS[(days % 7) as usize], MONTHS[month]);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{week_day} {month} {day:2} {h:02}:{m:02}:{s:02} {year}")
}

/// Year, month (0 = January) and day of a number of days since 1970-01-01.
///
/// Years are taken to begin in March, so that the leap day comes last; 146097
/// days are 400 years, and the months from March follow 153 days in 5 months.
fn civil_from_days(days: u64) -> (u64, usize, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);
    (year, month as usize, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let check = |seconds, text: &str| assert_eq!(utc_time_text(seconds), text);
        check(0, "Thu Jan  1 00:00:00 1970");
        check(951_782_400, "Tue Feb 29 00:00:00 2000");
        check(951_868_799, "Tue Feb 29 23:59:59 2000");
        check(951_868_800, "Wed Mar  1 00:00:00 2000");
        check(1_795_297_105, "Sat Nov 21 21:38:25 2026");
        check(4_107_542_400, "Mon Mar  1 00:00:00 2100");
    }
}
