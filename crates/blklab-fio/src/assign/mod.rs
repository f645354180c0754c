// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an option's value changes in the [`Settings`].
//!
//! Options that shape no I/O are read and checked before and pass through here
//! without a trace; the caller notes them.

mod words;

use crate::apply::{Numbers, Value, ZoneSized};
use crate::lists;
use crate::settings::{Settings, Skip};
use words::keyword_option;

/// Changes the settings.
///
/// # Errors
/// What is wrong with the value, in fio's words.
pub(crate) fn assign(
    settings: &mut Settings,
    name: &'static str,
    value: &Value<'_>,
) -> Result<(), String> {
    match value {
        Value::Text(text) => text_option(settings, name, text)?,
        Value::Keyword { word, postfix } => keyword_option(settings, name, word, *postfix)?,
        Value::Multi { bits, count } => {
            settings.sync_file_range_flags = *bits;
            settings.sync_file_range = *count;
        }
        Value::Numbers(numbers) => {
            check_power_of_two(name, numbers)?;
            number_option(settings, name, numbers);
        }
        Value::Zones(size) => size_option(settings, name, *size),
        Value::Flag(on) => flag_option(settings, name, *on),
        Value::Floats(list) => floats_option(settings, name, list),
        Value::Ranges(ranges) => {
            for (dir, range) in ranges.iter().enumerate() {
                if let Some((min, max)) = *range {
                    settings.min_bs[dir] = min;
                    settings.max_bs[dir] = max;
                }
            }
        }
        Value::Nothing => return Ok(()),
    }
    settings.given.insert(name);
    Ok(())
}

fn check_power_of_two(name: &str, numbers: &Numbers) -> Result<(), String> {
    let value = numbers.each[0].unwrap_or(0);
    if name == "replay_align" && value != 0 && !value.is_power_of_two() {
        return Err(format!("{name}: must be a power-of-2"));
    }
    Ok(())
}

fn floats_option(settings: &mut Settings, name: &str, list: &[f64]) {
    match name {
        "latency_percentile" => {
            settings.latency_percentile =
                list.first().copied().unwrap_or(settings.latency_percentile);
        }
        "merge_blktrace_scalars" => settings.replay.merge_percents = list.to_vec(),
        "merge_blktrace_iters" => settings.replay.merge_rounds = list.to_vec(),
        _ => {}
    }
}

fn text_option(settings: &mut Settings, name: &str, text: &str) -> Result<(), String> {
    let owned = || Some(text.to_owned());
    match name {
        "name" => settings.name = owned(),
        "description" => settings.description = owned(),
        "wait_for" => settings.wait_for = owned(),
        "directory" => settings.directory = owned(),
        "cgroup" => settings.cgroup = owned(),
        "filename_format" => settings.filename_format = text.to_owned(),
        "filename" => add_files(settings, text),
        "ioengine" => settings.ioengine = engine_name(text),
        "cpus_allowed" => settings.affinity.set_list(text)?,
        "ioscheduler" => settings.ioscheduler = owned(),
        "write_iolog" => settings.write_iolog = owned(),
        "ignore_error" => ignore_errors(settings, text)?,
        "read_iolog" => settings.replay.logs = owned(),
        "replay_redirect" => settings.replay.redirect = owned(),
        "replay_skip" => settings.replay.skip = Skip::parse(text)?,
        "merge_blktrace_file" => settings.replay.merge_file = owned(),
        "cmdprio_bssplit" => {
            settings.cmdprio.splits = lists::priorities(text, settings.kb_base)?;
        }
        "bssplit" => {
            let splits = lists::bssplit(text, settings.kb_base)?;
            for (dir, split) in splits.into_iter().enumerate() {
                let sizes = || split.iter().map(|entry| entry.bytes);
                settings.min_bs[dir] = sizes().min().unwrap_or(0);
                settings.max_bs[dir] = sizes().max().unwrap_or(0);
                settings.bssplit[dir] = split;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The errors to survive, for reads, writes and verification; a list switches
/// its kind of `continue_on_error` on.
fn ignore_errors(settings: &mut Settings, text: &str) -> Result<(), String> {
    let lists = lists::errors(text)?;
    let on = &mut settings.continue_on_error;
    let kinds = [&mut on.reads, &mut on.writes, &mut on.verify];
    let kinds = kinds.into_iter().zip(&mut settings.ignore_error);
    for ((on, ignored), list) in kinds.zip(lists) {
        if !list.is_empty() {
            *on = true;
            *ignored = list;
        }
    }
    Ok(())
}

/// What comes before the first colon, if that is an engine.
fn engine_name(text: &str) -> String {
    let plain = text.split(':').next().unwrap_or(text);
    if plain.starts_with("linuxaio") || plain.starts_with("aio") {
        "libaio".to_owned()
    } else {
        plain.to_owned()
    }
}

/// Adds the files of a colon list to those there are; `\:` is a plain colon.
fn add_files(settings: &mut Settings, text: &str) {
    let directory = settings
        .directory
        .as_deref()
        .map(|list| list.split(':').next().unwrap_or(list).to_owned());
    if settings.file_names.is_empty() {
        settings.nrfiles = 0;
    }
    for file in split_names(text.trim()) {
        let full = match &directory {
            Some(directory) => format!("{directory}/{file}"),
            None => file,
        };
        settings.file_names.push(full);
        settings.nrfiles = settings.nrfiles.saturating_add(1);
    }
}

/// The names of a list, up to the first empty one; a leading colon is skipped.
pub(crate) fn split_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut name = String::new();
    let mut chars = text.strip_prefix(':').unwrap_or(text).chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&':') => {
                chars.next();
                name.push(':');
            }
            ':' if name.is_empty() => return names,
            ':' => names.push(std::mem::take(&mut name)),
            _ => name.push(c),
        }
    }
    if !name.is_empty() {
        names.push(name);
    }
    names
}

