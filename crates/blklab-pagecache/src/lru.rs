// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which pages go when memory is short.
//!
//! Two queues of runs of pages, as the kernel's inactive and active lists of
//! file pages: a page enters the inactive list, moves to the active one at
//! its second use, and is dropped from the tail of the inactive list if it is
//! clean, unlocked and not under write-back. The active list shrinks when it
//! is the longer one. Runs stand for their pages; a page that became active
//! is recognised when its run is reached.
//!
//! Left out: single-page writes by reclaim, anonymous memory giving way, the
//! exact scan rates (mm/vmscan.c).

use crate::file::{File, FileId};
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Clone, Debug)]
struct Run {
    file: FileId,
    pages: Range<u64>,
}

/// The two lists, oldest run first.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    inactive: VecDeque<Run>,
    active: VecDeque<Run>,
    nr_active: u64,
}

impl Lru {
    /// Pages on the active list.
    pub(crate) fn nr_active(&self) -> u64 {
        self.nr_active
    }

    /// Pages just added to the cache (`lru_cache_add`).
    pub fn add(&mut self, file: FileId, pages: Range<u64>) {
        push(&mut self.inactive, file, pages);
    }

    /// A use of cached pages: the first marks them, the second moves them to the
    /// active list (`mark_page_accessed`).
    pub fn touch(&mut self, file: &mut File, pages: Range<u64>) {
        self.nr_active += file.active.set_where(&file.referenced, pages.clone());
        file.referenced.set(pages);
    }

    /// Drops at least `need` clean pages if there are as many; returns how
    /// many it dropped.
    pub(crate) fn reclaim(&mut self, files: &mut [File], nr_cached: u64, need: u64) -> u64 {
        let mut freed = 0;
        // In a round each run is looked at once: what cannot go rotates to the
        // new end. If one round is not enough, active pages go as well.
        for round in 0..3 {
            for _ in 0..self.inactive.len() + self.active.len() {
                if freed >= need {
                    return freed;
                }
                if round > 0 || self.nr_active > (nr_cached - freed) / 2 || self.inactive.is_empty()
                {
                    self.shrink_active(files);
                }
                if let Some(run) = self.inactive.pop_front() {
                    freed += self.scan(&mut files[run.file.idx()], run, need - freed);
                }
            }
        }
        freed
    }

    /// Moves the oldest run of the active list to the inactive one
    /// (`shrink_active_list`).
    fn shrink_active(&mut self, files: &mut [File]) {
        if let Some(run) = self.active.pop_front() {
            let file = &mut files[run.file.idx()];
            self.nr_active -= file.active.clear(run.pages.clone());
            file.referenced.clear(run.pages.clone());
            push(&mut self.inactive, run.file, run.pages);
        }
    }

    /// Goes over one inactive run (`shrink_inactive_list`, `shrink_page_list`);
    /// drops at most `need` pages.
    fn scan(&mut self, file: &mut File, run: Run, need: u64) -> u64 {
        let (mut page, end, mut freed) = (run.pages.start, run.pages.end, 0);
        while let Some(first) = file.cached.next_set(page, end) {
            if file.active.test(first) {
                page = file.active.next_clear(first, end);
                push(&mut self.active, run.file, first..page);
            } else if file.busy(first) {
                page = file.next_idle(first..end);
                push(&mut self.inactive, run.file, first..page);
            } else if freed == need {
                self.inactive.push_front(Run {
                    file: run.file,
                    pages: first..end,
                });
                break;
            } else {
                // No further than needed: runs can be as long as memory.
                let most = end.min(first + (need - freed));
                let last = file.cached.next_clear(first, most);
                let last = file.active.next_set(first, last).unwrap_or(last);
                page = file.next_busy(first..last).unwrap_or(last);
                freed += forget(file, first..page);
            }
        }
        freed
    }

    /// Takes pages out of the cache whatever their state; returns how many.
    /// Their places in the lists become void when they are reached.
    pub fn forget_pages(&mut self, file: &mut File, pages: Range<u64>) -> u64 {
        self.nr_active -= file.active.count_in(pages.clone());
        forget(file, pages)
    }

    /// Drops the clean pages of a run, however recently used
    /// (`invalidate_mapping_pages`); returns how many.
    pub(crate) fn drop_clean(&mut self, id: FileId, file: &mut File, pages: Range<u64>) -> u64 {
        let freed = self.forget_clean(file, pages);
        if freed > 0 {
            self.forget_uncached(|run| (run.file == id).then_some(&*file));
        }
        freed
    }

