// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two list languages of job files: mixtures of lengths (`bssplit`) and
//! zones of a random distribution (`zoned`, `zoned_abs`).
//!
//! Behaviour of fio 3.33, its integer arithmetic of 8 and 32 bits included.

use crate::errno;
use crate::settings::{PerDir, PrioSplit, SizeSplit, ZoneSplit};
use crate::value::{leading_integer, size_number};

/// Most entries of a mixture of lengths.
const SIZES_MAX: usize = 64;
/// Most zones.
const ZONES_MAX: usize = 256;

/// One entry `value/share` before its meaning is known.
struct Entry {
    value: u64,
    /// Percentage, or bytes if absolute; `None` if nothing usable was given.
    share: Option<u64>,
}

/// Entries up to the first empty one.
fn entries(text: &str, kb_base: u32, absolute: bool, max: usize) -> Result<Vec<Entry>, String> {
    let failed = || "fio: split conversion failed".to_owned();
    let mut out = Vec::new();
    for entry in text
        .split(':')
        .take_while(|entry| !entry.is_empty())
        .take(max)
    {
        let (value, share) = match entry.split_once('/') {
            Some((value, share)) => (value, Some(share)),
            None => (entry, None),
        };
        let share = match share {
            Some(share) if absolute => Some(size_number(share, kb_base).ok_or_else(failed)?),
            Some(share) => Some(percentage(share)).filter(|&percent| percent != 0),
            None if absolute => Some(0),
            None => None,
        };
        out.push(Entry {
            value: size_number(value, kb_base).ok_or_else(failed)?,
            share,
        });
    }
    Ok(out)
}

/// A percentage, at most 100 (which a negative number also counts as).
fn percentage(text: &str) -> u64 {
    u64::from((leading_integer(text, 10).unwrap_or(0) as u32).min(100))
}

/// The lists of the three directions: one for all, or read and write (trim
/// like write), or all three.
fn per_direction(text: &str) -> PerDir<&str> {
    let mut parts = text.trim().splitn(3, ',');
    let read = parts.next().unwrap_or("");
    let write = parts.next().unwrap_or(read);
    [read, write, parts.next().unwrap_or(write)]
}

/// A mixture of lengths per direction.
///
/// # Errors
/// What is wrong with it, in fio's words.
pub(crate) fn bssplit(text: &str, kb_base: u32) -> Result<PerDir<Vec<SizeSplit>>, String> {
    let [read, write, trim] = per_direction(text).map(|list| size_mixture(list, kb_base));
    Ok([read?, write?, trim?])
}

fn size_mixture(text: &str, kb_base: u32) -> Result<Vec<SizeSplit>, String> {
    let entries = entries(text, kb_base, false, SIZES_MAX)?;
    if entries.is_empty() || entries.iter().any(|entry| entry.value == 0) {
        return Err("fio: bssplit needs sizes above 0".to_owned());
    }
    let given: u32 = entries
        .iter()
        .filter_map(|entry| entry.share)
        .map(|share| share as u32)
        .sum();
    let missing = entries.iter().filter(|entry| entry.share.is_none()).count() as u32;
    if given > 100 && missing > 1 {
        return Err("fio: bssplit percentages add to more than 100%".to_owned());
    }
    let taken = if missing == 1 && entries.len() == 1 {
        100
    } else {
        given
    };
    let rest = 100u32.wrapping_sub(taken).checked_div(missing).unwrap_or(0);
    let mut out: Vec<SizeSplit> = entries
        .iter()
        .map(|entry| SizeSplit {
            bytes: entry.value,
            percent: entry.share.map_or(rest, |share| share as u32),
        })
        .collect();
    out.sort_by_key(|split| split.percent.cast_signed());
    Ok(out)
}

