// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random tasks against a plain account of what must reach the disk.
//!
//! Every page that was dirtied must be written after it was dirtied last;
//! pages that fsync covered must be written before it returns; no page is
//! written more often than it was dirtied; the counts return to zero; a second
//! run is the same.

use crate::draw::Draw;
use crate::machine::Served;
use crate::{DISK, boot_with, rules_of};
use blklab_pagecache::{Advice, Config, Features, FileId, Layout, Runtime};
use blklab_types::{Op, Time};
use std::cell::RefCell;
use std::rc::Rc;

const FILES: usize = 3;
const PAGES: u64 = 700;

/// When each page was dirtied last, within a call, and how often.
#[derive(Clone, Copy, Default)]
struct Dirtied {
    after: Time,
    before: Time,
    times: u64,
}

impl Dirtied {
    fn again(&mut self, after: Time, before: Time) {
        *self = Dirtied {
            after,
            before,
            times: self.times + 1,
        };
    }
}

/// Times at which each page was on the disk.
fn written(log: &[Served], place: &[Vec<u64>]) -> Vec<Vec<Vec<(Time, Time)>>> {
    let mut pages = vec![vec![Vec::new(); PAGES as usize]; FILES];
    for b in log.iter().filter(|b| b.op == Op::Write) {
        for sector in (b.sector..b.sector + u64::from(b.nr_sectors)).step_by(8) {
            let hit = place
                .iter()
                .enumerate()
                .find_map(|(f, p)| Some((f, p.iter().position(|s| *s == sector)?)));
            let (file, page) = hit.expect("only pages of files are written");
            pages[file][page].push((b.submitted, b.done));
        }
    }
    pages
}

fn run(features: Features, seed: u64, memory_mib: u64) -> (Vec<Served>, blklab_pagecache::Stats) {
    let layout = Layout {
        chunk_pages: 90,
        gap_sectors: 16,
        ..Layout::default()
    };
    let config = Config {
        kernel_bytes: 8 << 20,
        layout,
        ..Config::new(features, memory_mib << 20)
    };
    let (machine, cache) = boot_with(config, DISK);
    let files: Vec<FileId> = (0..FILES)
        .map(|_| cache.create_laid_out(PAGES * 4096).expect("space"))
        .collect();
    let place: Vec<Vec<u64>> = files
        .iter()
        .map(|f| {
            cache
                .extents(*f)
                .iter()
                .flat_map(|e| (0..e.pages).map(|i| e.sector + i * 8))
                .collect()
        })
        .collect();
    let account = Rc::new(RefCell::new(vec![
        vec![Dirtied::default(); PAGES as usize];
        FILES
    ]));
    for task in 0..6 {
        let (c, m, files, place) = (cache.clone(), machine.clone(), files.clone(), place.clone());
        let account = account.clone();
        machine.task("random", async move {
            let mut draw = Draw(seed * 1000 + task + 1);
            let fds: Vec<_> = files
                .iter()
                .map(|f| c.open(*f, false).expect("it exists"))
                .collect();
            for _ in 0..60 {
                let file = draw.below(FILES as u64) as usize;
                let (at, len) = (draw.below(PAGES * 4096), 1 + draw.below(200_000));
                let len = len.min(PAGES * 4096 - at);
                match draw.below(12) {
                    0..=4 => {
                        let start = m.now();
                        assert_eq!(c.write(fds[file], at, len).await, Ok(len));
                        let pages = (at / 4096) as usize..=((at + len - 1) / 4096) as usize;
                        let pages = &mut account.borrow_mut()[file][pages];
                        pages.iter_mut().for_each(|d| d.again(start, m.now()));
                    }
                    5..=7 => assert_eq!(c.read(fds[file], at, len).await, Ok(len)),
                    8 => {
                        let before = account.borrow()[file].clone();
                        let called = m.now();
                        assert_eq!(c.fsync(fds[file]).await, Ok(()));
                        let done = written(&m.log(), &place);
                        for (page, d) in before.iter().enumerate().filter(|(_, d)| d.times > 0) {
                            let safe = done[file][page].iter().any(|w| w.0 >= d.after);
                            assert!(d.before <= called && safe, "page {page} is not on the disk");
                        }
                    }
                    9 => {
                        let (page, start) = (at / 4096, m.now());
                        assert!(c.fault(fds[file], page, true).await.is_ok());
                        account.borrow_mut()[file][page as usize].again(start, m.now());
                    }
                    10 => {
                        let (at, len) = (at / 512 * 512, len.next_multiple_of(512));
                        let got = c.direct_read(fds[file], at, len).await;
                        assert_eq!(got, Ok(len.min(PAGES * 4096 - at)));
                    }
                    _ => {
                        let advice = [
                            Advice::DontNeed,
                            Advice::Random,
                            Advice::Normal,
                            Advice::WillNeed,
                        ];
                        let advice = advice[draw.below(4) as usize];
                        assert_eq!(c.fadvise(fds[file], at, len, advice).await, Ok(()));
                    }
                }
                m.sleep(blklab_types::Span::from_us(draw.below(20_000)))
                    .await;
            }
        });
    }
    machine.run(&cache);
    machine.run_until(&cache, machine.now() + blklab_types::Span::from_s(120));
    let usage = cache.usage();
    assert_eq!(
        (usage.dirty, usage.writeback, cache.bios_in_flight()),
        (0, 0, 0),
        "{usage:?}"
    );
    let (log, account) = (machine.log(), account.borrow());
    for (file, pages) in written(&log, &place).iter().enumerate() {
        for (page, writes) in pages.iter().enumerate() {
            let d = account[file][page];
            assert!(
                writes.len() as u64 <= d.times,
                "page {page}: {writes:?}, dirtied {} times",
                d.times
            );
            assert!(
                writes.windows(2).all(|w| w[0].1 <= w[1].0),
                "page {page} in flight twice: {writes:?}"
            );
            let last = writes.last().map(|w| w.0);
            assert!(
                d.times == 0 || last >= Some(d.after),
                "page {page}: {writes:?}"
            );
        }
    }
    (log, cache.stats())
}

#[test]
fn no_page_is_lost_and_none_is_written_for_nothing() {
    for features in [
        rules_of("2.6.16"),
        rules_of("2.6.24"),
        rules_of("2.6.28"),
        rules_of("2.6.29"),
        rules_of("2.6.31"),
        rules_of("2.6.32"),
        rules_of("2.6.36"),
        rules_of("3.0"),
        rules_of("3.2"),
        rules_of("3.6"),
        rules_of("3.12"),
        rules_of("4.4"),
        rules_of("4.10"),
        rules_of("5.0"),
        rules_of("6.6"),
    ] {
        for seed in 1..=6 {
            for memory_mib in [13, 64] {
                run(features, seed, memory_mib);
            }
        }
    }
}

#[test]
fn the_same_run_twice_is_the_same() {
    assert!(run(rules_of("2.6.28"), 42, 13) == run(rules_of("2.6.28"), 42, 13));
}
