// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time a drive takes to understand a command, by its kind and by the kind of
//! the command before it.
//!
//! Times after a command of the same kind are measured with one behind the other.
//! Then a read has read-ahead to break off, and a write may save what the write
//! before it has prepared. In a drive that leaves nothing open, neither applies once
//! it has answered everything: a read after a read takes no longer than one after a
//! write, and a write after a write no less than one after a read.
//!
//! Source: the manual of DiskSim 4.0 for the kinds. The rule for drives that leave
//! nothing open is that of the HP C2490A, which takes 1.3 ms less for a read and
//! 2.5 ms more for a write than its file says.

use blklab_types::Op;

/// Times by the kind of the command before: read, write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overheads {
    pub(crate) read_hit_ns: [u64; 2],
    pub(crate) read_miss_ns: [u64; 2],
    pub(crate) write_hit_ns: [u64; 2],
    pub(crate) write_miss_ns: [u64; 2],
    /// Nothing of an answered command goes on that one of its kind meets.
    pub(crate) leaves_nothing_open: bool,
    /// Writes behind a write elsewhere let go of the bus once more.
    pub(crate) extra: Option<ExtraDisconnect>,
}

/// Some drives let go of the bus after they have understood a write, and fetch its
/// data later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtraDisconnect {
    /// From hand-over until the mechanism may begin.
    pub(crate) mechanism_ns: u64,
    /// From then on until the first data cross the bus.
    pub(crate) data_ns: u64,
    /// To get the bus back in the end.
    pub(crate) reselect_ns: u64,
}

/// What is known of a command when it is handed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) op: Op,
    /// All or the begin of a read is in the buffer; a write goes to the cache.
    pub(crate) hit: bool,
    /// Of a read, only its begin is there.
    pub(crate) partial: bool,
    /// The command before was a write.
    pub(crate) after_write: bool,
    /// The drive has answered everything.
    pub(crate) alone: bool,
}

impl Overheads {
    /// Time from hand-over until the command is ready, and until the mechanism may
    /// begin: for the rest of a read whose begin is in the buffer these differ.
    pub(crate) fn ns(&self, arrival: &Arrival) -> [u64; 2] {
        match arrival.op {
            Op::Read if arrival.partial => [
                self.read_hit_ns[usize::from(arrival.after_write)],
                self.read_ns(&self.read_miss_ns, arrival),
            ],
            Op::Read if arrival.hit => [self.read_hit_ns[usize::from(arrival.after_write)]; 2],
            Op::Read => [self.read_ns(&self.read_miss_ns, arrival); 2],
            Op::Write if !arrival.hit => [self.write_ns(&self.write_miss_ns, arrival); 2],
            Op::Write | Op::Discard | Op::Flush => [self.write_ns(&self.write_hit_ns, arrival); 2],
        }
    }

    fn read_ns(&self, &[read, write]: &[u64; 2], arrival: &Arrival) -> u64 {
        if arrival.after_write {
            write
        } else if self.leaves_nothing_open && arrival.alone {
            read.min(write)
        } else {
            read
        }
    }

    fn write_ns(&self, &[read, write]: &[u64; 2], arrival: &Arrival) -> u64 {
        if !arrival.after_write {
            read
        } else if self.leaves_nothing_open && arrival.alone {
            write.max(read)
        } else {
            write
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_drive_that_leaves_nothing_open_has_nothing_to_break_off() {
        let hp = Overheads {
            read_hit_ns: [1_419, 0],
            read_miss_ns: [3_616, 2_275],
            write_hit_ns: [3_283, 824],
            write_miss_ns: [3_283, 824],
            leaves_nothing_open: true,
            extra: None,
        };
        let ns = |op, hit, after_write, alone| {
            hp.ns(&Arrival {
                op,
                hit,
                partial: false,
                after_write,
                alone,
            })[0]
        };
        assert_eq!(ns(Op::Read, false, false, false), 3_616);
        assert_eq!(ns(Op::Read, false, false, true), 2_275);
        assert_eq!(ns(Op::Read, false, true, true), 2_275);
        assert_eq!(ns(Op::Write, false, true, false), 824);
        assert_eq!(ns(Op::Write, false, true, true), 3_283);
        assert_eq!(ns(Op::Read, true, true, true), 0);
        let other = Overheads {
            leaves_nothing_open: false,
            ..hp
        };
        let at = |op, after_write| Arrival {
            op,
            hit: false,
            partial: false,
            after_write,
            alone: true,
        };
        assert_eq!(other.ns(&at(Op::Read, false)), [3_616; 2]);
        assert_eq!(other.ns(&at(Op::Write, true)), [824; 2]);
    }
}
