// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random operations of several tasks on ext4: all end; files do not overlap;
//! after `sync` every page is on the disk as it was written last; when all
//! is removed the volume is as free as it was.

use crate::machine::{Machine, Served};
use crate::{DISK, MIB, boot_on};
use blklab_fs::{DataMode, Ext4Features, Ext4Options, Filesystem};
use blklab_pagecache::{Config, Fd, Features, FileId, Name, PageCache, Runtime};
use blklab_types::{Op, Time};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// One operation of a task; numbers choose among what there is.
#[derive(Clone, Copy, Debug)]
enum Action {
    Create,
    Mkdir,
    Write { file: usize, at: u64, bytes: u64 },
    Read { file: usize, at: u64, bytes: u64 },
    Cut(usize),
    Close(usize),
    Remove(usize),
    Fsync(usize),
    Sync,
    DropCaches,
    List,
}

fn action() -> impl Strategy<Value = Action> {
    let file = 0..8_usize;
    let (at, bytes) = (0..40 * MIB, 1..3 * MIB);
    prop_oneof![
        3 => Just(Action::Create),
        1 => Just(Action::Mkdir),
        6 => (file.clone(), prop_oneof![Just(0), at.clone()], prop_oneof![1..70_000_u64, bytes.clone()])
            .prop_map(|(file, at, bytes)| Action::Write { file, at, bytes }),
        3 => (file.clone(), at, bytes).prop_map(|(file, at, bytes)| Action::Read { file, at, bytes }),
        1 => file.clone().prop_map(Action::Cut),
        2 => file.clone().prop_map(Action::Close),
        2 => file.clone().prop_map(Action::Remove),
        1 => file.prop_map(Action::Fsync),
        1 => Just(Action::Sync),
        1 => Just(Action::DropCaches),
        1 => Just(Action::List),
    ]
}

/// A file of a task: when the last call that wrote each of its pages began.
struct Owned {
    id: FileId,
    fd: Option<Fd>,
    written: BTreeMap<u64, Time>,
}

/// What a task has made.
struct Made {
    directory: FileId,
    files: Vec<Owned>,
    empty: Vec<FileId>,
    names: u32,
}

impl Made {
    fn name(&mut self) -> Name {
        self.names += 1;
        Name {
            bytes: 8 + (self.names % 20) as u8,
            hash: self.names.wrapping_mul(0x9e37_79b9),
        }
    }

    fn pick(&mut self, n: usize) -> Option<&mut Owned> {
        let files = self.files.len();
        self.files.get_mut(n % files.max(1))
    }
}

async fn act(c: &PageCache<Machine>, m: &Machine, made: &mut Made, action: Action) {
    match action {
        Action::Create => {
            let name = made.name();
            let id = c.create(made.directory, name).await.expect("space");
            made.files.push(Owned {
                id,
                fd: None,
                written: BTreeMap::new(),
            });
        }
        Action::Mkdir => {
            let name = made.name();
            let id = c.mkdir(made.directory, name).await.expect("space");
            made.empty.push(id);
        }
        Action::Write { file, at, bytes } => {
            if let Some(f) = made.pick(file) {
                let fd = open(c, f).await;
                let start = m.now();
                assert_eq!(c.write(fd, at, bytes).await, Ok(bytes));
                for page in at / 4096..=(at + bytes - 1) / 4096 {
                    f.written.insert(page, start);
                }
            }
        }
        Action::Read { file, at, bytes } => {
            if let Some(f) = made.pick(file) {
                let fd = open(c, f).await;
                c.read(fd, at, bytes).await.expect("no errors");
            }
        }
        Action::Cut(file) => {
            if let Some(f) = made.pick(file) {
                let fd = open(c, f).await;
                f.written.clear();
                c.truncate(fd).await.expect("no errors");
            }
        }
        Action::Close(file) => {
            if let Some(fd) = made.pick(file).and_then(|f| f.fd.take()) {
                c.close(fd).await.expect("it is open");
            }
        }
        Action::Remove(file) => {
            if !made.files.is_empty() {
                let n = file % made.files.len();
                let f = made.files.swap_remove(n);
                c.unlink(f.id).await.expect("it exists");
                if let Some(fd) = f.fd {
                    c.close(fd).await.expect("it is open");
                }
            }
        }
        Action::Fsync(file) => {
            if let Some(f) = made.pick(file) {
                let fd = open(c, f).await;
                c.fsync(fd).await.expect("no errors");
            }
        }
        Action::Sync => c.sync().await,
        Action::DropCaches => {
            c.drop_caches();
        }
        Action::List => {
            c.list(made.directory).await.expect("no errors");
        }
    }
}

async fn open(c: &PageCache<Machine>, f: &mut Owned) -> Fd {
    if f.fd.is_none() {
        f.fd = Some(c.open_file(f.id).await.expect("it exists"));
    }
    f.fd.expect("it is open now")
}

