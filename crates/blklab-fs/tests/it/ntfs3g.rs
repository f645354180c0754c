// SPDX-License-Identifier: MIT OR Apache-2.0
//! NTFS-3G: messages, one after another, and the pages of the device.

use crate::machine::{Machine, Served};
use crate::volumes::mount;
use crate::{MIB, rules_of};
use blklab_fs::{Filesystem, NtfsOptions};
use blklab_pagecache::{FileId, Name, PageCache};
use blklab_types::{Op, Span, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Sectors of the volume: 8 GiB.
const SECTORS: u64 = 16 << 20;
const SECONDS: u64 = 1_000_000_000;
/// Where data begin: behind the MFT's zone, the log and two bitmaps.
const DATA: u64 = (262_144 + 16_384 + 64 + 64) * 8;

fn boot(change: impl FnOnce(&mut NtfsOptions)) -> (Machine, PageCache<Machine>) {
    let mut options = NtfsOptions::default();
    change(&mut options);
    let filesystem = Filesystem::Ntfs(options);
    mount(filesystem, rules_of("2.6.28"), SECTORS, 512 * MIB)
}

async fn create(c: &PageCache<Machine>, hash: u32, bytes: u64) -> FileId {
    let name = Name { bytes: 10, hash };
    let id = c.create(c.root(), name).await.expect("space");
    let fd = c.open_file(id).await.expect("it is there");
    c.write(fd, 0, bytes).await.expect("space");
    c.close(fd).await.expect("it is open");
    id
}

/// How long a write of 128 KiB into a new file takes.
fn write_time(big_writes: bool) -> Span {
    let (machine, cache) = boot(|o| o.big_writes = big_writes);
    let took = Rc::new(RefCell::new(Span::ZERO));
    let (c, m, out) = (cache.clone(), machine.clone(), took.clone());
    machine.task("write", async move {
        // The metadata are in memory after the first file.
        create(&c, 1, 4096).await;
        let name = Name { bytes: 10, hash: 2 };
        let id = c.create(c.root(), name).await.expect("space");
        let fd = c.open_file(id).await.expect("it is there");
        let begin = blklab_pagecache::Runtime::now(&m);
        c.write(fd, 0, 128 << 10).await.expect("space");
        *out.borrow_mut() = blklab_pagecache::Runtime::now(&m).since(begin);
    });
    machine.run(&cache);
    took.take()
}

#[test]
fn a_write_is_a_message_per_page_unless_writes_are_big() {
    // 32 times 45 and 20 us, or once 45 and 32 times 20; and copying twice,
    // about 3.7 us a page each time.
    let (small, big) = (write_time(false), write_time(true));
    let copies = Span::from_us(2 * 32 * 4);
    let messages = Span::from_us(32 * 65);
    assert!(small >= messages && small <= messages + copies, "{small:?}");
    let messages = Span::from_us(45 + 32 * 20);
    assert!(big >= messages && big <= messages + copies, "{big:?}");
}

#[test]
fn the_daemon_serves_one_message_after_another() {
    let (machine, cache) = boot(|_| {});
    let ends = Rc::new(RefCell::new(Vec::new()));
    for task in 0..2 {
        let (c, m, ends) = (cache.clone(), machine.clone(), ends.clone());
        machine.task("create", async move {
            for n in 0..100 {
                create(&c, task * 1000 + n, 100).await;
            }
            ends.borrow_mut().push(blklab_pagecache::Runtime::now(&m));
        });
    }
    machine.run(&cache);
    // A look-up, a creation, a write, two messages at close: 365 us a file.
    let least = Time(200 * 365_000);
    let last = ends.borrow().iter().copied().max();
    assert!(last > Some(least), "{last:?}");
}

#[test]
fn small_files_are_in_their_records_and_others_in_a_row_behind_the_zone() {
    let (machine, cache) = boot(|_| {});
    let c = cache.clone();
    machine.task("create", async move {
        let free = |c: &PageCache<Machine>| c.free_space().map_or(0, |f| f.bytes);
        // Four records and a block of the index.
        let before = free(&c);
        for n in 0..4 {
            create(&c, n, 700).await;
        }
        assert_eq!(before - free(&c), 4096);
        let before = free(&c);
        create(&c, 9, 701).await;
        create(&c, 10, 30_000).await;
        // Records, an index block that the fifth or sixth entry needs, data.
        assert!((9 * 4096..=11 * 4096).contains(&(before - free(&c))));
    });
    machine.run_until(&cache, Time(60 * SECONDS));
    let log = machine.log();
    let data: Vec<&Served> = log
        .iter()
        .filter(|s| s.op == Op::Write && s.sector >= DATA)
        .collect();
    assert!(!data.is_empty());
    assert!(data.windows(2).all(|w| w[0].sector < w[1].sector));
}

#[test]
fn a_block_written_in_part_is_read_first_once() {
    let (machine, cache) = boot(|_| {});
    let c = cache.clone();
    machine.task("create", async move {
        create(&c, 1, 1000).await;
        create(&c, 1 << 20, 1000).await;
        create(&c, 2 << 20, 8192).await;
    });
    machine.run(&cache);
    let log = machine.log();
    let reads: Vec<&Served> = log.iter().filter(|s| s.op == Op::Read).collect();
    let mut sectors: Vec<u64> = reads.iter().map(|s| s.sector).collect();
    sectors.sort_unstable();
    let all = sectors.len();
    sectors.dedup();
    assert_eq!(sectors.len(), all, "nothing is read twice");
    // Two tails of 1000 bytes; the whole pages of the third file are not read.
    let data = sectors.iter().filter(|s| **s >= DATA);
    assert_eq!(data.count(), 2, "{sectors:?}");
}

#[test]
fn names_are_trusted_for_a_second() {
    let (machine, cache) = boot(|o| o.atime = false);
    let times = Rc::new(RefCell::new(Vec::new()));
    let (c, m, out) = (cache.clone(), machine.clone(), times.clone());
    machine.task("stat", async move {
        let id = create(&c, 1, 100).await;
        for pause_ms in [100, 100, 2000] {
            blklab_pagecache::Runtime::sleep(&m, Span::from_ms(pause_ms)).await;
            let begin = blklab_pagecache::Runtime::now(&m);
            c.stat(id).await.expect("it is there");
            let took = blklab_pagecache::Runtime::now(&m).since(begin);
            out.borrow_mut().push(took >= Span::from_us(45));
        }
    });
    machine.run(&cache);
    assert_eq!(times.take(), [false, false, true]);
}

#[test]
fn reads_go_through_the_daemon_with_read_ahead() {
    let (machine, cache) = boot(|_| {});
    let c = cache.clone();
    machine.task("write", async move {
        create(&c, 1, MIB).await;
        c.sync().await;
        c.drop_caches();
    });
    machine.run(&cache);
    let before = machine.log().len();
    let c = cache.clone();
    machine.task("read", async move {
        let ids = c.list(c.root()).await.expect("it is a directory");
        let fd = c.open_file(ids[0]).await.expect("it is there");
        for at in 0..256 {
            assert_eq!(c.read(fd, at * 4096, 4096).await, Ok(4096));
        }
    });
    machine.run(&cache);
    let log = machine.log();
    let daemon = log[before..].iter().filter(|s| s.op == Op::Read);
    let sectors: u64 = daemon.clone().map(|s| u64::from(s.nr_sectors)).sum();
    // All of the data, the way to them, and what the device's read-ahead adds.
    assert!((2048..2048 + 1024).contains(&sectors), "{sectors}");
    assert!(daemon.clone().count() < 60, "in pieces of up to 128 KiB");
    let first = daemon.clone().next().map(|s| s.task);
    assert!(daemon.map(|s| Some(s.task)).all(|t| t == first));
}

#[test]
fn fsync_flushes_the_device() {
    let (machine, cache) = boot(|_| {});
    let c = cache.clone();
    machine.task("fsync", async move {
        create(&c, 1, 50_000).await;
        let id = create(&c, 2, 4096).await;
        let fd = c.open_file(id).await.expect("it is there");
        c.fsync(fd).await.expect("no errors");
        assert_eq!(c.usage().dirty, 0, "the other file's pages, too");
    });
    machine.run(&cache);
}
