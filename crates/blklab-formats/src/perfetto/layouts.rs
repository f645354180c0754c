// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which fields the events of ftrace have in Perfetto's messages, by the numbers that Perfetto
//! gives them (`protos/perfetto/trace/ftrace/ftrace_event.proto` and the files beside it).
//! Names are those of the kernel's events.

/// An event with a message of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The field of `FtraceEvent` that has it.
    pub(super) number: u32,
    /// The event.
    pub(super) name: &'static str,
    /// Names of its fields, from field 1 on.
    pub(super) fields: &'static [&'static str],
}

const fn layout(number: u32, name: &'static str, fields: &'static [&'static str]) -> Layout {
    Layout {
        number,
        name,
        fields,
    }
}

const BIO: &[&str] = &["dev", "sector", "nr_sector", "rwbs", "comm"];
const REQUEST: &[&str] = &["dev", "sector", "nr_sector", "bytes", "rwbs", "comm", "cmd"];
const DONE: &[&str] = &[
    "dev",
    "sector",
    "nr_sector",
    "errors",
    "rwbs",
    "cmd",
    "error",
];
const WAKE_UP: &[&str] = &["comm", "pid", "prio", "success", "target_cpu"];

/// Those that are known by name, in order of their numbers.
#[rustfmt::skip]
pub(super) const LAYOUTS: [Layout; 30] = [
    layout(4, "sched_switch", &["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"]),
    layout(17, "sched_wakeup", WAKE_UP),
    layout(20, "sched_waking", WAKE_UP),
    layout(43, "ext4_sync_file_enter", &["dev", "ino", "parent", "datasync"]),
    layout(44, "ext4_sync_file_exit", &["dev", "ino", "ret"]),
    layout(45, "block_rq_issue", REQUEST),
    layout(114, "sched_wakeup_new", WAKE_UP),
    layout(115, "block_bio_backmerge", BIO),
    layout(116, "block_bio_bounce", BIO),
    layout(117, "block_bio_complete", &["dev", "sector", "nr_sector", "error", "rwbs"]),
    layout(118, "block_bio_frontmerge", BIO),
    layout(119, "block_bio_queue", BIO),
    layout(120, "block_bio_remap", &["dev", "sector", "nr_sector", "old_dev", "old_sector", "rwbs"]),
    layout(121, "block_dirty_buffer", &[]),
    layout(122, "block_getrq", BIO),
    layout(123, "block_plug", &["comm"]),
    layout(124, "block_rq_abort", DONE),
    layout(125, "block_rq_complete", DONE),
    layout(126, "block_rq_insert", REQUEST),
    layout(128, "block_rq_remap", &["dev", "sector", "nr_sector", "old_dev", "old_sector", "nr_bios", "rwbs"]),
    layout(129, "block_rq_requeue", DONE),
    layout(130, "block_sleeprq", BIO),
    layout(131, "block_split", &["dev", "sector", "new_sector", "rwbs", "comm"]),
    layout(132, "block_touch_buffer", &[]),
    layout(133, "block_unplug", &["nr_rq", "comm"]),
    layout(142, "ext4_da_write_pages", &["dev", "ino", "first_page", "nr_to_write"]),
    layout(254, "f2fs_submit_write_page", &[]),
    layout(255, "f2fs_sync_file_enter", &[]),
    layout(256, "f2fs_sync_file_exit", &[]),
    layout(406, "ufshcd_command", &["dev_name", "doorbell", "intr", "lba", "opcode", "str", "tag", "transfer_len", "group_id", "str_t"]),
];

/// Fields whose absence is no zero: texts, and the two names of what a request ended with.
pub(super) const NO_ZERO: [&str; 9] = [
    "rwbs",
    "comm",
    "cmd",
    "dev_name",
    "str",
    "prev_comm",
    "next_comm",
    "error",
    "errors",
];

/// The layout of an event; none if it is none that is read.
pub(super) fn layout_of(number: u32) -> Option<&'static Layout> {
    let place = LAYOUTS.binary_search_by_key(&number, |l| l.number).ok()?;
    Some(&LAYOUTS[place])
}

/// The number of an event's message, and the names of its fields from field 1 on; none if
/// Perfetto has no message for it.
pub fn number_of(name: &str) -> Option<(u32, &'static [&'static str])> {
    let layout = LAYOUTS.iter().find(|l| l.name == name)?;
    Some((layout.number, layout.fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_in_order() {
        assert!(LAYOUTS.is_sorted_by(|a, b| a.number < b.number));
        assert_eq!(layout_of(119).map(|l| l.name), Some("block_bio_queue"));
        assert!(layout_of(5).is_none());
    }
}
