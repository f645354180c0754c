// SPDX-License-Identifier: MIT OR Apache-2.0
//! Garbage collection without a mapping table: what a write costs later.
//!
//! Blocks are taken up in the order in which they were written. If writes are
//! uniform over the drive, a page of a block is still live when its turn comes
//! with probability u, where alpha = flash / capacity = 1 + spare:
//!
//! ```text
//! u = exp(-alpha * (1 - u))
//! write amplification = 1 / (1 - u),  pages moved per page written = u / (1 - u)
//! ```
//!
//! In the time between, flash * (1 - u) pages are written by the host, and a page
//! out of `capacity` survives all of them with that probability. At 7 % spare the
//! amplification is 7.8, at 28 % 2.5. A choice of the emptiest block does a
//! little better. Writes that continue a stream leave whole blocks without live
//! pages behind and move nothing.
//!
//! What programs cost their die, moves (read, out over the channel and in again,
//! program) and an erase for every block filled, is paid before the next program
//! of the host or in bursts, as [`collect`](super::collect) says. Dies of a drive
//! that has been written begin at different places of their blocks
//! ([`Debt::amid_writing`]), so that they erase one after another. What is left
//! out: collecting in idle time, blocks that hold hot or cold data alone, wear
//! levelling.

/// One page, with 16 bits behind the point.
pub(super) const ONE: u64 = 1 << 16;

/// Pages moved for each page of random writes, by spare over capacity.
pub(super) fn moves(spare: f64) -> u64 {
    let alpha = 1.0 + spare;
    let (mut low, mut high) = (0.0, 1.0 - 1e-9);
    for _ in 0..64 {
        let u: f64 = f64::midpoint(low, high);
        if u < (-alpha * (1.0 - u)).exp() {
            low = u;
        } else {
            high = u;
        }
    }
    (low / (1.0 - low) * ONE as f64).round() as u64
}

/// What a die has still to do for programs that are done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Debt {
    /// Units to move, with 16 bits behind the point.
    moves: u64,
    /// Programs since the last erase.
    programs: u32,
    /// Units to fold, and the units to move that all of them cost, with 16 bits
    /// behind the point.
    folds: u32,
    fold_moves: u64,
}

/// What one program of the host adds to the debt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Units to move, with 16 bits behind the point.
    pub(super) moves: u64,
    /// It uses up a block that must be erased.
    pub(super) erases: bool,
}

impl Debt {
    pub(super) const NONE: Debt = Debt {
        moves: 0,
        programs: 0,
        folds: 0,
        fold_moves: 0,
    };

    /// What a die, one of so many, owes amid writing: each has filled another part of its
    /// block, and owes another part of a unit. Both are spread evenly, the latter by the golden
    /// ratio, so that the one says nothing of the other.
    pub(super) fn amid_writing(die: u64, dies: u64, units_per_block: u32) -> Debt {
        const GOLDEN: u64 = 40_503;
        Debt {
            moves: die * GOLDEN % ONE,
            programs: (die * u64::from(units_per_block) / dies) as u32,
            ..Debt::NONE
        }
    }

    /// Adds a cost; says how many more whole units are to be moved.
    pub(super) fn add(&mut self, cost: Cost) -> u64 {
        let before = self.moves / ONE;
        self.moves += cost.moves;
        self.programs += u32::from(cost.erases);
        self.moves / ONE - before
    }

    /// Adds a unit that is to be folded, with what it costs then.
    pub(super) fn add_fold(&mut self, cost: Cost) {
        self.folds += 1;
        self.fold_moves += cost.moves;
        self.programs += u32::from(cost.erases);
    }

    /// Adds units that were there before, written at random.
    pub(super) fn fold_later(&mut self, units: u64, moves: u64) {
        self.folds += u32::try_from(units).unwrap_or(u32::MAX);
        self.fold_moves += moves * u64::from(self.folds);
    }

    pub(super) fn fold_due(&self) -> bool {
        self.folds > 0
    }

    /// A unit was folded; says how many more whole units are to be moved.
    pub(super) fn folded(&mut self) -> u64 {
        let moves = self.fold_moves / u64::from(self.folds);
        self.folds -= 1;
        self.fold_moves -= moves;
        self.add(Cost {
            moves,
            erases: true,
        })
    }

