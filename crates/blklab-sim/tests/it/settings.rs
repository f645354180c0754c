// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every setting on every kernel: what the tables say is what the model does.

use crate::rig::{Ran, experiment, run, try_run};
use blklab_experiment::{DeviceSpec, Experiment, settings};
use blklab_kernel::{KernelVersion, Tunable, releases};
use blklab_pagecache::{Config, Features};
use blklab_sim::catalogue;
use blklab_sim::fio::cache_config;
use blklab_trace::Action;

/// The default disk and scheduler of a kernel.
fn on(kernel: KernelVersion) -> Experiment {
    let mut e = experiment();
    e.queue = Default::default();
    e.vm = Default::default();
    e.scheduler_chosen = false;
    // Schedulers compute some defaults in ticks.
    e.set("hz", "1000", &catalogue()).expect("a rate");
    e.device = DeviceSpec {
        name: "sata-7200-2008".to_owned(),
        params: Vec::new(),
    };
    e.choose_kernel(kernel, &catalogue());
    e
}

const JOB: &str = "[a]\nrw=randwrite\nbs=4k\nsize=64k\nnumber_ios=4\nfsync=2\n\
                   [b]\nioengine=libaio\ndirect=1\niodepth=4\nrw=randread\nsize=64k\nnumber_ios=8\n";

/// The tables of settings that are numbers, with that of the kernel's default
/// scheduler.
fn tables(e: &Experiment) -> Vec<&'static [Tunable]> {
    let scheduler = blklab_sched::ALL.iter().find(|s| s.name == e.scheduler);
    // The rate is chosen above, so that it is no default.
    let numbers = settings::all().filter(|s| !s.is_text() && s.name() != "hz");
    numbers
        .map(settings::Setting::rows)
        .chain([scheduler.expect("a scheduler").tunables])
        .collect()
}

#[test]
fn a_setting_at_its_default_changes_nothing_and_is_refused_where_it_does_not_exist() {
    for kernel in releases() {
        let mut base = on(kernel);
        // It has the same limits, and is made faster.
        base.device = DeviceSpec {
            name: "simdisk-2628".to_owned(),
            params: vec![("write_cache_sectors".to_owned(), "4096".to_owned())],
        };
        let digest = run(&base, JOB).digest();
        let (mut given, mut refused) = (0, 0);
        for table in tables(&base) {
            for t in table {
                let named = |t: &&Tunable| t.is_in(kernel);
                let row = table.iter().filter(|o| o.name == t.name).find(named);
                let mut e = base.clone();
                let Some(row) = row else {
                    let told = e
                        .set(t.name, &t.default.to_string(), &catalogue())
                        .unwrap_err()
                        .to_string();
                    let of = format!("{} on {kernel}: {told}", t.name);
                    assert!(told.contains("does not have it; it exists "), "{of}");
                    assert!(!e.can_set(t.name, &catalogue()), "{of}");
                    refused += 1;
                    continue;
                };
                if !std::ptr::eq(row, t) {
                    continue;
                }
                assert!(e.can_set(t.name, &catalogue()), "{} on {kernel}", t.name);
                if !(t.range.0..=t.range.1).contains(&t.default) {
                    // What is not set: there is no value for it.
                    assert!(
                        e.set(t.name, &t.default.to_string(), &catalogue()).is_err(),
                        "{}",
                        t.name
                    );
                    continue;
                }
                let value = match t.name {
                    "memory" => format!("{}k", t.default),
                    _ => t.default.to_string(),
                };
                e.set(t.name, &value, &catalogue())
                    .unwrap_or_else(|err| panic!("{kernel}: {err}"));
                e.check(&catalogue())
                    .unwrap_or_else(|err| panic!("{kernel}: {err}"));
                assert_eq!(
                    run(&e, JOB).digest(),
                    digest,
                    "{}={value} on {kernel}",
                    t.name
                );
                given += 1;
            }
        }
        assert!(given >= 25, "{kernel}: {given} set, {refused} refused");
    }
}

