// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext3 and ext2: names, what they cost when cold, what removing frees.

use crate::machine::{Machine, Served};
use crate::{DISK, MIB, boot_with};
use blklab_fs::{
    Config, DataMode, ExtFeatures, ExtOptions, Features, FileId, Filesystem, FsError, Host, Name,
    PageCache,
};
use blklab_types::{Op, Span, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const SECONDS: u64 = 1_000_000_000;
/// Sectors of the volume: 4 GiB in 32 groups; the journal begins with group 16,
/// behind two bitmaps and 512 blocks of inodes.
const DISK_SECTORS: u64 = 8 << 20;
const JOURNAL_SECTOR: u64 = (16 * 32768 + 514) * 8;

fn mount_on(
    sectors: u64,
    journal: bool,
    change: impl FnOnce(&mut ExtOptions),
) -> (Machine, PageCache<Machine>) {
    let config = Config::new(Features::K2628, 512 * MIB);
    mount_with(config, sectors, journal, change)
}

fn mount_with(
    mut config: Config,
    sectors: u64,
    journal: bool,
    change: impl FnOnce(&mut ExtOptions),
) -> (Machine, PageCache<Machine>) {
    let mut options = ExtOptions::new(journal, ExtFeatures::of_release([2, 6, 28]));
    change(&mut options);
    config.layout.start_sector = 0;
    config.layout.end_sector = sectors;
    config.filesystem = Filesystem::Ext(options);
    boot_with(config, DISK)
}

fn mount(journal: bool, change: impl FnOnce(&mut ExtOptions)) -> (Machine, PageCache<Machine>) {
    mount_on(DISK_SECTORS, journal, change)
}

/// Runs a task to its end.
fn run<T: 'static>(
    machine: &Machine,
    cache: &PageCache<Machine>,
    task: impl Future<Output = T> + 'static,
) -> T {
    let result = Rc::new(Cell::new(None));
    let put = result.clone();
    machine.task("test", async move { put.set(Some(task.await)) });
    machine.run(cache);
    result.take().expect("the task has ended")
}

fn in_journal(s: &Served) -> bool {
    (JOURNAL_SECTOR..JOURNAL_SECTOR + (40_000 << 3)).contains(&s.sector)
}

fn name(number: u32) -> Name {
    Name {
        bytes: 8,
        hash: number.wrapping_mul(2_654_435_761),
    }
}

/// Sectors of what was served since an earlier look at the log.
fn since(machine: &Machine, seen: usize, op: Op) -> Vec<u64> {
    let log = machine.log();
    let new = log[seen..].iter().filter(|s| s.op == op);
    new.map(|s| s.sector).collect()
}

#[test]
fn ten_files_in_a_directory_are_one_small_transaction() {
    let (machine, cache) = mount(true, |_| {});
    let root = cache.root();
    let c = cache.clone();
    run(&machine, &cache, async move {
        for i in 0..10 {
            c.create(root, name(i)).await.expect("space");
        }
        c.sync().await;
    });
    let log = machine.log();
    let journal: Vec<&Served> = log.iter().filter(|s| in_journal(s)).collect();
    // Descriptor; inode bitmap, group descriptor, two blocks of 16 inodes
    // (11 to 20), the root's block; commit block.
    assert_eq!(journal.len(), 1 + 5 + 1);
    // sync has put the five into their places.
    let places = log.iter().filter(|s| s.op == Op::Write && !in_journal(s));
    assert_eq!(places.count(), 5);
    // Read were the root's block, which has no such names, the inode bitmap,
    // and the block of inodes with the root's, but not the empty one behind.
    let root_block = cache.extents(root)[0].sector;
    let inodes = (1 + 1 + 1023 + 2) * 8;
    assert_eq!(
        since(&machine, 0, Op::Read),
        [root_block, inodes - 8, inodes]
    );
}

#[test]
fn a_cold_name_costs_a_read_of_each_directory_and_each_inode_on_its_path() {
    let (machine, cache) = mount(true, |_| {});
    let root = cache.root();
    let c = cache.clone();
    let (directory, file) = run(&machine, &cache, async move {
        let directory = c.mkdir(root, name(1)).await.expect("space");
        let mut file = FileId(0);
        for i in 0..20 {
            file = c.create(directory, name(i)).await.expect("space");
        }
        c.sync().await;
        c.drop_caches();
        (directory, file)
    });
    let seen = machine.log().len();
    let c = cache.clone();
    run(&machine, &cache, async move {
        let fd = c.open_file(file).await.expect("it exists");
        c.close(fd).await.expect("it is open");
        c.stat(file).await.expect("it exists");
    });
    let reads = since(&machine, seen, Op::Read);
    let block = cache.extents(directory)[0].sector;
    let root_block = cache.extents(root)[0].sector;
    let group = block / 8 / 32768;
    assert_eq!(reads.len(), 4, "{reads:?}");
    assert_eq!([reads[0], reads[2]], [root_block, block]);
    // The directory is its group's first inode, the file the 21st.
    assert_eq!(reads[1] / 8 / 32768, group);
    assert_eq!(reads[3], reads[1] + 8, "16 inodes in a block");
    let log = machine.log();
    let serial = log[seen..].windows(2).all(|w| w[1].submitted >= w[0].done);
    assert!(serial, "one after the other");
}

