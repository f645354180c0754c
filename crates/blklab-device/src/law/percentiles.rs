// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times that differ from command to command: percentiles, and straight lines between them.
//!
//! As text `0:500,50:850,99:4000,100:30000`: percents, ascending from 0 to 100, and
//! thousandths of the usual time, which do not fall. Which place a command has between 0
//! and 100 is a hash of its number, so that a run repeats on every machine.

use crate::error::DeviceError;
use crate::param::Values;
use blklab_types::{Span, SplitMix64};
use std::sync::Arc;

/// Millionths of all commands.
const ALL: u64 = 1_000_000;

/// How the times of commands are spread.
#[derive(Clone, Debug)]
pub(super) struct Percentiles {
    /// Millionths of all commands, and thousandths of the usual time that these take at
    /// most, both ascending. Empty: all take the usual time.
    points: Arc<[(u64, u64)]>,
    /// Commands so far.
    served: u64,
    /// Tells reads and writes apart.
    salt: u64,
}

impl Percentiles {
    /// Those of a parameter.
    ///
    /// # Errors
    /// If it is no such list.
    pub(super) fn of_param(
        values: &Values,
        name: &'static str,
        salt: u64,
    ) -> Result<Percentiles, DeviceError> {
        let text = values.text(name).trim();
        let points = if text.is_empty() {
            Some(Vec::new())
        } else {
            parse(text)
        };
        let points = points.ok_or_else(|| {
            values.bad(
                name,
                "percents from 0 to 100, each with thousandths of the usual time, ascending, as in \
                 0:500,50:850,99:4000,100:30000"
                    .into(),
            )
        })?;
        Ok(Percentiles {
            points: points.into(),
            served: 0,
            salt,
        })
    }

    /// What the next command takes of which the usual time is this.
    pub(super) fn next(&mut self, usual: Span) -> Span {
        let at = SplitMix64(0).nth(self.served ^ self.salt) % ALL;
        self.served += 1;
        let Some(pair) = self.points.windows(2).find(|pair| at < pair[1].0) else {
            return usual;
        };
        let [(from, low), (to, high)] = [pair[0], pair[1]];
        let above = u128::from(high - low) * u128::from(at - from);
        // In 10^-9 of the usual time, so that nothing is lost between two points.
        let part = u128::from(low) * 1_000_000 + above * 1_000_000 / u128::from(to - from);
        Span((u128::from(usual.ns()) * part / 1_000_000_000) as u64)
    }
}

fn parse(text: &str) -> Option<Vec<(u64, u64)>> {
    let point = |item: &str| {
        let (percent, thousandths) = item.trim().split_once(':')?;
        let percent: f64 = percent.trim().parse().ok()?;
        let thousandths: u32 = thousandths.trim().parse().ok()?;
        let place = (percent * (ALL / 100) as f64).round();
        (0.0..=ALL as f64)
            .contains(&place)
            .then_some((place as u64, u64::from(thousandths)))
    };
    let points: Vec<(u64, u64)> = text.split(',').map(point).collect::<Option<_>>()?;
    let ascends = points
        .windows(2)
        .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
    let ends = points.first()?.0 == 0 && points.last()?.0 == ALL;
    (ascends && ends && points.len() <= 1000).then_some(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_percentiles_that_were_asked_for() {
        let points = parse("0:500, 50:1000, 99:2000,100:9000").expect("a list");
        let mut p = Percentiles {
            points: points.into(),
            served: 0,
            salt: 1,
        };
        let mut times: Vec<u64> = (0..100_000).map(|_| p.next(Span(1_000_000)).ns()).collect();
        times.sort_unstable();
        let near = |percent: usize, expected: u64| {
            let got = times[percent * 1000];
            assert!(got.abs_diff(expected) * 20 < expected, "{percent}: {got}");
        };
        near(1, 510_000);
        near(50, 1_000_000);
        near(75, 1_510_204);
        near(99, 2_000_000);
        assert!(times[99_999] > 8_900_000 && times[99_999] <= 9_000_000);
        // Neighbours are not alike: next to none follows in order.
        let mut again = p.clone();
        let rising = (0..1000).filter(|_| again.next(Span(1000)) < again.next(Span(1000)));
        assert!((400..600).contains(&rising.count()));
    }

    #[test]
    fn lists_that_are_none_are_refused() {
        for text in [
            "5:1",
            "0:1",
            "0:2,100:1",
            "0:1,50:2",
            "0:1,0:2,100:3",
            "0:a,100:1",
            "0:1,101:2",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
