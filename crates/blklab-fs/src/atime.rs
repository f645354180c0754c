// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access times: when a read changes the inode (fs/inode.c, `touch_atime`).

/// Seconds of a day: how long `relatime` trusts an access time (2.6.30 and
/// later; fs/inode.c, `relatime_need_update`).
pub(crate) const DAY_S: u32 = 86_400;

/// When a read changes the inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atime {
    /// Never (`noatime`).
    Never,
    /// Only if the last access is not later than the last change, or a day old.
    Relative,
    /// When the second has changed.
    Strict,
}

impl Atime {
    /// Whether a read in this second changes an inode with these times.
    pub(crate) fn is_stale(self, atime_s: u32, mtime_s: u32, now_s: u32) -> bool {
        match self {
            Atime::Never => false,
            Atime::Relative => atime_s <= mtime_s || now_s >= atime_s.saturating_add(DAY_S),
            Atime::Strict => atime_s != now_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Atime;

    #[test]
    fn times_are_stale_by_rule() {
        let stale = |rule: Atime| {
            [(5, 0, 5), (5, 0, 6), (5, 5, 6), (5, 0, 86_405)]
                .map(|(a, m, now)| rule.is_stale(a, m, now))
        };
        assert_eq!(stale(Atime::Never), [false; 4]);
        assert_eq!(stale(Atime::Strict), [false, true, true, true]);
        assert_eq!(stale(Atime::Relative), [false, false, true, true]);
    }
}
