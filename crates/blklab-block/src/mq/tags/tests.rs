// SPDX-License-Identifier: MIT OR Apache-2.0

use super::{TagRules, TagWakes, Tags};
use blklab_types::TaskId;

const PER_WORD: TagRules = TagRules {
    shallow_depth_is_total: false,
    wakes: TagWakes::Spill,
};
const TOTAL: TagRules = TagRules {
    shallow_depth_is_total: true,
    ..PER_WORD
};

fn all(tags: &mut Tags, shallow: Option<u32>) -> Vec<u16> {
    std::iter::from_fn(|| tags.get(0, shallow)).collect()
}

#[test]
fn limited_depths_count_per_word_or_in_all() {
    // V16: the number of tags that limited requests can hold.
    let usable = |depth, shallow, rules| all(&mut Tags::new(depth, 1, rules), Some(shallow)).len();
    for (shallow, tags) in [(12, 48), (8, 32), (3, 12), (6, 24)] {
        assert_eq!(usable(64, shallow, PER_WORD), tags);
    }
    assert_eq!(usable(62, 6, PER_WORD), 48);
    for total in [48, 32, 12, 24] {
        assert_eq!(usable(64, total, TOTAL), total as usize);
    }
    assert_eq!(usable(64, 64, TOTAL), 64);
    // Equal words share a limit out exactly; with a smaller last word one tag
    // can be lost.
    for depth in [1, 3, 4, 5, 31, 62, 64, 100, 256, 1023] {
        let mut lost = 0;
        for total in 1..=depth {
            let tags = usable(depth, total, TOTAL) as u32;
            assert!(tags == total || tags + 1 == total, "{total} of {depth}");
            lost += total - tags;
        }
        let equal = depth % super::tags_per_word(depth) == 0;
        assert!(lost == 0 || !equal, "{depth}");
    }
}

#[test]
fn a_limited_depth_finds_a_tag_where_the_search_begins() {
    // Two of each word of 16: from 14 on, the search goes round to the first two.
    let mut tags = Tags::new(64, 1, PER_WORD);
    tags.begin_at(14);
    assert_eq!(tags.get(0, None), Some(0));
    assert_eq!(tags.get(0, Some(2)), Some(1));
    let mut tags = Tags::new(64, 1, PER_WORD);
    tags.begin_at(16);
    assert_eq!(tags.get(0, Some(2)), Some(16));
}

#[test]
fn a_shallow_search_begins_at_the_hint_and_wraps_within_the_word() {
    let mut tags = Tags::new(64, 4, PER_WORD);
    // CPU 1 begins at 16, the start of the second of four words.
    assert_eq!(tags.get(1, Some(4)), Some(16));
    assert_eq!(tags.get(1, Some(4)), Some(17));
    tags.put(1, 17, &mut Vec::new());
    // 17 is the hint, freed but not offered while 18 and 19 are there.
    assert_eq!(tags.get(1, Some(4)), Some(18));
    assert_eq!(tags.get(1, Some(4)), Some(19));
    assert_eq!(tags.get(1, Some(4)), Some(17));
    // The word is used up to the limit: on to the next one. The hint moved
    // behind 17, which it was.
    assert_eq!(tags.get(1, Some(4)), Some(32));
    // Without a limit the same word has more.
    assert_eq!(tags.get(1, None), Some(20));
    assert_eq!(tags.busy(), 6);
}

#[test]
fn freed_tags_are_used_again_when_the_word_is_used_up() {
    let mut tags = Tags::new(16, 1, PER_WORD);
    let mut wakes = Vec::new();
    assert_eq!(tags.get(0, None), Some(0));
    for expected in [1, 2, 3, 0, 1, 2, 3, 0] {
        let previous = (expected + 3) % 4;
        tags.put(0, previous, &mut wakes);
        assert_eq!(tags.get(0, None), Some(expected));
    }
    // All sixteen: four from each word, beginning with the hint's.
    assert_eq!(all(&mut tags, None).len(), 15);
    assert_eq!(tags.busy(), 16);
    assert_eq!(tags.get(0, None), None);
    tags.put(0, 9, &mut wakes);
    assert_eq!(tags.get(0, None), Some(9));
}

#[test]
fn resized_words_keep_their_size() {
    let mut tags = Tags::new(256, 1, PER_WORD);
    tags.resize(70);
    // A full word of 64 and six more.
    assert_eq!(all(&mut tags, Some(8)).len(), 14);
    assert_eq!(all(&mut tags, None).len(), 56);
    tags.resize(10);
    let mut wakes = Vec::new();
    tags.put(0, 69, &mut wakes);
    assert_eq!(tags.get(0, None), None);
    tags.put(0, 3, &mut wakes);
    assert_eq!(tags.get(0, None), Some(3));
    tags.resize(256);
    assert_eq!(tags.busy(), 69);
    assert_eq!(all(&mut tags, None).len(), 256 - 69);
}

