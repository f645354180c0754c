// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which flushes and forced writes fsync, `O_SYNC` and `O_DSYNC` bring about, by
//! release.

use crate::machine::{Machine, Served};
use crate::{DISK, MIB, boot_on, boot_with};
use blklab_fs::{Barrier, ExtFeatures, ExtOptions, Filesystem};
use blklab_pagecache::{
    Config, DirectRequest, Fd, Features, FileId, OSync, PageCache, Runtime, SyncCall, SyncRange,
    SyncRequest,
};
use blklab_types::{BioFlags, Span, Time};

const FLUSH: BioFlags = BioFlags(BioFlags::SYNC.0 | BioFlags::FLUSH.0);

/// What was written to: the disk as a file, or a file on `extents`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Device,
    File,
}

fn boot(release: [u16; 3], fua: bool) -> (Machine, PageCache<Machine>) {
    let [a, b, c] = release;
    let features = Features::of(crate::kernel([a, b, c]));
    let config = Config {
        fua,
        ..Config::new(features, 512 * MIB)
    };
    boot_with(config, DISK)
}

fn place(cache: &PageCache<Machine>, place: Place) -> FileId {
    match place {
        Place::Device => cache.create_raw(0, 64 * MIB),
        Place::File => cache.create_laid_out(64 * MIB).expect("space"),
    }
}

/// Runs one task with an open file; the bios that the disk served.
fn task<F: Future<Output = ()> + 'static>(
    release: [u16; 3],
    fua: bool,
    at: Place,
    sync: OSync,
    body: impl FnOnce(PageCache<Machine>, Machine, Fd) -> F,
) -> Vec<Served> {
    let (machine, cache) = boot(release, fua);
    let file = place(&cache, at);
    let fd = cache.open(file, sync).expect("it exists");
    machine.task("task", body(cache.clone(), machine.clone(), fd));
    machine.run(&cache);
    assert_eq!(cache.bios_in_flight(), 0);
    machine.log()
}

fn is_flush(bio: &Served) -> bool {
    bio.nr_sectors == 0
}

fn forced(bio: &Served) -> bool {
    bio.flags.has(BioFlags::FUA)
}

#[test]
fn fsync_flushes_behind_the_data_from_2_6_33_on_block_devices_and_3_16_on_files() {
    let barrier = Some(BioFlags::BARRIER);
    let flush = Some(FLUSH);
    for (release, device, file) in [
        ([2, 6, 16], None, None),
        ([2, 6, 32], None, None),
        ([2, 6, 33], barrier, None),
        ([2, 6, 36], barrier, None),
        ([2, 6, 37], flush, None),
        ([3, 7, 0], flush, None),
        ([3, 15, 0], flush, None),
        ([3, 16, 0], flush, flush),
        ([4, 19, 0], flush, flush),
        ([6, 1, 0], flush, flush),
        ([6, 18, 0], flush, flush),
    ] {
        for (at, expected) in [(Place::Device, device), (Place::File, file)] {
            for data_only in [false, true] {
                let log = task(release, false, at, OSync::None, |c, _, fd| async move {
                    assert_eq!(c.write(fd, 0, 8192).await, Ok(8192));
                    let done = if data_only {
                        c.fdatasync(fd).await
                    } else {
                        c.fsync(fd).await
                    };
                    assert_eq!(done, Ok(()));
                });
                let flushes: Vec<&Served> = log.iter().filter(|b| is_flush(b)).collect();
                let of = format!("{release:?} {at:?} data only {data_only}");
                assert_eq!(flushes.first().map(|b| b.flags), expected, "{of}");
                assert!(flushes.len() <= 1, "{of}");
                let data: Vec<&Served> = log.iter().filter(|b| !is_flush(b)).collect();
                let sectors: u32 = data.iter().map(|b| b.nr_sectors).sum();
                assert_eq!(sectors, 16, "{of}");
                if let Some(flush) = flushes.first() {
                    assert!(data.iter().all(|b| b.done <= flush.submitted), "{of}");
                }
            }
        }
    }
}

#[test]
fn sync_file_range_never_flushes() {
    let steps = SyncRange {
        wait_before: true,
        write: true,
        wait_after: true,
    };
    for at in [Place::Device, Place::File] {
        let log = task([6, 1, 0], true, at, OSync::None, |c, _, fd| async move {
            assert_eq!(c.write(fd, 0, 8192).await, Ok(8192));
            assert_eq!(c.sync_file_range(fd, 0, 8192, steps).await, Ok(()));
        });
        assert!(!log.is_empty() && !log.iter().any(is_flush), "{at:?}");
    }
}

