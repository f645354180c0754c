// SPDX-License-Identifier: MIT OR Apache-2.0
//! RAID 1: which member a read goes to (`read_balance`, drivers/md/raid1.c,
//! 2.6.28).

/// One member as the balance sees it.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// End of the array's I/O that it finished last.
    head_position: u64,
    /// The array's bios that it has not finished, waiting writes included.
    nr_pending: u32,
}

/// Heads and load of the members, all in sync.
#[derive(Debug)]
pub(super) struct Mirror {
    members: Vec<Member>,
    last_used: usize,
    /// End of the read chosen for last.
    next_seq_sector: u64,
}

impl Mirror {
    pub(super) fn new(nr_members: u32) -> Mirror {
        Mirror {
            members: vec![Member::default(); nr_members as usize],
            last_used: 0,
            next_seq_sector: 0,
        }
    }

    /// The member for a read, which is now pending there.
    pub(super) fn choose(&mut self, sector: u64, nr_sectors: u32) -> u32 {
        let member = self.balance(sector);
        self.next_seq_sector = sector + u64::from(nr_sectors);
        self.last_used = member;
        self.members[member].nr_pending += 1;
        member as u32
    }

    /// The last used member if the read goes on where the array's last read
    /// or that member's head ended; else the first idle one of the others,
    /// downwards; else the nearest.
    fn balance(&self, sector: u64) -> usize {
        let mut best = self.last_used;
        if self.next_seq_sector == sector || self.members[best].head_position == sector {
            return best;
        }
        let mut best_distance = self.distance(best, sector);
        let mut at = self.last_used;
        loop {
            at = at.checked_sub(1).unwrap_or(self.members.len() - 1);
            if self.members[at].nr_pending == 0 {
                return at;
            }
            let distance = self.distance(at, sector);
            if distance < best_distance {
                (best, best_distance) = (at, distance);
            }
            if at == self.last_used {
                return best;
            }
        }
    }

    /// Distance of a member's head, cut to 32 bits as the kernel's is: beyond
    /// 1 TiB it is wrong.
    fn distance(&self, member: usize, sector: u64) -> u64 {
        let difference = sector.wrapping_sub(self.members[member].head_position) as i32;
        i64::from(difference.wrapping_abs()) as u64
    }

    /// A write is pending on a member.
    pub(super) fn begin(&mut self, member: u32) {
        self.members[member as usize].nr_pending += 1;
    }

    /// A member finished I/O of the array that ends at that sector.
    pub(super) fn end(&mut self, member: u32, end_sector: u64) {
        let m = &mut self.members[member as usize];
        m.nr_pending -= 1;
        m.head_position = end_sector;
    }

    /// Whether a member has I/O of the array.
    pub(super) fn has_pending(&self, member: u32) -> bool {
        self.members[member as usize].nr_pending > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vector BL14 of the specification.
    #[test]
    fn sequential_idle_nearest() {
        let mut m = Mirror::new(2);
        assert_eq!(m.choose(1000, 8), 1, "r1: the other one is idle");
        assert_eq!(m.choose(1008, 8), 1, "r2: sequential, though busy");
        assert_eq!(m.choose(5000, 8), 0, "r3: idle");
        assert_eq!(m.choose(4000, 8), 0, "r4: heads equal, the last used");
        m.end(1, 1008);
        m.end(1, 1016);
        m.end(0, 5008);
        assert_eq!(m.choose(1016, 8), 1, "r5: idle");
        assert_eq!(m.choose(1024, 8), 1, "r6: sequential");
    }

    /// Vector 8 of the device specification.
    #[test]
    fn an_idle_member_wins_over_a_near_head() {
        let mut m = Mirror::new(2);
        m.begin(1);
        m.end(1, 1_000_000);
        assert_eq!(m.choose(999_000, 8), 1);
        let mut m = Mirror::new(2);
        m.begin(0);
        m.end(0, 1_000_000);
        assert_eq!(m.choose(999_000, 8), 1, "member 0 is nearer, but was used");
    }

    #[test]
    fn of_busy_members_the_strictly_nearest() {
        let mut m = Mirror::new(3);
        for (member, head) in [(0, 100), (1, 5000), (2, 9000)] {
            m.begin(member);
            m.begin(member);
            m.end(member, head);
        }
        assert_eq!(m.choose(8000, 8), 2);
        assert_eq!(m.choose(5500, 8), 1);
        assert_eq!(m.choose(0, 8), 0);
        assert_eq!(m.choose(2550, 8), 0, "as far from 1, but 0 was used last");
    }

    #[test]
    fn distances_are_cut_to_32_bits() {
        let mut m = Mirror::new(2);
        for (member, head) in [(0, 0), (1, 1 << 20)] {
            m.begin(member);
            m.begin(member);
            m.end(member, head);
        }
        // 2^32 from head 0 counts as no distance at all.
        assert_eq!(m.choose((1 << 32) + 8, 8), 0);
    }
}
