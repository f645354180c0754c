// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffered reads, read-ahead, advice, page faults.

use crate::machine::{Disk, Machine, SECTOR0};
use crate::{DISK, MIB, boot, boot_with, rules_of};
use blklab_pagecache::{Advice, Config, FadviseRandom, Fault, Features, FsError, Readahead};
use blklab_types::{Op, Time};

/// Reads pieces of a laid-out file after an advice; the machine afterwards.
pub(crate) fn read_pieces(
    features: Features,
    file_bytes: u64,
    advice: Advice,
    reads: &[(u64, u64)],
) -> Machine {
    let (machine, cache) = boot(features, 512 * MIB);
    let file = cache.create_laid_out(file_bytes).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, reads) = (cache.clone(), reads.to_vec());
    machine.task("reader", async move {
        assert_eq!(c.fadvise(fd, 0, 0, advice).await, Ok(()));
        for (at, len) in reads {
            assert_eq!(c.read(fd, at, len).await, Ok(len));
        }
    });
    machine.run(&cache);
    machine.run_until(&cache, Time(60_000_000_000));
    machine
}

/// What the device served of a file of 8 MiB as (first page, pages), and the
/// number in flight at most.
fn pieces(features: Features, advice: Advice, reads: &[(u64, u64)]) -> (Vec<(u64, u64)>, usize) {
    let machine = read_pieces(features, 8 * MIB, advice, reads);
    (machine.served(), machine.most_in_flight(1).unwrap_or(0))
}

#[test]
fn a_random_reader_of_2_6_28_reads_page_by_page() {
    let (got, in_flight) = pieces(
        rules_of("2.6.28"),
        Advice::Random,
        &[(400 * 4096, 44 << 10)],
    );
    assert_eq!(got, (400..411).map(|p| (p, 1)).collect::<Vec<_>>());
    assert_eq!(in_flight, 1);
    let whole = Features {
        fadvise_random: FadviseRandom::WholeRequest,
        ..rules_of("2.6.28")
    };
    let (got, _) = pieces(whole, Advice::Random, &[(400 * 4096, 44 << 10)]);
    assert_eq!(got, [(400, 11)]);
}

#[test]
fn sequential_readers_read_ahead() {
    let calls: Vec<_> = (0..64).map(|i| (i * 4096, 4096)).collect();
    let (got, _) = pieces(rules_of("2.6.28"), Advice::Normal, &calls);
    assert_eq!(
        got,
        [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32), (92, 32)]
    );
    let (got, _) = pieces(rules_of("2.6.16"), Advice::Normal, &calls);
    assert_eq!(
        got,
        [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32), (92, 32)]
    );
    let v2 = Features {
        readahead: Readahead::OnDemandV2,
        ..rules_of("2.6.28")
    };
    let calls: Vec<_> = (0..3).map(|i| (i * 131_072, 131_072)).collect();
    let (got, _) = pieces(v2, Advice::Normal, &calls);
    assert_eq!(got, [(0, 64), (64, 32), (96, 32)]);
    let (got, _) = pieces(rules_of("2.6.28"), Advice::Sequential, &calls);
    assert_eq!(got, [(0, 64), (64, 64), (128, 64)], "twice the window");
}

#[test]
fn a_page_that_is_there_is_not_read_again_until_it_is_dropped() {
    let (machine, cache) = boot(rules_of("2.6.28"), 512 * MIB);
    let file = cache.create_laid_out(MIB + 100).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("reader", async move {
        assert_eq!(
            c.read(fd, MIB - 4096, 9000).await,
            Ok(4196),
            "up to the end"
        );
        assert_eq!(c.read(fd, MIB + 100, 1).await, Ok(0));
        assert_eq!((m.log().len(), c.usage().cached), (1, 2));
        assert_eq!(c.read(fd, MIB - 4096, 4196).await, Ok(4196));
        assert_eq!(m.log().len(), 1);
        assert_eq!(c.fadvise(fd, 0, 0, Advice::DontNeed).await, Ok(()));
        assert_eq!(c.usage().cached, 0);
        assert_eq!(c.read(fd, MIB, 100).await, Ok(100));
        assert_eq!(c.write(fd, 0, 4096).await, Ok(4096));
        assert_eq!(c.drop_caches(), 1, "the dirty page stays");
        assert_eq!(c.read(fd, 0, 4096).await, Ok(4096));
        assert_eq!(m.log().len(), 2);
        assert_eq!(c.fadvise(fd, 0, 1 << 18, Advice::WillNeed).await, Ok(()));
        assert_eq!(c.usage().cached, 64);
    });
    machine.run(&cache);
}

