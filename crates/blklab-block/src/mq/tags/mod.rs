// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tags of a hardware queue: the kernel's bitmap of them (`sbitmap`), with its
//! words, hints and limited depths, and the tasks that wait for a tag.
//!
//! Facts from lib/sbitmap.c and block/blk-mq-tag.c of 5.10, 6.1 and 6.12. A freed
//! tag is not offered again before its word has none left that was not taken
//! since: so tags are used in turn although each search begins at the start of
//! a word.
//!
//! Left out: tags in turn (`BLK_TAG_ALLOC_RR`: libata), the random start of the
//! hints (they are spread evenly unless [`Tags::begin_at`] says where), reserved tags,
//! freeing several at once, fair shares of tags that queues have in common.

#[cfg(test)]
mod tests;
mod wait;

use self::wait::Waiters;
use super::core::tags_per_word;
use super::{Features, TagWakes};
use blklab_types::TaskId;

/// What kernel version and driver decide about tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagRules {
    /// A limited depth counts all tags, not those of each word.
    pub shallow_depth_is_total: bool,
    /// Which sleepers freed tags wake.
    pub wakes: TagWakes,
}

impl TagRules {
    /// The rules of a kernel version.
    pub fn new(feat: &Features) -> TagRules {
        TagRules {
            shallow_depth_is_total: feat.shallow_depth_is_total,
            wakes: feat.tag_wakes,
        }
    }
}

/// A word of the bitmap (`sbitmap_word`).
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// Tags that a search passes over (`word`).
    taken: u64,
    /// Those of them that were freed since (`cleared`).
    freed: u64,
}

impl Word {
    /// The lowest tag below `limit` that is free, from `start` on, else one before
    /// it (`__sbitmap_get_word`).
    fn find(&self, limit: u32, start: u32) -> Option<u32> {
        let free = !self.taken & low_bits(limit);
        let found = match free & !low_bits(start) {
            0 => free,
            from_start => from_start,
        };
        (found != 0).then(|| found.trailing_zeros())
    }

    /// Takes a tag as [`Word::find`] finds it. Only if there is none, those that
    /// were freed are offered again.
    fn take(&mut self, limit: u32, start: u32) -> Option<u32> {
        let mut found = self.find(limit, start);
        if found.is_none() && self.freed != 0 {
            self.reclaim();
            found = self.find(limit, start);
        }
        let bit = found?;
        self.taken |= 1 << bit;
        Some(bit)
    }

    /// Offers again what was freed (`sbitmap_deferred_clear`).
    fn reclaim(&mut self) {
        self.taken &= !self.freed;
        self.freed = 0;
    }
}

/// The `n` lowest bits of a word.
fn low_bits(n: u32) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// The tags of one hardware queue, or those that all have in common (`sbitmap_queue`).
#[derive(Debug)]
pub struct Tags {
    rules: TagRules,
    depth: u32,
    /// The depth at the beginning.
    most: u32,
    /// A power of two.
    per_word: u32,
    /// Words that `depth` tags are in; there may be more.
    nr_words: u32,
    /// `min_shallow_depth`.
    min_shallow: u32,
    words: Vec<Word>,
    /// By CPU: the tag near which the next search begins (`alloc_hint`).
    hints: Vec<u32>,
    busy: u32,
    waiters: Waiters,
}

impl Tags {
    /// `depth` free tags.
    ///
    /// # Panics
    /// If there are no tags, more than 65536, or no CPUs.
    pub fn new(depth: u32, nr_cpus: u16, rules: TagRules) -> Tags {
        assert!((1..=65536).contains(&depth), "tags fit 16 bits");
        assert!(nr_cpus > 0, "somebody has to ask for tags");
        let per_word = tags_per_word(depth);
        assert!(per_word.is_power_of_two(), "words are shifts");
        let nr_words = depth.div_ceil(per_word);
        let mut tags = Tags {
            rules,
            depth,
            most: depth,
            per_word,
            nr_words,
            min_shallow: u32::MAX,
            words: vec![Word::default(); nr_words as usize],
            hints: (0..u32::from(nr_cpus))
                .map(|cpu| {
                    let spread = u64::from(cpu) * u64::from(depth) / u64::from(nr_cpus);
                    spread as u32
                })
                .collect(),
            busy: 0,
            waiters: Waiters::new(rules.wakes),
        };
        tags.waiters.start(tags.wake_batch());
        tags
    }

