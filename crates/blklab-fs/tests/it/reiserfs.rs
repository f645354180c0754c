// SPDX-License-Identifier: MIT OR Apache-2.0
//! ReiserFS: what goes where and when.

use crate::machine::{Machine, Served};
use crate::volumes::{mount, reiserfs};
use crate::{MIB, rules_of};
use blklab_fs::{ReiserOptions, Tails};
use blklab_pagecache::{FileId, Name, PageCache};
use blklab_types::{Op, Time};

const SECONDS: u64 = 1_000_000_000;
/// Sectors of the volume: 8 GiB.
const SECTORS: u64 = 16 << 20;
/// The log, and the block behind it.
const LOG: std::ops::Range<u64> = 18 * 8..(18 + 8192) * 8;
const HEADER: u64 = (18 + 8192) * 8;

fn boot(change: impl FnOnce(&mut ReiserOptions)) -> (Machine, PageCache<Machine>) {
    mount(reiserfs(change), rules_of("2.6.28"), SECTORS, 512 * MIB)
}

/// A task makes files of these sizes in the top directory, and the machine runs
/// until then.
fn make(
    machine: &Machine,
    cache: &PageCache<Machine>,
    sizes: Vec<u64>,
    until: Time,
) -> Vec<FileId> {
    let c = cache.clone();
    let made = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let out = made.clone();
    machine.task("make", async move {
        for (i, size) in sizes.into_iter().enumerate() {
            let hash = (i as u32).wrapping_mul(0x9e37_79b9);
            let id = c.create(c.root(), Name { bytes: 10, hash }).await;
            let id = id.expect("space");
            let fd = c.open_file(id).await.expect("it is there");
            c.write(fd, 0, size).await.expect("space");
            c.close(fd).await.expect("it is open");
            out.borrow_mut().push(id);
        }
    });
    machine.run_until(cache, until);
    made.take()
}

fn writes(machine: &Machine) -> Vec<Served> {
    let log = machine.log().into_iter();
    log.filter(|s| s.op == Op::Write).collect()
}

#[test]
fn five_seconds_later_new_data_then_the_log_then_the_commit_block() {
    let (machine, cache) = boot(|o| o.sync_commit_block = true);
    let files = make(&machine, &cache, vec![20 * 4096], Time(20 * SECONDS));
    let writes = writes(&machine);
    let (log, data): (Vec<&Served>, Vec<&Served>) =
        writes.iter().partition(|s| LOG.contains(&s.sector));
    // Objects of the top directory begin behind 2048 blocks of group 1.
    let place = cache.extents(files[0]);
    assert_eq!(place[0].sector, (32768 + 2048) * 8);
    assert_eq!((data.len(), place.len()), (20, 1));
    assert!(data.iter().all(|s| s.nr_sectors == 8));
    assert!(data.windows(2).all(|w| w[0].sector + 8 == w[1].sector));
    // Descriptor; superblock, the tree's one leaf, the data's bitmap; commit
    // block.
    assert_eq!(log.len(), 1 + 3 + 1, "{log:?}");
    assert!(log.windows(2).all(|w| w[0].sector + 8 == w[1].sector));
    let (commit, before) = log.split_last().expect("a commit block");
    assert!(before.iter().all(|s| s.done <= commit.submitted));
    let data_done = data.iter().map(|s| s.done).max();
    assert!(Some(before[0].submitted) >= data_done);
    assert!(commit.sync && !before[0].sync);
    assert_eq!(data[0].submitted.0 / SECONDS, 5, "with the superblock");
}

#[test]
fn small_files_are_in_leaves_and_nowhere_else() {
    let (machine, cache) = boot(|_| {});
    let files = make(&machine, &cache, vec![700; 40], Time(60 * SECONDS));
    assert!(files.iter().all(|f| cache.extents(*f).is_empty()));
    let writes = writes(&machine);
    let pages: u64 = writes.iter().map(|s| u64::from(s.nr_sectors) / 8).sum();
    // 40 times 68, 728 and 32 bytes in leaves of 4072, less the heads that
    // entries share; each once to the log and once to its place.
    let leaves = (40 * (68 + 728 + 32_u64)).div_ceil(4072);
    assert!(
        pages > 2 * leaves && pages < 5 * leaves,
        "{pages} of {leaves}"
    );
    assert_eq!(cache.usage().dirty, 0);

    let (machine, cache) = boot(|o| o.tails = Tails::Off);
    let files = make(&machine, &cache, vec![700; 40], Time(60 * SECONDS));
    assert!(files.iter().all(|f| cache.extents(*f).len() == 1));
    assert!(writes_of(&machine, |s| !LOG.contains(&s.sector)) > 40);
}

fn writes_of(machine: &Machine, which: impl Fn(&Served) -> bool) -> usize {
    writes(machine).iter().filter(|s| which(s)).count()
}