/// Zones, the same for every direction (fio 3.33 refuses separate lists).
///
/// # Errors
/// What is wrong with them, in fio's words.
pub(crate) fn zones(text: &str, kb_base: u32, absolute: bool) -> Result<Vec<ZoneSplit>, String> {
    let entries = entries(text.trim(), kb_base, absolute, ZONES_MAX)?;
    // fio keeps both percentages in eight bits, with 255 for a missing one.
    let access = |entry: &Entry| entry.value as u8;
    let access_total: u32 = entries
        .iter()
        .map(access)
        .filter(|&a| a != 255)
        .map(u32::from)
        .sum();
    let sizes = || {
        entries
            .iter()
            .filter(|_| !absolute)
            .map(|entry| entry.share)
    };
    let size_total: u64 = sizes().flatten().sum();
    if access_total > 100 || size_total > 100 {
        return Err("fio: zone_split percentages add to more than 100%".to_owned());
    }
    if access_total < 100 {
        return Err(format!(
            "fio: access percentage don't add up to 100 for zoned random distribution (got={access_total})"
        ));
    }
    let missing = sizes().filter(Option::is_none).count() as u64;
    let taken = if missing == 1 && entries.len() == 1 {
        100
    } else {
        size_total
    };
    let rest = (100 - taken).checked_div(missing).unwrap_or(0);
    // Nothing is left to share for an entry whose access is missing.
    let access_percent = |entry: &Entry| {
        if access(entry) == 255 {
            0
        } else {
            u32::from(access(entry))
        }
    };
    Ok(entries
        .iter()
        .map(|entry| ZoneSplit {
            access_percent: access_percent(entry),
            size: entry.share.unwrap_or(rest),
        })
        .collect())
}

/// Priorities by length, for reads and writes: `length/percent` with the job's
/// `cmdprio`, or `length/percent/class/level`; what follows (a hint, from fio 3.36
/// on) fio 3.33 does not read. Shares of nothing are dropped.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn priorities(text: &str, kb_base: u32) -> Result<PerDir<Vec<PrioSplit>>, String> {
    let [read, write, _] = per_direction(text).map(|list| priority_list(list, kb_base));
    Ok([read?, write?, Vec::new()])
}

fn priority_list(text: &str, kb_base: u32) -> Result<Vec<PrioSplit>, String> {
    let wrong = |entry: &str| format!("fio: invalid cmdprio_bssplit entry {entry}");
    let mut out = Vec::new();
    for entry in text.split(':').take_while(|entry| !entry.is_empty()) {
        let parts: Vec<&str> = entry.split('/').collect();
        let number = |text: &str, max: i64| {
            let n = leading_integer(text, 10).map(|n| i64::from(n as i32));
            n.filter(|n| (0..=max).contains(n)).map(|n| n as u32)
        };
        // Too large a one, or one below 0, is the largest.
        let at_most = |text: &str, max: u32| {
            leading_integer(text, 10).map(|n| (n as i32).cast_unsigned().min(max))
        };
        let (bytes, percent, priority) = match parts[..] {
            [bytes, percent] => (bytes, percent, None),
            [bytes, percent, class, level, ..] => {
                let class = at_most(class, 3).ok_or_else(|| wrong(entry))?;
                let level = at_most(level, 7).ok_or_else(|| wrong(entry))?;
                (bytes, percent, Some((class, level)))
            }
            _ => return Err(wrong(entry)),
        };
        let bytes = size_number(bytes, kb_base).ok_or_else(|| wrong(entry))?;
        let percent = number(percent, 100).ok_or_else(|| wrong(entry))?;
        if percent > 0 {
            out.push(PrioSplit {
                bytes,
                percent,
                priority,
            });
        }
    }
    out.sort_by_key(|split| split.bytes);
    Ok(out)
}

/// Whether entries of `cmdprio_bssplit` go on behind class and level.
pub(crate) fn priorities_have_hints(text: &str) -> bool {
    let mut entries = text.split([',', ':']);
    entries.any(|entry| entry.split('/').count() > 4)
}

