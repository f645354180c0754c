// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys and items of the tree, and what they take in a leaf
//! (fs/reiserfs, on-disk format 3.6).

/// Bytes of a leaf behind its head.
pub(super) const LEAF_BYTES: u32 = 4096 - 24;
/// Bytes of an item's head.
const HEAD_BYTES: u32 = 24;
/// Bytes of stat data.
pub(super) const STAT_BYTES: u32 = 44;
/// Bytes of the entries for the directory itself and its parent.
pub(super) const DOTS_BYTES: u32 = 48;
/// Bytes of a pointer to a data block.
pub(super) const POINTER_BYTES: u32 = 4;
/// Most pointers of an item: it fills a leaf.
pub(super) const MOST_POINTERS: u64 = ((LEAF_BYTES - HEAD_BYTES) / POINTER_BYTES) as u64;
/// Bytes of the note that an unlinked inode is still there.
pub(super) const SAVE_LINK_BYTES: u32 = 4;

/// What an item is; in the order of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stat data.
    Stat = 0,
    /// Pointers to data blocks.
    Indirect = 1,
    /// Bytes of a file: its tail.
    Direct = 2,
    /// An entry of a directory.
    Entry = 3,
}

/// Who an object is: its packing locality (`k_dir_id`) and its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    pub(super) locality: u32,
    pub(super) number: u32,
}

/// A key: leaves are in its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) object: Object,
    /// Offset in the object, and the kind in the two lowest bits.
    place: u64,
}

impl Key {
    fn new(object: Object, offset: u64, kind: Kind) -> Key {
        let place = offset << 2 | kind as u64;
        Key { object, place }
    }

    /// Stat data of an object.
    pub(super) fn stat(object: Object) -> Key {
        Key::new(object, 0, Kind::Stat)
    }

    /// The pointers from a page of a file on.
    pub(super) fn pointers(object: Object, page: u64) -> Key {
        Key::new(object, page * 4096 + 1, Kind::Indirect)
    }

    /// The tail of a file that begins at a page.
    pub(super) fn tail(object: Object, page: u64) -> Key {
        Key::new(object, page * 4096 + 1, Kind::Direct)
    }

    /// The entries of a directory for itself and its parent.
    pub(super) fn dots(object: Object) -> Key {
        Key::new(object, 1, Kind::Entry)
    }

    /// An entry of a directory: by hash, those of one hash by the file that
    /// they name.
    pub(super) fn entry(object: Object, hash: u32, file: u32) -> Key {
        let offset = u64::from(hash) << 30 | u64::from(file & 0x3fff_ffff);
        Key::new(object, offset.max(2), Kind::Entry)
    }

    /// The note about an unlinked inode; behind everything else.
    pub(super) fn save_link(number: u32) -> Key {
        let locality = u32::MAX;
        Key::new(Object { locality, number }, 1, Kind::Direct)
    }

    pub(super) fn kind(self) -> Kind {
        match self.place & 3 {
            0 => Kind::Stat,
            1 => Kind::Indirect,
            2 => Kind::Direct,
            _ => Kind::Entry,
        }
    }
}

/// An item, or an entry of a directory's item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) key: Key,
    /// Without the head.
    pub(super) bytes: u16,
}

impl Item {
    pub(super) fn new(key: Key, bytes: u32) -> Item {
        let bytes = bytes.min(LEAF_BYTES - HEAD_BYTES) as u16;
        Item { key, bytes }
    }

    /// What it takes behind another one: the entries of a directory that
    /// follow each other share a head.
    pub(super) fn cost(&self, before: Option<&Item>) -> u32 {
        let shares = before.is_some_and(|b| {
            b.key.object == self.key.object
                && b.key.kind() == Kind::Entry
                && self.key.kind() == Kind::Entry
        });
        u32::from(self.bytes) + if shares { 0 } else { HEAD_BYTES }
    }
}

/// Bytes that items take in a leaf.
pub(super) fn used_bytes(items: &[Item]) -> u32 {
    let mut before = None;
    let mut sum = 0;
    for item in items {
        sum += item.cost(before);
        before = Some(item);
    }
    sum
}

/// Bytes of an entry for a name of that length.
pub(super) fn entry_bytes(name_bytes: u8) -> u32 {
    16 + u32::from(name_bytes).next_multiple_of(8)
}

/// Bytes of a tail in the leaf.
pub(super) fn tail_item_bytes(tail_bytes: u64) -> u32 {
    (tail_bytes as u32).next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_stat_data_then_its_body() {
        let o = Object {
            locality: 2,
            number: 7,
        };
        let mut keys = [
            Key::tail(o, 3),
            Key::pointers(o, 0),
            Key::stat(o),
            Key::pointers(o, 1012),
        ];
        keys.sort_unstable();
        let kinds = keys.map(Key::kind);
        assert_eq!(
            kinds,
            [Kind::Stat, Kind::Indirect, Kind::Direct, Kind::Indirect]
        );
        assert_eq!(keys[3], Key::pointers(o, 1012));
        assert!(Key::dots(o) < Key::entry(o, 0, 0) && Key::stat(o) < Key::dots(o));
        assert!(Key::entry(o, u32::MAX, u32::MAX) < Key::save_link(1));
    }

    #[test]
    fn entries_share_a_head() {
        let o = Object::default();
        let name = |hash| Item::new(Key::entry(o, hash, 9), entry_bytes(10));
        let items = [
            Item::new(Key::stat(o), STAT_BYTES),
            Item::new(Key::dots(o), DOTS_BYTES),
            name(1),
            name(2),
        ];
        assert_eq!(used_bytes(&items), (24 + 44) + (24 + 48) + 2 * (16 + 16));
        assert_eq!(MOST_POINTERS, 1012);
    }
}