#[test]
fn a_cold_tail_costs_the_way_to_its_leaf() {
    let (machine, cache) = boot(|_| {});
    let files = make(&machine, &cache, vec![700; 200], Time(60 * SECONDS));
    cache.drop_caches();
    let before = machine.log().len();
    let c = cache.clone();
    machine.task("read", async move {
        let fd = c.open_file(files[100]).await.expect("it is there");
        assert_eq!(c.read(fd, 0, 4096).await, Ok(700));
        assert_eq!(c.read(fd, 0, 4096).await, Ok(700));
        c.close(fd).await.expect("it is open");
    });
    machine.run(&cache);
    let reads = machine.log()[before..]
        .iter()
        .filter(|s| s.op == Op::Read)
        .count();
    // The root, the leaf of the entry, the leaves of stat data and tail.
    assert!((2..=4).contains(&reads), "{reads} reads");
}

#[test]
fn a_tail_becomes_a_block_when_its_file_grows() {
    let (machine, cache) = boot(|_| {});
    let files = make(&machine, &cache, vec![700], Time(10 * SECONDS));
    cache.drop_caches();
    let (c, file) = (cache.clone(), files[0]);
    machine.task("append", async move {
        let fd = c.open_file(file).await.expect("it is there");
        assert_eq!(c.write(fd, 700, 9000).await, Ok(9000));
        assert_eq!(c.read(fd, 0, 20_000).await, Ok(9700));
        c.close(fd).await.expect("it is open");
    });
    machine.run_until(&cache, Time(60 * SECONDS));
    let place = cache.extents(files[0]);
    assert_eq!(place.iter().map(|e| e.pages).sum::<u64>(), 3);
    let first = place[0].sector;
    assert!(writes_of(&machine, |s| s.sector == first) > 0);
}

#[test]
fn fsync_commits_what_the_file_needs_and_nothing_twice() {
    let (machine, cache) = boot(|_| {});
    let c = cache.clone();
    machine.task("fsync", async move {
        let name = Name { bytes: 5, hash: 9 };
        let id = c.create(c.root(), name).await.expect("space");
        let fd = c.open_file(id).await.expect("it is there");
        c.write(fd, 0, 8192).await.expect("space");
        c.fsync(fd).await.expect("no errors");
        c.fsync(fd).await.expect("no errors");
    });
    machine.run(&cache);
    let writes = writes(&machine);
    let log: Vec<&Served> = writes.iter().filter(|s| LOG.contains(&s.sector)).collect();
    assert_eq!(writes.len() - log.len(), 2, "the data");
    assert_eq!(log.len(), 1 + 3 + 1);
}

#[test]
fn full_batches_are_committed_by_the_work_queue_and_flushed_before_the_log_wraps() {
    let (machine, cache) = boot(|_| {});
    // 1500 bytes each: 400 files change about 200 leaves.
    make(&machine, &cache, vec![1500; 30_000], Time(120 * SECONDS));
    let writes = writes(&machine);
    let headers = writes.iter().filter(|s| s.sector == HEADER).count();
    assert!(headers > 0, "the log of 8192 blocks went round");
    let log: Vec<&Served> = writes.iter().filter(|s| LOG.contains(&s.sector)).collect();
    assert!(log.len() > 8192, "{} blocks of the log", log.len());
    // One after another, round and round; a commit block may come after the
    // blocks of the next transaction, which are pushed with it.
    let steps = log.windows(2).filter(|w| {
        let next = w[0].sector + 8;
        let next = if next == LOG.end { LOG.start } else { next };
        w[1].sector == next
    });
    assert!(steps.count() * 100 > log.len() * 95);
    assert_eq!(cache.usage().dirty, 0);
}

#[test]
fn listing_reads_sixteen_leaves_at_a_time() {
    let (machine, cache) = boot(|_| {});
    make(&machine, &cache, vec![1; 6000], Time(100 * SECONDS));
    cache.drop_caches();
    let before = machine.log().len();
    let c = cache.clone();
    machine.task("list", async move {
        assert_eq!(c.list(c.root()).await.map(|l| l.len()), Ok(6000));
    });
    machine.run(&cache);
    let log = machine.log();
    let reads: Vec<&Served> = log[before..].iter().filter(|s| s.op == Op::Read).collect();
    // 6000 entries of 32 bytes: at least 48 leaves.
    assert!(reads.len() >= 48, "{} reads", reads.len());
    // When the first of them has arrived, one more is asked for.
    let waiting = |s: &&&Served| {
        let flying = |r: &&&Served| r.submitted <= s.submitted && r.done > s.submitted;
        (12..=16).contains(&reads.iter().filter(flying).count())
    };
    assert!(reads.iter().filter(waiting).count() * 10 > reads.len() * 6);
    let sorted = |c: &PageCache<Machine>, ids: Vec<FileId>| {
        let places: Vec<_> = ids.iter().map(|id| c.listing_place(*id)).collect();
        places.windows(2).all(|w| w[0] < w[1])
    };
    let c = cache.clone();
    machine.task("order", async move {
        let ids = c.list(c.root()).await.expect("it is a directory");
        assert!(sorted(&c, ids), "in order of the hash");
    });
    machine.run(&cache);
}

#[test]
fn writeback_mode_does_not_wait_for_data() {
    let (machine, cache) = boot(|o| o.data = blklab_fs::DataMode::Writeback);
    make(&machine, &cache, vec![20 * 4096], Time(20 * SECONDS));
    assert!(writes_of(&machine, |s| LOG.contains(&s.sector)) > 0);
    assert_eq!(writes_of(&machine, |s| !LOG.contains(&s.sector)), 0);
}
