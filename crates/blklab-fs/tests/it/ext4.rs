// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext4: when files get their places, what a commit waits for, what fsync
//! writes.

use crate::machine::{Disk, Machine, Served};
use crate::write::dd;
use crate::{DISK, MIB, boot_on};
use blklab_fs::{DataMode, Ext4Features, Ext4Options, Filesystem};
use blklab_pagecache::{Atime, Config, Features, FileId, FsError, Name, PageCache, Runtime};
use blklab_types::{BioFlags, Op, Span, Time};
use std::cell::RefCell;
use std::rc::Rc;

const SECONDS: u64 = 1_000_000_000;
/// Sectors of the volume: 8 GiB, 64 groups in four flex groups.
const DISK_SECTORS: u64 = 16 << 20;
/// The journal begins behind the tables of flex group 2.
const JOURNAL: u64 = (32 * 32768 + 16 * 514) * 8;

fn mount(
    release: [u16; 3],
    change: impl FnOnce(&mut Ext4Options),
) -> (Machine, PageCache<Machine>) {
    let [a, b, c] = release;
    let features = Features::of(crate::kernel([a, b, c]));
    let mut options = Ext4Options::new(Ext4Features::of(crate::kernel(release)));
    change(&mut options);
    let mut config = Config::new(features, 1024 * MIB);
    config.layout.start_sector = 0;
    config.layout.end_sector = DISK_SECTORS;
    boot_on(Filesystem::Ext4(options), config, DISK)
}

fn in_journal(s: &Served) -> bool {
    (JOURNAL..JOURNAL + (40_000 << 3)).contains(&s.sector) && s.nr_sectors > 0
}

/// Bitmaps, descriptors and inodes of the first flex group.
fn in_tables(s: &Served) -> bool {
    s.sector < 32768 * 8
}

fn writes(machine: &Machine) -> Vec<Served> {
    let mut log = machine.log();
    log.retain(|s| s.op == Op::Write);
    log
}

#[test]
fn data_before_metadata_before_the_commit_block() {
    let (machine, cache) = mount([4, 19, 0], |_| {});
    let file = cache.create_empty(None).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("dd", async move {
        for at in 0..20 {
            c.write(fd, at * MIB, MIB).await.expect("space");
        }
        c.fsync(fd).await.expect("no errors");
    });
    machine.run(&cache);
    let log = writes(&machine);
    let (journal, data): (Vec<&Served>, Vec<&Served>) = log.iter().partition(|s| in_journal(s));
    // 8 MiB of place at a time, bios of 128 pages.
    assert_eq!(data.len(), 40);
    assert!(data.windows(2).all(|w| w[0].sector + 1024 == w[1].sector));
    assert_eq!(cache.extents(file).len(), 1);
    // A descriptor; inode, bitmap, group descriptor; the commit block.
    assert_eq!(journal.len(), 1 + 3 + 1);
    assert!(journal.windows(2).all(|w| w[0].sector + 8 == w[1].sector));
    let data_done = data.iter().map(|s| s.done).max();
    assert!(
        Some(journal[0].submitted) >= data_done,
        "fsync waits for them"
    );
    let (commit, before) = journal.split_last().expect("a commit block");
    let barrier = BioFlags::FLUSH | BioFlags::FUA;
    assert!(commit.flags.has(BioFlags::FLUSH) && commit.flags.has(BioFlags::FUA));
    assert!(
        before
            .iter()
            .all(|s| !s.flags.any(barrier) && s.done <= commit.submitted)
    );
    let last = BioFlags::SYNC | BioFlags::NOIDLE;
    assert!(
        journal.iter().all(|s| s.flags.has(last)),
        "nothing follows them"
    );
}

#[test]
fn a_commit_waits_for_data_behind_its_metadata_and_before_its_block() {
    // The timer commits while data are on their way.
    let (machine, cache) = mount([2, 6, 32], |_| {});
    dd(&machine, &cache, 1024 * MIB);
    machine.run_until(&cache, Time(15 * SECONDS));
    let log = writes(&machine);
    let commit = log
        .iter()
        .find(|s| in_journal(s) && s.flags.has(BioFlags::BARRIER))
        .expect("a commit block");
    let first = log.iter().find(|s| in_journal(s)).expect("a descriptor");
    let data = || log.iter().filter(|s| !in_journal(s) && s.nr_sectors > 0);
    let named = data().filter(|s| s.submitted <= first.submitted);
    assert!(named.clone().any(|s| s.done > first.submitted));
    assert!(named.into_iter().all(|s| s.done <= commit.submitted));
}

