// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small histograms of latencies for terminals, those of a table on one axis.

use crate::output::{WIDTH, cut, fold, time};
use std::io::{self, Write};

/// Columns of a histogram.
const BARS: usize = 40;

/// A line of a table: its name, and the values in ns of its latencies with their counts.
pub(crate) type Line<'a> = (&'a str, Vec<(u64, u64)>);

/// Where the lines stand.
pub(crate) struct Place {
    /// Columns in front of the names.
    pub(crate) indent: usize,
    /// Columns of the names.
    pub(crate) names: usize,
}

/// The latencies of some lines on one axis. Times and numbers are logarithms: a single one
/// is seen beside millions. Nothing if there is only one value.
pub(crate) fn show(out: &mut impl Write, place: &Place, lines: &[Line<'_>]) -> io::Result<()> {
    // Those of no time at all are in the first bar.
    let values = lines.iter().flat_map(|(_, bins)| bins);
    let values = values.map(|(ns, _)| *ns).filter(|ns| *ns > 0);
    let (Some(low), Some(high)) = (values.clone().min(), values.max()) else {
        return Ok(());
    };
    if low == high {
        return Ok(());
    }
    let log = |ns: u64| (ns.max(low) as f64).ln();
    let width = log(high) - log(low);
    let Place { indent, names } = *place;
    for (name, bins) in lines {
        let mut counts = [0u64; BARS];
        for (ns, count) in bins {
            let place = (log(*ns) - log(low)) / width * BARS as f64;
            counts[(place as usize).min(BARS - 1)] += count;
        }
        // A name is never cut: it tells the lines apart.
        let mut name = (*name).to_owned();
        if name.chars().count() > names {
            for line in fold(&name, WIDTH - indent) {
                writeln!(out, "{:indent$}{}", "", cut(&line, WIDTH - indent))?;
            }
            name = String::new();
        }
        writeln!(
            out,
            "{:indent$}{name:<names$} {:>9} {} {}",
            "",
            time(low as f64),
            bars(&counts),
            time(high as f64)
        )?;
    }
    Ok(())
}

fn bars(counts: &[u64]) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0);
    let level = |count: u64| match count {
        0 => 0,
        _ if most <= 1 => 8,
        n => 1 + ((n as f64).ln() / (most as f64).ln() * 7.0).round() as usize,
    };
    counts
        .iter()
        .map(|count| LEVELS[level(*count).min(8)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_million_is_seen() {
        assert_eq!(bars(&[0, 1, 1_000_000, 1000]), " ▁█▅");
        assert_eq!(bars(&[0, 1]), " █");
        assert_eq!(bars(&[0, 0]), "  ");
    }

    #[test]
    fn lines_share_an_axis() {
        let shown = |lines: &[Line<'_>]| {
            let place = Place {
                indent: 2,
                names: 4,
            };
            let mut text = Vec::new();
            show(&mut text, &place, lines).expect("a vector takes all");
            String::from_utf8(text).expect("text")
        };
        let text = shown(&[
            ("noop", vec![(0, 1), (1000, 3)]),
            ("cfq", vec![(1_000_000, 1)]),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            format!("  noop    1.00us █{} 1.00ms", " ".repeat(39))
        );
        assert_eq!(
            lines[1],
            format!("  cfq     1.00us {}█ 1.00ms", " ".repeat(39))
        );
        assert_eq!(shown(&[("one", vec![(7, 9)])]), "");
        assert_eq!(shown(&[("none", Vec::new())]), "");
    }
}
