// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many are under way at a time.

/// Most of them between beginning and end at a time, 1 at least; in the order of their
/// beginnings. What ends when another begins is not beside it.
pub fn most_under_way(spans: impl Iterator<Item = [u64; 2]>) -> usize {
    let spans: Vec<[u64; 2]> = spans.collect();
    let mut ends: Vec<u64> = spans.iter().map(|[_, end]| *end).collect();
    ends.sort_unstable();
    let (mut most, mut ended) = (1, 0);
    for (i, [begin, _]) in spans.iter().enumerate() {
        while ends.get(ended).is_some_and(|e| e <= begin) {
            ended += 1;
        }
        // One that takes no time ends before it is counted.
        most = most.max(i + 1 - ended.min(i));
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_counted() {
        let most = |spans: &[[u64; 2]]| most_under_way(spans.iter().copied());
        assert_eq!(most(&[]), 1);
        assert_eq!(most(&[[0, 10], [10, 20]]), 1);
        assert_eq!(most(&[[0, 30], [5, 10], [7, 40], [10, 11]]), 3);
        assert_eq!(most(&[[5, 5], [5, 5]]), 1);
        assert_eq!(most(&[[0, u64::MAX], [1, u64::MAX], [9, 9]]), 2);
    }
}