#[test]
fn fsync_commits_what_the_end_of_a_write_changes() {
    let (machine, cache) = mount([6, 1, 0], |o| o.atime = Atime::Never);
    let file = cache.create_empty(None).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("write", async move {
        c.write(fd, 0, 4096).await.expect("space");
        c.fdatasync(fd).await.expect("no errors");
        c.fdatasync(fd).await.expect("no errors");
    });
    machine.run(&cache);
    let log = writes(&machine);
    let what: Vec<(bool, u32)> = log.iter().map(|s| (in_journal(s), s.nr_sectors)).collect();
    // The descriptor; inode, bitmap, group descriptor; the commit block.
    let commit = [(true, 8); 5];
    let want = [&[(false, 8)][..], &commit, &[(false, 0)]].concat();
    assert_eq!(what, want, "data; commit; nothing but a flush");
}

/// Commits from when a file of 8 MiB is on its way to the disk; another file's fsync asks for
/// one, since it was read.
fn commits_beside_data(release: [u16; 3]) -> usize {
    let (machine, cache) = mount(release, |o| o.atime = Atime::Strict);
    let [large, small] = [0, 1].map(|_| {
        let file = cache.create_empty(None).expect("space");
        cache.open(file, false).expect("it exists")
    });
    let c = cache.clone();
    machine.task("large", async move {
        c.spend(Span(SECONDS)).await;
        c.write(large, 0, 8 * MIB).await.expect("space");
        c.fdatasync(large).await.expect("no errors");
    });
    let c = cache.clone();
    machine.task("small", async move {
        c.write(small, 0, 4096).await.expect("space");
        c.fsync(small).await.expect("no errors");
        c.spend(Span(SECONDS + 20_000_000)).await;
        c.read(small, 0, 4096).await.expect("it is cached");
        c.fsync(small).await.expect("no errors");
    });
    machine.run(&cache);
    let log = writes(&machine);
    let mut data = log.iter().filter(|s| !in_journal(s) && s.nr_sectors > 8);
    let first = data.next().expect("data").submitted;
    let commits = log
        .iter()
        .filter(|s| in_journal(s) && s.flags.has(BioFlags::FUA));
    commits.filter(|s| s.submitted >= first).count()
}

#[test]
fn blocks_are_converted_when_their_data_are_on_the_disk() {
    // Both files are in one transaction, which waits for the data.
    assert_eq!(commits_beside_data([5, 5, 0]), 1);
    // It does not, and what the end of the data changes is in the next one.
    assert_eq!(commits_beside_data([5, 6, 0]), 2);
}