    /// A whole unit is to be moved.
    pub(super) fn move_due(&self) -> bool {
        self.moves >= ONE
    }

    /// A unit was moved, which fills a block like any other.
    pub(super) fn moved(&mut self) {
        self.moves -= ONE;
        self.programs += 1;
    }

    pub(super) fn erase_due(&self, units_per_block: u32) -> bool {
        self.programs >= units_per_block
    }

    pub(super) fn erased(&mut self, units_per_block: u32) {
        self.programs -= units_per_block;
    }
}

/// The ends of the last streams of writes, the latest first.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    ends: Vec<u64>,
    most: usize,
}

impl Streams {
    pub(super) fn new(most: usize) -> Streams {
        Streams {
            ends: Vec::with_capacity(most),
            most,
        }
    }

    /// Notes a write; says whether it continues a stream.
    pub(super) fn continues(&mut self, sector: u64, end: u64) -> bool {
        let known = self.ends.iter().position(|e| *e == sector);
        let last = match known {
            Some(i) => i,
            None => {
                if self.ends.len() < self.most {
                    self.ends.push(end);
                }
                self.ends.len() - 1
            }
        };
        self.ends[..=last].rotate_right(1);
        self.ends[0] = end;
        known.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_by_spare() {
        // u = 0.87208, 0.59700, 0.20319: put into the formula they come out again.
        for (spare, expected) in [(0.07, 6.8172), (0.28, 1.4814), (1.0, 0.25500)] {
            let m = moves(spare) as f64 / ONE as f64;
            assert!((m / expected - 1.0).abs() < 1e-4, "{spare}: {m}");
        }
    }

    #[test]
    fn streams_are_known_until_others_push_them_out() {
        let mut streams = Streams::new(2);
        assert!(!streams.continues(0, 8));
        assert!(!streams.continues(100, 108));
        assert!(streams.continues(8, 16));
        assert!(!streams.continues(200, 208), "pushes 108 out");
        assert!(!streams.continues(108, 116), "pushes 16 out");
        assert!(streams.continues(208, 216));
        assert!(!streams.continues(16, 24));
    }

    #[test]
    fn a_fold_costs_its_moves_when_it_is_done() {
        let mut debt = Debt::NONE;
        let cost = |moves| Cost {
            moves,
            erases: false,
        };
        debt.add_fold(cost(2 * ONE));
        debt.add_fold(cost(0));
        assert!(debt.fold_due() && !debt.move_due());
        assert_eq!(debt.folded(), 1, "half of what both cost");
        assert_eq!(debt.folded(), 1);
        assert!(!debt.fold_due() && debt.erase_due(2));
    }

    #[test]
    fn dies_amid_writing_are_spread_over_a_block_and_a_unit() {
        let dies: Vec<Debt> = (0..8).map(|die| Debt::amid_writing(die, 8, 32)).collect();
        let programs: Vec<u32> = dies.iter().map(|d| d.programs).collect();
        assert_eq!(programs, [0, 4, 8, 12, 16, 20, 24, 28]);
        assert!(!dies.iter().any(Debt::move_due), "less than a unit");
        let mut moves: Vec<u64> = dies.iter().map(|d| d.moves).collect();
        assert!(!moves.is_sorted(), "not with the place in the block");
        moves.sort_unstable();
        let gap = moves.windows(2).map(|m| m[1] - m[0]).max();
        assert!(gap < Some(2 * ONE / 8), "{moves:?}");
    }

    #[test]
    fn a_debt_is_paid_in_whole_units_and_blocks() {
        let mut debt = Debt::NONE;
        let cost = Cost {
            moves: ONE / 2,
            erases: true,
        };
        assert_eq!(debt.add(cost), 0);
        assert!(!debt.move_due());
        assert_eq!(debt.add(cost), 1);
        assert!(debt.move_due() && !debt.erase_due(3));
        debt.moved();
        assert!(!debt.move_due() && debt.erase_due(3));
        debt.erased(3);
        assert!(!debt.erase_due(1));
    }
}
