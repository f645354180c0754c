// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums of times. A trace is what somebody else wrote, and its clock may say anything:
//! a sum that has no end stays at the largest number.

/// Adds to a sum.
pub(super) fn add(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns);
}

/// All of them together.
pub(super) fn total(all: impl IntoIterator<Item = u64>) -> u64 {
    all.into_iter().fold(0, u64::saturating_add)
}

/// Whether a part is more than half of the whole.
pub(super) fn is_most(part: u64, whole: u64) -> bool {
    part > whole / 2
}

/// Whether something takes more than so many times as long.
pub(super) fn is_longer(ns: u64, times: u64, than_ns: u64) -> bool {
    ns > than_ns.saturating_mul(times)
}

/// A part in whole per cent.
pub(super) fn percent(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// What a time is divided into, in words: the largest part first, and none below 1 %.
pub(super) fn parts_text<const N: usize>(parts_ns: [u64; N], of: [&str; N]) -> String {
    let whole = total(parts_ns);
    let mut parts: Vec<(u64, &str)> = parts_ns.into_iter().zip(of).collect();
    parts.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let percents = parts.iter().map(|(ns, of)| (percent(*ns, whole), of));
    let shown = percents.filter(|(percent, _)| *percent >= 1);
    let shown: Vec<String> = shown
        .map(|(percent, of)| format!("{percent} % {of}"))
        .collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_at_the_largest_number() {
        let mut sum = u64::MAX - 1;
        add(&mut sum, 5);
        assert_eq!(sum, u64::MAX);
        assert_eq!(total([u64::MAX, u64::MAX, 1]), u64::MAX);
        assert!(!is_longer(u64::MAX, 4, u64::MAX));
    }

    #[test]
    fn most_is_more_than_half() {
        for (part, whole, most) in [(2, 4, false), (3, 5, true), (2, 5, false), (1, 1, true)] {
            assert_eq!(is_most(part, whole), most, "{part} of {whole}");
        }
    }
}