    /// The next search begins at a tag, on every CPU. The kernel draws it by lot for
    /// each of them (`sbitmap_init_node`, lib/sbitmap.c).
    pub fn begin_at(&mut self, tag: u32) {
        self.hints.fill(tag);
    }

    /// Tags of the queue, free or not.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Tags that are taken.
    pub fn busy(&self) -> u32 {
        self.busy
    }

    /// Takes a tag for a task that runs on `cpu`; none if there is none that it may
    /// have (`__sbitmap_queue_get`, `__sbitmap_queue_get_shallow`). With `shallow`,
    /// it gets one of the lowest of each word only: so many of each, or so many of
    /// all words together ([`TagRules::shallow_depth_is_total`]).
    pub fn get(&mut self, cpu: u16, shallow: Option<u32>) -> Option<u16> {
        if self.busy == self.most {
            // Without a look at the words: nothing was freed since.
            self.hints[usize::from(cpu)] = 0;
            return None;
        }
        let hint = self.hint(cpu);
        let (mut index, bit) = self.word_and_bit(hint);
        let mut start = if shallow.is_some() { bit } else { 0 };
        let mut tag = None;
        for _ in 0..self.nr_words {
            let limit = self.word_limit(index, shallow);
            if let Some(bit) = self.words[index as usize].take(limit, start) {
                tag = Some(index * self.per_word + bit);
                break;
            }
            start = 0;
            index += 1;
            if index == self.nr_words {
                index = 0;
            }
        }
        self.move_hint(cpu, hint, tag);
        self.busy += u32::from(tag.is_some());
        tag.map(|t| t as u16)
    }

    /// Gives a tag back (`blk_mq_put_tag`, `sbitmap_queue_clear`). `cpu` is the one
    /// of the request's software queue: its next search begins here. Appends the
    /// tasks that this wakes.
    pub fn put(&mut self, cpu: u16, tag: u16, wakes: &mut Vec<TaskId>) {
        let tag = u32::from(tag);
        let (index, bit) = self.word_and_bit(tag);
        let word = &mut self.words[index as usize];
        let bit = 1 << bit;
        assert!(
            word.taken & !word.freed & bit != 0,
            "tag {tag} is given back twice"
        );
        word.freed |= bit;
        self.busy -= 1;
        self.waiters.freed(wakes);
        if tag < self.depth {
            self.hints[usize::from(cpu)] = tag;
        }
    }

    /// Changes the number of tags, to at most what there was at the beginning
    /// (`sbitmap_queue_resize`). Words keep their size. Tags beyond the end may
    /// still be given back.
    ///
    /// # Panics
    /// If there would be none, or more than at the beginning.
    pub fn resize(&mut self, depth: u32) {
        assert!(
            depth > 0 && depth.div_ceil(self.per_word) as usize <= self.words.len(),
            "depth within the bitmap"
        );
        let used = self.nr_words as usize;
        self.words[..used].iter_mut().for_each(Word::reclaim);
        self.depth = depth;
        self.nr_words = depth.div_ceil(self.per_word);
        self.waiters.change_batch(self.wake_batch());
    }

    /// The scheduler will name no smaller limit than this to [`Tags::get`]: that
    /// decides how many freed tags wake sleepers
    /// (`sbitmap_queue_min_shallow_depth`).
    pub fn set_min_shallow_depth(&mut self, depth: u32) {
        self.min_shallow = depth;
        self.waiters.change_batch(self.wake_batch());
    }

    /// Wait queues (`SBQ_WAIT_QUEUES`). A hardware queue's tasks join them in turn; one that
    /// was woken joins the next before it looks for a tag again.
    pub const WAIT_QUEUES: u8 = wait::QUEUES as u8;

    /// A task goes to sleep at the end of a wait queue, after it tried again
    /// (`sbitmap_prepare_to_wait`).
    pub fn wait(&mut self, queue: u8, task: TaskId) {
        self.waiters.wait(queue, task);
    }