fn mount(release: [u16; 3], delalloc: bool, data: DataMode) -> (Machine, PageCache<Machine>) {
    let [a, b, c] = release;
    let features = Features::of(crate::kernel([a, b, c]));
    let mut options = Ext4Options::new(Ext4Features::of(crate::kernel(release)));
    options.journal_blocks = Some(1024);
    options.delalloc = delalloc;
    options.data = data;
    let mut config = Config::new(features, 64 * MIB);
    config.kernel_bytes = 8 * MIB;
    config.layout.start_sector = 0;
    config.layout.end_sector = 6 << 20;
    boot_on(Filesystem::Ext4(options), config, DISK)
}

/// The last time at which each sector of a page was written from.
fn last_writes(log: &[Served]) -> BTreeMap<u64, Time> {
    let mut last = BTreeMap::new();
    for s in log.iter().filter(|s| s.op == Op::Write) {
        for sector in (s.sector..s.sector + u64::from(s.nr_sectors)).step_by(8) {
            let at = last.entry(sector).or_insert(Time::ZERO);
            *at = s.done.max(*at);
        }
    }
    last
}

fn check_places(cache: &PageCache<Machine>, machine: &Machine, made: &[Rc<RefCell<Made>>]) {
    let last = last_writes(&machine.log());
    let mut owners: BTreeMap<u64, FileId> = BTreeMap::new();
    for task in made {
        for f in &task.borrow().files {
            let mut places = BTreeMap::new();
            for e in cache.extents(f.id) {
                for i in 0..e.pages {
                    let sector = e.sector + i * 8;
                    assert_eq!(owners.insert(sector, f.id), None, "two files have {sector}");
                    places.insert(e.page + i, sector);
                }
            }
            for (page, when) in &f.written {
                let sector = places.get(page).expect("what is written has a place");
                let done = last.get(sector).expect("it was written");
                assert!(done >= when, "{:?} page {page}: {done} before {when}", f.id);
            }
        }
    }
}

fn run(release: [u16; 3], delalloc: bool, data: DataMode, tasks: Vec<Vec<Action>>) -> Vec<Served> {
    let (machine, cache) = mount(release, delalloc, data);
    let before = cache.free_space().expect("it is counted");
    let mut made = Vec::new();
    for (n, actions) in tasks.into_iter().enumerate() {
        let own = Rc::new(RefCell::new(Made {
            directory: cache.root(),
            files: Vec::new(),
            empty: Vec::new(),
            names: n as u32 * 1000,
        }));
        made.push(own.clone());
        let (c, m) = (cache.clone(), machine.clone());
        machine.task("random", async move {
            let mut made = std::mem::replace(
                &mut *own.borrow_mut(),
                Made {
                    directory: c.root(),
                    files: Vec::new(),
                    empty: Vec::new(),
                    names: 0,
                },
            );
            let name = made.name();
            made.directory = c.mkdir(c.root(), name).await.expect("space");
            for action in actions {
                act(&c, &m, &mut made, action).await;
            }
            *own.borrow_mut() = made;
        });
    }
    machine.run(&cache);
    let c = cache.clone();
    machine.task("sync", async move {
        // Journalled data are dirty pages again when they are committed.
        c.sync().await;
        c.sync().await;
    });
    machine.run(&cache);
    assert_eq!((cache.usage().dirty, cache.usage().writeback), (0, 0));
    check_places(&cache, &machine, &made);
    for own in made {
        let c = cache.clone();
        machine.task("remove", async move {
            let mut own = own.replace(Made {
                directory: c.root(),
                files: Vec::new(),
                empty: Vec::new(),
                names: 0,
            });
            for f in &mut own.files {
                if let Some(fd) = f.fd.take() {
                    c.close(fd).await.expect("it is open");
                }
            }
            let gone = own.files.iter().map(|f| f.id).chain(own.empty);
            for id in gone.chain([own.directory]) {
                c.unlink(id).await.expect("it exists, and is empty");
            }
            c.sync().await;
        });
    }
    machine.run(&cache);
    assert_eq!(cache.free_space(), Some(before));
    machine.log()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_is_lost_and_all_space_comes_back(
        release in prop_oneof![
            Just([2, 6, 28]), Just([2, 6, 32]), Just([3, 7, 0]), Just([4, 19, 0]),
            Just([6, 12, 0])
        ],
        delalloc in prop::bool::weighted(0.8),
        data in prop_oneof![
            3 => Just(DataMode::Ordered), 1 => Just(DataMode::Writeback), 1 => Just(DataMode::Journal)
        ],
        tasks in prop::collection::vec(prop::collection::vec(action(), 1..40), 1..4),
    ) {
        let first = run(release, delalloc, data, tasks.clone());
        let second = run(release, delalloc, data, tasks);
        prop_assert!(first == second, "two runs differ");
    }
}