    /// Drops all clean pages of all files (`drop_pagecache_sb`).
    pub(crate) fn drop_all_clean(&mut self, files: &mut [File]) -> u64 {
        let freed = files
            .iter_mut()
            .map(|file| self.forget_clean(file, 0..u64::MAX))
            .sum();
        self.forget_uncached(|run| Some(&files[run.file.idx()]));
        freed
    }

    fn forget_clean(&mut self, file: &mut File, pages: Range<u64>) -> u64 {
        let (mut page, mut freed) = (pages.start, 0);
        while let Some(first) = file.cached.next_set(page, pages.end) {
            if file.busy(first) {
                page = first + 1;
                continue;
            }
            let last = file.cached.next_clear(first, pages.end);
            page = file.next_busy(first..last).unwrap_or(last);
            self.nr_active -= file.active.count_in(first..page);
            freed += forget(file, first..page);
        }
        freed
    }

    /// Removes runs, and parts of runs, of pages that are cached no more, so
    /// that a page that comes back stands once in the lists. `of` names the
    /// file of a run if it may have lost pages.
    fn forget_uncached<'a>(&mut self, file_of: impl Fn(&Run) -> Option<&'a File>) {
        for list in [&mut self.inactive, &mut self.active] {
            let runs = std::mem::take(list);
            for run in runs {
                let Some(file) = file_of(&run) else {
                    list.push_back(run);
                    continue;
                };
                let mut page = run.pages.start;
                while let Some(first) = file.cached.next_set(page, run.pages.end) {
                    page = file.cached.next_clear(first, run.pages.end);
                    push(list, run.file, first..page);
                }
            }
        }
    }
}

/// Appends a run, to the last one if it continues it.
fn push(list: &mut VecDeque<Run>, file: FileId, pages: Range<u64>) {
    match list.back_mut() {
        Some(last) if last.file == file && last.pages.end == pages.start => {
            last.pages.end = pages.end;
        }
        _ => list.push_back(Run { file, pages }),
    }
}

/// Takes pages out of the cache.
fn forget(file: &mut File, run: Range<u64>) -> u64 {
    for bits in [
        &mut file.uptodate,
        &mut file.marker,
        &mut file.referenced,
        &mut file.active,
    ] {
        bits.clear(run.clone());
    }
    let forgotten = file.cached.clear(run);
    if file.cached.count() == 0 {
        file.shrink();
    }
    forgotten
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(files: &mut [File], lru: &mut Lru, id: u32, run: Range<u64>) {
        files[id as usize].cached.set(run.clone());
        lru.add(FileId(id), run.clone());
        lru.touch(&mut files[id as usize], run);
    }

    #[test]
    fn the_oldest_clean_pages_go_first_and_used_ones_stay() {
        let mut files = vec![File::default(), File::default()];
        let mut lru = Lru::default();
        cached(&mut files, &mut lru, 0, 0..100);
        cached(&mut files, &mut lru, 1, 0..100);
        files[0].dirty.set(10..20);
        lru.touch(&mut files[0], 30..40);
        assert_eq!(lru.reclaim(&mut files, 200, 60), 60);
        let left: Vec<u64> = (0..100).filter(|p| files[0].cached.test(*p)).collect();
        let want: Vec<u64> = (10..20).chain(30..40).chain(80..100).collect();
        assert_eq!(left, want);
        assert_eq!(
            lru.reclaim(&mut files, 140, 1000),
            130,
            "all but the dirty ones"
        );
        assert_eq!((files[0].cached.count(), files[1].cached.count()), (10, 0));
        assert_eq!(lru.nr_active, 0);
    }

    #[test]
    fn dropped_pages_leave_the_lists() {
        let mut files = vec![File::default()];
        let mut lru = Lru::default();
        for _ in 0..3 {
            cached(&mut files, &mut lru, 0, 0..50);
            lru.touch(&mut files[0], 30..45);
            assert_eq!(lru.drop_clean(FileId(0), &mut files[0], 0..40), 40);
            assert_eq!(lru.drop_clean(FileId(0), &mut files[0], 0..50), 10);
        }
        assert!(lru.inactive.is_empty() && lru.active.is_empty());
        assert_eq!(lru.nr_active, 0);
    }
}
