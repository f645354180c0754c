// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lists of dirty inodes: dirty, io and more_io (fs/fs-writeback.c).
//!
//! Each list runs from its newest end to its oldest; an inode is on one list
//! at most. Links live in one vector, so that every move costs the same.

use crate::FileId;

/// The three lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Dirty, not chosen for writing (`s_dirty`, later `b_dirty`).
    Dirty = 0,
    /// Chosen; the oldest is next (`s_io`, later `b_io`).
    Io = 1,
    /// Had its turn and has more (`s_more_io`, later `b_more_io`).
    MoreIo = 2,
}

/// Which end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As if just dirtied.
    Newest,
    /// Next in turn.
    Oldest,
}

#[derive(Clone, Copy, Debug, Default)]
struct Links {
    on: Option<List>,
    newer: Option<FileId>,
    older: Option<FileId>,
}

/// All dirty inodes of one superblock.
#[derive(Clone, Debug, Default)]
pub struct DirtyInodes {
    links: Vec<Links>,
    newest: [Option<FileId>; 3],
    oldest: [Option<FileId>; 3],
}

impl DirtyInodes {
    /// The inode next in turn.
    pub(crate) fn oldest(&self, list: List) -> Option<FileId> {
        self.oldest[list as usize]
    }

    /// The inode that came last.
    pub fn newest(&self, list: List) -> Option<FileId> {
        self.newest[list as usize]
    }

    /// Whether the list has no inode.
    pub(crate) fn is_empty(&self, list: List) -> bool {
        self.oldest(list).is_none()
    }

    /// All inodes of a list, oldest first.
    pub(crate) fn iter(&self, list: List) -> impl Iterator<Item = FileId> + '_ {
        std::iter::successors(self.oldest(list), |f| self.links[f.idx()].newer)
    }

    /// Puts an inode, on whatever list it is, at one end of a list.
    pub fn put(&mut self, inode: FileId, list: List, end: End) {
        self.remove(inode);
        let l = list as usize;
        let links = match end {
            End::Newest => Links {
                on: Some(list),
                newer: None,
                older: self.newest[l],
            },
            End::Oldest => Links {
                on: Some(list),
                newer: self.oldest[l],
                older: None,
            },
        };
        self.links[inode.idx()] = links;
        self.join(list, links.newer, Some(inode));
        self.join(list, Some(inode), links.older);
    }

    /// Takes an inode off its list.
    pub fn remove(&mut self, inode: FileId) {
        if self.links.len() <= inode.idx() {
            self.links.resize(inode.idx() + 1, Links::default());
        }
        let links = std::mem::take(&mut self.links[inode.idx()]);
        if let Some(list) = links.on {
            self.join(list, links.newer, links.older);
        }
    }

    /// Makes two inodes neighbours; `None` is the end of the list.
    fn join(&mut self, list: List, newer: Option<FileId>, older: Option<FileId>) {
        match newer {
            Some(n) => self.links[n.idx()].older = older,
            None => self.newest[list as usize] = older,
        }
        match older {
            Some(o) => self.links[o.idx()].newer = newer,
            None => self.oldest[list as usize] = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_move_between_the_ends_of_lists() {
        let mut lists = DirtyInodes::default();
        for i in 0..4 {
            lists.put(FileId(i), List::Dirty, End::Newest);
        }
        lists.put(FileId(2), List::Io, End::Newest);
        lists.put(FileId(3), List::Dirty, End::Oldest);
        lists.remove(FileId(0));
        lists.remove(FileId(0));
        assert_eq!(
            lists.iter(List::Dirty).collect::<Vec<_>>(),
            [FileId(3), FileId(1)]
        );
        assert_eq!(lists.oldest(List::Io), lists.newest(List::Io));
        assert!(lists.is_empty(List::MoreIo));
        lists.put(FileId(1), List::Io, End::Oldest);
        assert_eq!(
            lists.iter(List::Io).collect::<Vec<_>>(),
            [FileId(1), FileId(2)]
        );
        assert_eq!(lists.newest(List::Dirty), Some(FileId(3)));
    }
}
