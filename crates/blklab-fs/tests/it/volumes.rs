// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random work on names, on filesystems that count their space.
//!
//! Every task ends; what it left is on the disk after sync, every page after it
//! was last written; after everything is deleted the space is as before.

use crate::draw::Draw;
use crate::machine::{Machine, Served};
use crate::{DISK, MIB, boot_on, rules_of};
use blklab_fs::{Filesystem, NtfsOptions, ReiserOptions, Tails, VfsFeatures};
use blklab_pagecache::{Config, Features, FileId, FsError, Name, PageCache, Runtime};
use blklab_types::{Op, Span, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Sectors of the volume: 1 GiB.
const SECTORS: u64 = 2 << 20;
/// Pages of a file at most.
const PAGES: u64 = 60;

/// A machine with that filesystem on a volume of so many sectors.
pub(crate) fn mount(
    filesystem: Filesystem,
    features: Features,
    sectors: u64,
    memory_bytes: u64,
) -> (Machine, PageCache<Machine>) {
    let mut config = Config::new(features, memory_bytes);
    config.kernel_bytes = 8 * MIB;
    config.layout.start_sector = 0;
    config.layout.end_sector = sectors;
    boot_on(filesystem, config, DISK)
}

pub(crate) fn reiserfs(change: impl FnOnce(&mut ReiserOptions)) -> Filesystem {
    let mut options = ReiserOptions::new(VfsFeatures::of(crate::kernel([2, 6, 26])));
    change(&mut options);
    Filesystem::Reiser(options)
}

/// A file of a task: its bytes, and when each page was last written.
struct Made {
    id: FileId,
    bytes: u64,
    written: Vec<Time>,
}

/// What a task has made.
#[derive(Default)]
struct Work {
    directories: Vec<FileId>,
    files: Vec<Made>,
}

impl Work {
    /// Bytes are added to a file, in one or two calls.
    async fn append(
        &mut self,
        m: &Machine,
        c: &PageCache<Machine>,
        at: usize,
        bytes: u64,
    ) -> Result<(), FsError> {
        let f = &mut self.files[at];
        let bytes = bytes.min(PAGES * 4096 - f.bytes);
        let fd = c.open_file(f.id).await?;
        let first = bytes.min(5000);
        let mut result = Ok(());
        for part in [first, bytes - first] {
            let now = m.now();
            result = result.and(c.write(fd, f.bytes, part).await.map(|_| ()));
            if result.is_err() {
                break;
            }
            let end = f.bytes + part;
            f.written.resize(end.div_ceil(4096) as usize, now);
            for page in f.bytes / 4096..end.div_ceil(4096) {
                f.written[page as usize] = now;
            }
            f.bytes = end;
        }
        c.close(fd).await?;
        result
    }

    async fn truncate(&mut self, c: &PageCache<Machine>, at: usize) -> Result<(), FsError> {
        let f = &mut self.files[at];
        let fd = c.open_file(f.id).await?;
        c.truncate(fd).await?;
        (f.bytes, f.written) = (0, Vec::new());
        c.close(fd).await
    }

    async fn read(&self, c: &PageCache<Machine>, at: usize) -> Result<(), FsError> {
        let f = &self.files[at];
        let fd = c.open_file(f.id).await?;
        assert_eq!(c.read(fd, 0, PAGES * 4096).await?, f.bytes);
        c.close(fd).await
    }

    /// Changes a page through a mapping.
    async fn map(
        &mut self,
        m: &Machine,
        c: &PageCache<Machine>,
        at: usize,
        draw: u64,
    ) -> Result<(), FsError> {
        let f = &mut self.files[at];
        let pages = f.bytes.div_ceil(4096);
        if pages == 0 {
            return Ok(());
        }
        let fd = c.open_file(f.id).await?;
        let now = m.now();
        c.fault(fd, draw % pages, true).await?;
        f.written[(draw % pages) as usize] = now;
        c.close(fd).await
    }

    async fn fsync(&self, c: &PageCache<Machine>, at: usize) -> Result<(), FsError> {
        let fd = c.open_file(self.files[at].id).await?;
        c.fsync(fd).await?;
        c.close(fd).await
    }
}

fn name(draw: &mut Draw) -> Name {
    Name {
        bytes: 1 + draw.below(30) as u8,
        hash: draw.below(1 << 32) as u32,
    }
}

/// One random thing.
async fn step(
    m: &Machine,
    c: &PageCache<Machine>,
    work: &mut Work,
    draw: &mut Draw,
) -> Result<(), FsError> {
    let directory = work.directories[draw.below(work.directories.len() as u64) as usize];
    let some = draw.below(work.files.len().max(1) as u64) as usize;
    match draw.below(17) {
        0 => {
            let made = c.mkdir(directory, name(draw)).await?;
            work.directories.push(made);
        }
        1..=6 => {
            let id = c.create(directory, name(draw)).await?;
            work.files.push(Made {
                id,
                bytes: 0,
                written: Vec::new(),
            });
            let at = work.files.len() - 1;
            let most = [700, 4000, 20_000, 200_000][draw.below(4) as usize];
            work.append(m, c, at, draw.below(most)).await?;
        }
        7 => {
            let listed = c.list(directory).await?;
            assert!(listed.len() < 10_000);
        }
        8 => {
            c.drop_caches();
        }
        _ if work.files.is_empty() => {}
        9 | 10 => work.append(m, c, some, draw.below(30_000)).await?,
        11 => work.truncate(c, some).await?,
        12 => work.read(c, some).await?,
        13 => work.fsync(c, some).await?,
        14 => {
            let page = draw.below(1000);
            work.map(m, c, some, page).await?;
        }
        _ => {
            let id = work.files[some].id;
            work.files.swap_remove(some);
            c.unlink(id).await?;
        }
    }
    m.sleep(Span::from_us(draw.below(300_000))).await;
    Ok(())
}

fn settle(machine: &Machine, cache: &PageCache<Machine>) {
    let c = cache.clone();
    machine.task("sync", async move { c.sync().await });
    machine.run(cache);
    machine.run_until(cache, machine.now() + Span::from_s(120));
    let usage = cache.usage();
    assert_eq!(
        (usage.dirty, usage.writeback, cache.bios_in_flight()),
        (0, 0, 0)
    );
}

/// Every page that has a place was written there after it was last changed.
fn check_written(log: &[Served], cache: &PageCache<Machine>, work: &Work) {
    for f in &work.files {
        for e in cache.extents(f.id) {
            for nth in 0..e.pages {
                let (sector, since) = (e.sector + nth * 8, f.written[(e.page + nth) as usize]);
                let covers = |s: &&Served| {
                    s.op == Op::Write
                        && (s.sector..s.sector + u64::from(s.nr_sectors)).contains(&sector)
                };
                let last = log.iter().filter(covers).map(|s| s.submitted).max();
                assert!(last >= Some(since), "page {} of {:?}", e.page + nth, f.id);
            }
        }
    }
}

fn run(filesystem: Filesystem, features: Features, seed: u64, memory_mib: u64) -> Vec<Served> {
    let (machine, cache) = mount(filesystem, features, SECTORS, memory_mib * MIB);
    let before = cache.free_space().expect("it counts");
    let works: Vec<_> = (0..4)
        .map(|_| Rc::new(RefCell::new(Work::default())))
        .collect();
    for (task, work) in works.iter().cloned().enumerate() {
        let (c, m) = (cache.clone(), machine.clone());
        machine.task("random", async move {
            let mut draw = Draw(seed * 1000 + task as u64 + 1);
            let mut own = Work::default();
            let top = c.mkdir(c.root(), name(&mut draw)).await.expect("space");
            own.directories.push(top);
            for _ in 0..80 {
                step(&m, &c, &mut own, &mut draw).await.expect("space");
            }
            *work.borrow_mut() = own;
        });
    }
    machine.run(&cache);
    settle(&machine, &cache);
    let log = machine.log();
    for work in &works {
        check_written(&log, &cache, &work.borrow());
    }
    for work in works {
        let c = cache.clone();
        machine.task("delete", async move {
            let work = work.take();
            for f in work.files {
                c.unlink(f.id).await.expect("it is there");
            }
            for d in work.directories.into_iter().rev() {
                c.unlink(d).await.expect("it is empty");
            }
        });
    }
    machine.run(&cache);
    settle(&machine, &cache);
    let after = cache.free_space().expect("it counts");
    assert_eq!(after.bytes, before.bytes, "seed {seed}");
    machine.log()
}

const RELEASES: [Features; 4] = [
    rules_of("2.6.16"),
    rules_of("2.6.24"),
    rules_of("2.6.28"),
    rules_of("3.6"),
];

#[test]
fn reiserfs_loses_nothing_and_gives_all_space_back() {
    for features in RELEASES {
        for (seed, tails) in [(1, Tails::Small), (2, Tails::On), (3, Tails::Off)] {
            for memory_mib in [24, 200] {
                run(reiserfs(|o| o.tails = tails), features, seed, memory_mib);
            }
        }
    }
}

#[test]
fn ntfs_3g_loses_nothing_and_gives_all_space_back() {
    for features in RELEASES {
        for seed in 1..=3 {
            let options = NtfsOptions {
                big_writes: seed == 2,
                ..NtfsOptions::default()
            };
            for memory_mib in [24, 200] {
                run(Filesystem::Ntfs(options), features, seed, memory_mib);
            }
        }
    }
}

#[test]
fn the_same_run_twice_is_the_same() {
    let twice = |filesystem| {
        let one = run(filesystem, rules_of("2.6.28"), 7, 64);
        assert!(one == run(filesystem, rules_of("2.6.28"), 7, 64));
    };
    twice(reiserfs(|_| {}));
    twice(Filesystem::Ntfs(NtfsOptions::default()));
}

#[test]
fn full_volumes_say_so_and_can_be_emptied() {
    for (filesystem, mib) in [
        (reiserfs(|o| o.tails = Tails::On), 64),
        (Filesystem::Ntfs(NtfsOptions::default()), 32),
    ] {
        let (machine, cache) = mount(filesystem, rules_of("2.6.28"), mib * 2048, 128 * MIB);
        let before = cache.free_space();
        let c = cache.clone();
        machine.task("fill", async move {
            for round in 0..2_u32 {
                let top = c.mkdir(c.root(), Name::default()).await.expect("space");
                let mut files = Vec::new();
                let error = loop {
                    let n = files.len() as u32;
                    let name = Name {
                        bytes: 20,
                        hash: n.wrapping_mul(0x9e37_79b9) ^ round,
                    };
                    let id = match c.create(top, name).await {
                        Ok(id) => id,
                        Err(e) => break e,
                    };
                    files.push(id);
                    let fd = c.open_file(id).await.expect("it is there");
                    let wrote = c.write(fd, 0, 300 + u64::from(n % 9) * 20_000).await;
                    c.close(fd).await.expect("it is open");
                    if let Err(e) = wrote {
                        break e;
                    }
                };
                assert_eq!(error, FsError::NoSpace);
                assert!(files.len() > 100, "{} files", files.len());
                for id in files.into_iter().chain([top]) {
                    c.unlink(id).await.expect("it is there");
                }
            }
        });
        machine.run(&cache);
        settle(&machine, &cache);
        assert_eq!(cache.free_space().map(|f| f.bytes), before.map(|f| f.bytes));
    }
}
