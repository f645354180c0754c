// SPDX-License-Identifier: MIT OR Apache-2.0
//! What processes got: the same numbers of a recording and of a simulated run.

use blklab_analysis::metric::Unit;
use blklab_analysis::names::who;
use blklab_infer::{Bio, Process, Recorded};
use blklab_types::{Op, Pid, SECTOR_BYTES, Span};
use serde::Serialize;

/// What a process got in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// The process.
    pub pid: Pid,
    /// Its name, if it is known.
    pub comm: Option<String>,
    /// `read`, `write`, `discard` or `flush`.
    pub direction: &'static str,
    /// Bios that ended.
    pub count: u64,
    /// Median of Q2C, ns.
    pub p50_ns: u64,
    /// 99th percentile of Q2C, ns.
    pub p99_ns: u64,
    /// Mean of Q2C, ns.
    pub mean_ns: u64,
    /// Longest Q2C, ns.
    pub max_ns: u64,
    /// Bios per second, from the first Q to the last C.
    pub per_s: f64,
    /// MiB per second, likewise.
    pub mib_per_s: f64,
}

impl Figures {
    /// The process in words.
    pub fn who(&self) -> String {
        who(self.pid, self.comm.as_deref())
    }

    /// Whether it is about the same process and direction.
    pub fn is_of(&self, other: &Figures) -> bool {
        (self.pid, self.direction) == (other.pid, other.direction)
    }

    /// Time that all its bios together took, ns.
    pub fn total_ns(&self) -> u64 {
        self.mean_ns.saturating_mul(self.count)
    }
}

/// A number of [`Figures`], as tables show it.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// In a word.
    pub title: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its value.
    pub value: fn(&Figures) -> f64,
}

/// The numbers that tables show, in their order.
pub static COLUMNS: [Column; 6] = [
    column("count", Unit::One, |f| f.count as f64),
    column("p50", Unit::Ns, |f| f.p50_ns as f64),
    column("p99", Unit::Ns, |f| f.p99_ns as f64),
    column("max", Unit::Ns, |f| f.max_ns as f64),
    column("per s", Unit::PerS, |f| f.per_s),
    column("MiB/s", Unit::MibPerS, |f| f.mib_per_s),
];

const fn column(title: &'static str, unit: Unit, value: fn(&Figures) -> f64) -> Column {
    Column { title, unit, value }
}

/// Directions with their names.
const DIRECTIONS: [(Op, &str); 4] = [
    (Op::Read, "read"),
    (Op::Write, "write"),
    (Op::Discard, "discard"),
    (Op::Flush, "flush"),
];

/// The figures of all processes, by first bio; one for each direction.
pub fn figures(recorded: &Recorded) -> Vec<Figures> {
    let directions = |p| DIRECTIONS.iter().filter_map(move |d| of_direction(p, *d));
    recorded.processes.iter().flat_map(directions).collect()
}

fn of_direction(p: &Process, (op, direction): (Op, &'static str)) -> Option<Figures> {
    let bios = p.bios.iter().filter(|b| b.op == op);
    let ended: Vec<(&Bio, Span)> = bios.filter_map(|b| Some((b, b.latency()?))).collect();
    let mut latencies: Vec<u64> = ended.iter().map(|(_, l)| l.ns()).collect();
    latencies.sort_unstable();
    let max_ns = *latencies.last()?;
    let first = ended.iter().map(|(b, _)| b.at.ns()).min()?;
    let last = ended.iter().map(|(b, l)| b.at.ns().saturating_add(l.ns()));
    let seconds = (last.max()?.saturating_sub(first)).max(1) as f64 / 1e9;
    let bytes = ended
        .iter()
        .map(|(b, _)| u64::from(b.nr_sectors) * SECTOR_BYTES)
        .sum::<u64>();
    let sum: u128 = latencies.iter().map(|ns| u128::from(*ns)).sum();
    let rank = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
    Some(Figures {
        pid: p.pid,
        comm: p.name.clone(),
        direction,
        count: latencies.len() as u64,
        p50_ns: rank(50),
        p99_ns: rank(99),
        mean_ns: (sum / latencies.len() as u128) as u64,
        max_ns,
        per_s: latencies.len() as f64 / seconds,
        mib_per_s: bytes as f64 / f64::from(1 << 20) / seconds,
    })
}
