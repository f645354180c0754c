// SPDX-License-Identifier: MIT OR Apache-2.0
//! What proves that a cause is one: the run without it.

use super::scenario::Ran;
use blklab_trace::truth::Why;

/// What shows, beside the run without a cause, that it has an effect.
#[derive(Clone, Debug)]
pub(super) enum Proof {
    /// I/O of the victims takes so many times as long as without the cause, on average.
    Slower(f64),
    /// The longest I/O of the victims takes so many times as long as without the cause.
    Longest(f64),
    /// The victims are done so many times as late as without the cause.
    Later(f64),
    /// The device gets so many times as many commands for as many sectors.
    MoreCommands(f64),
    /// The victims transfer so many times as much without the cause.
    LessDone(f64),
    /// I/O of the victims takes so long on average, ns.
    Mean(u64),
    /// The scheduler says so in a message.
    Said(&'static str),
    /// The events themselves were made so: I/O that fails, or that nobody waits for.
    Constructed,
    /// So large a part of the victims' time is for these reasons. Only the simulation
    /// knows them: a real kernel has the other proofs alone.
    Waits(&'static [Why], f64),
    /// So large a part of the victims' time they sleep for a request; likewise.
    Sleeps(f64),
}

/// Fewer I/Os of the victims prove nothing.
const IOS_MIN: u64 = 8;

impl Proof {
    /// Whether a run has what it asks for, seen beside the run without the cause.
    pub(super) fn holds(&self, names: &[&str], ran: &Ran, control: &Ran) -> bool {
        let (with, without) = (ran.effects.on(names), control.effects.on(names));
        let ratio = |a: f64, b: f64| a / b.max(1.0);
        let commands =
            |felt: &super::effect::Felt| felt.commands as f64 / felt.sectors.max(1) as f64;
        with.ios >= IOS_MIN
            && match self {
                Proof::Slower(times) => ratio(with.mean_ns(), without.mean_ns()) >= *times,
                Proof::Longest(times) => {
                    ratio(with.worst_ns as f64, without.worst_ns as f64) >= *times
                }
                Proof::Later(times) => ratio(with.end_ns as f64, without.end_ns as f64) >= *times,
                Proof::MoreCommands(times) => commands(&with) >= times * commands(&without),
                Proof::LessDone(times) => ratio(without.bytes as f64, with.bytes as f64) >= *times,
                Proof::Mean(ns) => with.mean_ns() >= *ns as f64,
                Proof::Said(words) => ran.says(words),
                Proof::Constructed => true,
                Proof::Waits(reasons, part) => ran.truth_of(names).is_none_or(|sum| {
                    let ns: u64 = reasons.iter().filter_map(|why| sum.why.get(why)).sum();
                    ratio(ns as f64, sum.waited_ns as f64) >= *part
                }),
                Proof::Sleeps(part) => ran
                    .truth_of(names)
                    .is_none_or(|sum| ratio(sum.sleep_ns as f64, sum.waited_ns as f64) >= *part),
            }
    }
}