#[test]
fn two_readers_share_one_read_and_errors_are_reported() {
    let disk = Disk {
        bad_sector: Some(SECTOR0 + 80 * 8),
        ..DISK
    };
    let (machine, cache) = boot_with(Config::new(rules_of("2.6.28"), 512 * MIB), disk);
    let file = cache.create_laid_out(MIB).expect("space");
    for _ in 0..2 {
        let fd = cache.open(file, false).expect("it exists");
        let c = cache.clone();
        machine.task("reader", async move {
            assert_eq!(c.read(fd, 0, 32 << 10).await, Ok(32 << 10));
        });
    }
    machine.run(&cache);
    machine.run_until(&cache, Time(1_000_000_000));
    assert_eq!(
        machine.log().len(),
        1,
        "the second one waited for the first one's pages"
    );
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("reader", async move {
        assert_eq!(c.read(fd, 80 * 4096, 4096).await, Err(FsError::Io));
        assert_eq!(c.read(fd, 81 * 4096, 4096).await, Ok(4096));
    });
    machine.run(&cache);
    assert_eq!(cache.stats().failed_bios, 2, "tried twice");
}

#[test]
fn faults_read_around_and_writes_through_mappings_make_dirty() {
    let (machine, cache) = boot(rules_of("2.6.28"), 512 * MIB);
    let file = cache.create_laid_out(8 * MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("program", async move {
        assert_eq!(c.fault(fd, 500, false).await, Ok(Fault::Major));
        assert_eq!(
            (m.log()[0].sector, m.log()[0].nr_sectors),
            (SECTOR0 + 484 * 8, 256)
        );
        assert_eq!(c.fault(fd, 515, true).await, Ok(Fault::Minor));
        assert_eq!(c.usage().dirty, 1);
        assert_eq!(c.fault(fd, 2048, false).await, Err(FsError::TooBig));
        c.madvise(fd, Advice::Random).expect("it is open");
        assert_eq!(c.fault(fd, 1000, false).await, Ok(Fault::Major));
        assert_eq!(m.log()[1].nr_sectors, 8);
        assert_eq!(c.fsync(fd).await, Ok(()));
        assert_eq!((m.log()[2].op, m.log()[2].nr_sectors), (Op::Write, 8));
        let fd = c.open(file, false).expect("it exists");
        c.madvise(fd, Advice::Sequential).expect("it is open");
        for page in 0..6 {
            let want = if page == 0 {
                Fault::Major
            } else {
                Fault::Minor
            };
            assert_eq!(c.fault(fd, page, false).await, Ok(want), "page {page}");
        }
        let reads: Vec<_> = m.log()[3..]
            .iter()
            .map(|b| ((b.sector - SECTOR0) / 8, b.nr_sectors / 8))
            .collect();
        assert_eq!(reads[..2], [(0, 4), (4, 8)]);
    });
    machine.run(&cache);
}

#[test]
fn a_file_larger_than_memory_pushes_itself_out() {
    let config = Config {
        kernel_bytes: 16 * MIB,
        ..Config::new(rules_of("2.6.28"), 48 * MIB)
    };
    let (machine, cache) = boot_with(config, DISK);
    let file = cache.create_laid_out(64 * MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("reader", async move {
        for pass in 1..=2 {
            for at in (0..64 * MIB).step_by(1 << 16) {
                assert_eq!(c.read(fd, at, 1 << 16).await, Ok(1 << 16));
            }
            assert!(
                c.stats().pages_read >= pass * 64 * 256,
                "nothing is left of the start"
            );
        }
    });
    machine.run(&cache);
    assert!(cache.usage().cached <= 32 * 256);
}

#[test]
fn pages_used_twice_stay_when_a_large_file_passes_through() {
    let config = Config {
        kernel_bytes: 16 * MIB,
        ..Config::new(rules_of("2.6.28"), 48 * MIB)
    };
    let (machine, cache) = boot_with(config, DISK);
    let files: Vec<_> = [4096, 4096, 64 * MIB]
        .map(|n| cache.create_laid_out(n).expect("space"))
        .into();
    let fds: Vec<_> = files
        .iter()
        .map(|f| cache.open(*f, false).expect("it exists"))
        .collect();
    let c = cache.clone();
    machine.task("reader", async move {
        for piece in 0..8 {
            assert_eq!(
                c.read(fds[0], piece * 500, 500).await,
                Ok(500),
                "going on is one use"
            );
            assert_eq!(c.read(fds[1], 0, 500).await, Ok(500));
        }
        for at in (0..64 * MIB).step_by(1 << 16) {
            assert_eq!(c.read(fds[2], at, 1 << 16).await, Ok(1 << 16));
        }
        let before = c.stats().pages_read;
        assert_eq!(c.read(fds[1], 0, 500).await, Ok(500));
        assert_eq!(c.stats().pages_read, before, "used often");
        assert_eq!(c.read(fds[0], 0, 500).await, Ok(500));
        assert_eq!(c.stats().pages_read, before + 1, "used once");
    });
    machine.run(&cache);
}
