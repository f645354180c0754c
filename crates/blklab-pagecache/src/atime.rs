// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access times: when a read changes the inode (fs/inode.c, `touch_atime`).

use crate::cache::PageCache;
use crate::ops::Host;

/// Seconds of a day: how long `relatime` trusts an access time (2.6.30 and
/// later; fs/inode.c, `relatime_need_update`).
pub const DAY_S: u32 = 86_400;

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
    /// A read in this second: whether it changes an inode with these times. If
    /// so the access time is this second.
    pub fn touch(self, atime_s: &mut u32, mtime_s: u32, now_s: u32) -> bool {
        let stale = match self {
            Atime::Never => false,
            Atime::Relative => *atime_s <= mtime_s || now_s >= atime_s.saturating_add(DAY_S),
            Atime::Strict => *atime_s != now_s,
        };
        if stale {
            *atime_s = now_s;
        }
        stale
    }
}

impl<H: Host> PageCache<H> {
    /// The second that inodes are stamped with; those from before the run have
    /// 0.
    pub fn inode_second(&self) -> u32 {
        u32::try_from(self.host.now().0 / 1_000_000_000 + 1).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::Atime;

    #[test]
    fn times_are_stale_by_rule() {
        let stale = |rule: Atime| {
            [(5, 0, 5), (5, 0, 6), (5, 5, 6), (5, 0, 86_405)]
                .map(|(mut a, m, now)| rule.touch(&mut a, m, now))
        };
        assert_eq!(stale(Atime::Never), [false; 4]);
        assert_eq!(stale(Atime::Strict), [false, true, true, true]);
        assert_eq!(stale(Atime::Relative), [false, false, true, true]);
    }
}
