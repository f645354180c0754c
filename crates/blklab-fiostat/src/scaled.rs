// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers with a unit prefix, as fio 3.33 prints amounts and rates.
//!
//! The number is divided by 1000 or 1024 until its whole part fits the digits
//! asked for; what room is left is used for decimals. Measured on fio 3.33.

use crate::Units;

/// The unit behind a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    None,
    Bytes,
    BytesPerSecond,
    /// Of a number given in bytes per second.
    BitsPerSecond,
}

const POWERS_OF_1024: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const POWERS_OF_1000: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// `number` in at most `digits` digits, with prefixes of 1024 or 1000.
pub(crate) fn scaled(number: u64, digits: usize, of_1024: bool, unit: Unit) -> String {
    scaled_from(0, number, digits, of_1024, unit)
}

/// The same of a number that already counts thousands to this power.
fn scaled_from(mut power: usize, number: u64, digits: usize, of_1024: bool, unit: Unit) -> String {
    let (step, prefixes) = if of_1024 {
        (1024, POWERS_OF_1024)
    } else {
        (1000, POWERS_OF_1000)
    };
    let name = unit_name(unit);
    let mut whole = match unit {
        Unit::BitsPerSecond => number.saturating_mul(8),
        _ => number,
    };
    let mut rest = None;
    while digits_of(whole) > digits && power + 1 < prefixes.len() {
        rest = Some(whole % step);
        whole /= step;
        power += 1;
    }
    let prefix = prefixes[power];
    let Some(rest) = rest else {
        return format!("{whole}{prefix}{name}");
    };
    // A point takes the place of one digit.
    match digits.saturating_sub(digits_of(whole) + 1) {
        0 => {
            let rounded = whole + u64::from(rest >= step / 2);
            format!("{rounded}{prefix}{name}")
        }
        decimals => {
            let value = whole as f64 + rest as f64 / step as f64;
            format!("{value:.decimals$}{prefix}{name}")
        }
    }
}

fn digits_of(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::None => "",
        Unit::Bytes => "B",
        Unit::BytesPerSecond => "B/s",
        Unit::BitsPerSecond => "bit/s",
    }
}

impl Units {
    pub(crate) fn binary(&self) -> bool {
        self.kb_base.is_power_of_two()
    }

    /// An amount of bytes in the main and in the other kind of prefix.
    pub(crate) fn amount(&self, bytes: u64) -> (String, String) {
        self.both(0, bytes, Unit::Bytes)
    }

    /// A rate in the main and in the other kind of prefix.
    pub(crate) fn rate(&self, bytes_per_s: u64) -> (String, String) {
        self.both(0, bytes_per_s, self.rate_unit())
    }

    /// A rate in multiples of `kb_base` bytes per second. As in fio, both kinds
    /// of prefix begin with that same number.
    pub(crate) fn rate_of_units(&self, units_per_s: u64) -> (String, String) {
        self.both(1, units_per_s, self.rate_unit())
    }

    fn rate_unit(&self) -> Unit {
        if self.bits {
            Unit::BitsPerSecond
        } else {
            Unit::BytesPerSecond
        }
    }

    fn both(&self, power: usize, number: u64, unit: Unit) -> (String, String) {
        let digits = self.significant_figures;
        let binary = self.binary();
        (
            scaled_from(power, number, digits, binary, unit),
            scaled_from(power, number, digits, !binary, unit),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected texts were printed by fio 3.33 as the `io=` of runs of that size.
    #[test]
    fn amounts() {
        let check = |kib: u64, digits, expected: &str| {
            let bytes = kib * 1024;
            let binary = scaled(bytes, digits, true, Unit::Bytes);
            let decimal = scaled(bytes, digits, false, Unit::Bytes);
            assert_eq!(
                format!("{binary} ({decimal})"),
                expected,
                "{kib}k in {digits} digits"
            );
        };
        check(12_251, 4, "12.0MiB (12.5MB)");
        check(12_251, 1, "0GiB (0GB)");
        check(12_251, 2, "12MiB (13MB)");
        check(12_251, 6, "12251KiB (12545kB)");
        check(12_251, 9, "12545024B (12545024B)");
        check(1_023, 1, "1MiB (1MB)");
        check(1_023, 6, "1023.0KiB (1047.6kB)");
        check(1_000, 4, "1000KiB (1024kB)");
        check(999, 6, "999.00KiB (1023.0kB)");
        check(10_235, 4, "10.00MiB (10.5MB)");
        check(10_235, 1, "10MiB (0GB)");
        check(9_999, 6, "9999.0KiB (10239kB)");
        check(99_999, 4, "97.7MiB (102MB)");
        check(99_999, 2, "98MiB (0GB)");
        check(102_399, 4, "100.0MiB (105MB)");
        check(123_456, 4, "121MiB (126MB)");
    }

    /// Printed by fio 3.33 as the bandwidths of steady states.
    #[test]
    fn rates_of_units() {
        let shown = |kb_base, bits, bw: u64| {
            let units = Units {
                kb_base,
                bits,
                ..Units::default()
            };
            units.rate_of_units(bw / kb_base)
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(shown(1024, false, 8_197_124), pair("8005KiB/s", "8005kB/s"));
        assert_eq!(
            shown(1000, false, 31_386_832_001),
            pair("31.4GB/s", "29.9GiB/s")
        );
    }

    #[test]
    fn rates() {
        assert_eq!(
            scaled(67_720_533, 4, true, Unit::BytesPerSecond),
            "64.6MiB/s"
        );
        assert_eq!(
            scaled(67_720_533, 4, false, Unit::BytesPerSecond),
            "67.7MB/s"
        );
        assert_eq!(
            scaled(1_048_576_000, 4, true, Unit::BitsPerSecond),
            "8000Mibit/s"
        );
        assert_eq!(
            scaled(1_048_576_000, 4, false, Unit::BitsPerSecond),
            "8389Mbit/s"
        );
        assert_eq!(scaled(16_533, 4, false, Unit::None), "16.5k");
        assert_eq!(scaled(0, 4, true, Unit::Bytes), "0B");
        assert_eq!(scaled(u64::MAX, 1, true, Unit::Bytes), "16EiB");
    }
}
