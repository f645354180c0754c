// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading one option's value by its kind: splitting, converting, checking
//! ranges. What the value then changes is in `assign`.
//!
//! Behaviour of fio 3.33's parse.c, re-described in this crate's words: a list
//! succeeds if any of its elements does, a missing element keeps what was
//! there, and 32-bit options keep the low 32 bits.

use crate::option::{Kind, OptionSpec, Unit};
use crate::pattern;
use crate::value::{
    elements, keyword, leading_integer, percent_of, postfix, real_number, size_number, time_us,
};

/// A value read by its kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Keyword {
        word: &'static str,
        postfix: Option<&'a str>,
    },
    /// Bits of the words given, and the number after the colon.
    Multi {
        bits: u32,
        count: u32,
    },
    Numbers(Numbers),
    Zones(ZoneSized),
    Flag(bool),
    Floats(Vec<f64>),
    Ranges([Option<(u64, u64)>; 3]),
    /// Accepted without changing anything.
    Nothing,
}

/// The elements of a list of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Per direction; `None` keeps what was there.
    pub(crate) each: [Option<u64>; 3],
    /// The last element, if it is good.
    pub(crate) last: Option<u64>,
    /// The last good element.
    pub(crate) last_good: u64,
}

/// A size in bytes or percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneSized {
    Bytes(u64),
    Percent(u32),
}

/// Reads a value.
///
/// # Errors
/// What is wrong with it; the caller adds which line failed.
pub(crate) fn read<'a>(
    spec: &OptionSpec,
    value: Option<&'a str>,
    kb_base: u32,
) -> Result<Value<'a>, String> {
    let Some(text) = value else {
        return match spec.kind {
            Kind::Flag => Ok(Value::Flag(true)),
            Kind::Deprecated { refused } => deprecated(spec.name, refused),
            Kind::OptionalText => Ok(Value::Nothing),
            Kind::Text
            | Kind::Pattern { .. }
            | Kind::Int { .. }
            | Kind::Long { .. }
            | Kind::ZoneSize
            | Kind::Time { .. }
            | Kind::Bool
            | Kind::Keyword(_)
            | Kind::Multi(_)
            | Kind::Floats { .. }
            | Kind::Ranges => Err(format!("Option {} requires an argument", spec.name)),
        };
    };
    match spec.kind {
        Kind::Text | Kind::Multi(_) if text.is_empty() => {
            Err(format!("{}: needs a value", spec.name))
        }
        Kind::Text | Kind::OptionalText => Ok(Value::Text(text)),
        Kind::Pattern { with_offset } => {
            if pattern::is_pattern(text, with_offset) {
                Ok(Value::Nothing)
            } else {
                Err(format!("{}: {}", spec.name, pattern::EXPECTED))
            }
        }
        Kind::Keyword(words) => match keyword(text, words) {
            Some(word) => Ok(Value::Keyword {
                word,
                postfix: postfix(text).map(str::trim),
            }),
            None => Err(format!("{}: valid values: {}", spec.name, words.join(", "))),
        },
        Kind::Multi(words) => multi(spec.name, text, words),
        Kind::Int { .. } | Kind::Long { .. } | Kind::Time { .. } if text.ends_with('z') => {
            Err(format!("{}: 'z' suffix isn't applicable", spec.name))
        }
        Kind::Int { min, max } => numbers(text, |element| {
            let value = size_number(element, kb_base)?;
            Some(check_int(spec.name, value, min, max).map(|value| u64::from(value as u32)))
        })
        .map(Value::Numbers),
        Kind::Long { min } => numbers(text, |element| {
            let value = size_number(element, kb_base)?;
            Some(check_min(spec.name, value, min))
        })
        .map(Value::Numbers),
        Kind::Time { unit } => {
            let unit_us = if unit == Unit::Second { 1_000_000 } else { 1 };
            numbers(text, |element| time_us(element, unit_us).map(Ok)).map(Value::Numbers)
        }
        Kind::ZoneSize => zone_sized(spec.name, text, kb_base),
        Kind::Bool => numbers(text, |element| {
            let value = plain_integer(element)?;
            Some(if value > 1 {
                Err(over(spec.name, i64::from(value), 1))
            } else {
                Ok(u64::from(value != 0))
            })
        })
        .map(Value::Numbers),
        Kind::Flag => {
            let read = numbers(text, |element| {
                plain_integer(element).map(|value| Ok(u64::from(value != 0)))
            })?;
            Ok(read.each[0].map_or(Value::Nothing, |value| Value::Flag(value != 0)))
        }
        Kind::Floats { min, max, count } => floats(spec.name, text, min, max, count),
        Kind::Ranges => ranges(text, kb_base),
        Kind::Deprecated { refused } => deprecated(spec.name, refused),
    }
}

