// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers as people write them: `500ms` where milliseconds count, `64m` where bytes do.

use blklab_types::{Error, Unit, shown};

/// Names of times, in ns.
const TIMES: [(&str, i64); 5] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("cs", 10_000_000),
    ("s", 1_000_000_000),
];

/// A whole number of a unit: plain, or with a suffix of a time or a size.
///
/// # Errors
/// If it is none, or the suffix does not fit: a line.
pub(crate) fn amount(name: &str, unit: Unit, value: &str) -> Result<i64, Error> {
    if let Ok(number) = value.parse() {
        return Ok(number);
    }
    let bad = |what: String| Error::new(format!("{name}={}: {what}", shown(value)));
    let (in_base, per_unit, example) = match unit {
        Unit::S => (time(value), 1_000_000_000, "30s"),
        Unit::Centisecs => (time(value), 10_000_000, "5s"),
        Unit::Ms => (time(value), 1_000_000, "500ms"),
        Unit::Us => (time(value), 1_000, "500us"),
        Unit::Ns => (time(value), 1, "2ms"),
        Unit::Bytes | Unit::BytesPerS => (size(value), 1, "64m"),
        Unit::KiB => (size(value), 1 << 10, "128k"),
        Unit::MiB => (size(value), 1 << 20, "64m"),
        Unit::GiB => (size(value), 1 << 30, "4g"),
        Unit::Sectors => (size(value), 512, "64k"),
        _ => return Err(bad("the value is not a whole number".to_owned())),
    };
    let Some(in_base) = in_base else {
        let what = format!("the value is not a whole number ({unit}), nor written like {example}");
        return Err(bad(what));
    };
    if in_base % per_unit != 0 {
        return Err(bad(format!("it counts whole {unit}")));
    }
    Ok(in_base / per_unit)
}

/// A size with an optional suffix k, m, g, t (powers of 1024), in bytes.
///
/// # Errors
/// If it is no size.
pub fn parse_size(text: &str) -> Result<u64, Error> {
    let bad = || {
        Error::new(format!(
            "'{}' is not a size; write it like 2g, 512m or 8589934592",
            shown(text)
        ))
    };
    let lower = text.to_ascii_lowercase();
    let body = lower
        .strip_suffix("ib")
        .or(lower.strip_suffix('b'))
        .unwrap_or(&lower);
    let (digits, shift) = match body.char_indices().last() {
        Some((i, 'k')) => (&body[..i], 10),
        Some((i, 'm')) => (&body[..i], 20),
        Some((i, 'g')) => (&body[..i], 30),
        Some((i, 't')) => (&body[..i], 40),
        _ => (body, 0),
    };
    let n: u64 = digits.parse().map_err(|_| bad())?;
    n.checked_mul(1 << shift).ok_or_else(bad)
}

/// A number with the name of a time, in ns.
fn time(value: &str) -> Option<i64> {
    let at = value.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, suffix) = value.split_at(at);
    let (_, ns) = TIMES.iter().find(|(name, _)| *name == suffix)?;
    digits.parse::<i64>().ok()?.checked_mul(*ns)
}

/// A size with a suffix, in bytes.
fn size(value: &str) -> Option<i64> {
    i64::try_from(parse_size(value).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_taken_in_the_unit_that_counts() {
        let taken = |unit, value| amount("x", unit, value).expect("sound");
        assert_eq!(taken(Unit::Ms, "500"), 500);
        assert_eq!(taken(Unit::Ms, "500ms"), 500);
        assert_eq!(taken(Unit::Ms, "2s"), 2000);
        assert_eq!(taken(Unit::Ns, "2ms"), 2_000_000);
        assert_eq!(taken(Unit::Centisecs, "30s"), 3000);
        assert_eq!(taken(Unit::Bytes, "64m"), 64 << 20);
        assert_eq!(taken(Unit::KiB, "1m"), 1024);
        assert_eq!(taken(Unit::Sectors, "64k"), 128);
        assert_eq!(taken(Unit::Count, "-3"), -3);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let told = |unit, value| amount("x", unit, value).expect_err("refused").what;
        assert_eq!(
            told(Unit::Count, "4k"),
            "x=4k: the value is not a whole number"
        );
        assert_eq!(told(Unit::Ms, "500us"), "x=500us: it counts whole ms");
        assert!(told(Unit::Ms, "5m").ends_with("nor written like 500ms"));
        assert!(told(Unit::Bytes, "5ms").ends_with("nor written like 64m"));
        assert!(told(Unit::S, "99999999999999999s").contains("nor written like"));
    }
}
