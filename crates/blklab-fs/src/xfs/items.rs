// SPDX-License-Identifier: MIT OR Apache-2.0
//! What transactions change, and the list of it in the order of the log
//! (fs/xfs/xfs_trans_ail.c, 2.6.26).
//!
//! A changed thing is pinned until the record with the change is on the disk;
//! then it stands on the list, at the position of its last change, until it is
//! in its place. The oldest on the list is the log's tail.

/// A metadata buffer or an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemId(u32);

const INODE: u32 = 1 << 31;
const NONE: ItemId = ItemId(u32::MAX);

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Buffer(u32),
    Inode(u32),
}

impl ItemId {
    pub(super) fn buffer(index: u32) -> ItemId {
        ItemId(index)
    }

    pub(super) fn inode(index: u32) -> ItemId {
        ItemId(index | INODE)
    }

    pub(super) fn what(self) -> What {
        match self.0 & INODE {
            0 => What::Buffer(self.0),
            _ => What::Inode(self.0 & !INODE),
        }
    }
}

/// The log's view of one thing (`xfs_log_item_t`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Position of the last change that is in the log and not in place (`li_lsn`);
    /// 0 if there is none.
    pub(super) lsn: u64,
    /// The record that has it already.
    record: u64,
    older: ItemId,
    newer: ItemId,
    /// Records on their way, and transactions that are being copied, with it
    /// (`b_pin_count`, `i_pincount`).
    pub(super) pins: u32,
    /// It waits in memory for the next checkpoint of delayed logging.
    pub(super) collected: bool,
}

impl Default for Item {
    fn default() -> Item {
        Item {
            lsn: 0,
            record: 0,
            older: NONE,
            newer: NONE,
            pins: 0,
            collected: false,
        }
    }
}

impl Item {
    /// Whether it may not be written.
    pub(super) fn pinned(&self) -> bool {
        self.pins > 0
    }

    /// Whether the log has something of it that is not in its place.
    pub(super) fn logged(&self) -> bool {
        self.pins > 0 || self.lsn > 0
    }

    /// A record on its way, or a transaction, has it no more.
    pub(super) fn unpin(&mut self) {
        let left = self.pins.checked_sub(1);
        self.pins = left.expect("what is unpinned was pinned");
    }

    /// Puts it into a record; false if it is there already.
    pub(super) fn attach(&mut self, record: u64) -> bool {
        std::mem::replace(&mut self.record, record) != record
    }
}

/// All items, and the list (the AIL).
#[derive(Debug)]
pub(super) struct Items {
    buffers: Vec<Item>,
    inodes: Vec<Item>,
    oldest: ItemId,
    newest: ItemId,
    pub(super) listed: u64,
}

impl Default for Items {
    fn default() -> Items {
        Items {
            buffers: Vec::new(),
            inodes: Vec::new(),
            oldest: NONE,
            newest: NONE,
            listed: 0,
        }
    }
}

impl Items {
    /// The item of a thing; there is one for everything that is asked for.
    pub(super) fn get(&mut self, id: ItemId) -> &mut Item {
        let (table, index) = match id.what() {
            What::Buffer(i) => (&mut self.buffers, i as usize),
            What::Inode(i) => (&mut self.inodes, i as usize),
        };
        if table.len() <= index {
            table.resize(index + 1, Item::default());
        }
        &mut table[index]
    }

    /// Position of the oldest on the list.
    pub(super) fn oldest_lsn(&mut self) -> Option<u64> {
        let oldest = self.oldest()?;
        Some(self.get(oldest).lsn)
    }

    /// The oldest on the list (`xfs_trans_first_ail`).
    pub(super) fn oldest(&self) -> Option<ItemId> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The next younger on the list (`xfs_trans_next_ail`).
    pub(super) fn after(&mut self, id: ItemId) -> Option<ItemId> {
        let newer = self.get(id).newer;
        (newer != NONE).then_some(newer)
    }

    /// A record is on the disk: what it changed moves to the young end
    /// (`xfs_trans_update_ail`, later `xfs_trans_ail_update`).
    pub(super) fn insert(&mut self, id: ItemId, lsn: u64) {
        self.remove(id);
        let older = self.newest;
        debug_assert!(
            older == NONE || self.get(older).lsn <= lsn,
            "{id:?} goes behind what the log has after it"
        );
        let item = self.get(id);
        (item.lsn, item.older, item.newer) = (lsn, older, NONE);
        match older {
            NONE => self.oldest = id,
            _ => self.get(older).newer = id,
        }
        self.newest = id;
        self.listed += 1;
    }

    /// It is in its place (`xfs_trans_delete_ail`, later `xfs_trans_ail_delete`).
    pub(super) fn remove(&mut self, id: ItemId) {
        let item = self.get(id);
        if item.lsn == 0 {
            return;
        }
        let (older, newer) = (item.older, item.newer);
        (item.lsn, item.older, item.newer) = (0, NONE, NONE);
        match older {
            NONE => self.oldest = newer,
            _ => self.get(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.get(newer).older = older,
        }
        let left = self.listed.checked_sub(1);
        self.listed = left.expect("what leaves the list was counted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_moves_an_item_to_the_young_end() {
        let mut items = Items::default();
        let (a, b, c) = (ItemId::buffer(0), ItemId::inode(0), ItemId::buffer(7));
        items.insert(a, 10);
        items.insert(b, 20);
        items.insert(c, 20);
        assert_eq!(items.oldest_lsn(), Some(10));
        items.insert(a, 30);
        let mut order = vec![items.oldest().unwrap()];
        while let Some(next) = items.after(*order.last().unwrap()) {
            order.push(next);
        }
        assert_eq!(order, [b, c, a]);
        items.remove(c);
        items.remove(c);
        items.remove(b);
        assert_eq!((items.oldest(), items.listed), (Some(a), 1));
        items.remove(a);
        assert_eq!(items.oldest_lsn(), None);
    }

    #[test]
    fn a_record_takes_an_item_once() {
        let mut item = Item::default();
        assert!(item.attach(64) && !item.attach(64) && item.attach(128));
    }
}
