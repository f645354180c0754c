// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of findings, one module each.

pub mod array_rmw;
pub mod async_depth;
pub mod behind_discards;
pub mod behind_other;
pub mod bfq_merge;
pub mod buffer_stall;
mod chain_waits;
mod chains;
pub mod command_fault;
pub mod commit_behind;
pub mod cost;
pub mod cpu_wait;
pub mod deep_queue;
pub mod dependent_read;
pub mod device_slow;
pub mod dirty_limit;
pub mod discards;
pub mod false_latency;
pub mod flush;
pub mod groups;
mod held;
pub mod idle;
pub mod journal_chain;
pub mod journal_commit;
pub mod log_force;
pub mod log_full;
pub mod mapped;
pub mod misaligned;
pub mod missed_merge;
pub mod no_readahead;
pub mod no_request_free;
pub mod overtaken;
pub mod passthrough;
pub mod power_state;
pub mod readahead_thrown;
pub mod readahead_unused;
pub mod reads_behind_writes;
pub mod requeued;
pub mod reversed;
pub mod seek_storm;
pub mod shallow;
pub mod slice;
pub mod slow_member;
pub mod split;
pub mod submit_blocked;
pub mod submit_reads;
pub mod throttle;
pub mod wbt;
pub mod write_order;
pub mod writes_starved;

use super::Kind;

/// All kinds of findings.
pub static ALL: &[Kind] = &[
    write_order::KIND,
    write_order::IO_ERROR,
    false_latency::FALSE_LATENCY,
    false_latency::NEVER_COMPLETED,
    throttle::KIND,
    cost::KIND,
    requeued::KIND,
    idle::IDLING,
    idle::PLUG_TIMER,
    idle::HELD_BACK,
    writes_starved::KIND,
    behind_discards::KIND,
    reads_behind_writes::KIND,
    bfq_merge::KIND,
    slice::KIND,
    overtaken::KIND,
    behind_other::KIND,
    journal_commit::KIND,
    log_force::KIND,
    commit_behind::KIND,
    flush::KIND,
    journal_chain::KIND,
    log_full::KIND,
    buffer_stall::KIND,
    dirty_limit::KIND,
    wbt::KIND,
    async_depth::KIND,
    groups::share::KIND,
    groups::latency::KIND,
    no_request_free::WBT,
    no_request_free::KIND,
    submit_blocked::KIND,
    submit_reads::KIND,
    command_fault::KIND,
    device_slow::CAPPED,
    power_state::KIND,
    device_slow::SLOW,
    seek_storm::KIND,
    missed_merge::KIND,
    split::KIND,
    no_readahead::KIND,
    readahead_thrown::KIND,
    readahead_unused::KIND,
    dependent_read::KIND,
    misaligned::KIND,
    array_rmw::KIND,
    reversed::KIND,
    discards::KIND,
    shallow::KIND,
    deep_queue::KIND,
    passthrough::KIND,
    mapped::KIND,
    slow_member::KIND,
    cpu_wait::KIND,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Act, Context, Reading, Search, remedies};

    #[test]
    fn kinds_are_told_apart_and_start_empty() {
        for (i, kind) in ALL.iter().enumerate() {
            assert!(!kind.what.is_empty(), "{}", kind.name);
            assert!(!kind.rule.condition.is_empty(), "{}", kind.name);
            let texts = kind.rule.parts().map(|(_, text)| text);
            for text in texts.chain([kind.what]) {
                assert!(!text.ends_with('.'), "{}: {text}", kind.name);
            }
            let same = |k: &Kind| k.name == kind.name;
            assert_eq!(ALL.iter().position(same), Some(i), "{}", kind.name);
            let plain = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(kind.name.chars().all(plain), "{}", kind.name);
            assert!(!kind.remedies.is_empty(), "{}", kind.name);
            for other in kind.explains {
                assert!(
                    ALL.iter().any(|k| k.name == *other),
                    "{}: {other}",
                    kind.name
                );
            }
        }
        let nothing = Search::all(Context::default()).finish(Reading::default());
        assert_eq!((nothing.findings.len(), nothing.nr_events), (0, 0));
    }

    #[test]
    fn a_remedy_has_one_name_and_a_name_one_meaning() {
        for (i, (of, remedy)) in remedies().enumerate() {
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(remedy.id.chars().all(is_plain), "{of}: {}", remedy.id);
            let is_said = matches!(remedy.act, Act::Set { .. }) || !remedy.text.is_empty();
            assert!(is_said, "{of}: {}", remedy.id);
            for (other, same) in remedies().skip(i + 1).filter(|(_, r)| r.id == remedy.id) {
                assert_ne!(of, other, "{} twice", remedy.id);
                assert_eq!(remedy.act, same.act, "{of} and {other}: {}", remedy.id);
            }
        }
    }
}
