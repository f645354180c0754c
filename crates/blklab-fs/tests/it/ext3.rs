// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext3 and ext2: what a commit writes and when, who waits for it.

use crate::machine::{Machine, Served};
use crate::write::dd;
use crate::{DISK, MIB, boot_on, rules_of};
use blklab_fs::{ExtFeatures, ExtOptions, Filesystem};
use blklab_pagecache::{Atime, Config, Features, PageCache, Runtime};
use blklab_types::{BioFlags, Op, Time};
use std::cell::Cell;
use std::rc::Rc;

const SECONDS: u64 = 1_000_000_000;
/// Sectors of the volume: 8 GiB.
const DISK_SECTORS: u64 = 16 << 20;

fn mount(journal: bool, change: impl FnOnce(&mut ExtOptions)) -> (Machine, PageCache<Machine>) {
    let mut options = ExtOptions::new(journal, ExtFeatures::of(crate::kernel([2, 6, 28])));
    change(&mut options);
    let mut config = Config::new(rules_of("2.6.28"), 1024 * MIB);
    config.layout.start_sector = 0;
    config.layout.end_sector = DISK_SECTORS;
    boot_on(Filesystem::Ext(options), config, DISK)
}

/// The middle of the disk, where the journal is.
fn in_journal(s: &Served) -> bool {
    (DISK_SECTORS / 2..DISK_SECTORS / 2 + (40_000 << 3)).contains(&s.sector)
}

#[test]
fn an_ordered_commit_writes_data_then_metadata_then_its_block() {
    let (machine, cache) = mount(true, |_| {});
    dd(&machine, &cache, 20 * MIB);
    machine.run_until(&cache, Time(20 * SECONDS));
    let log = machine.log();
    let writes: Vec<&Served> = log.iter().filter(|s| s.op == Op::Write).collect();
    let data: Vec<&&Served> = writes.iter().filter(|s| !in_journal(s)).collect();
    let journal: Vec<&&Served> = writes.iter().filter(|s| in_journal(s)).collect();
    assert_eq!(data.len(), 5120);
    assert!(data.iter().all(|s| s.nr_sectors == 8 && !s.sync));
    assert!(
        data.windows(2).all(|w| w[0].sector < w[1].sector),
        "file order"
    );
    assert_eq!(data[0].submitted, Time(5 * SECONDS), "five seconds old");
    // A descriptor; inode, bitmap, group descriptor, 6 blocks of pointers.
    assert_eq!(journal.len(), 1 + 9 + 1);
    assert!(journal.windows(2).all(|w| w[0].sector + 8 == w[1].sector));
    let data_done = data.iter().map(|s| s.done).max();
    assert!(Some(journal[0].submitted) >= data_done);
    let (commit, before) = journal.split_last().expect("a commit block");
    assert!(commit.sync && before.iter().all(|s| !s.sync && s.done <= commit.submitted));
}

/// Flags of a commit that only time asks for: its data, and its commit block.
fn flags_of_commit(release: [u16; 3]) -> [BioFlags; 2] {
    let mut options = ExtOptions::new(true, ExtFeatures::of(crate::kernel(release)));
    options.data = blklab_fs::DataMode::Ordered;
    let features = Features::of(crate::kernel(release));
    let mut config = Config::new(features, 1024 * MIB);
    config.layout.start_sector = 0;
    config.layout.end_sector = DISK_SECTORS;
    let (machine, cache) = boot_on(Filesystem::Ext(options), config, DISK);
    dd(&machine, &cache, 4 * MIB);
    machine.run_until(&cache, Time(20 * SECONDS));
    let log = machine.log();
    let data = log.iter().find(|s| s.op == Op::Write && !in_journal(s));
    let commit = log.iter().rfind(|s| in_journal(s));
    let ordering = BioFlags::UNPLUG | BioFlags::BARRIER | BioFlags::FLUSH | BioFlags::FUA;
    [data, commit].map(|s| s.expect("it was written").flags.without(ordering))
}

