// SPDX-License-Identifier: MIT OR Apache-2.0
//! Independent experiments side by side. The results do not depend on how
//! many run at once: each lives on one thread from start to end.

use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of cores, at least 1.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Applies `f` to every item, at most `threads` at a time; results in order
/// of the items.
///
/// # Panics
/// If `f` panics.
pub fn map<T: Sync, R: Send>(items: &[T], threads: usize, f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map_longest_first(items, threads, |_| 0, f)
}

/// The same, begun with those that are expected to take longest, so that none of
/// them is left for the end; those of one length in order.
///
/// # Panics
/// If `f` panics.
pub fn map_longest_first<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    length: impl Fn(&T) -> u64,
    f: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_cached_key(|&i| Reverse(length(&items[i])));
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    let work = || {
        loop {
            let taken = next.fetch_add(1, Ordering::Relaxed);
            let Some(&i) = order.get(taken) else { return };
            let result = f(&items[i]);
            let mut all = results.lock().expect("no thread panicked with the lock");
            all[i] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        // This thread is one of them: what was allocated to check the experiments is
        // used again.
        for _ in 1..threads.min(items.len()) {
            scope.spawn(work);
        }
        work();
    });
    let results = results
        .into_inner()
        .expect("no thread panicked with the lock");
    results
        .into_iter()
        .map(|r| r.expect("every item was taken"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_begin_and_results_stay_in_order() {
        let began = Mutex::new(Vec::new());
        let doubled = map_longest_first(
            &[3, 9, 1, 9],
            1,
            |&n| n,
            |&n| {
                began.lock().unwrap().push(n);
                n * 2
            },
        );
        assert_eq!(doubled, [6, 18, 2, 18]);
        assert_eq!(began.into_inner().unwrap(), [9, 9, 3, 1]);
    }
}