fn deprecated<'a>(name: &str, refused: bool) -> Result<Value<'a>, String> {
    if refused {
        Err(format!("Option {name} is deprecated"))
    } else {
        Ok(Value::Nothing)
    }
}

fn no_number() -> String {
    "not a number".to_owned()
}

fn over(name: &str, value: i64, max: i64) -> String {
    format!("{name}: max value out of range: {value} ({max} max)")
}

/// A number of 32 bits, hexadecimal with its prefix.
fn plain_integer(text: &str) -> Option<i32> {
    let base = if text.contains("0x") || text.contains("0X") {
        16
    } else {
        10
    };
    leading_integer(text, base).map(|value| value as i32)
}

/// Checks a number of 32 bits. The limits see it as signed; the limit of 32
/// bits itself is none: the value is cut instead.
fn check_int(name: &str, value: u64, min: i64, max: i64) -> Result<u64, String> {
    let signed = i64::from(value as i32);
    if max < i64::from(u32::MAX) && (value > max.cast_unsigned() && (min >= 0 || signed > max)) {
        return Err(over(name, value.cast_signed(), max));
    }
    if min != 0 && signed < min {
        return Err(format!(
            "{name}: min value out of range: {} ({min} min)",
            value.cast_signed()
        ));
    }
    Ok(value)
}

fn check_min(name: &str, value: u64, min: u64) -> Result<u64, String> {
    if value < min {
        Err(format!(
            "{name}: min value out of range: {value} ({min} min)"
        ))
    } else {
        Ok(value)
    }
}

/// Reads a list. Each element is not a number (`None`), out of range, or good.
fn numbers(
    text: &str,
    read: impl Fn(&str) -> Option<Result<u64, String>>,
) -> Result<Numbers, String> {
    let mut out = Numbers::default();
    let mut problem = no_number();
    let mut good = false;
    for (at, (element, more)) in elements(text).enumerate() {
        let value = match read(element) {
            None => continue,
            Some(Err(why)) => {
                problem = why;
                continue;
            }
            Some(Ok(value)) => value,
        };
        good = true;
        out.last_good = value;
        if let Some(slot) = out.each.get_mut(at) {
            *slot = Some(value);
        }
        if !more {
            out.last = Some(value);
            // Directions without an element of their own take the last one.
            for slot in out.each.iter_mut().skip(at + 1) {
                *slot = Some(value);
            }
        }
    }
    if good { Ok(out) } else { Err(problem) }
}

fn zone_sized<'a>(name: &str, text: &str, kb_base: u32) -> Result<Value<'a>, String> {
    if text.ends_with('z') && leading_integer(text, 10).is_some() {
        // A number of zones counts only on zoned devices.
        return Ok(Value::Zones(ZoneSized::Bytes(0)));
    }
    let value = numbers(text, |element| size_number(element, kb_base).map(Ok))?.last_good;
    Ok(Value::Zones(match percent_of(value) {
        Some(percent) => ZoneSized::Percent(percent),
        None if name == "io_size" && u64::MAX - value <= i32::MAX as u64 => {
            return Err("fio: io_size values greater than 100% aren't supported".to_owned());
        }
        None => ZoneSized::Bytes(value),
    }))
}

fn multi<'a>(name: &str, text: &str, words: &'static [&'static str]) -> Result<Value<'a>, String> {
    let mut bits = 0;
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let word = keyword(part, words).and_then(|word| words.iter().position(|w| *w == word));
        match word {
            Some(at) => bits |= 1 << at,
            None => return Err(format!("{name}: valid values: {}", words.join(", "))),
        }
    }
    let count = postfix(text).map_or(1, |count| leading_integer(count, 10).unwrap_or(0) as u32);
    Ok(Value::Multi { bits, count })
}

