// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel threads that do I/O for somebody or something else: what it is for, which the name
//! alone tells whoever knows it, and what to change about it.

use super::context::Context;
use super::finding::{Finding, Party};
use super::remedy::{Outside, Remedy};

/// Threads of one kind.
struct Thread {
    /// What their names begin with.
    begins: &'static str,
    /// What else they contain: one of these.
    contains: &'static [&'static str],
    /// What it does, behind its name.
    does: &'static str,
    /// What to change.
    change: Remedy,
}

static THREADS: [Thread; 11] = [
    // mm/vmscan.c
    Thread {
        begins: "kswapd",
        contains: &[""],
        does: "writes pages out since memory is short: to swap, or files that no flusher wrote back \
               in time",
        change: Remedy::outside(
            "less-memory",
            Outside::Machine,
            "less use of memory, or more of it; swap on another device (vm.swappiness says \
                 how soon anonymous memory goes there)",
        ),
    },
    // drivers/md/md.c
    Thread {
        begins: "md",
        contains: &["_resync", "_recovery", "_reshape", "_check"],
        does: "rebuilds or checks an array",
        change: Remedy::outside(
            "slower-resync",
            Outside::Storage,
            "a lower md/sync_speed_max (dev.raid.speed_limit_max), or a check when no process \
                 waits",
        ),
    },
    // fs/ext4/super.c
    Thread {
        begins: "ext4lazyinit",
        contains: &[""],
        does: "initialises the inode tables of a new ext4, once",
        change: Remedy::outside(
            "no-lazy-initialisation",
            Outside::Storage,
            "let it end, mount with noinit_itable meanwhile, or mkfs.ext4 -E \
                 lazy_itable_init=0",
        ),
    },
    // fs/xfs/xfs_trans_ail.c
    Thread {
        begins: "xfsaild",
        contains: &[""],
        does: "writes metadata of XFS where it belongs, so that its log has room",
        change: Remedy::outside(
            "larger-journal",
            Outside::Storage,
            "a larger log (mkfs.xfs -l size=), so that it need not be done in a hurry",
        ),
    },
    // fs/btrfs/disk-io.c
    Thread {
        begins: "btrfs-transacti",
        contains: &[""],
        does: "commits a transaction of btrfs: all its trees, then the superblocks",
        change: Remedy::outside(
            "fewer-changes-a-commit",
            Outside::Storage,
            "fewer changes at a time in a commit (mount option commit=), fewer snapshots",
        ),
    },
    Thread {
        begins: "btrfs-cleaner",
        contains: &[""],
        does: "frees deleted subvolumes and snapshots of btrfs",
        change: Remedy::outside(
            "delete-snapshots-later",
            Outside::Applications,
            "delete snapshots when no process waits, a few at a time",
        ),
    },
    // drivers/md/bcache/writeback.c
    Thread {
        begins: "bcache_writebac",
        contains: &[""],
        does: "writes what a cache of bcache holds to the disk behind it",
        change: Remedy::outside(
            "slower-cache-write-back",
            Outside::Machine,
            "bcache/writeback_percent and writeback_rate_minimum: how much at a time",
        ),
    },
    // drivers/md/dm-kcopyd.c
    Thread {
        begins: "k",
        contains: &["kcopyd"],
        does: "copies chunks for a snapshot, a mirror or a thin pool",
        change: Remedy::outside(
            "smaller-snapshot-chunks",
            Outside::Machine,
            "smaller chunks, or dm-thin in place of old snapshots; throttle of dm_mirror",
        ),
    },
    // drivers/md/dm-crypt.c
    Thread {
        begins: "dmcrypt_write",
        contains: &[""],
        does: "writes what dm-crypt has encrypted, for all of its users",
        change: Remedy::outside(
            "no-workqueues",
            Outside::Machine,
            "no_write_workqueue of dm-crypt (from 5.9 on): writers then write themselves, and \
                 schedulers see whose it is",
        ),
    },
    // fs/nilfs2/segment.c
    Thread {
        begins: "segctord",
        contains: &[""],
        does: "writes segments of NILFS2",
        change: Remedy::outside(
            "relaxed-order",
            Outside::Storage,
            "mount option order=relaxed; a cleaner that runs when no process waits",
        ),
    },
    // drivers/block/drbd
    Thread {
        begins: "drbd",
        contains: &[""],
        does: "writes what its peer sent, or synchronises with it",
        change: Remedy::outside(
            "slower-drbd-resync",
            Outside::Machine,
            "c-max-rate of DRBD, if it is resynchronisation",
        ),
    },
];