fn size_option(settings: &mut Settings, name: &str, size: ZoneSized) {
    let (bytes, percent) = match size {
        ZoneSized::Bytes(bytes) => (bytes, None),
        ZoneSized::Percent(percent) => (0, Some(percent)),
    };
    // A number leaves an inherited percentage where it is, as in fio.
    let (bytes_slot, percent_slot) = match name {
        "size" => (&mut settings.size, &mut settings.size_percent),
        "io_size" => (&mut settings.io_size, &mut settings.io_size_percent),
        "offset" => (&mut settings.offset, &mut settings.offset_percent),
        "offset_increment" => (
            &mut settings.offset_increment,
            &mut settings.offset_increment_percent,
        ),
        _ => {
            settings.zoneskip = bytes;
            return;
        }
    };
    *bytes_slot = bytes;
    if let Some(percent) = percent {
        *percent_slot = percent;
    }
}

fn flag_option(settings: &mut Settings, name: &str, on: bool) {
    match name {
        "bs_unaligned" => settings.bs_unaligned = on,
        "norandommap" => settings.norandommap = on,
        "time_based" => settings.time_based = on,
        "exitall" => settings.exitall = on,
        "exitall_on_error" => settings.exitall_on_error = on,
        "stonewall" => settings.stonewall = on,
        "new_group" => settings.new_group = on,
        "thread" => settings.thread = on,
        "group_reporting" => settings.group_reporting = on,
        "hipri" => settings.hipri = on,
        "sqthread_poll" => settings.sqthread_poll = on,
        _ => {}
    }
}

fn store<T: Copy>(slots: &mut [T], numbers: &Numbers, convert: impl Fn(u64) -> T) {
    for (slot, value) in slots.iter_mut().zip(numbers.each) {
        if let Some(value) = value {
            *slot = convert(value);
        }
    }
}

/// Low and high end: the first element and the last.
fn store_range(slot: &mut (u64, u64), numbers: &Numbers) {
    slot.0 = numbers.each[0].unwrap_or(slot.0);
    slot.1 = numbers.last.unwrap_or(slot.1);
}

fn number_option(settings: &mut Settings, name: &str, numbers: &Numbers) {
    let s = settings;
    let same = |value: u64| value;
    let small = |value: u64| value as u32;
    match name {
        "bs" => return store(&mut s.bs, numbers, same),
        "ba" => return store(&mut s.ba, numbers, same),
        "rate" => return store(&mut s.rate, numbers, same),
        "rate_min" => return store(&mut s.rate_min, numbers, same),
        "max_latency" => return store(&mut s.max_latency_us, numbers, same),
        "percentage_random" => return store(&mut s.percentage_random, numbers, small),
        "rate_iops" => return store(&mut s.rate_iops, numbers, small),
        "rate_iops_min" => return store(&mut s.rate_iops_min, numbers, small),
        "cmdprio_percentage" => return store(&mut s.cmdprio.percentage, numbers, small),
        "cmdprio_class" => return store(&mut s.cmdprio.class, numbers, small),
        "cmdprio" => return store(&mut s.cmdprio.level, numbers, small),
        "filesize" => return store_range(&mut s.filesize, numbers),
        "startdelay" => return store_range(&mut s.startdelay_us, numbers),
        "rwmixread" => return s.rwmix = [small(numbers.last_good), 100 - small(numbers.last_good)],
        "rwmixwrite" => {
            return s.rwmix = [100 - small(numbers.last_good), small(numbers.last_good)];
        }
        _ => {}
    }
    let Some(value) = numbers.each[0] else { return };
    if !long_option(s, name, value) && !int_option(s, name, value as u32) {
        bool_option(s, name, value != 0);
    }
}