#[test]
fn a_search_without_an_index_reads_eight_blocks_at_a_time() {
    let (machine, cache) = mount(true, |o| o.dir_index = false);
    let root = cache.root();
    let c = cache.clone();
    let last = run(&machine, &cache, async move {
        let mut last = root;
        // 16 bytes each: 254 in the first block, 256 in the others.
        for i in 0..254 + 9 * 256 + 1 {
            last = c.create(root, name(i)).await.expect("space");
        }
        c.sync().await;
        c.drop_caches();
        last
    });
    assert_eq!(cache.extents(root).iter().map(|e| e.pages).sum::<u64>(), 11);
    let seen = machine.log().len();
    let c = cache.clone();
    run(&machine, &cache, async move {
        c.stat(last).await.expect("it exists");
    });
    let log = machine.log();
    let reads: Vec<&Served> = log[seen..].iter().filter(|s| s.op == Op::Read).collect();
    assert_eq!(reads.len(), 11 + 1);
    let together = reads.iter().filter(|r| r.submitted == reads[0].submitted);
    assert_eq!(together.count(), 8);
    let c = cache.clone();
    let listed = run(&machine, &cache, async move { c.list(root).await });
    let listed = listed.expect("no errors");
    assert!(listed.windows(2).all(|w| w[0] < w[1]), "as created");
}

#[test]
fn an_index_costs_two_blocks_a_search_and_orders_the_listing() {
    let (machine, cache) = mount(true, |_| {});
    let root = cache.root();
    let c = cache.clone();
    let last = run(&machine, &cache, async move {
        let mut last = root;
        for i in 0..2500 {
            last = c.create(root, name(i)).await.expect("space");
        }
        c.sync().await;
        c.drop_caches();
        last
    });
    let blocks: u64 = cache.extents(root).iter().map(|e| e.pages).sum();
    assert!((12..=21).contains(&blocks), "{blocks}: half to nearly full");
    let seen = machine.log().len();
    let c = cache.clone();
    let listed = run(&machine, &cache, async move {
        c.stat(last).await.expect("it exists");
        c.list(root).await.expect("no errors")
    });
    let reads = since(&machine, seen, Op::Read);
    // Index, leaf, inode; the other leaves; the root's inode, whose access time
    // changes.
    assert_eq!(reads.len() as u64, 3 + blocks - 2 + 1, "{reads:?}");
    assert_eq!(reads[0], cache.extents(root)[0].sector);
    let place = |id: &FileId| cache.listing_place(*id);
    assert!(listed.windows(2).all(|w| place(&w[0]) < place(&w[1])));
    assert!(listed.windows(2).any(|w| w[0] > w[1]), "not as created");
}

#[test]
fn freed_blocks_are_taken_again_when_the_transaction_is_committed() {
    let (machine, cache) = mount(true, |_| {});
    let root = cache.root();
    let c = cache.clone();
    let (before, early, late) = run(&machine, &cache, async move {
        let write = async |number| {
            let file = c.create(root, name(number)).await.expect("space");
            let fd = c.open_file(file).await.expect("it exists");
            c.write(fd, 0, 40_000).await.expect("space");
            c.close(fd).await.expect("it is open");
            file
        };
        let first = write(1).await;
        c.sync().await;
        let before = c.extents(first);
        c.unlink(first).await.expect("it exists");
        let second = write(2).await;
        c.sync().await;
        let third = write(3).await;
        (before, c.extents(second), c.extents(third))
    });
    assert_eq!(early[0].sector, before[0].sector + 80, "right behind");
    assert_eq!(late, before, "in the same place");
}

#[test]
fn removing_a_large_file_logs_a_revoke_record_and_frees_everything() {
    let (machine, cache) = mount(true, |_| {});
    let root = cache.root();
    let free = cache.free_space().expect("it is counted");
    let c = cache.clone();
    let file = run(&machine, &cache, async move {
        let file = c.create(root, name(1)).await.expect("space");
        let fd = c.open_file(file).await.expect("it exists");
        c.write(fd, 0, 8 * MIB).await.expect("space");
        c.close(fd).await.expect("it is open");
        c.sync().await;
        c.drop_caches();
        file
    });
    // 2048 pages and two blocks of pointers and the one above the second.
    let now = cache.free_space().expect("it is counted");
    assert_eq!(free.bytes - now.bytes, (2048 + 3) * 4096);
    assert_eq!(free.inodes - now.inodes, 1);
    let seen = machine.log().len();
    let c = cache.clone();
    run(&machine, &cache, async move {
        c.unlink(file).await.expect("it exists");
        c.sync().await;
    });
    assert_eq!(cache.free_space(), Some(free));
    // Root's block, inodes, three blocks of pointers, both bitmaps.
    assert_eq!(since(&machine, seen, Op::Read).len(), 7);
    let log = machine.log();
    let journal = log[seen..].iter().filter(|s| in_journal(s)).count();
    // A block of revoke records; a descriptor; superblock, descriptor, inode
    // bitmap, block bitmap, inodes, root's block; the commit block.
    assert_eq!(journal, 1 + 1 + 6 + 1);
}

