// SPDX-License-Identifier: MIT OR Apache-2.0
//! What decides whether a testbed gives a published number.

use super::super::space::{Space, Testbed};
use serde::Serialize;

/// An unknown on which it depends whether a number comes out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// Its name.
    pub unknown: String,
    /// The share of the variation that it explains, 0 to 1.
    pub share: f64,
    /// By choice, or by third of the range.
    pub classes: Vec<Class>,
}

/// Testbeds of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// The choice, or the third of the range.
    pub value: String,
    /// Testbeds of this class.
    pub testbeds: usize,
    /// Those of them that give the number.
    pub within: usize,
}

/// Values of chi squared, by degrees of freedom from 1 on, that chance exceeds three
/// times in a thousand: about one time in twenty if fifteen unknowns are looked at.
const CHANCE: [f64; 6] = [8.8, 11.6, 13.9, 16.0, 17.9, 19.8];

/// The unknown that says most about which testbeds give a number, if it says more than
/// chance would. `within`: by testbed, none for those that did not run.
pub(super) fn explain(
    space: &Space,
    beds: &[Testbed],
    within: &[Option<bool>],
) -> Option<Explained> {
    let mut best: Option<Explained> = None;
    for (i, unknown) in space.unknowns.iter().enumerate() {
        let mut counts = vec![(0_usize, 0_usize); unknown.values.nr_classes()];
        for (bed, within) in beds.iter().zip(within) {
            if let Some(within) = within {
                let class = &mut counts[bed.drawn[i].class];
                class.0 += 1;
                class.1 += usize::from(*within);
            }
        }
        let Some(share) = correlation(&counts) else {
            continue;
        };
        let known: usize = counts.iter().map(|c| c.0).sum();
        let filled = counts.iter().filter(|c| c.0 > 0).count();
        let limit = CHANCE[(filled - 2).min(CHANCE.len() - 1)];
        if share * known as f64 > limit && best.as_ref().is_none_or(|b| share > b.share) {
            let class = |(class, &(testbeds, within))| Class {
                value: unknown.values.class_name(class),
                testbeds,
                within,
            };
            best = Some(Explained {
                unknown: unknown.name.clone(),
                share,
                classes: counts.iter().enumerate().map(class).collect(),
            });
        }
    }
    best
}

/// Variance between classes over all variance: chi squared over the number of testbeds.
/// None if there is nothing to compare.
fn correlation(counts: &[(usize, usize)]) -> Option<f64> {
    let all: usize = counts.iter().map(|c| c.0).sum();
    let within: usize = counts.iter().map(|c| c.1).sum();
    let filled = counts.iter().filter(|c| c.0 > 0).count();
    if within == 0 || within == all || filled < 2 {
        return None;
    }
    let mean = within as f64 / all as f64;
    let between = counts.iter().filter(|c| c.0 > 0).map(|&(n, w)| {
        let share = w as f64 / n as f64;
        n as f64 * (share - mean).powi(2)
    });
    Some(between.sum::<f64>() / (all as f64 * mean * (1.0 - mean)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: &str = r#"
        [[unknown]]
        name = "priority"
        what = "w"
        key = "device.read_priority"
        choices = ["strict", "greedy"]
        [[unknown]]
        name = "memory"
        what = "w"
        key = "memory"
        low = 1
        high = 9
        unit = "g"
    "#;

    #[test]
    fn what_decides_is_told_from_chance() {
        let space = Space::parse("s", SPACE).unwrap();
        let beds = space.testbeds(40, 1);
        let greedy = |b: &Testbed| Some(b.drawn[0].value == "greedy");
        let decided: Vec<Option<bool>> = beds.iter().map(greedy).collect();
        let found = explain(&space, &beds, &decided).unwrap();
        assert_eq!((found.unknown.as_str(), found.share), ("priority", 1.0));
        assert_eq!(
            found.classes.iter().map(|c| c.within).collect::<Vec<_>>(),
            [0, found.classes[1].testbeds]
        );
        // The parity of its number has nothing to do with either.
        let parity: Vec<Option<bool>> = (0..40).map(|i| Some(i % 2 == 0)).collect();
        assert_eq!(explain(&space, &beds, &parity), None);
        assert_eq!(explain(&space, &beds, &[Some(true); 40]), None);
        // Few runs decide nothing.
        let few = decided.iter().enumerate();
        let few: Vec<Option<bool>> = few.map(|(i, d)| d.filter(|_| i < 6)).collect();
        assert_eq!(explain(&space, &beds, &few), None);
    }
}