fn floats<'a>(
    name: &str,
    text: &str,
    min: f64,
    max: f64,
    count: usize,
) -> Result<Value<'a>, String> {
    let mut out = Vec::new();
    for element in text.split(':') {
        if out.len() == count {
            return Err(format!("{name}: the list exceeding max length {count}"));
        }
        let value = real_number(element)
            .ok_or_else(|| format!("{name}: not a floating point value: {element}"))?;
        if value < min || value > max {
            return Err(format!(
                "{name}: value out of range: {value} (range {min} to {max})"
            ));
        }
        out.push(value);
    }
    Ok(Value::Floats(out))
}

fn ranges<'a>(text: &str, kb_base: u32) -> Result<Value<'a>, String> {
    let mut out = [None; 3];
    let mut good = false;
    let mut parts = text.split(',').enumerate().peekable();
    while let Some((at, part)) = parts.next() {
        let Some((a, b)) = part.split_once('-').or_else(|| part.split_once(':')) else {
            continue;
        };
        let (Some(a), Some(b)) = (size_number(a, kb_base), size_number(b, kb_base)) else {
            continue;
        };
        let range = (a.min(b), a.max(b));
        if range.0 == 0 {
            return Err("a range must begin above 0".to_owned());
        }
        good = true;
        let end = if parts.peek().is_none() { 3 } else { at + 1 };
        for slot in out.iter_mut().take(end).skip(at) {
            *slot = Some(range);
        }
    }
    if good {
        Ok(Value::Ranges(out))
    } else {
        Err("not a range a-b".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::option::find;

    fn value(line: &str) -> Result<Value<'_>, String> {
        let (name, value) = line
            .split_once('=')
            .map_or((line, None), |(name, value)| (name, Some(value)));
        read(find(name).expect("known option"), value, 1024)
    }

    fn each(line: &str) -> [Option<u64>; 3] {
        match value(line) {
            Ok(Value::Numbers(numbers)) => numbers.each,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn lists_fill_the_directions_that_follow_the_last_element() {
        assert_eq!(each("bs=8k"), [Some(8192); 3]);
        assert_eq!(each("bs=4k,8k"), [Some(4096), Some(8192), Some(8192)]);
        assert_eq!(each("bs=,8k"), [None, Some(8192), Some(8192)]);
        assert_eq!(each("bs=8k,"), [Some(8192), None, None]);
        assert_eq!(each("bs=1k-2k"), [Some(1024), Some(2048), Some(2048)]);
    }

    #[test]
    fn limits() {
        assert_eq!(
            value("randrepeat=3"),
            Err("randrepeat: max value out of range: 3 (1 max)".into())
        );
        assert_eq!(
            value("bs=0"),
            Err("bs: min value out of range: 0 (1 min)".into())
        );
        assert_eq!(each("iodepth=4294967298")[0], Some(2));
        assert!(value("nrfiles").is_err());
        assert_eq!(value("norandommap"), Ok(Value::Flag(true)));
        assert_eq!(value("norandommap=0"), Ok(Value::Flag(false)));
        assert!(value("percentile_list=1:2:x").is_err());
        assert!(value("rwmixcycle=1").is_err());
        assert_eq!(value("verifysort=1"), Ok(Value::Nothing));
    }

    #[test]
    fn ranges_are_ordered_and_filled() {
        let range = Some((4096, 8192));
        assert_eq!(value("bsrange=8k-4k"), Ok(Value::Ranges([range; 3])));
        assert_eq!(
            value("bsrange=,4k-8k"),
            Ok(Value::Ranges([None, range, range]))
        );
        assert_eq!(
            value("bsrange=4k:8k,"),
            Ok(Value::Ranges([range, None, None]))
        );
        assert!(value("bsrange=4k").is_err());
    }

    #[test]
    fn sizes_in_percent() {
        assert_eq!(value("size=30%"), Ok(Value::Zones(ZoneSized::Percent(30))));
        assert_eq!(
            value("size=1m,2m"),
            Ok(Value::Zones(ZoneSized::Bytes(2 << 20)))
        );
        assert!(value("io_size=200%").is_err());
        assert_eq!(value("size=3z"), Ok(Value::Zones(ZoneSized::Bytes(0))));
        assert!(value("bs=3z").is_err());
    }
}
