// SPDX-License-Identifier: MIT OR Apache-2.0
//! `O_DIRECT` and asynchronous contexts.

use crate::{DISK, MIB, boot, boot_on, rules_of};
use blklab_fs::{Filesystem, XfsFeatures, XfsOptions};
use blklab_pagecache::{Config, DirectRequest, FsError, Runtime};
use blklab_types::{Op, Time};

#[test]
fn direct_io_goes_past_the_cache_and_agrees_with_it() {
    let (machine, cache) = boot(rules_of("2.6.28"), 512 * MIB);
    let file = cache.create_laid_out(4 * MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("direct", async move {
        assert_eq!(c.direct_read(fd, 512, MIB).await, Ok(MIB));
        let log = m.log();
        assert_eq!(
            log.iter()
                .map(|b| (b.sector, b.nr_sectors))
                .collect::<Vec<_>>(),
            [(2049, 1024), (3073, 1024)]
        );
        assert_eq!(c.usage().cached, 0);
        assert_eq!(c.direct_read(fd, 100, 512).await, Err(FsError::Unaligned));
        assert_eq!(c.direct_read(fd, 4 * MIB, 512).await, Ok(0));
        assert_eq!(c.direct_read(fd, 4 * MIB - 512, MIB).await, Ok(512));

        // A dirty page is written before it is read or overwritten.
        assert_eq!(c.write(fd, 4096, 4096).await, Ok(4096));
        assert_eq!(c.direct_read(fd, 0, 16384).await, Ok(16384));
        assert_eq!(m.log()[3].op, Op::Write);
        assert_eq!(c.usage().cached, 1);
        assert_eq!(c.direct_write(fd, 0, 16384).await, Ok(16384));
        let last = *m.log().last().expect("a write");
        assert_eq!((last.op, last.sync, last.nr_sectors), (Op::Write, true, 32));
        assert_eq!(c.usage().cached, 0, "the cached page was dropped");
        assert_eq!(c.direct_write(fd, 4 * MIB, 4096).await, Ok(4096));
        assert_eq!(c.size_bytes(file), 4 * MIB + 4096);
    });
    machine.run(&cache);
    assert_eq!(cache.bios_in_flight(), 0);
}

#[test]
fn asynchronous_requests_end_as_events_in_order_of_completion() {
    let (machine, cache) = boot(rules_of("2.6.28"), 512 * MIB);
    let file = cache.create_laid_out(64 * MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("libaio", async move {
        let context = c.aio_setup();
        let request = |i: u64, write| DirectRequest {
            fd,
            write,
            offset: i * 4096,
            bytes: 4096,
            user_data: i,
            nowait: false,
        };
        for i in 0..32 {
            assert_eq!(c.aio_submit(context, request(i * 7, false)).await, Ok(()));
        }
        assert_eq!(m.now(), Time::ZERO, "submission does not wait");
        let mut events = Vec::new();
        assert_eq!(c.aio_getevents(context, 1, 4, &mut events).await, Ok(1));
        assert_eq!(c.aio_getevents(context, 31, 100, &mut events).await, Ok(31));
        let got: Vec<_> = events.iter().map(|e| (e.user_data, e.result)).collect();
        assert_eq!(got, (0..32).map(|i| (i * 7, Ok(4096))).collect::<Vec<_>>());

        // A write drops the pages that it makes old.
        assert_eq!(c.read(fd, 0, 4096).await, Ok(4096));
        assert!(c.usage().cached > 0);
        assert_eq!(c.aio_submit(context, request(0, true)).await, Ok(()));
        assert_eq!(c.read(fd, 0, 1).await, Ok(1));
        events.clear();
        assert_eq!(c.aio_getevents(context, 1, 1, &mut events).await, Ok(1));
        assert_eq!(m.log().len(), 32 + 1 + 2, "the page was read again");

        // A write that extends the file is over when its submission returns.
        events.clear();
        let extends = DirectRequest {
            offset: 64 * MIB,
            ..request(1, true)
        };
        assert_eq!(c.aio_submit(context, extends).await, Ok(()));
        assert_eq!(c.bios_in_flight(), 0);
        assert_eq!(c.aio_getevents(context, 0, 100, &mut events).await, Ok(1));
        let wrong = DirectRequest {
            bytes: 100,
            ..request(2, false)
        };
        assert_eq!(c.aio_submit(context, wrong).await, Err(FsError::Unaligned));
    });
    machine.run(&cache);
}

#[test]
fn a_plugged_request_waits_for_the_plug_timer() {
    let (machine, cache) = boot(rules_of("2.6.28"), 512 * MIB);
    let file = cache.create_laid_out(MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("libaio", async move {
        let context = c.aio_setup();
        let one = DirectRequest {
            fd,
            write: false,
            offset: 0,
            bytes: 4096,
            user_data: 0,
            nowait: false,
        };
        assert_eq!(c.aio_submit(context, one).await, Ok(()));
        let mut events = Vec::new();
        assert_eq!(c.aio_getevents(context, 1, 1, &mut events).await, Ok(1));
        assert!(m.now() > Time(3_000_000), "io_getevents does not unplug");
        let before = m.now();
        assert_eq!(c.direct_read(fd, 0, 4096).await, Ok(4096));
        assert!(
            m.now().since(before).ns() < 1_000_000,
            "a synchronous reader does"
        );
    });
    machine.run(&cache);
}

#[test]
fn direct_readers_queue_behind_a_writer_where_the_filesystem_locks() {
    let xfs = Filesystem::Xfs(XfsOptions::new(XfsFeatures::of(crate::kernel([2, 6, 28]))));
    for (filesystem, waits) in [(Filesystem::Extents(()), true), (xfs, false)] {
        let mut config = Config::new(rules_of("2.6.28"), 512 * MIB);
        config.layout.end_sector = 16 << 20;
        let (machine, cache) = boot_on(filesystem, config, DISK);
        let file = cache.create_laid_out(64 * MIB).expect("space");
        let fd = cache.open(file, false).expect("it exists");
        let c = cache.clone();
        machine.task("writer", async move {
            assert_eq!(c.write(fd, 0, 32 * MIB).await, Ok(32 * MIB));
        });
        let (c, m) = (cache.clone(), machine.clone());
        machine.task("reader", async move {
            assert_eq!(c.direct_read(fd, 48 * MIB, 4096).await, Ok(4096));
            // Copying 32 MiB takes longer than 20 ms.
            assert_eq!(
                m.now() > Time(20_000_000),
                waits,
                "{filesystem:?}: {}",
                m.now()
            );
        });
        machine.run(&cache);
    }
}