#[test]
fn a_disk_that_refuses_barriers_gets_none_any_more() {
    let [a, b, c] = [2, 6, 32];
    let mut config = Config::new(Features::of(crate::kernel([a, b, c])), 1024 * MIB);
    config.layout.start_sector = 0;
    config.layout.end_sector = DISK_SECTORS;
    // The superblock, a descriptor, an inode; then the commit block.
    let commit = JOURNAL + 3 * 8;
    let disk = Disk {
        bad_sector: Some(commit),
        ..DISK
    };
    let (machine, cache) = boot_on(
        Filesystem::Ext4(Ext4Options::new(Ext4Features::of(crate::kernel([a, b, c])))),
        config,
        disk,
    );
    let file = cache.create_laid_out(MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("write", async move {
        for _ in 0..2 {
            c.write(fd, 0, 4096).await.expect("space");
            c.fsync(fd).await.expect("no errors");
            // Another tick, another time of change.
            m.sleep(Span::from_ms(10)).await;
        }
        // Nothing to commit, and no barrier to flush the disk with.
        c.fsync(fd).await.expect("no errors");
    });
    machine.run(&cache);
    let log = writes(&machine);
    assert!(log.iter().all(|s| s.nr_sectors > 0));
    let journal = log.iter().filter(|s| in_journal(s));
    let what: Vec<(u64, bool)> = journal
        .map(|s| ((s.sector - JOURNAL) / 8, s.flags.has(BioFlags::BARRIER)))
        .collect();
    let plain = [(3, false), (4, false), (5, false), (6, false)];
    let want = [&[(1, false), (2, false), (3, true)][..], &plain].concat();
    assert_eq!(what, want);
}

#[test]
fn nothing_has_a_place_before_it_is_written_out() {
    let (machine, cache) = mount([2, 6, 32], |_| {});
    let file = cache.create_empty(None).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("write", async move {
        c.write(fd, 0, 10 * MIB).await.expect("space");
    });
    machine.run_until(&cache, Time(20 * SECONDS));
    assert_eq!(cache.extents(file).len(), 0);
    assert!(writes(&machine).iter().all(in_journal), "the inode's times");
    machine.run_until(&cache, Time(45 * SECONDS));
    assert_eq!(cache.extents(file).len(), 1);
    let data: Vec<Served> = writes(&machine)
        .into_iter()
        .filter(|s| !in_journal(s) && !in_tables(s))
        .collect();
    let sectors: u64 = data.iter().map(|s| u64::from(s.nr_sectors)).sum();
    assert_eq!(sectors, 10 * 2048);
    machine.run_until(&cache, Time(120 * SECONDS));
    assert_eq!((cache.usage().dirty, cache.usage().writeback), (0, 0));
}

#[test]
fn data_went_out_page_by_page_up_to_2_6_36() {
    for (release, bios) in [([2, 6, 36], 2560), ([2, 6, 37], 20)] {
        let (machine, cache) = mount(release, |o| o.data = DataMode::Writeback);
        dd(&machine, &cache, 10 * MIB);
        machine.run_until(&cache, Time(60 * SECONDS));
        let data = writes(&machine)
            .into_iter()
            .filter(|s| !in_journal(s) && !in_tables(s));
        assert_eq!(data.count(), bios, "{release:?}");
    }
}

#[test]
fn fsync_waits_for_the_inodes_transaction_and_flushes_if_there_is_none() {
    let (machine, cache) = mount([4, 19, 0], |o| o.atime = Atime::Never);
    let file = cache.create_laid_out(MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("write", async move {
        c.write(fd, 0, 4096).await.expect("space");
        // Only times have changed: the data, and a flush.
        c.fdatasync(fd).await.expect("no errors");
        // Data and times.
        c.fsync(fd).await.expect("no errors");
        c.fsync(fd).await.expect("no errors");
    });
    machine.run(&cache);
    let log = writes(&machine);
    let what: Vec<(bool, u32)> = log.iter().map(|s| (in_journal(s), s.nr_sectors)).collect();
    let flush = (false, 0);
    let commit = [(true, 8); 3];
    let want = [&[(false, 8), flush][..], &commit, &[flush]].concat();
    assert_eq!(what, want, "data; flush; descriptor, inode, commit; flush");
}

#[test]
fn a_commit_writes_the_rest_of_its_files_up_to_4_6() {
    for (release, written) in [([4, 6, 0], true), ([4, 7, 0], false)] {
        let (machine, cache) = mount(release, |_| {});
        let file = cache.create_laid_out(MIB).expect("space");
        let fd = cache.open(file, false).expect("it exists");
        let c = cache.clone();
        machine.task("write", async move {
            // One new page on its way, and an old one that is dirty.
            c.write(fd, MIB, 4096).await.expect("space");
            c.sync_file_range(fd, MIB, 4096, all_steps())
                .await
                .expect("no errors");
            c.write(fd, 0, 8192).await.expect("space");
        });
        machine.run_until(&cache, Time(10 * SECONDS));
        let old = cache.extents(file)[0].sector;
        let log = writes(&machine);
        let bios: Vec<&Served> = log
            .iter()
            .filter(|s| (old..old + 16).contains(&s.sector))
            .collect();
        assert_eq!(bios.len(), if written { 2 } else { 0 }, "{release:?}");
        assert!(bios.iter().all(|s| s.nr_sectors == 8));
    }
}

fn all_steps() -> blklab_pagecache::SyncRange {
    blklab_pagecache::SyncRange {
        wait_before: true,
        write: true,
        wait_after: true,
    }
}

#[test]
fn a_file_cut_to_nothing_is_written_at_close() {
    for (auto, at_close) in [(true, 1), (false, 0)] {
        let (machine, cache) = mount([3, 7, 0], |o| o.auto_da_alloc = auto);
        let c = cache.clone();
        machine.task("rewrite", async move {
            let file = c.create(c.root(), name(1)).await.expect("space");
            let fd = c.open_file(file).await.expect("it exists");
            c.write(fd, 0, 4096).await.expect("space");
            c.truncate(fd).await.expect("no errors");
            c.write(fd, 0, 4096).await.expect("space");
            c.close(fd).await.expect("it is open");
        });
        machine.run(&cache);
        machine.run_until(&cache, Time(SECONDS));
        assert_eq!(writes(&machine).len(), at_close);
    }
}

fn name(number: u32) -> Name {
    Name {
        bytes: 12,
        hash: number.wrapping_mul(0x9e37_79b9),
    }
}

#[test]
fn looking_up_a_cold_file_reads_the_directory_and_a_piece_of_the_inode_table() {
    let (machine, cache) = mount([3, 7, 0], |_| {});
    let files: Rc<RefCell<Vec<FileId>>> = Rc::default();
    let (c, f) = (cache.clone(), files.clone());
    machine.task("create", async move {
        let dir = c.mkdir(c.root(), name(0)).await.expect("space");
        for i in 1..=1000 {
            let file = c.create(dir, name(i)).await.expect("space");
            f.borrow_mut().push(file);
        }
        c.sync().await;
        c.drop_caches();
        c.stat(dir).await.expect("no errors");
    });
    machine.run(&cache);
    machine.run_until(&cache, Time(5 * SECONDS));
    let before = machine.log().len();
    let (c, file) = (cache.clone(), files.borrow()[900]);
    machine.task(
        "stat",
        async move { c.stat(file).await.expect("no errors") },
    );
    machine.run_until(&cache, Time(6 * SECONDS));
    let log = machine.log();
    let reads: Vec<u32> = log[before..].iter().map(|s| s.nr_sectors).collect();
    assert!(log[before..].iter().all(|s| s.op == Op::Read));
    // The directory's root and a leaf, then blocks of inodes, one by one: the
    // second 32, of which inodes are in use in 31. The first were read with the
    // directory's.
    assert_eq!(reads.len(), 2 + 31, "{reads:?}");
    assert!(reads.iter().all(|n| *n == 8));
    let table = &log[before + 2..];
    assert!(table.windows(2).all(|w| w[0].sector + 8 == w[1].sector));
}

#[test]
fn what_is_removed_gives_its_blocks_back_when_it_is_committed() {
    let (machine, cache) = mount([4, 19, 0], |_| {});
    let c = cache.clone();
    machine.task("rounds", async move {
        // 12 GiB through a volume of less than 8.
        for round in 0..12 {
            let file = c.create(c.root(), name(round)).await.expect("space");
            let fd = c.open_file(file).await.expect("it exists");
            for at in 0..1024 {
                c.write(fd, at * MIB, MIB).await.expect("space");
            }
            c.close(fd).await.expect("it is open");
            c.sync().await;
            c.unlink(file).await.expect("it exists");
            c.sync().await;
        }
    });
    machine.run(&cache);
    assert_eq!(cache.usage().dirty, 0);
}

/// The flusher goes on giving places to a file that is being removed, behind the pages that
/// it waits for: blocks that were promised are taken or given back once.
#[test]
fn a_file_is_removed_while_it_is_written_out() {
    for release in [[2, 6, 32], [4, 19, 0], [6, 1, 0]] {
        let (machine, cache) = mount(release, |_| {});
        let free = cache.free_space();
        let c = cache.clone();
        let m = machine.clone();
        machine.task("rm", async move {
            for round in 0..6 {
                let id = c.create(c.root(), name(round)).await.expect("space");
                let fd = c.open_file(id).await.expect("it is there");
                for at in 0..160 {
                    c.write(fd, at * MIB, MIB).await.expect("space");
                }
                c.close(fd).await.expect("it is open");
                let other = c.clone();
                m.task("sync", async move { other.sync().await });
                m.sleep(Span::from_us(300 + 700 * u64::from(round))).await;
                c.unlink(id).await.expect("it is there");
            }
            c.sync().await;
        });
        machine.run(&cache);
        machine.run_until(&cache, Time(60 * SECONDS));
        assert_eq!(cache.usage().dirty, 0);
        assert_eq!(cache.free_space(), free);
    }
}

#[test]
fn a_full_volume_says_so_when_it_is_written_to() {
    let (machine, cache) = mount([4, 19, 0], |_| {});
    cache.create_laid_out(7500 * MIB).expect("space");
    let file = cache.create_empty(None).expect("an inode");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("dd", async move {
        let mut at = 0;
        let error = loop {
            match c.write(fd, at, MIB).await {
                Ok(n) => at += n,
                Err(error) => break error,
            }
        };
        assert_eq!(error, FsError::NoSpace);
        assert!(at > 100 * MIB && at < 692 * MIB, "{at}");
        // What was promised can be written.
        c.fsync(fd).await.expect("no errors");
    });
    machine.run(&cache);
}
