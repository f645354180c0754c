// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an option's value changes in the [`Settings`].
//!
//! Options that shape no I/O are read and checked before and pass through here
//! without a trace; the caller notes them.

use crate::apply::{Numbers, Value, ZoneSized};
use crate::lists;
use crate::settings::{
    ContinueOnError, Distribution, ExitWhat, FadviseHint, Fallocate, FileService, Generator,
    Pattern, RateProcess, Sequencer, Settings, SyncWrites, ThinkCount, ZoneMode,
};
use crate::value::{leading_integer, real_number, size_number};

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
        Value::Numbers(numbers) => number_option(settings, name, numbers),
        Value::Zones(size) => size_option(settings, name, *size),
        Value::Flag(on) => flag_option(settings, name, *on),
        Value::Floats(list) => {
            if let ("latency_percentile", Some(first)) = (name, list.first()) {
                settings.latency_percentile = *first;
            }
        }
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

fn text_option(settings: &mut Settings, name: &str, text: &str) -> Result<(), String> {
    let owned = || Some(text.to_owned());
    match name {
        "name" => settings.name = owned(),
        "description" => settings.description = owned(),
        "wait_for" => settings.wait_for = owned(),
        "directory" => settings.directory = owned(),
        "filename_format" => settings.filename_format = text.to_owned(),
        "filename" => add_files(settings, text),
        "ioengine" => settings.ioengine = engine_name(text),
        "ioscheduler" => settings.ioscheduler = owned(),
        "write_iolog" => settings.write_iolog = owned(),
        "cmdprio_bssplit" => settings.cmdprio.bssplit = owned(),
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
fn split_names(text: &str) -> Vec<String> {
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

fn keyword_option(
    settings: &mut Settings,
    name: &str,
    word: &'static str,
    postfix: Option<&str>,
) -> Result<(), String> {
    match name {
        "rw" => direction(settings, word, postfix)?,
        "rw_sequencer" => {
            settings.sequencer = if word == "identical" {
                Sequencer::Identical
            } else {
                Sequencer::Sequential
            };
        }
        "random_generator" => {
            settings.random_generator = match word {
                "lfsr" => Generator::Lfsr,
                "tausworthe64" => Generator::Tausworthe64,
                _ => Generator::Tausworthe,
            };
        }
        "random_distribution" => {
            settings.distribution = distribution(word, postfix, settings.kb_base)?;
        }
        "file_service_type" => file_service(settings, word, postfix)?,
        "thinktime_blocks_type" => {
            settings.thinktime_count = if word == "issue" {
                ThinkCount::Issue
            } else {
                ThinkCount::Complete
            };
        }
        "rate_process" => {
            settings.rate_process = if word == "poisson" {
                RateProcess::Poisson
            } else {
                RateProcess::Linear
            };
        }
        "zonemode" => {
            settings.zonemode = match word {
                "strided" => ZoneMode::Strided,
                "zbd" => ZoneMode::Zbd,
                _ => ZoneMode::None,
            };
        }
        "sync" => {
            settings.sync = match word {
                "sync" | "1" => SyncWrites::Sync,
                "dsync" => SyncWrites::Dsync,
                _ => SyncWrites::None,
            };
        }
        "fadvise_hint" => {
            settings.fadvise_hint = match word {
                "0" => FadviseHint::None,
                "random" => FadviseHint::Random,
                "sequential" => FadviseHint::Sequential,
                _ => FadviseHint::ByPattern,
            };
        }
        "fallocate" => {
            settings.fallocate = match word {
                "none" | "0" => Fallocate::None,
                "posix" | "1" => Fallocate::Posix,
                "keep" => Fallocate::KeepSize,
                "truncate" => Fallocate::Truncate,
                _ => Fallocate::Native,
            };
        }
        "exit_what" => {
            settings.exit_what = match word {
                "stonewall" => ExitWhat::Stonewall,
                "all" => ExitWhat::All,
                _ => ExitWhat::Group,
            };
        }
        "continue_on_error" => settings.continue_on_error = continue_on_error(word),
        "verify" => settings.verify = word != "0",
        "kb_base" => settings.kb_base = if word == "1000" { 1000 } else { 1024 },
        _ => {}
    }
    Ok(())
}

fn continue_on_error(word: &str) -> ContinueOnError {
    let all = matches!(word, "all" | "1");
    ContinueOnError {
        reads: all || matches!(word, "read" | "io"),
        writes: all || matches!(word, "write" | "io"),
        verify: all || word == "verify",
    }
}

fn direction(settings: &mut Settings, word: &str, postfix: Option<&str>) -> Result<(), String> {
    settings.rw = Pattern::from_keyword(word);
    settings.sequencer_count = 1;
    settings.stride = 0;
    match postfix {
        None => {}
        Some(count) if settings.rw.random => {
            settings.sequencer_count = leading_integer(count, 10).unwrap_or(0) as u32;
        }
        Some(size) => {
            let stride =
                size_number(size, settings.kb_base).ok_or("fio: rw postfix parsing failed")?;
            settings.stride = stride.cast_signed();
        }
    }
    Ok(())
}

fn distribution(word: &str, postfix: Option<&str>, kb_base: u32) -> Result<Distribution, String> {
    if let "zoned" | "zoned_abs" = word {
        let absolute = word == "zoned_abs";
        let list = postfix.ok_or_else(|| format!("fio: mismatch in zoned input <{word}>"))?;
        let zones = lists::zones(list, kb_base, absolute)?;
        return Ok(if absolute {
            Distribution::ZonedAbs(zones)
        } else {
            Distribution::Zoned(zones)
        });
    }
    let number = |text: &str| real_number(text).ok_or("fio: random postfix parsing failed");
    let (first, center) =
        match postfix.map(|postfix| postfix.split_once(':').unwrap_or((postfix, ""))) {
            Some((first, center)) if word != "random" => (Some(number(first)?), center),
            _ => (None, ""),
        };
    let center = if center.is_empty() {
        None
    } else {
        Some(number(center)?)
    };
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err("fio: random center out of range (0 <= center <= 1.0)".to_owned());
    }
    Ok(match word {
        "zipf" => Distribution::Zipf {
            theta: checked_theta(first.unwrap_or(1.1))?,
            center,
        },
        "pareto" => Distribution::Pareto {
            power: checked_power(first.unwrap_or(0.2))?,
            center,
        },
        "normal" => Distribution::Normal {
            deviation_percent: checked_deviation(first.unwrap_or(0.0))?,
            center,
        },
        _ => Distribution::Random,
    })
}

fn checked_theta(theta: f64) -> Result<f64, String> {
    if theta == 1.0 {
        Err("fio: zipf theta must be different from 1.0".to_owned())
    } else {
        Ok(theta)
    }
}

fn checked_power(power: f64) -> Result<f64, String> {
    if power <= 0.0 || power >= 1.0 {
        return Err("fio: pareto input out of range (0 < input < 1.0)".to_owned());
    }
    Ok(power)
}

fn checked_deviation(percent: f64) -> Result<f64, String> {
    if !(0.0..100.0).contains(&percent) {
        return Err("fio: normal deviation out of range (0 <= input < 100.0)".to_owned());
    }
    Ok(percent)
}

fn file_service(settings: &mut Settings, word: &str, postfix: Option<&str>) -> Result<(), String> {
    let real = || match postfix {
        Some(text) => real_number(text)
            .map(Some)
            .ok_or("fio: file service type random postfix parsing failed"),
        None => Ok(None),
    };
    settings.file_service = match word {
        "zipf" => FileService::Zipf(checked_theta(real()?.unwrap_or(1.1))?),
        "pareto" => FileService::Pareto(checked_power(real()?.unwrap_or(0.2))?),
        "normal" | "gauss" => FileService::Normal(checked_deviation(real()?.unwrap_or(0.0))?),
        other => {
            if let Some(count) = postfix {
                settings.file_service_count = leading_integer(count, 10).unwrap_or(0) as u32;
            }
            match other {
                "random" => FileService::Random,
                "sequential" => FileService::Sequential,
                _ => FileService::RoundRobin,
            }
        }
    };
    Ok(())
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
        _ => return false,
    };
    *slot = value;
    true
}

fn int_option(s: &mut Settings, name: &str, value: u32) -> bool {
    let slot = match name {
        "prio" => s.prio.insert(0),
        "prioclass" => s.prioclass.insert(0),
        "nice" => {
            s.nice = value.cast_signed();
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
        "nowait" => &mut s.nowait,
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

    #[test]
    fn distributions() {
        let read = |word, postfix| distribution(word, postfix, 1024);
        assert_eq!(
            read("zipf", None),
            Ok(Distribution::Zipf {
                theta: 1.1,
                center: None
            })
        );
        assert_eq!(
            read("zipf", Some("1.2:0.5")),
            Ok(Distribution::Zipf {
                theta: 1.2,
                center: Some(0.5)
            })
        );
        assert!(read("zipf", Some("1")).is_err());
        assert!(read("pareto", Some("1.5")).is_err());
        assert!(read("normal", Some("10:2")).is_err());
        assert!(read("zoned", None).is_err());
    }
}
