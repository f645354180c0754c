// SPDX-License-Identifier: MIT OR Apache-2.0
//! The logins beside a copy on ext3 and the disk of the measured 2.6.28
//! machine, against what that kernel took (`truth-2628`).
//!
//! The load is fio 1.24's: the readers read runs of 1 to 11 pages from random
//! places of their 30 MiB until they have read 2 MiB, page by page. (The text
//! beside the measurements says that the places lie in the first 2 MiB; the
//! recorded trace, the number of calls and the times on an idle disk say
//! otherwise.) Measured are medians, maxima and the
//! writer's time; the measurements repeat within 7 % (median) and 17 % (max).
//!
//! `BLKLAB_CASES=all` runs every case, `BLKLAB_CASES=NAME,…` some of them; the
//! table is shown with `--nocapture`.

use blklab_engine::Stream;
use blklab_experiment::{DeviceSpec, Experiment, Workload};
use blklab_fs::{Advice, Features, FileId, PageCache};
use blklab_sim::fio::cache_config;
use blklab_sim::{Machine, Sinks, build_machine};
use blklab_trace::NullSink;
use blklab_types::{IoPrio, Span, Time};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Processor time of a page that is written, and of one that is read: the
/// measured machine dirties 370 MB/s.
const PAGE_COST: Span = Span(10_000);

/// A measured case.
struct Case {
    id: &'static str,
    scheduler: &'static str,
    device: &'static str,
    depth: u32,
    params: &'static [(&'static str, &'static str)],
    tunables: &'static [(&'static str, i64)],
    writer_mib: u64,
    /// Nine single blocks instead of 2 MiB.
    ls: bool,
    /// How far the largest time may be off.
    max_factor: f64,
}

const CASE: Case = Case {
    id: "",
    scheduler: "cfq",
    device: "simdisk-2628",
    depth: 31,
    params: &[],
    tunables: &[],
    writer_mib: 10240,
    ls: false,
    max_factor: 1.5,
};

const CASES: &[Case] = &[
    Case {
        id: "ls-sda-cfq-d31",
        writer_mib: 4096,
        ls: true,
        // Readers that start after 36 s take 2.2 s here: see the notes.
        max_factor: 1.8,
        ..CASE
    },
    Case {
        id: "sda-cfq-d31",
        ..CASE
    },
    Case {
        id: "sda-noop-d31",
        scheduler: "noop",
        ..CASE
    },
    Case {
        id: "sda-as-d1",
        scheduler: "anticipatory",
        depth: 1,
        ..CASE
    },
    Case {
        id: "sda-cfq-d31-wc8",
        params: WRITE_CACHE,
        writer_mib: 4096,
        ..CASE
    },
    Case {
        id: "sda-deadline-d31-fifo",
        scheduler: "deadline",
        params: FIFO,
        writer_mib: 4096,
        ..CASE
    },
];

const WRITE_CACHE: &[(&str, &str)] = &[("write_cache_sectors", "16384")];
const FIFO: &[(&str, &str)] = &[("order", "fifo")];

/// What came of a case, times in ms.
#[derive(Debug)]
struct Figures {
    min: f64,
    contended: f64,
    max: f64,
    writer: f64,
}

impl Figures {
    fn of(writer_ms: f64, readers: &[(f64, f64)]) -> Figures {
        let mut all: Vec<f64> = readers.iter().map(|r| r.1).collect();
        let mut contended: Vec<f64> = readers
            .iter()
            .filter(|r| r.0 < writer_ms)
            .map(|r| r.1)
            .collect();
        all.sort_by(f64::total_cmp);
        contended.sort_by(f64::total_cmp);
        let n = contended.len();
        let median = (contended[(n - 1) / 2] + contended[n / 2]) / 2.0;
        Figures {
            min: all[0],
            contended: median,
            max: all[all.len() - 1],
            writer: writer_ms,
        }
    }
}

fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let dir = std::env::var_os("BLKLAB_SHARED").map_or(beside, PathBuf::from);
    let dir = dir.join("truth-2628");
    dir.is_dir().then_some(dir)
}

/// A reader's calls: page and number of pages.
fn calls(nth: u64, ls: bool) -> Vec<(u64, u64)> {
    let mut draw = Stream::named(nth, "reader");
    let wanted = if ls { 9 } else { 512 };
    let mut free = vec![true; 7680];
    let mut out: Vec<(u64, u64)> = Vec::new();
    while out.iter().map(|c| c.1).sum::<u64>() < wanted {
        let at = draw.below(free.len() as u64) as usize;
        if !free[at] {
            continue;
        }
        let most = match ls {
            true => 1,
            false => (1 + draw.below(45_056)).div_ceil(4096) as usize,
        };
        let run = free[at..].iter().take(most).take_while(|f| **f).count();
        free[at..at + run].fill(false);
        out.push((at as u64, run as u64));
    }
    out
}

type Times = Rc<RefCell<Vec<(f64, f64)>>>;

async fn read(m: Machine, cache: PageCache<Machine>, file: FileId, nth: u64, ls: bool, out: Times) {
    let start = m.now();
    let fd = cache.open(file, false).unwrap();
    cache.fadvise(fd, 0, 0, Advice::DontNeed).await.unwrap();
    cache.fadvise(fd, 0, 0, Advice::Random).await.unwrap();
    for (page, pages) in calls(nth, ls) {
        cache.read(fd, page * 4096, pages * 4096).await.unwrap();
    }
    let ms = |span: Span| span.0 as f64 / 1e6;
    out.borrow_mut()
        .push((ms(start.since(Time::ZERO)), ms(m.now().since(start))));
}

