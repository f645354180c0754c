// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of causes that can be planted, and of those that cannot, each with the reason.

use super::draw::Draw;
use super::planted::Planted;
use super::{device, policy, queues, shapes, storage};
use serde::Serialize;

/// What a trace must have so that the cause can be told from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// D and C.
    Device,
    /// D and C with their flags: sync, flush, FUA, read-ahead, error.
    Flags,
    /// Whose each request is: G or Q, or the columns of biosnoop.
    Owner,
    /// The way to the device: Q, G, I, merges, messages.
    Way,
    /// Events of the page cache beside those of the block layer (`blklab record --also
    /// writeback`), which none of the forms has.
    PageCache,
    /// Events of the journal, likewise.
    Journal,
}

/// A cause that can be planted.
pub(super) struct Class {
    /// What its scenarios are called.
    pub(super) name: &'static str,
    /// The kinds of findings that name it: one of them must.
    pub(super) kinds: &'static [&'static str],
    /// What it takes to tell it.
    pub(super) need: Need,
    /// Remedies of which one undoes what was planted, by their names; empty where only the
    /// application or nobody can.
    pub(super) remedies: &'static [&'static str],
    /// Whether it has to be the first finding: of several that wait for each other, who causes
    /// it all.
    pub(super) must_be_first: bool,
    /// Draws a scenario.
    pub(super) plant: fn(&mut Draw) -> Planted,
}

/// A row.
const fn class(
    name: &'static str,
    kinds: &'static [&'static str],
    need: Need,
    remedies: &'static [&'static str],
    plant: fn(&mut Draw) -> Planted,
) -> Class {
    Class {
        name,
        kinds,
        need,
        remedies,
        must_be_first: false,
        plant,
    }
}

impl Class {
    /// The same, to be named before everything else.
    const fn first(self) -> Class {
        Class {
            must_be_first: true,
            ..self
        }
    }
}

use Need::{Device, Flags, Journal, Owner, PageCache, Way};