#[test]
fn tasks_flush_a_block_device_one_at_a_time_in_2_6_33_alone() {
    let most_at_a_time = |release| {
        let (machine, cache) = boot(release, false);
        let file = cache.create_raw(0, MIB);
        for _ in 0..3 {
            let fd = cache.open(file, false).expect("it exists");
            let c = cache.clone();
            machine.task(
                "fsync",
                async move { assert_eq!(c.fsync(fd).await, Ok(())) },
            );
        }
        machine.run(&cache);
        let flushes = machine.log();
        assert_eq!(flushes.len(), 3);
        let at = |t: Time| {
            flushes
                .iter()
                .filter(move |f| f.submitted <= t && t < f.done)
        };
        flushes.iter().map(|f| at(f.submitted).count()).max()
    };
    assert_eq!(most_at_a_time([2, 6, 33]), Some(1));
    assert_eq!(most_at_a_time([2, 6, 34]), Some(3));
    assert_eq!(most_at_a_time([6, 1, 0]), Some(3));
}

#[test]
fn buffered_writes_with_o_dsync_write_and_flush() {
    for at in [Place::Device, Place::File] {
        for sync in [OSync::Data, OSync::File] {
            let log = task([6, 1, 0], true, at, sync, |c, m, fd| async move {
                assert_eq!(c.write(fd, 0, 4096).await, Ok(4096));
                assert_eq!(m.log().len(), 2, "it waits for both");
            });
            assert!(!is_flush(&log[0]) && !forced(&log[0]), "{at:?}");
            assert_eq!(log[1].flags, FLUSH, "{at:?}");
        }
    }
}

/// Whether the write carried FUA, and flushes behind it, of a direct write.
fn direct(release: [u16; 3], fua: bool, at: Place, sync: OSync, offset: u64) -> (bool, usize) {
    let log = task(release, fua, at, sync, |c, _, fd| async move {
        assert_eq!(c.direct_write(fd, offset, 4096).await, Ok(4096));
    });
    assert!(!is_flush(&log[0]));
    (forced(&log[0]), log.iter().filter(|b| is_flush(b)).count())
}

#[test]
fn direct_writes_with_o_dsync_are_forced_or_flushed() {
    let device = |release, sync| direct(release, true, Place::Device, sync, 0);
    for sync in [OSync::Data, OSync::File] {
        assert_eq!(device([2, 6, 32], sync), (false, 0));
        assert_eq!(device([2, 6, 33], sync), (false, 1));
        assert_eq!(device([4, 9, 0], sync), (false, 1));
        // FUA, and a flush nevertheless.
        assert_eq!(device([4, 10, 0], sync), (true, 1));
        assert_eq!(device([6, 1, 0], sync), (true, 1));
        // A disk that does not know FUA: the block layer makes it a flush.
        assert_eq!(direct([6, 1, 0], false, Place::Device, sync, 0), (true, 1));
    }
    assert_eq!(device([6, 1, 0], OSync::None), (false, 0));

    let file = |release, fua, sync, offset| direct(release, fua, Place::File, sync, offset);
    assert_eq!(file([3, 15, 0], true, OSync::Data, 0), (false, 0));
    assert_eq!(file([4, 17, 0], true, OSync::Data, 0), (false, 1));
    assert_eq!(file([4, 18, 0], true, OSync::Data, 0), (true, 0));
    assert_eq!(file([6, 1, 0], true, OSync::Data, 0), (true, 0));
    assert_eq!(file([6, 1, 0], false, OSync::Data, 0), (false, 1));
    assert_eq!(file([6, 1, 0], true, OSync::File, 0), (false, 1));
    let behind_the_end = 64 * MIB;
    assert_eq!(
        file([6, 1, 0], true, OSync::Data, behind_the_end),
        (false, 1)
    );
}

/// A queued direct write: the bios, when its submission returned and when its
/// event came.
fn queued(release: [u16; 3], fua: bool, at: Place) -> (Vec<Served>, Time, Time) {
    let times = std::rc::Rc::new(std::cell::Cell::new((Time::ZERO, Time::ZERO)));
    let told = times.clone();
    let log = task(release, fua, at, OSync::Data, |c, m, fd| async move {
        let context = c.aio_setup();
        let request = DirectRequest {
            fd,
            write: true,
            offset: 0,
            bytes: 4096,
            user_data: 7,
            nowait: false,
        };
        assert_eq!(c.aio_submit(context, request).await, Ok(()));
        let submitted = m.now();
        m.unplug();
        let mut events = Vec::new();
        assert_eq!(c.aio_getevents(context, 1, 1, &mut events).await, Ok(1));
        assert_eq!((events[0].user_data, events[0].result), (7, Ok(4096)));
        told.set((submitted, m.now()));
    });
    (log, times.get().0, times.get().1)
}

