// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random operations on ext3 and ext2, on several kernels with little memory:
//! what was written is on the disk after sync, no block is in two files, and
//! when everything is removed all space is free again.

use crate::draw::Draw;
use crate::ext3_names::{mount_with, name, run};
use crate::machine::{Machine, Served};
use crate::{MIB, rules_of};
use blklab_fs::DataMode;
use blklab_pagecache::{Config, FileId, Name, PageCache, Runtime};
use blklab_types::{Op, Span, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// A file of the random test, and when each of its pages was written last.
struct Known {
    id: FileId,
    pages: Vec<Option<Time>>,
}

#[derive(Default)]
struct Tree {
    directories: Vec<FileId>,
    files: Vec<Known>,
    next_name: u32,
}

impl Tree {
    fn new_name(&mut self) -> Name {
        self.next_name += 1;
        Name {
            bytes: 4 + (self.next_name % 40) as u8,
            ..name(self.next_name)
        }
    }
}

/// Several tasks that do random things; one does each with a file or a
/// directory at a time, as it takes them out of the tree.
async fn act(m: Machine, c: PageCache<Machine>, tree: Rc<RefCell<Tree>>, mut draw: Draw) {
    for _ in 0..150 {
        match draw.below(12) {
            0..=2 => {
                let (parent, name) = {
                    let mut t = tree.borrow_mut();
                    let at = draw.below(t.directories.len() as u64) as usize;
                    (t.directories[at], t.new_name())
                };
                let id = c.create(parent, name).await.expect("space");
                let pages = Vec::new();
                tree.borrow_mut().files.push(Known { id, pages });
            }
            3 => {
                let (parent, name) = {
                    let mut t = tree.borrow_mut();
                    let at = draw.below(t.directories.len() as u64) as usize;
                    (t.directories[at], t.new_name())
                };
                let id = c.mkdir(parent, name).await.expect("space");
                tree.borrow_mut().directories.push(id);
            }
            4..=8 => {
                let taken = {
                    let mut t = tree.borrow_mut();
                    let n = t.files.len() as u64;
                    (n > 0).then(|| t.files.swap_remove(draw.below(n) as usize))
                };
                let Some(mut file) = taken else { continue };
                let fd = c.open_file(file.id).await.expect("it exists");
                match draw.below(6) {
                    0 => {
                        c.truncate(fd).await.expect("no errors");
                        file.pages.clear();
                    }
                    1 => c.fsync(fd).await.expect("no errors"),
                    2 => {
                        let size = c.size_bytes(file.id);
                        c.read(fd, 0, size).await.expect("no errors");
                    }
                    _ => {
                        let start = m.now();
                        let at = c.size_bytes(file.id);
                        let bytes = 1 + draw.below(150_000);
                        c.write(fd, at, bytes).await.expect("space");
                        let first = (at / 4096) as usize;
                        let end = (at + bytes).div_ceil(4096) as usize;
                        file.pages.resize(end, None);
                        file.pages[first..].fill(Some(start));
                    }
                }
                c.close(fd).await.expect("it is open");
                tree.borrow_mut().files.push(file);
            }
            9 => {
                let taken = {
                    let mut t = tree.borrow_mut();
                    let n = t.files.len() as u64;
                    (n > 0).then(|| t.files.swap_remove(draw.below(n) as usize))
                };
                if let Some(file) = taken {
                    c.unlink(file.id).await.expect("it exists");
                }
            }
            10 => {
                let directory = {
                    let t = tree.borrow();
                    t.directories[draw.below(t.directories.len() as u64) as usize]
                };
                c.list(directory).await.expect("it exists");
            }
            _ if draw.below(3) == 0 => c.sync().await,
            _ => {
                c.drop_caches();
            }
        }
        m.sleep(Span::from_us(draw.below(50_000))).await;
    }
}

fn random(journal: bool, data: DataMode, seed: u64) -> Vec<Served> {
    let kernels = [
        rules_of("2.6.28"),
        rules_of("2.6.16"),
        rules_of("2.6.32"),
        rules_of("3.6"),
    ];
    let config = Config {
        kernel_bytes: 8 << 20,
        ..Config::new(kernels[seed as usize / 2 % 4], 24 * MIB)
    };
    let (machine, cache) = mount_with(config, 4 * 32768 * 8, journal, |o| {
        (o.data, o.seed) = (data, seed);
        o.journal_blocks = journal.then_some(1024);
        o.dir_index = seed.is_multiple_of(2);
    });
    let free = cache.free_space();
    let tree = Rc::new(RefCell::new(Tree {
        directories: vec![cache.root()],
        ..Tree::default()
    }));
    for task in 0..3 {
        let draw = Draw(seed * 1000 + task + 1);
        let (m, c, t) = (machine.clone(), cache.clone(), tree.clone());
        machine.task("random", act(m, c, t, draw));
    }
    machine.run(&cache);
    let c = cache.clone();
    run(&machine, &cache, async move { c.sync().await });
    machine.run_until(&cache, machine.now() + Span::from_s(60));
    let usage = cache.usage();
    assert_eq!((usage.dirty, usage.writeback), (0, 0), "{usage:?}");

    // All that was written is on the disk, each block in one file.
    let log = machine.log();
    let mut taken: Vec<u64> = Vec::new();
    for file in &tree.borrow().files {
        let runs = cache.extents(file.id);
        let sectors = runs
            .iter()
            .flat_map(|e| (0..e.pages).map(|i| e.sector + i * 8));
        let sectors: Vec<u64> = sectors.collect();
        assert_eq!(sectors.len(), file.pages.len());
        for (sector, since) in sectors.iter().zip(&file.pages) {
            let written = log.iter().any(|s| {
                let run = s.sector..s.sector + u64::from(s.nr_sectors);
                s.op == Op::Write && run.contains(sector) && Some(s.done) >= *since
            });
            assert!(
                written,
                "sector {sector} of {:?}, {data:?} {journal} {seed}",
                file.id
            );
        }
        taken.extend(sectors);
    }
    for directory in &tree.borrow().directories {
        let runs = cache.extents(*directory);
        taken.extend(
            runs.iter()
                .flat_map(|e| (0..e.pages).map(|i| e.sector + i * 8)),
        );
    }
    let nr = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), nr, "no block is in two files");

    // When everything is removed all space is free again, but for the blocks
    // of the root, which never shrinks.
    let (c, t) = (cache.clone(), tree.clone());
    run(&machine, &cache, async move {
        let (files, directories) = {
            let mut t = t.borrow_mut();
            (
                std::mem::take(&mut t.files),
                std::mem::take(&mut t.directories),
            )
        };
        for file in files {
            c.unlink(file.id).await.expect("it exists");
        }
        for directory in directories[1..].iter().rev() {
            c.unlink(*directory).await.expect("it is empty");
        }
        c.sync().await;
    });
    let root: u64 = cache.extents(cache.root()).iter().map(|e| e.pages).sum();
    let mut now = cache.free_space().expect("it is counted");
    now.bytes += (root - 1) * 4096;
    assert_eq!(Some(now), free);
    machine.log()
}

#[test]
fn random_operations_lose_nothing_and_everything_can_be_removed() {
    for seed in 1..=16 {
        random(false, DataMode::Ordered, seed);
        for data in [DataMode::Ordered, DataMode::Writeback, DataMode::Journal] {
            random(true, data, seed);
        }
    }
}

#[test]
fn the_same_run_twice_is_the_same() {
    let once = || random(true, DataMode::Ordered, 42);
    assert!(once() == once());
}
