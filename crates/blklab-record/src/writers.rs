// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who writes through the page cache meanwhile: what processes have written, by the kernel's own
//! count, beside what they have sent to disks themselves.

use crate::Roots;
use std::collections::BTreeMap;
use std::fs;

/// Who has dirtied less than this is no writer that anybody waits for.
const BYTES_MIN: u64 = 1 << 20;

/// Who has less than this part of what all have dirtied is left out, in per cent.
const SHARE_MIN_PERCENT: u64 = 5;

/// What processes have written since the recording began.
#[derive(Debug, Default)]
pub struct Writers {
    is_begun: bool,
    of_pid: BTreeMap<u32, Written>,
}

/// What a process has written: at first, and last.
#[derive(Clone, Debug)]
struct Written {
    comm: String,
    bytes: [u64; 2],
}

impl Writers {
    /// Looks at all processes; to be called at the beginning, and now and then, since those that
    /// have ended show nothing.
    pub fn look(&mut self, roots: &Roots) {
        let Ok(entries) = fs::read_dir(&roots.proc) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let read = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
            let Some(bytes) = read("io").as_deref().and_then(written) else {
                continue;
            };
            match self.of_pid.get_mut(&pid) {
                Some(known) => known.bytes[1] = bytes,
                // Who came later had written nothing before.
                None => {
                    let first = if self.is_begun { 0 } else { bytes };
                    let comm = read("comm").unwrap_or_default().trim().to_owned();
                    let bytes = [first, bytes];
                    self.of_pid.insert(pid, Written { comm, bytes });
                }
            }
        }
        self.is_begun = true;
    }

    /// Names of those that have dirtied most of it in the page cache: `direct` says how much a
    /// process has sent to disks itself, which counts as written, too.
    pub fn names(&self, direct: impl Fn(u32) -> u64) -> Vec<String> {
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (pid, w) in &self.of_pid {
            let written = w.bytes[1].saturating_sub(w.bytes[0]);
            let own = direct(*pid);
            // Names are a list with commas.
            if written >= own.saturating_mul(2) && !w.comm.is_empty() && !w.comm.contains(',') {
                *by_name.entry(&w.comm).or_default() += written - own;
            }
        }
        let all: u64 = by_name.values().sum();
        let mut names: Vec<(&str, u64)> = by_name.into_iter().collect();
        names.retain(|(_, n)| *n >= BYTES_MIN && n.saturating_mul(100) >= all * SHARE_MIN_PERCENT);
        names.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), *name));
        names.into_iter().map(|(name, _)| name.to_owned()).collect()
    }
}

/// What `/proc/PID/io` says was written towards a disk, less what was thrown away before it got
/// there.
fn written(io: &str) -> Option<u64> {
    let number = |title: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(title))?;
        line.strip_prefix(':')?.trim().parse::<u64>().ok()
    };
    let cancelled = number("cancelled_write_bytes").unwrap_or(0);
    Some(number("write_bytes")?.saturating_sub(cancelled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_dirties_pages_is_told_from_who_writes_directly() {
        let dir = tempfile::tempdir().expect("a folder");
        let process = |pid: u32, comm: &str, bytes: u64| {
            let folder = dir.path().join(pid.to_string());
            fs::create_dir_all(&folder).expect("room");
            fs::write(folder.join("comm"), format!("{comm}\n")).expect("room");
            let io = format!("wchar: 9\nwrite_bytes: {bytes}\ncancelled_write_bytes: 0\n");
            fs::write(folder.join("io"), io).expect("room");
        };
        let path = dir.path().to_path_buf();
        let roots = Roots::at(path.clone(), path.clone(), path.clone());
        let mut writers = Writers::default();
        process(1, "old", 500 << 20);
        process(2, "direct", 0);
        writers.look(&roots);
        process(2, "direct", 80 << 20);
        process(3, "backup", 90 << 20);
        process(4, "little", 1000);
        writers.look(&roots);
        let direct = |pid| if pid == 2 { 80 << 20 } else { 0 };
        assert_eq!(writers.names(direct), ["backup"]);
        // Who has ended counts with what was seen last.
        fs::remove_dir_all(path.join("3")).expect("removed");
        writers.look(&roots);
        assert_eq!(writers.names(direct), ["backup"]);
    }
}
