// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path of a control group and its share of a device, as events carry them.

use blklab_types::visible;
use std::fmt;

/// The path of a control group, of which the end is kept if it is long.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupPath([u8; GroupPath::LEN]);

impl GroupPath {
    const LEN: usize = 24;

    /// Of a path.
    pub fn new(path: &[u8]) -> GroupPath {
        let mut kept = [0; GroupPath::LEN];
        let end = &path[path.len().saturating_sub(GroupPath::LEN)..];
        kept[..end.len()].copy_from_slice(end);
        if end.len() < path.len() {
            kept[..3].copy_from_slice(b"...");
        }
        GroupPath(kept)
    }
}

impl fmt::Display for GroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        f.write_str(&visible(&String::from_utf8_lossy(&self.0[..len])))
    }
}

impl fmt::Debug for GroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupPath({self})")
    }
}

/// A share of a device, in 65536ths (`WEIGHT_ONE`, block/blk-iocost.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupShare(pub u32);

impl fmt::Display for GroupShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", u64::from(self.0) * 100 / 65536)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_path_the_end_is_kept() {
        let shown = |path: &str| GroupPath::new(path.as_bytes()).to_string();
        assert_eq!(shown("/blkcg1"), "/blkcg1");
        assert_eq!(
            shown("/a2222222222222222222222"),
            "/a2222222222222222222222"
        );
        assert_eq!(
            shown("/system.slice/very-long-name.service"),
            "...ery-long-name.service"
        );
    }
}
