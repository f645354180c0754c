// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much two sequences have in common, in order.
//!
//! Source: E. W. Myers, "An O(ND) Difference Algorithm and Its Variations",
//! Algorithmica 1 (1986). Only the length is wanted, so one row of furthest
//! reaching points is all that is kept.

/// Insertions and deletions after which the search is given up: 160 KB and
/// about a second. Sequences that far apart have little in common.
const EDITS_MAX: usize = 20_000;

/// Length of the longest common subsequence; none if the sequences are more
/// than 20,000 insertions and deletions apart.
pub fn length<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> Option<usize> {
    let total = a.len() + b.len();
    let max = total.min(EDITS_MAX);
    // furthest[max + k]: how far along `a` a path on diagonal k = x - y gets.
    let mut furthest = vec![0_usize; 2 * max + 2];
    for edits in 0..=max {
        let mut at = max - edits;
        while at <= max + edits {
            let from_above = edits > 0
                && (at == max - edits
                    || (at != max + edits && furthest[at - 1] < furthest[at + 1]));
            let mut x = match (edits, from_above) {
                (0, _) => 0,
                (_, true) => furthest[at + 1],
                (_, false) => furthest[at - 1] + 1,
            };
            // y = x - k; outside of `b` the path is of no use.
            let mut y = (x + max).wrapping_sub(at);
            while x < a.len() && y < b.len() && same(&a[x], &b[y]) {
                x += 1;
                y += 1;
            }
            furthest[at] = x;
            if x >= a.len() && y >= b.len() && x + max >= at {
                return Some((total - edits) / 2);
            }
            at += 2;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &str, b: &str, expected: usize) {
        let (x, y) = (a.as_bytes(), b.as_bytes());
        assert_eq!(length(x, y, |p, q| p == q), Some(expected), "{a} {b}");
        assert_eq!(length(y, x, |p, q| p == q), Some(expected), "{b} {a}");
    }

    #[test]
    fn lengths_are_those_of_a_table() {
        check("", "", 0);
        check("abc", "", 0);
        check("abc", "abc", 3);
        check("abc", "xyz", 0);
        check("abcabba", "cbabac", 4);
        check("abcd", "bacd", 3);
        check("aaaa", "aa", 2);
        // Against the quadratic table, on words of a few letters.
        let mut state = 1_u32;
        let mut word = |n: usize| -> Vec<u8> {
            let mut letter = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8 % 4
            };
            (0..n).map(|_| letter()).collect()
        };
        for n in 0..40 {
            let (a, b) = (word(n), word(37 - n % 30));
            assert_eq!(length(&a, &b, |p, q| p == q), Some(table(&a, &b)));
        }
    }

    fn table(a: &[u8], b: &[u8]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut corner = 0;
            for (j, y) in b.iter().enumerate() {
                let old = row[j + 1];
                row[j + 1] = if x == y { corner + 1 } else { old.max(row[j]) };
                corner = old;
            }
        }
        row[b.len()]
    }

    #[test]
    fn sequences_with_nothing_in_common_are_given_up() {
        let a = vec![0; EDITS_MAX];
        let b = vec![1; EDITS_MAX];
        assert_eq!(length(&a, &b, |p, q| p == q), None);
    }
}
