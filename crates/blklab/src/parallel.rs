// SPDX-License-Identifier: MIT OR Apache-2.0
//! Independent experiments side by side. The results do not depend on how
//! many run at once: each lives on one thread from start to end.

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
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(i) else { return };
                    let result = f(item);
                    let mut all = results.lock().expect("no thread panicked with the lock");
                    all[i] = Some(result);
                }
            });
        }
    });
    let results = results
        .into_inner()
        .expect("no thread panicked with the lock");
    results
        .into_iter()
        .map(|r| r.expect("every item was taken"))
        .collect()
}