impl Thread {
    fn has(&self, comm: &str) -> bool {
        comm.starts_with(self.begins) && self.contains.iter().any(|part| comm.contains(part))
    }
}

/// Whether a thread is that of a journal.
pub(super) fn is_journal(comm: &str) -> bool {
    comm == "jbd2" || comm.starts_with("jbd2/") || comm.starts_with("kjournald")
}

/// Whether a thread writes back what others have dirtied: nobody waits for its writes.
pub(super) fn is_flusher(comm: &str) -> bool {
    let is_worker = comm.starts_with("kworker/") && !is_high_worker(comm);
    let begins = [
        "flush-", "pdflush", "kupdate", "bdflush", "kswapd", "xfsaild", "bdi-",
    ];
    // The models call theirs flush.
    is_worker || comm == "flush" || begins.iter().any(|begin| comm.starts_with(begin))
}

/// A worker of high priority is the block layer's own (kblockd), which hands on what others
/// have queued.
fn is_high_worker(comm: &str) -> bool {
    let number = comm.split(['-', '+']).next().unwrap_or(comm);
    number.starts_with("kworker/") && number.ends_with('H')
}

/// Whether a name tells that a thread hands on what others write, so that it says nothing of who
/// waits.
pub(super) fn hands_on(comm: &str) -> bool {
    let begins = [
        "swapper",
        "<idle>",
        "ksoftirqd",
        "kblockd",
        "irq/",
        "loop",
        "dmcrypt_write",
        "drbd",
    ];
    let of_array = comm.starts_with("md") && comm.contains("_raid");
    of_array || is_high_worker(comm) || begins.iter().any(|begin| comm.starts_with(begin))
}

/// What there is to change about them.
pub(super) fn remedies() -> impl Iterator<Item = &'static Remedy> {
    THREADS.iter().map(|t| &t.change)
}

/// Gives flushers among those who cause something the names of who left what they write back,
/// where that is known: no event of the block layer says it.
pub(super) fn name_writers(causes: &mut [Party], context: &Context) {
    let writers = context.buffered_writers();
    let flushers = causes.iter_mut().filter(|p| is_flusher_party(p));
    flushers.for_each(|p| p.writes_for = writers.map(str::to_owned));
}

fn is_flusher_party(p: &Party) -> bool {
    p.comm.as_deref().is_some_and(is_flusher)
}

/// Says that a flusher writes for others, where it is not known for whom.
fn introduce_flusher(f: &mut Finding) {
    let unknown = f.causes.iter().filter(|p| p.writes_for.is_none());
    let mut flushers = unknown.filter(|p| is_flusher_party(p));
    let Some(flusher) = flushers.find_map(|p| p.comm.as_deref()) else {
        return;
    };
    let said = format!("{flusher} writes back what processes have written into the page cache.");
    if !f.how.is_empty() {
        f.how.push(' ');
    }
    f.how += &said;
}

/// Says what the threads do that cause a finding, and what to change about that.
pub(super) fn introduce(f: &mut Finding, context: &Context) {
    name_writers(&mut f.causes, context);
    introduce_flusher(f);
    let names = f.causes.iter().filter_map(|p| p.comm.as_deref());
    let caused: Vec<(String, &Thread)> = THREADS
        .iter()
        .filter_map(|t| Some((names.clone().find(|comm| t.has(comm))?.to_owned(), t)))
        .collect();
    for (name, thread) in caused.into_iter().rev() {
        if !f.how.is_empty() {
            f.how.push(' ');
        }
        f.how += &format!("{name} {}.", thread.does);
        f.remedies.insert(0, thread.change.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::THREADS;

    #[test]
    fn names_are_told_apart() {
        let kind = |comm: &str| THREADS.iter().filter(|t| t.has(comm)).count();
        for one in [
            "kswapd0",
            "md127_resync",
            "md0_recovery",
            "ext4lazyinit",
            "xfsaild/sda1",
            "btrfs-transacti",
            "kworker/u8:3+kcopyd",
            "kcopyd",
            "dmcrypt_write/2",
        ] {
            assert_eq!(kind(one), 1, "{one}");
        }
        for none in [
            "mdadm",
            "md0_raid1",
            "kworker/0:1H",
            "jbd2/sda1-8",
            "mysqld",
            "k",
        ] {
            assert_eq!(kind(none), 0, "{none}");
        }
    }
}
