// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tokens of a domain (`sbitmap_queue`, lib/sbitmap.c).

/// Wait queues of a domain: waiters are spread over them, and woken one queue
/// at a time.
const WAIT_QUEUES: u8 = 8;

const WORD: u32 = 64;

/// The tokens of a domain, numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    /// Numbers from here on are not given out.
    depth: u32,
    /// Those given out, by bit.
    taken: [u64; 4],
    /// Where each CPU begins to look: the number freed last.
    hints: Vec<u32>,
    /// Hardware queues on each wait queue.
    waiters: [u16; WAIT_QUEUES as usize],
    nr_waiters: u16,
    /// The wait queue whose turn it is.
    wake_index: u8,
    /// Tokens freed since the last wake-up, while somebody waited.
    freed: u32,
}

impl Tokens {
    pub(super) fn new(depth: u32) -> Tokens {
        Tokens {
            depth,
            taken: [0; 4],
            hints: Vec::new(),
            waiters: [0; WAIT_QUEUES as usize],
            nr_waiters: 0,
            wake_index: 0,
            freed: 0,
        }
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Tokens that are out keep their numbers.
    pub(super) fn resize(&mut self, depth: u32) {
        self.depth = depth;
    }

    /// A token, if one is free; the search begins at the CPU's hint.
    pub(super) fn take(&mut self, cpu: u16) -> Option<u16> {
        let hint = self.hints.get(usize::from(cpu)).copied().unwrap_or(0);
        let hint = if hint < self.depth { hint } else { 0 };
        let n = self
            .free_in(hint, self.depth)
            .or_else(|| self.free_in(0, hint))?;
        self.taken[(n / WORD) as usize] |= 1 << (n % WORD);
        Some(n as u16)
    }

    /// The first free number from `from` to below `to`.
    fn free_in(&self, from: u32, to: u32) -> Option<u32> {
        let mut at = from;
        while at < to {
            let free = !self.taken[(at / WORD) as usize] >> (at % WORD);
            let n = at + free.trailing_zeros();
            if free != 0 {
                return (n < to).then_some(n);
            }
            at = (at / WORD + 1) * WORD;
        }
        None
    }

    /// A token comes back. Returns a wait queue that is to be woken now.
    pub(super) fn release(&mut self, token: u16, cpu: u16) -> Option<u8> {
        let n = u32::from(token);
        self.taken[(n / WORD) as usize] &= !(1 << (n % WORD));
        let cpu = usize::from(cpu);
        if self.hints.len() <= cpu {
            self.hints.resize(cpu + 1, 0);
        }
        self.hints[cpu] = n;
        if self.nr_waiters == 0 {
            return None;
        }
        self.freed += 1;
        if self.freed < (self.depth / 8).clamp(1, 8) {
            return None;
        }
        self.freed = 0;
        let turn = (0..WAIT_QUEUES)
            .map(|i| (self.wake_index + i) % WAIT_QUEUES)
            .find(|&i| self.waiters[usize::from(i)] > 0)?;
        self.wake_index = (turn + 1) % WAIT_QUEUES;
        Some(turn)
    }

    /// A hardware queue joins the wait queue of this number.
    pub(super) fn wait(&mut self, index: u8) -> u8 {
        let index = index % WAIT_QUEUES;
        self.waiters[usize::from(index)] += 1;
        self.nr_waiters += 1;
        index
    }

    /// A hardware queue leaves its wait queue.
    pub(super) fn end_wait(&mut self, index: u8) {
        self.waiters[usize::from(index)] -= 1;
        self.nr_waiters -= 1;
    }
}