/// All classes.
#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    class("reads-behind-writes", &["reads-behind-writes"], Device,
        &["fewer-commands", "reads-first", "smaller-queue-depth"], queues::reads_behind_writes),
    class("write-back-burst", &["reads-behind-writes"], Device,
        &["less-write-back", "fewer-commands", "reads-first", "smaller-queue-depth"], queues::write_back_burst),
    class("behind-other", &["behind-other"], Owner,
        &["fewer-at-a-time", "share-by-process", "share-with-smaller-depth"], queues::behind_other),
    class("deep-queue", &["deep-queue"], Device, &["enough-at-a-time"], queues::deep_queue),
    class("pool-used-up", &["no-request-free"], Way, &["more-requests"], queues::pool_used_up),
    class("tags-used-up", &["no-request-free"], Way, &["more-requests"], queues::tags_used_up),
    class("idling", &["idling"], Way,
        &["no-idling", "scheduler-without-idling", "no-anticipation"], queues::idling),
    class("slice", &["slice"], Way,
        &["shorter-bfq-slices", "shorter-cfq-slices", "higher-priority", "low-latency"], queues::slice),
    class("bfq-queue-merge", &["bfq-queue-merge"], Way, &["other-priority", "start-apart"], queues::bfq_queue_merge),
    class("writes-starved", &["writes-starved"], Way, &[], queues::writes_starved),
    class("overtaken", &["overtaken"], Way, &["shorter-read-expiry", "shorter-batches", "fewer-at-a-time"], queues::overtaken),
    class("shallow-dispatch", &["shallow-dispatch"], Way, &["larger-quantum", "scheduler-without-holding"], queues::shallow),
    class("io-max", &["cgroup-limit"], Way, &["no-limit", "looser-limit"], queues::cgroup_limit),
    class("wbt", &["wbt", "wbt-likely", "submit-blocked"], Way, &["no-write-back-throttling"], queues::wbt),
    class("plug-timer", &["plug-timer"], Way, &[], queues::plug_timer),
    class("missed-merge", &["missed-merge"], Way, &[], shapes::missed_merge),
    class("split", &["split"], Way, &["raise-limit", "smaller-ios"], shapes::split),
    class("no-readahead", &["no-readahead"], Device, &["read-ahead"], shapes::no_readahead),
    class("misaligned", &["misaligned"], Device, &["whole-blocks", "aligned-files"], shapes::misaligned),
    class("flush", &["flush"], Flags, &["write-through", "fewer-fsyncs"], shapes::flush),
    class("journal-chain", &["journal-chain"], Device, &["fewer-fsyncs", "allocated-blocks", "journal-elsewhere"], shapes::journal_chain),
    class("dependent-read", &["dependent-read"], Way, &["submit-before-next-map"], shapes::dependent_read),
    class("seek-storm", &["seek-storm"], Owner,
        &["larger-or-one-after-other", "longer-turns", "scheduler-by-stream"], shapes::seek_storm),
    class("never-completed", &["never-completed"], Way, &[], shapes::never_completed),
    class("io-error", &["io-error"], Flags, &[], shapes::io_error),
    class("device-slow", &["device-slow"], Device, &["read-logs"], device::device_slow),
    class("rate-capped", &["rate-capped"], Device, &["larger-limit", "fewer-or-larger"], device::rate_capped),
    class("held-back", &["held-back"], Way, &[], device::held_back),
    class("requeued", &["requeued"], Way, &["true-queue-depth", "read-logs"], device::requeued),
    class("large-batches", &["reads-behind-writes", "overtaken"], Way, &["shorter-batches"], policy::large_batches),
    class("async-depth", &["async-depth"], Way, &["larger-async-depth"], policy::async_depth),
    class("kyber-tokens", &["shallow-dispatch", "writes-starved"], Way, &["laxer-targets"], policy::kyber_tokens),
    class("idle-class", &["behind-other", "overtaken"], Way, &[], policy::idle_class),
    class("prio-aging", &["behind-other", "overtaken"], Way, &[], policy::prio_aging),
    class("bfq-weight", &["slice", "behind-other", "idling"], Way, &[], policy::bfq_weight),
    class("cfq-weight", &["slice", "behind-other", "idling"], Way, &[], policy::cfq_weight),
    class("io-cost", &["cgroup-cost", "cgroup-share"], Way,
        &["larger-io-weight", "larger-weight", "looser-qos", "no-cost-control"], policy::io_cost),
    class("io-latency", &["cgroup-latency", "submit-blocked"], Way, &["no-latency-target", "look-at-group"], policy::io_latency),
    class("io-submit", &["submit-blocked", "no-request-free"], Way, &["more-requests"], policy::io_submit),
    class("no-ncq", &["deep-queue", "submit-blocked"], Way, &[], policy::no_ncq),
    class("anticipation", &["idling", "held-back", "overtaken"], Way, &["no-anticipation", "scheduler-without-idling"], policy::anticipation),
    // A device without a cache gets no flush, which tells a commit.
    class("commit-behind", &["commit-behind", "behind-other"], Flags,
        &["limit-the-other", "share-by-process", "smaller-write-back"], storage::commit_behind).first(),
    class("wal-beside-backup", &["commit-behind", "reads-behind-writes", "behind-other", "no-request-free"], Owner, &[], storage::wal_beside_backup).first(),
    class("flush-storm", &["flush", "reads-behind-writes"], Flags, &["write-through", "fewer-fsyncs"], storage::flush_storm),
    class("forced-writes", &["flush"], Flags, &["write-through", "fewer-fsyncs"], storage::forced_writes),
    class("barriers", &["flush"], Flags, &["write-through", "fewer-fsyncs", "journal-elsewhere"], storage::barriers),
    class("ordered-data", &["commit-behind", "behind-other"], Flags,
        &["limit-the-other", "share-by-process", "smaller-write-back"], storage::ordered_data).first(),
    class("dirty-limit", &["dirty-limit"], PageCache, &[], storage::dirty_limit),
    class("journal-full", &["journal-full"], Journal, &[], storage::journal_full),
    class("small-readahead", &["no-readahead"], Device, &["read-ahead"], storage::small_readahead),
    class("large-readahead", &["readahead-unused", "readahead-thrown-away"], Flags, &["less-read-ahead"], storage::large_readahead),
    class("reversed", &["reversed"], Device, &[], storage::reversed),
    class("behind-discards", &["behind-discards"], Flags, &["smaller-discards", "discard-later"], storage::behind_discards),
    class("lazy-initialisation", &["reads-behind-writes"], Device, &["no-lazy-initialisation"], storage::lazy_initialisation),
    class("resync", &["behind-other"], Owner, &["slower-resync"], storage::resync),
    class("scrub", &["behind-other"], Owner, &[], storage::scrub),
    class("tails", &["split"], Way, &["raise-limit", "smaller-ios"], shapes::tails),
    class("stalling-device", &["device-slow"], Device, &["read-logs"], device::stalling_device),
    class("garbage-collection", &["device-slow", "reads-behind-writes"], Device, &[], device::garbage_collection),
    class("small-discards", &["small-discards"], Flags, &["large-discards", "whole-ranges-down"], device::small_discards),
];

/// A cause that this factory cannot plant.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Undrawn {
    /// What it is.
    pub class: &'static str,
    /// Why not.
    pub because: &'static str,
}

/// What is not drawn.
#[rustfmt::skip]
pub const UNDRAWN: &[Undrawn] = &[
    Undrawn { class: "shared tags", because: "the models have one device, and no set of tags that several share" },
    Undrawn { class: "a slow member of RAID", because: "members of an array in the models are equal" },
    Undrawn { class: "BFQ's weight raising", because: "it lasts for seconds after a process's first I/O, longer than the runs here" },
    Undrawn { class: "CPU starvation", because: "the models have no process that only computes (fio's cpuio is not simulated)" },
    Undrawn { class: "memory reclaim", because: "the models have no reclaim: memory that is not dirty is free at once" },
    Undrawn { class: "depth 1 by the application", because: "it makes no I/O longer; it is drawn among what has nothing wrong" },
];