/// Error numbers per kind of error: up to three lists with commas between, their
/// entries with colons, names or numbers.
///
/// # Errors
/// The entry that is neither, in fio's words.
pub(crate) fn errors(text: &str) -> Result<PerDir<Vec<i32>>, String> {
    let mut out: PerDir<Vec<i32>> = PerDir::default();
    for (slot, list) in out.iter_mut().zip(text.trim().split(',')) {
        for entry in list.split(':').filter(|entry| !entry.is_empty()) {
            let number = if entry.starts_with('E') {
                errno::number(entry)
            } else {
                leading_integer(entry, 10).map(|n| (n as i32).wrapping_abs())
            };
            slot.push(
                number
                    .filter(|n| *n != 0)
                    .ok_or_else(|| format!("Unknown error {entry}, please use number value"))?,
            );
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Result<Vec<(u64, u32)>, String> {
        Ok(bssplit(text, 1024)?[0]
            .iter()
            .map(|split| (split.bytes, split.percent))
            .collect())
    }

    #[test]
    fn shares_are_sorted_and_the_rest_is_split() {
        assert_eq!(
            sizes("4k/10:64k/50:32k/40"),
            Ok(vec![(4096, 10), (32768, 40), (65536, 50)])
        );
        assert_eq!(
            sizes("4k:8k/30:16k:512/7"),
            Ok(vec![(512, 7), (8192, 30), (4096, 31), (16384, 31)])
        );
        assert_eq!(sizes("4k"), Ok(vec![(4096, 0)]));
    }

    #[test]
    fn too_much_is_refused_only_with_two_shares_missing() {
        assert!(sizes("4k/60:8k/60:16k:2k").is_err());
        assert_eq!(
            sizes("4k/60:8k/60:16k").map(|s| s[0]),
            Ok((16384, u32::MAX - 19))
        );
        assert!(sizes("0/50:4k").is_err());
        assert!(sizes("x/50").is_err());
    }

    #[test]
    fn directions() {
        let [read, write, trim] = bssplit("2k/50:4k/50,4k/90:8k", 1024).expect("well formed");
        assert_eq!(read.len(), 2);
        assert_eq!(write, trim);
        assert_eq!(
            write[0],
            SizeSplit {
                bytes: 8192,
                percent: 10
            }
        );
    }

    #[test]
    fn zone_lists() {
        let zones_of = |text| zones(text, 1024, false);
        let sizes: Vec<u64> = zones_of("60/10:30/20:10")
            .expect("well formed")
            .iter()
            .map(|z| z.size)
            .collect();
        assert_eq!(sizes, [10, 20, 70]);
        assert!(zones_of("50/50").is_err());
        assert!(zones_of("60/60:40/60").is_err());
        assert_eq!(
            zones("60/1m:40/2m", 1024, true).expect("well formed")[1].size,
            2 << 20
        );
    }

    #[test]
    fn lists_of_errors() {
        let read = errors("EAGAIN,ENOSPC:122").expect("well formed");
        assert_eq!(read, [vec![11], vec![28, 122], vec![]]);
        assert!(errors("EFOO").is_err());
    }

    #[test]
    fn a_hint_behind_class_and_level_is_left_alone() {
        let read = |text| priorities(text, 1024).map(|[read, ..]| read);
        let split = |bytes, percent, priority| PrioSplit {
            bytes,
            percent,
            priority,
        };
        assert_eq!(
            read("64k/20:4k/10/2/0/1"),
            Ok(vec![split(4096, 10, Some((2, 0))), split(65536, 20, None)])
        );
        // fio 3.33 takes what is out of range for the largest.
        assert_eq!(read("4k/10/9/-1"), Ok(vec![split(4096, 10, Some((3, 7)))]));
        assert!(read("4k/10/2").is_err());
        assert!(read("4k/10/2/x/1").is_err());
        assert!(priorities_have_hints("4k/10,64k/20:4k/10/2/0/1"));
        assert!(!priorities_have_hints("4k/10/2/0,64k/20:4k/10/2/0"));
    }
}