#[test]
fn a_file_that_is_open_keeps_its_blocks_until_it_is_closed() {
    for journal in [true, false] {
        let (machine, cache) = mount(journal, |_| {});
        let root = cache.root();
        let free = cache.free_space();
        let c = cache.clone();
        run(&machine, &cache, async move {
            let file = c.create(root, name(1)).await.expect("space");
            let fd = c.open_file(file).await.expect("it exists");
            c.write(fd, 0, MIB).await.expect("space");
            c.unlink(file).await.expect("it exists");
            c.sync().await;
            assert_ne!(c.free_space(), free);
            c.truncate(fd).await.expect("it is open");
            c.write(fd, 0, 4096).await.expect("space");
            c.close(fd).await.expect("it is open");
            c.sync().await;
            assert_eq!(c.free_space(), free);
        });
        assert_eq!(cache.usage().dirty, 0);
    }
}

#[test]
fn journalled_data_go_to_the_log_first_and_to_their_places_later() {
    let (machine, cache) = mount(true, |o| o.data = DataMode::Journal);
    let root = cache.root();
    let c = cache.clone();
    let file = run(&machine, &cache, async move {
        let file = c.create(root, name(1)).await.expect("space");
        let fd = c.open_file(file).await.expect("it exists");
        c.write(fd, 0, MIB).await.expect("space");
        c.fsync(fd).await.expect("no errors");
        file
    });
    let place = cache.extents(file)[0].sector;
    let in_place = |log: &[Served]| {
        let run = place..place + 256 * 8 + 8;
        log.iter()
            .filter(|s| s.op == Op::Write && run.contains(&s.sector))
            .count()
    };
    let log = machine.log();
    assert!(log.iter().filter(|s| in_journal(s)).count() > 256 + 5);
    assert_eq!(in_place(&log), 0, "fsync needs the log alone");
    machine.run_until(&cache, Time(60 * SECONDS));
    assert_eq!(in_place(&machine.log()), 256 + 1, "and a block of pointers");
    assert_eq!(cache.usage().dirty, 0);
}

#[test]
fn a_full_volume_says_so_and_freed_blocks_are_committed_when_needed() {
    // Two groups of 128 MiB.
    let small = 2 * 32768 * 8;
    let (machine, cache) = mount_on(small, true, |o| o.journal_blocks = Some(1024));
    let root = cache.root();
    let free = cache.free_space().expect("it is counted");
    let c = cache.clone();
    run(&machine, &cache, async move {
        let file = c.create(root, name(1)).await.expect("space");
        let fd = c.open_file(file).await.expect("it exists");
        assert_eq!(c.write(fd, 0, 300 * MIB).await, Err(FsError::NoSpace));
        assert_eq!(c.free_space().map(|f| f.bytes), Some(0));
        assert_eq!(c.mkdir(root, name(2)).await, Err(FsError::NoSpace));
        c.close(fd).await.expect("it is open");
        c.unlink(file).await.expect("it exists");
        let again = c.create(root, name(3)).await.expect("space");
        let fd = c.open_file(again).await.expect("it exists");
        c.write(fd, 0, 200 * MIB)
            .await
            .expect("a commit makes room");
        c.close(fd).await.expect("it is open");
        c.unlink(again).await.expect("it exists");
        c.sync().await;
    });
    assert_eq!(cache.free_space(), Some(free));
}

#[test]
fn ext2_does_the_same_without_a_journal() {
    let (machine, cache) = mount(false, |_| {});
    let root = cache.root();
    let free = cache.free_space();
    let c = cache.clone();
    run(&machine, &cache, async move {
        let directory = c.mkdir(root, name(1)).await.expect("space");
        let file = c.create(directory, name(2)).await.expect("space");
        let fd = c.open_file(file).await.expect("it exists");
        c.write(fd, 0, 100_000).await.expect("space");
        c.close(fd).await.expect("it is open");
        c.sync().await;
        assert_eq!(c.usage().dirty, 0);
        assert_eq!(c.unlink(directory).await, Err(FsError::NotEmpty));
        c.unlink(file).await.expect("it exists");
        c.unlink(directory).await.expect("it is empty");
        c.sync().await;
    });
    assert_eq!(cache.free_space(), free);
    assert_eq!(cache.usage().dirty, 0);
    assert!(!machine.log().iter().any(in_journal));
}

// Random operations -------------------------------------------------------------

struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

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
        Features::K2628,
        Features::K2616,
        Features::K2632,
        Features::K306,
    ];
    let config = Config {
        kernel_bytes: 8 << 20,
        ..Config::new(kernels[seed as usize / 2 % 4], 24 * MIB)
    };
    let (machine, cache) = mount_with(config, 4 * 32768 * 8, journal, |o| {
        (o.data, o.seed) = (data, seed);
        o.journal_blocks = journal.then_some(1024);
        o.dir_index = seed % 2 == 0;
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