    /// A hardware queue that finds no tag waits in a wait queue for the next that is freed. It
    /// is woken with the tasks there, and is none of those that a batch is of
    /// (`blk_mq_mark_tag_wait`: not `WQ_FLAG_EXCLUSIVE`).
    pub fn wait_as_queue(&mut self, queue: u8, hctx: u16) {
        self.waiters.wait_as_queue(queue, hctx);
    }

    /// Whether a hardware queue waits (`hctx->dispatch_wait` is on a list).
    pub fn has_waiting(&self, hctx: u16) -> bool {
        self.waiters.has_waiting(hctx)
    }

    /// The hardware queues that were woken since this was asked last, as a mask.
    pub fn take_woken_queues(&mut self) -> u64 {
        self.waiters.take_woken()
    }

    /// A task that was woken runs: it no longer counts among those for which freed
    /// tags are counted (`sbitmap_finish_wait`).
    pub fn finish_wait(&mut self) {
        self.waiters.finish();
    }

    /// A task that was woken does not need a tag from here any more: counts
    /// like a freed one. Appends the tasks that this wakes.
    pub fn pass_on(&mut self, wakes: &mut Vec<TaskId>) {
        self.waiters.freed(wakes);
    }

    /// Who waits on a queue got a tag after all.
    pub fn cancel_wait(&mut self, queue: u8, task: TaskId) {
        self.waiters.cancel(queue, task);
    }

    /// Tasks that sleep.
    pub fn sleepers(&self) -> usize {
        self.waiters.sleepers()
    }

    /// Where a tag is.
    fn word_and_bit(&self, tag: u32) -> (u32, u32) {
        let shift = self.per_word.trailing_zeros();
        (tag >> shift, tag & (self.per_word - 1))
    }

    fn word_size(&self, index: u32) -> u32 {
        self.per_word.min(self.depth - index * self.per_word)
    }

    /// Tags of a word that a search with the limit `shallow` may take
    /// (`__map_depth_with_shallow` where it is one on all tags). A limit on all
    /// tags is shared out by the words' sizes; low words get what remains. If the
    /// last word is smaller than the others, one tag can be lost.
    fn word_limit(&self, index: u32, shallow: Option<u32>) -> u32 {
        let size = self.word_size(index);
        match shallow {
            None => size,
            Some(limit) if !self.rules.shallow_depth_is_total => size.min(limit),
            Some(limit) if limit >= self.depth => size,
            Some(limit) => {
                let share = u64::from(size) * u64::from(limit);
                let rest = share % u64::from(self.depth);
                let extra = rest >= (u64::from(index) + 1) * u64::from(size);
                (share / u64::from(self.depth)) as u32 + u32::from(extra)
            }
        }
    }

    /// `update_alloc_hint_before_get`.
    fn hint(&mut self, cpu: u16) -> u32 {
        let hint = &mut self.hints[usize::from(cpu)];
        if *hint >= self.depth {
            *hint %= self.depth;
        }
        *hint
    }

    /// A search that began at the hint ended with this tag: only if it took the
    /// hint itself, the hint moves on (`update_alloc_hint_after_get`).
    fn move_hint(&mut self, cpu: u16, hint: u32, tag: Option<u32>) {
        let next = match tag {
            None => 0,
            Some(tag) if tag == hint => {
                if tag + 2 >= self.depth {
                    0
                } else {
                    tag + 1
                }
            }
            Some(_) => hint,
        };
        self.hints[usize::from(cpu)] = next;
    }

    /// Freed tags for which sleepers are woken: few enough that all wait queues
    /// have their turn, even if all users are limited (`sbq_calc_wake_batch`).
    fn wake_batch(&self) -> u32 {
        let usable = if self.rules.shallow_depth_is_total {
            self.depth.min(self.min_shallow)
        } else {
            let limit = self.min_shallow.min(self.per_word);
            self.depth / self.per_word * limit + (self.depth % self.per_word).min(limit)
        };
        (usable / wait::QUEUES as u32).clamp(1, 8)
    }
}