/// Takes all tags, lets tasks 0 to `n` wait, then gives back tags, one by one:
/// who is woken by each.
fn wakes_of(depth: u32, rules: TagRules, tasks: u32, frees: u16) -> Vec<Vec<u32>> {
    let mut tags = Tags::new(depth, 1, rules);
    let _ = all(&mut tags, None);
    for task in 0..tasks {
        tags.wait(task as u8 % Tags::WAIT_QUEUES, TaskId(task));
    }
    let mut wakes = Vec::new();
    (0..frees)
        .map(|tag| {
            wakes.clear();
            tags.put(0, tag, &mut wakes);
            wakes.iter().map(|t| t.0).collect()
        })
        .collect()
}

#[test]
fn batches_wake_queue_by_queue() {
    // 16 tags: batches of 2. Ten tasks: two in queues 0 and 1, one in others.
    let rule = |wakes| TagRules { wakes, ..PER_WORD };
    let spill = wakes_of(16, rule(TagWakes::Spill), 10, 8);
    let none: [u32; 0] = [];
    assert_eq!(spill[0], none);
    assert_eq!(spill[1], [0, 8]);
    assert_eq!(spill[3], [1, 9]);
    assert_eq!(spill[5], [2, 3]);
    assert_eq!(spill[7], [4, 5]);
    for one in [TagWakes::OneQueue, TagWakes::PerQueue] {
        let woken = wakes_of(16, rule(one), 10, 8);
        assert_eq!(woken[1], [0, 8]);
        assert_eq!(woken[5], [2]);
        assert_eq!(woken[7], [3]);
    }
    // 4 tags: each freed one wakes.
    assert_eq!(wakes_of(4, PER_WORD, 2, 2), [[0], [1]]);
}

#[test]
fn frees_count_only_while_somebody_waits() {
    let mut tags = Tags::new(16, 1, PER_WORD);
    let mut wakes = Vec::new();
    let _ = all(&mut tags, None);
    tags.put(0, 0, &mut wakes);
    tags.wait(0, TaskId(7));
    tags.put(0, 1, &mut wakes);
    assert_eq!(wakes, []);
    tags.put(0, 2, &mut wakes);
    assert_eq!(wakes, [TaskId(7)]);
    assert_eq!(tags.sleepers(), 0);
    // The woken task did not run yet: this one counts.
    tags.put(0, 3, &mut wakes);
    tags.finish_wait();
    // And this one does not.
    tags.put(0, 4, &mut wakes);
    tags.wait(1, TaskId(8));
    tags.put(0, 5, &mut wakes);
    assert_eq!(wakes, [TaskId(7), TaskId(8)]);
}

#[test]
fn hardware_queues_are_woken_beside_the_tasks_of_a_batch() {
    for rule in [TagWakes::Spill, TagWakes::OneQueue, TagWakes::PerQueue] {
        let rules = TagRules {
            wakes: rule,
            ..PER_WORD
        };
        let mut tags = Tags::new(16, 1, rules);
        let mut wakes = Vec::new();
        let _ = all(&mut tags, None);
        for task in 0..3 {
            tags.wait(0, TaskId(task));
        }
        tags.wait_as_queue(0, 2);
        tags.wait_as_queue(0, 5);
        tags.put(0, 0, &mut wakes);
        assert_eq!(tags.take_woken_queues(), 0, "the first of a batch of two");
        tags.put(0, 1, &mut wakes);
        assert_eq!(wakes, [TaskId(0), TaskId(1)], "{rule:?}");
        assert_eq!(tags.take_woken_queues(), 1 << 2 | 1 << 5);
        assert_eq!(tags.take_woken_queues(), 0, "once");
    }
}

#[test]
fn a_hardware_queue_alone_is_woken() {
    let mut tags = Tags::new(4, 1, PER_WORD);
    let mut wakes = Vec::new();
    let _ = all(&mut tags, None);
    tags.wait_as_queue(3, 1);
    tags.put(0, 0, &mut wakes);
    assert_eq!((wakes.len(), tags.take_woken_queues()), (0, 1 << 1));
    tags.put(0, 1, &mut wakes);
    assert_eq!(tags.take_woken_queues(), 0, "nobody waits any more");
}

#[test]
fn wake_batches_follow_the_smallest_limit() {
    let batch = |depth, rules, min| {
        let mut tags = Tags::new(depth, 1, rules);
        if let Some(min) = min {
            tags.set_min_shallow_depth(min);
        }
        tags.wake_batch()
    };
    assert_eq!(batch(256, PER_WORD, None), 8);
    assert_eq!(batch(32, PER_WORD, None), 4);
    assert_eq!(batch(4, PER_WORD, None), 1);
    // mq-deadline and BFQ declare 1; kyber 12 of 16 in a word, or 48 of 64.
    assert_eq!(batch(256, PER_WORD, Some(1)), 1);
    assert_eq!(batch(64, PER_WORD, Some(12)), 6);
    assert_eq!(batch(64, TOTAL, Some(48)), 6);
    assert_eq!(batch(256, TOTAL, Some(1)), 1);
}