#[test]
fn commits_are_synchronous_by_release_and_nothing_follows_them_from_2_6_30_on() {
    let (none, sync) = (BioFlags::NONE, BioFlags::SYNC);
    let last = sync | BioFlags::NOIDLE;
    for (release, expected) in [
        ([2, 6, 26], [none, none]),
        ([2, 6, 28], [none, sync]),
        ([2, 6, 30], [none, last]),
        ([2, 6, 36], [none, last]),
        ([2, 6, 37], [last, last]),
        ([3, 0, 0], [last, last]),
        ([3, 4, 0], [last, last]),
        // Nobody waits for this one.
        ([3, 5, 0], [none, last]),
        ([3, 7, 0], [none, last]),
    ] {
        assert_eq!(flags_of_commit(release), expected, "{release:?}");
    }
}

#[test]
fn metadata_go_to_their_places_thirty_seconds_later() {
    let (machine, cache) = mount(true, |_| {});
    dd(&machine, &cache, 20 * MIB);
    machine.run_until(&cache, Time(60 * SECONDS));
    let log = machine.log();
    let late = |s: &&Served| s.op == Op::Write && s.submitted > Time(20 * SECONDS);
    let late: Vec<&Served> = log.iter().filter(late).collect();
    assert_eq!(late.len(), 9, "{late:?}");
    assert!(late.iter().all(|s| !in_journal(s)));
    assert_eq!(cache.usage().dirty, 0);
}

#[test]
fn writers_of_3_6_are_held_back() {
    let mut options = ExtOptions::new(true, ExtFeatures::of(crate::kernel([3, 7, 0])));
    options.atime = Atime::Never;
    let mut config = Config::new(rules_of("3.6"), 1024 * MIB);
    config.layout.start_sector = 0;
    config.layout.end_sector = DISK_SECTORS;
    let (machine, cache) = boot_on(Filesystem::Ext(options), config, DISK);
    let (task, _) = dd(&machine, &cache, 2048 * MIB);
    for second in 2..12 {
        machine.run_until(&cache, Time(second * SECONDS));
        let usage = cache.usage();
        let pages = usage.dirty + usage.writeback;
        assert!(pages < usage.dirty_limit * 11 / 10, "{second} s: {pages}");
    }
    assert!(cache.stats().throttled(task).waits > 100);
}

#[test]
fn writeback_mode_leaves_the_data_to_pdflush() {
    let (machine, cache) = mount(true, |o| o.data = blklab_fs::DataMode::Writeback);
    dd(&machine, &cache, 20 * MIB);
    machine.run_until(&cache, Time(20 * SECONDS));
    let log = machine.log();
    let writes = log.iter().filter(|s| s.op == Op::Write);
    assert!(writes.clone().all(in_journal) && writes.count() > 0);
}

#[test]
fn fsync_commits_and_without_a_change_it_does_not() {
    let (machine, cache) = mount(true, |o| o.atime = Atime::Never);
    let file = cache.create_empty(None).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("write", async move {
        c.write(fd, 0, 4096).await.expect("space");
        c.fdatasync(fd).await.expect("no errors");
        c.fdatasync(fd).await.expect("no errors");
    });
    machine.run(&cache);
    let log = machine.log();
    let journal = log.iter().filter(|s| in_journal(s)).count();
    // Descriptor, inode, bitmap, group descriptor, commit block.
    assert_eq!(journal, 5);
    assert_eq!(log.iter().filter(|s| s.op == Op::Write).count(), 6);
}

#[test]
fn reading_changes_the_access_time_once_a_second() {
    for (rule, commits) in [(Atime::Strict, 3), (Atime::Relative, 1), (Atime::Never, 0)] {
        let (machine, cache) = mount(true, |o| o.atime = rule);
        let file = cache.create_laid_out(MIB).expect("space");
        let fd = cache.open(file, false).expect("it exists");
        for at_s in [1, 10, 20] {
            machine.run_until(&cache, Time(at_s * SECONDS));
            let c = cache.clone();
            machine.task("read", async move {
                c.read(fd, 0, 4096).await.expect("no errors");
                c.read(fd, 4096, 4096).await.expect("no errors");
            });
        }
        machine.run_until(&cache, Time(30 * SECONDS));
        let log = machine.log();
        let journal = log.iter().filter(|s| in_journal(s)).count();
        assert_eq!(journal, 3 * commits, "{rule:?}: descriptor, inode, commit");
    }
}

