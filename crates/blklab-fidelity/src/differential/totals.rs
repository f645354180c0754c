// SPDX-License-Identifier: MIT OR Apache-2.0
//! Agreement by release and scheduler, and what kinds of differences there are.

use super::pair::{Compared, Verdict};
use blklab::analysis::middle;
use serde::Serialize;
use std::collections::BTreeMap;

/// How often a kind of difference came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KindCount {
    /// In words.
    pub kind: String,
    /// How often.
    pub count: usize,
    /// How often the orders part with the kernel's bios and completions, too.
    pub with_bios_given: usize,
    /// The first experiment with it, if there is one that parts with these, too.
    pub example: String,
}

/// Totals of some comparisons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Totals {
    /// Release.
    pub kernel: String,
    /// Scheduler, or all.
    pub scheduler: String,
    /// Experiments.
    pub experiments: usize,
    /// Of those, with the same order.
    pub identical: usize,
    /// Of the others, those that part at a tie.
    pub ties: usize,
    /// Experiments whose bios and completions were given to the models as they came on the
    /// kernel.
    pub given: usize,
    /// Of those, with the same order.
    pub given_identical: usize,
    /// Figures compared.
    pub figures: usize,
    /// Figures that agree.
    pub within: usize,
    /// Median over the figures of the ratio's distance from 1.
    pub median_error: Option<f64>,
    /// Kinds of differences, the most frequent first.
    pub kinds: Vec<KindCount>,
}

impl Totals {
    fn new(kernel: &str, scheduler: &str, all: &[&Compared]) -> Totals {
        let count = |f: &dyn Fn(&Compared) -> bool| all.iter().filter(|c| f(c)).count();
        let figures = || all.iter().flat_map(|c| &c.figures);
        let mut kinds: BTreeMap<&Verdict, Vec<&Compared>> = BTreeMap::new();
        for c in all.iter().filter(|c| c.verdict != Verdict::Same) {
            kinds.entry(&c.verdict).or_default().push(c);
        }
        let counted = kinds.into_iter().map(|(verdict, of_kind)| {
            let parts = |c: &&&Compared| c.given.is_same() == Some(false);
            let first = of_kind.iter().find(parts).unwrap_or(&of_kind[0]);
            KindCount {
                kind: verdict.words(),
                count: of_kind.len(),
                with_bios_given: of_kind.iter().filter(parts).count(),
                example: first.id.clone(),
            }
        });
        let mut kinds: Vec<KindCount> = counted.collect();
        kinds.sort_by_key(|k| std::cmp::Reverse(k.count));
        Totals {
            kernel: kernel.to_owned(),
            scheduler: scheduler.to_owned(),
            experiments: all.len(),
            identical: count(&|c| c.order.is_identical()),
            ties: count(&|c| matches!(c.verdict, Verdict::Order(kind) if kind.is_chance())),
            given: count(&|c| c.given.is_same().is_some()),
            given_identical: count(&|c| c.given.is_same() == Some(true)),
            figures: figures().count(),
            within: figures().filter(|f| f.within).count(),
            median_error: middle(figures().map(super::FigurePair::error).collect()),
            kinds,
        }
    }
}

/// The totals of each scheduler on each release, then of all on it.
pub fn totals(all: &[Compared]) -> Vec<Totals> {
    let mut rows = Vec::new();
    let mut kernels: Vec<&str> = Vec::new();
    for c in all {
        if !kernels.contains(&c.kernel.as_str()) {
            kernels.push(&c.kernel);
        }
    }
    for kernel in kernels {
        let own: Vec<&Compared> = all.iter().filter(|c| c.kernel == kernel).collect();
        let mut schedulers: Vec<&str> = own.iter().map(|c| c.scheduler.as_str()).collect();
        schedulers.sort_unstable();
        schedulers.dedup();
        for name in schedulers {
            let some = own.iter().copied().filter(|c| c.scheduler == name);
            rows.push(Totals::new(kernel, name, &some.collect::<Vec<_>>()));
        }
        rows.push(Totals::new(kernel, "all", &own));
    }
    rows
}