#[test]
fn the_defaults_of_the_tables_are_those_of_the_model() {
    for kernel in releases() {
        let e = on(kernel);
        let shown = |name: &str| {
            let row = settings::find(name).and_then(|s| s.row_in(kernel));
            row.unwrap_or_else(|| panic!("{name} on {kernel}")).default
        };
        let limits = e.queue_facts(&catalogue()).expect("limits");
        // From 6.17 on that of a disk that seeks follows its largest request.
        let mut on_flash = e.clone();
        on_flash.queue.rotational = Some(false);
        let solid = on_flash.queue_facts(&catalogue()).expect("limits");
        let nr_requests = limits.nr_requests;
        let depth = e.queue_depth(&catalogue()).expect("a depth");
        let queue = [
            ("nr_requests", i64::from(nr_requests)),
            ("max_sectors_kb", i64::from(limits.max_sectors) / 2),
            ("max_segments", i64::from(limits.max_segments)),
            ("queue_depth", i64::from(depth)),
            ("read_ahead_kb", (solid.read_ahead_bytes >> 10) as i64),
        ];
        for (name, model) in queue {
            assert_eq!(shown(name), model, "{name} on {kernel}");
        }
        let features = Features::of(kernel);
        let capacity = blklab_sim::build_device(&e)
            .expect("a device")
            .capacity_sectors();
        let (config, _) = cache_config(&e, features, capacity).expect("settings");
        let own = Config::new(features, config.memory_bytes);
        let machine = [
            ("dirty_ratio", i64::from(own.dirty_ratio)),
            (
                "dirty_background_ratio",
                i64::from(own.dirty_background_ratio),
            ),
            (
                "dirty_writeback_centisecs",
                own.dirty_writeback_centisecs as i64,
            ),
            ("dirty_expire_centisecs", own.dirty_expire_centisecs as i64),
            ("memory", (config.memory_bytes >> 10) as i64),
            ("page_cost_ns", config.page_cost.ns() as i64),
            ("writeout_cost_ns", config.writeout_cost.ns() as i64),
            ("io_cost_ns", e.io_cost().ns() as i64),
            ("call_cost_ns", e.call_cost().ns() as i64),
            ("reap_cost_ns", e.reap_cost().ns() as i64),
            ("direct_page_cost_ns", e.direct_page_cost().ns() as i64),
            ("job_start_ns", e.job_start().ns() as i64),
            ("io_u_setup_ns", e.io_u_setup().ns() as i64),
            ("buffer_page_ns", e.buffer_page().ns() as i64),
            ("look_cost_ns", e.look_cost().ns() as i64),
            ("start_look_cost_ns", e.start_look_cost().ns() as i64),
            ("uptime_ms", e.uptime().ns() as i64 / 1_000_000),
            ("uptime_ns", e.uptime().ns() as i64 % 1_000_000),
            ("dirty_at_start_mb", (e.dirty_at_start_bytes() >> 20) as i64),
        ];
        for (name, model) in machine {
            assert_eq!(shown(name), model, "{name} on {kernel}");
        }
        // What only some releases have takes no time in the others.
        let row = settings::find("job_setup_ns").and_then(|s| s.row_in(kernel));
        let setup_ns = row.map_or(0, |row| row.default);
        assert_eq!(e.job_setup().ns() as i64, setup_ns, "on {kernel}");
        assert!(config.dirty_bytes.is_none() && config.dirty_background_bytes.is_none());
    }
}

#[test]
fn timers_and_dirty_pages_from_before_the_load_move_its_writes() {
    let job = "[a]\nrw=write\nbs=64k\nsize=8m\nrate=1m\nend_fsync=1\n";
    let with = |set: &[(&str, &str)]| {
        let mut e = on("2.6.28".parse().expect("a release"));
        // Pages are written during the load.
        for key in ["dirty_expire_centisecs", "dirty_writeback_centisecs"] {
            e.set(key, "100", &catalogue()).expect("a second");
        }
        for (key, value) in set {
            e.set(key, value, &catalogue()).expect("a value");
        }
        run(&e, job)
    };
    let plain = with(&[]);
    let zero = with(&[("uptime_ms", "0"), ("dirty_at_start_mb", "0")]);
    assert_eq!(plain.digest(), zero.digest());
    let late = with(&[("uptime_ms", "1700")]);
    let dirty = with(&[("uptime_ms", "1700"), ("dirty_at_start_mb", "16")]);
    let end = |r: &Ran| r.outcome.end.0;
    assert!(end(&late) > end(&plain) + 1_600_000_000);
    let moved = with(&[("uptime_ms", "1700"), ("uptime_ns", "300000")]);
    assert!(end(&moved) > end(&late), "0.3 ms more");
    // Write-back comes at another point of the load: not all is moved by 1.7 s.
    let since = |r: &Ran, begin: u64| -> Vec<u64> {
        r.events
            .iter()
            .map(|e| e.time.0.saturating_sub(begin))
            .collect()
    };
    assert_ne!(since(&plain, 0), since(&late, 1_700_000_000));
    let sectors = |r: &Ran| r.spans(Action::Queue).iter().map(|s| s.1).sum::<u64>();
    assert_eq!(
        sectors(&dirty),
        sectors(&late) + (16 << 11),
        "16 MiB more are written"
    );
    let mut e = on("2.6.28".parse().expect("a release"));
    e.set("dirty_at_start_mb", "1000000", &catalogue())
        .expect("a value");
    let error = try_run(&e, job).err().expect("it does not fit");
    assert!(error.contains("dirty_at_start_mb"), "{error}");
}

#[test]
fn write_through_keeps_flushes_from_a_disk_with_a_cache() {
    let job = "[a]\nfilename=/dev/sda\ndirect=1\nrw=randwrite\nbs=4k\nsize=1m\n\
               number_ios=8\nfsync=1\n";
    let flushes = |value: Option<&str>| {
        let mut e = on("6.1".parse().expect("a release"));
        if let Some(value) = value {
            e.set("write_cache", value, &catalogue()).expect("a value");
        }
        let r = run(&e, job);
        let sent = r.spans(blklab_trace::Action::Issue);
        sent.iter().filter(|(_, sectors)| *sectors == 0).count()
    };
    assert_eq!(flushes(None), 7);
    assert_eq!(flushes(Some("write back")), 7);
    assert_eq!(flushes(Some("write through")), 0);
    let mut e = on("6.1".parse().expect("a release"));
    let told = e
        .set("write_cache", "maybe", &catalogue())
        .unwrap_err()
        .to_string();
    assert_eq!(
        told,
        "write_cache=maybe: expected 'write back' or 'write through'"
    );
}