/// kjournald waits for the blocks of the log from the last to the first, and gives
/// each back when it has come to it.
#[test]
fn a_block_in_the_log_is_given_back_once_those_behind_it_have_arrived() {
    let (machine, cache) = mount(true, |o| o.atime = Atime::Strict);
    // 16 inodes share a block; one of each block is read.
    let files: Vec<_> = (0..320)
        .map(|_| cache.create_laid_out(4096).expect("space"))
        .collect();
    let fds: Vec<_> = files
        .iter()
        .step_by(16)
        .map(|f| cache.open(*f, false).expect("it exists"))
        .collect();
    let first = fds[0];
    let c = cache.clone();
    machine.task("read", async move {
        for fd in fds {
            c.read(fd, 0, 4096).await.expect("no errors");
        }
    });
    let mut now = 0;
    while !machine.log().iter().any(in_journal) {
        now += SECONDS / 1000;
        machine.run_until(&cache, Time(now));
    }
    let again = Rc::new(Cell::new(Time::ZERO));
    let (c, m, end) = (cache.clone(), machine.clone(), Rc::clone(&again));
    machine.task("read again", async move {
        c.read(first, 0, 4096).await.expect("no errors");
        end.set(m.now());
    });
    machine.run_until(&cache, Time(8 * SECONDS));
    let log = machine.log();
    let journal: Vec<&Served> = log.iter().filter(|s| in_journal(s)).collect();
    // A descriptor, 20 or 21 blocks of inodes, the commit block.
    let (commit, blocks) = journal.split_last().expect("a commit");
    assert!((21..=22).contains(&blocks.len()), "{}", blocks.len());
    let arrived = blocks.last().expect("a block").done;
    assert!(blocks[2].done < arrived, "one after the other");
    assert!(
        (arrived..commit.done).contains(&again.get()),
        "{:?} is not when the last one arrived, {arrived:?}",
        again.get()
    );
}

#[test]
fn ext2_writes_the_same_blocks_without_a_journal() {
    let (machine, cache) = mount(false, |_| {});
    dd(&machine, &cache, 20 * MIB);
    machine.run_until(&cache, Time(60 * SECONDS));
    let log = machine.log();
    let writes: Vec<&Served> = log.iter().filter(|s| s.op == Op::Write).collect();
    let sectors: u64 = writes.iter().map(|s| u64::from(s.nr_sectors)).sum();
    assert_eq!(sectors, (5120 + 9) * 8);
    assert!(writes.len() < 200, "data in bios of many pages");
    assert!(!writes.iter().any(|s| in_journal(s)));
}

#[test]
fn a_small_journal_is_checkpointed_by_who_needs_the_room() {
    let (machine, cache) = mount(true, |o| {
        o.journal_blocks = Some(1024);
        o.commit_s = 1;
    });
    dd(&machine, &cache, 3000 * MIB);
    machine.run(&cache);
    machine.run_until(&cache, Time(400 * SECONDS));
    let log = machine.log();
    // The log begins behind the journal's superblock, in the middle group,
    // which has its bitmaps and 512 blocks of inodes before its data.
    let superblock = (32 * 32768 + 514) * 8;
    let moved = log
        .iter()
        .filter(|s| s.op == Op::Write && s.sector == superblock);
    assert!(moved.count() > 0, "the tail of the log moved");
    let data = log.iter().filter(|s| s.op == Op::Write && !in_journal(s));
    assert!(data.count() as u64 >= 3000 * 256);
    assert_eq!(cache.usage().dirty, 0);
}