fn long_option(s: &mut Settings, name: &str, value: u64) -> bool {
    let slot = match name {
        "number_ios" => &mut s.number_ios,
        "randseed" => &mut s.randseed,
        "runtime" => &mut s.runtime_us,
        "ramp_time" => &mut s.ramp_time_us,
        "latency_target" => &mut s.latency_target_us,
        "latency_window" => &mut s.latency_window_us,
        "verify_backlog" => &mut s.verify_backlog,
        "zonesize" => &mut s.zonesize,
        "zonerange" => &mut s.zonerange,
        "steadystate_duration" => &mut s.steady.duration_us,
        "steadystate_ramp_time" => &mut s.steady.ramp_us,
        _ => return false,
    };
    *slot = value;
    true
}

fn int_option(s: &mut Settings, name: &str, value: u32) -> bool {
    let slot = match name {
        "prio" => s.prio.insert(0),
        "prioclass" => s.prioclass.insert(0),
        "cgroup_weight" => s.cgroup_weight.insert(0),
        "nice" => {
            s.nice = value.cast_signed();
            return true;
        }
        "cpumask" => {
            s.affinity.set_mask(value);
            return true;
        }
        "offset_align" => &mut s.offset_align,
        "nrfiles" => &mut s.nrfiles,
        "openfiles" => &mut s.openfiles,
        "iodepth" => &mut s.iodepth,
        "iodepth_batch" => &mut s.iodepth_batch,
        "iodepth_batch_complete_min" => &mut s.iodepth_batch_complete_min,
        "iodepth_batch_complete_max" => &mut s.iodepth_batch_complete_max,
        "iodepth_low" => &mut s.iodepth_low,
        "fsync" => &mut s.fsync,
        "fdatasync" => &mut s.fdatasync,
        "loops" => &mut s.loops,
        "numjobs" => &mut s.numjobs,
        "thinktime" => &mut s.thinktime_us,
        "thinktime_spin" => &mut s.thinktime_spin_us,
        "thinktime_blocks" => &mut s.thinktime_blocks,
        "thinktime_iotime" => &mut s.thinktime_iotime_us,
        "rate_cycle" => &mut s.rate_cycle_ms,
        "verify_backlog_batch" => &mut s.verify_backlog_batch,
        "force_async" => &mut s.force_async,
        "flow" => &mut s.flow,
        "flow_id" => &mut s.flow_id,
        "flow_sleep" => &mut s.flow_sleep_us,
        "replay_align" => &mut s.replay.align,
        "replay_scale" => &mut s.replay.scale,
        "replay_time_scale" => &mut s.replay.time_scale,
        _ => return false,
    };
    *slot = value;
    true
}

fn bool_option(s: &mut Settings, name: &str, on: bool) {
    let slot = match name {
        "buffered" => {
            s.direct = !on;
            return;
        }
        "randrepeat" => &mut s.randrepeat,
        "allrandrepeat" => &mut s.allrandrepeat,
        "softrandommap" => &mut s.softrandommap,
        "bs_is_seq_rand" => &mut s.bs_is_seq_rand,
        "fill_device" => &mut s.fill_device,
        "file_append" => &mut s.file_append,
        "direct" => &mut s.direct,
        "atomic" => &mut s.atomic,
        "overwrite" => &mut s.overwrite,
        "invalidate" => &mut s.invalidate,
        "create_serialize" => &mut s.create_serialize,
        "create_fsync" => &mut s.create_fsync,
        "create_on_open" => &mut s.create_on_open,
        "create_only" => &mut s.create_only,
        "pre_read" => &mut s.pre_read,
        "end_fsync" => &mut s.end_fsync,
        "fsync_on_close" => &mut s.fsync_on_close,
        "unlink" => &mut s.unlink,
        "rate_ignore_thinktime" => &mut s.rate_ignore_thinktime,
        "latency_run" => &mut s.latency_run,
        "do_verify" => &mut s.do_verify,
        "error_dump" => &mut s.error_dump,
        "nowait" => &mut s.nowait,
        "serialize_overlap" => &mut s.serialize_overlap,
        "replay_no_stall" => &mut s.replay.no_stall,
        "read_iolog_chunked" => &mut s.replay.chunked,
        _ => return,
    };
    *slot = on;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_list() {
        assert_eq!(split_names("a:b:c"), ["a", "b", "c"]);
        assert_eq!(split_names(r":a\:b:c"), ["a:b", "c"]);
        assert_eq!(split_names("a::b"), ["a"]);
        assert!(split_names("").is_empty());
    }
}