#[test]
fn queued_direct_writes_are_synced_by_the_submitter_then_by_a_worker_then_by_fua() {
    let (log, submitted, end) = queued([2, 6, 32], true, Place::Device);
    assert_eq!((log.len(), submitted), (1, Time::ZERO));
    assert_eq!(end, log[0].done);

    // io_submit flushes, beside the write.
    let (log, submitted, _) = queued([3, 7, 0], true, Place::Device);
    assert_eq!(log.len(), 2);
    assert!(is_flush(&log[1]) && log[1].submitted < log[0].done);
    assert_eq!(submitted, log[1].done);

    // A worker flushes behind the write; then the end is told.
    for (release, at) in [
        ([3, 12, 0], Place::Device),
        ([4, 9, 0], Place::Device),
        ([3, 16, 0], Place::File),
        ([4, 17, 0], Place::File),
    ] {
        let (log, submitted, end) = queued(release, true, at);
        assert_eq!((log.len(), submitted), (2, Time::ZERO), "{release:?}");
        assert!(is_flush(&log[1]) && log[1].submitted >= log[0].done);
        assert_ne!(log[1].task, log[0].task, "{release:?}");
        assert_eq!(end, log[1].done, "{release:?}");
    }

    for (release, at) in [([4, 10, 0], Place::Device), ([6, 1, 0], Place::File)] {
        let (log, submitted, end) = queued(release, true, at);
        assert_eq!((log.len(), submitted), (1, Time::ZERO), "{release:?}");
        assert!(forced(&log[0]));
        assert_eq!(end, log[0].done);
    }
    // A file on a disk without FUA still needs the worker.
    let (log, _, end) = queued([6, 1, 0], false, Place::File);
    assert!(!forced(&log[0]) && is_flush(&log[1]));
    assert_eq!(end, log[1].done);
}

#[test]
fn queued_syncs_are_made_by_workers_side_by_side() {
    let log = task(
        [6, 1, 0],
        false,
        Place::Device,
        OSync::None,
        |c, m, fd| async move {
            let context = c.aio_setup();
            let request = |user_data| SyncRequest {
                fd,
                call: SyncCall::Data,
                cost: Span::from_us(2),
                user_data,
            };
            for i in 0..3 {
                assert_eq!(c.aio_sync(context, request(i)), Ok(()));
            }
            assert_eq!(m.now(), Time::ZERO, "submission does not wait");
            let mut events = Vec::new();
            assert_eq!(c.aio_getevents(context, 3, 3, &mut events).await, Ok(3));
            let got: Vec<_> = events.iter().map(|e| (e.user_data, e.result)).collect();
            assert_eq!(got, [(0, Ok(0)), (1, Ok(0)), (2, Ok(0))]);
            // The workers stay, and are used again.
            events.clear();
            assert_eq!(c.aio_sync(context, request(9)), Ok(()));
            assert_eq!(c.aio_getevents(context, 1, 1, &mut events).await, Ok(1));
        },
    );
    assert_eq!(log.len(), 4);
    assert!(log.iter().all(is_flush));
    let tasks: Vec<u32> = log.iter().map(|b| b.task.0).collect();
    assert!(tasks[0] != tasks[1] && tasks[1] != tasks[2] && tasks[..3].contains(&tasks[3]));
    assert!(log[..3].iter().all(|b| b.submitted == Time(2000)));
}

#[test]
fn ext2_flushes_from_3_16_and_ext3_behind_data_that_no_commit_flushes() {
    let flushes = |release: [u16; 3], journal, barrier| {
        let [a, b, c] = release;
        let features = Features::of(crate::kernel([a, b, c]));
        let ext = ExtFeatures::of(crate::kernel(release));
        let mut options = ExtOptions::new(journal, ext);
        options.barrier = Barrier::new(barrier, ext.flush_fua);
        let config = Config::new(features, 512 * MIB);
        let (machine, cache) = boot_on(Filesystem::Ext(options), config, DISK);
        let file = cache.create_laid_out(MIB).expect("space");
        let fd = cache.open(file, false).expect("it exists");
        let c = cache.clone();
        machine.task("task", async move {
            assert_eq!(c.write(fd, 0, 4096).await, Ok(4096));
            assert_eq!(c.fsync(fd).await, Ok(()));
            assert_eq!(c.write(fd, 0, 4096).await, Ok(4096));
            assert_eq!(c.fdatasync(fd).await, Ok(()));
        });
        machine.run(&cache);
        machine.log().iter().filter(|b| is_flush(b)).count()
    };
    assert_eq!(flushes([3, 15, 0], false, true), 0);
    assert_eq!(flushes([3, 16, 0], false, true), 2);
    // The commit of the first fsync flushes; the second has nothing to commit.
    assert_eq!(flushes([3, 7, 0], true, true), 1);
    assert_eq!(flushes([3, 7, 0], true, false), 0);
}