async fn write(
    m: Machine,
    cache: PageCache<Machine>,
    file: FileId,
    mib: u64,
    out: Rc<RefCell<f64>>,
) {
    let fd = cache.open(file, false).unwrap();
    cache.fadvise(fd, 0, 0, Advice::Sequential).await.unwrap();
    for i in 0..mib {
        cache.write(fd, i << 20, 1 << 20).await.unwrap();
    }
    *out.borrow_mut() = m.now().since(Time::ZERO).0 as f64 / 1e6;
}

fn run(case: &Case, delays_s: &[u64]) -> Figures {
    let mut e = Experiment::new(case.id, Workload::Processes(Vec::new()));
    e.choose_kernel("2.6.28".parse().unwrap());
    e.choose_scheduler(case.scheduler).unwrap();
    e.device = DeviceSpec {
        name: case.device.to_owned(),
        params: case
            .params
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
    };
    e.set("queue_depth", &case.depth.to_string()).unwrap();
    e.set("memory", "2g").unwrap();
    e.set("filesystem", "ext3:directory_group=3:creator_pid=12")
        .unwrap();
    for (key, value) in case.tunables {
        e.set(key, &value.to_string()).unwrap();
    }
    let sinks = Sinks {
        trace: Box::new(NullSink),
        truth: None,
    };
    let m = build_machine(&e, sinks, Arc::new(AtomicBool::new(false))).unwrap();
    let mut config = cache_config(&e, Features::K2628).unwrap();
    config.page_cost = PAGE_COST;
    let cache = PageCache::new(m.clone(), config).unwrap();
    let completions = cache.clone();
    m.on_bio_done(move |cookie, error| completions.end_bio(cookie, error != 0).unwrap());
    let big = cache.create_empty(None).unwrap();
    let files: Vec<FileId> = delays_s
        .iter()
        .map(|_| cache.create_laid_out(30 << 20).unwrap())
        .collect();
    cache.start();
    let writer = Rc::new(RefCell::new(0.0));
    let readers: Times = Rc::default();
    let body = write(
        m.clone(),
        cache.clone(),
        big,
        case.writer_mib,
        Rc::clone(&writer),
    );
    m.spawn_at("job1", 13, IoPrio::default(), true, Time::ZERO, body);
    for (i, (file, delay_s)) in files.into_iter().zip(delays_s).enumerate() {
        let start = Time::ZERO + Span::from_ms(1000 * delay_s + 30);
        let body = read(
            m.clone(),
            cache.clone(),
            file,
            i as u64 + 2,
            case.ls,
            Rc::clone(&readers),
        );
        m.spawn_at("file", 14 + i as u32, IoPrio::default(), true, start, body);
    }
    m.run(Time::MAX);
    if std::env::var_os("BLKLAB_READERS").is_some() {
        println!("    {} calls", calls(3, case.ls).len());
        for (start, took) in readers.borrow().iter() {
            println!("    {:6.1} s  {took:8.0} ms", start / 1e3);
        }
    }
    let writer = *writer.borrow();
    Figures::of(writer, &readers.borrow())
}

fn measured(dir: &Path, id: &str) -> Option<Figures> {
    let text = std::fs::read_to_string(dir.join("results.csv")).ok()?;
    let head: Vec<&str> = text.lines().next()?.split(',').collect();
    let row: Vec<&str> = text
        .lines()
        .map(|l| l.split(',').collect::<Vec<_>>())
        .find(|r| r[0] == id)?;
    let field = |name: &str| {
        let at = head.iter().position(|h| *h == name)?;
        row.get(at)?.parse::<f64>().ok()
    };
    Some(Figures {
        min: field("runt_min_ms")?,
        contended: field("contended_runt_median_ms")?,
        max: field("runt_max_ms")?,
        writer: field("writer_ms")?,
    })
}

/// When the readers of a case started.
fn delays_s(dir: &Path, id: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(dir.join("readers.csv")).unwrap_or_default();
    text.lines()
        .map(|l| l.split(',').collect::<Vec<_>>())
        .filter(|r| r[0] == id)
        .filter_map(|r| r.get(2)?.parse().ok())
        .collect()
}

#[test]
fn logins_beside_a_copy_take_what_they_took() {
    let Some(dir) = shared() else {
        println!("skipped: no measurements of 2.6.28 beside the project");
        return;
    };
    let chosen = std::env::var("BLKLAB_CASES").unwrap_or_else(|_| "ls-sda-cfq-d31".to_owned());
    println!("                               measured                            here");
    println!(
        "case                     min  contended    max  writer      min  contended    max  writer"
    );
    let mut off = Vec::new();
    for case in CASES {
        if chosen != "all" && !chosen.split(',').any(|c| c == case.id) {
            continue;
        }
        let was = measured(&dir, case.id).expect("the case is in results.csv");
        let is = run(case, &delays_s(&dir, case.id));
        println!(
            "{:22} {:5.0} {:8.0} {:8.0} {:7.1}    {:5.0} {:8.0} {:8.0} {:7.1}",
            case.id,
            was.min,
            was.contended,
            was.max,
            was.writer / 1e3,
            is.min,
            is.contended,
            is.max,
            is.writer / 1e3
        );
        let within = |a: f64, b: f64, share: f64| (a / b - 1.0).abs() <= share;
        if !within(is.contended, was.contended, 0.25) {
            off.push(format!("{}: contended median", case.id));
        }
        if is.max / was.max > case.max_factor || was.max / is.max > case.max_factor {
            off.push(format!("{}: max", case.id));
        }
        if !within(is.writer, was.writer, 0.10) {
            off.push(format!("{}: writer", case.id));
        }
    }
    assert!(off.is_empty(), "out of bounds: {}", off.join("; "));
}
