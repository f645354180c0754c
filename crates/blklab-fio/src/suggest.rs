// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nearest option name for one that does not exist.
//!
//! Behaviour of fio 3.33: smallest edit distance, the first in the option
//! table among equals, and only if it is not farther than half the word.

use crate::option::ALL;
use blklab_types::edit_distance;

/// The option whose name is nearest to the part of `line` before `=`.
pub(crate) fn nearest_option(line: &str) -> Option<&'static str> {
    let name = line.split('=').next().unwrap_or(line).trim_end();
    // No option name is that long, and the distance costs the product.
    if name.len() > 64 {
        return None;
    }
    let (distance, best) = ALL
        .iter()
        .map(|spec| (edit_distance(name, spec.name), spec.name))
        .min_by_key(|&(distance, _)| distance)?;
    (distance <= name.len().div_ceil(2)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints() {
        assert_eq!(nearest_option("sizee=4k"), Some("size"));
        assert_eq!(nearest_option("foo"), Some("flow"));
        assert_eq!(nearest_option("hipri=1"), Some("prio"));
        assert_eq!(nearest_option("completelywrongname=1"), None);
    }
}
