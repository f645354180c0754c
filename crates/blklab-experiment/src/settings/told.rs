// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a running kernel is told a setting: most are files, whose folder follows from where
//! the setting lives; a row says what differs.

use super::{Form, Home, Place, Setting};
use crate::Experiment;
use blklab_kernel::{KernelVersion, is_file_of_queue};

const QUEUE: Place = Place::Folder("/sys/block/{disk}/queue");

impl Setting {
    /// The kernel takes it elsewhere than its home says.
    pub(crate) const fn taken_at(mut self, place: Place) -> Setting {
        self.place = Some(place);
        self
    }

    /// Where a running kernel takes it.
    pub fn place(&self) -> Place {
        self.place.unwrap_or(match self.home {
            Home::Queue => QUEUE,
            Home::Scheduler => Place::Folder("/sys/block/{disk}/queue/iosched"),
            // CFQ's groups are those of the first version, each controller in a folder.
            Home::Cgroup if self.name().starts_with("blkio.") => {
                Place::Folder("/sys/fs/cgroup/blkio/{cgroup}")
            }
            Home::Cgroup => Place::Folder("/sys/fs/cgroup/{cgroup}"),
            Home::Device => Place::Device,
            Home::Filesystem => Place::Mount,
            Home::Top | Home::Driver | Home::Machine => Place::Nowhere,
        })
    }

    /// Where a release takes it.
    fn place_in(&self, kernel: KernelVersion) -> Place {
        if self.home == Home::Scheduler && is_file_of_queue(self.name(), kernel) {
            return QUEUE;
        }
        self.place()
    }

    /// The file that a running kernel takes it from; none if it is no file. `disk` is the
    /// disk's name (`sda`), `cgroup` the path of the group below the root.
    pub fn file(&self, kernel: KernelVersion, disk: &str, cgroup: &str) -> Option<String> {
        let path = match self.place_in(kernel) {
            Place::Folder(folder) => format!("{folder}/{}", self.name()),
            Place::Driver { file, .. } => file.to_owned(),
            _ => return None,
        };
        Some(path.replace("{disk}", disk).replace("{cgroup}", cgroup))
    }

    /// What is written there for an experiment; none where nothing was set, and for files
    /// of control groups ([`crate::Cgroup::files`]).
    pub fn written(&self, e: &Experiment) -> Option<String> {
        let number = self.stored(e)?.div_euclid(self.per_unit);
        Some(match self.form {
            Form::Words(words) => {
                let word = words.iter().find(|(_, n)| *n == number);
                word.map_or_else(|| number.to_string(), |(word, _)| (*word).to_owned())
            }
            _ => number.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{all, cgroup_files, find};
    use super::*;
    use blklab_kernel::{Tunable, Unit};

    #[test]
    fn settings_of_the_kernel_have_their_files() {
        let kernel = KernelVersion::NEWEST;
        let file = |name: &str| find(name).and_then(|s| s.file(kernel, "sdb", ""));
        let expected = [
            ("nr_requests", Some("/sys/block/sdb/queue/nr_requests")),
            (
                "max_sectors_kb",
                Some("/sys/block/sdb/queue/max_sectors_kb"),
            ),
            ("queue_depth", Some("/sys/block/sdb/device/queue_depth")),
            ("dirty_bytes", Some("/proc/sys/vm/dirty_bytes")),
            ("memory", None),
            ("io_cost_ns", None),
            ("seed", None),
            ("partition_start", None),
            ("max_segments", None),
        ];
        for (name, path) in expected {
            assert_eq!(file(name).as_deref(), path, "{name}");
        }
        let of_groups: Vec<_> = cgroup_files()
            .filter_map(|s| s.file(kernel, "", "a/b"))
            .collect();
        assert_eq!(of_groups[0], "/sys/fs/cgroup/a/b/io.max");
        assert_eq!(of_groups[2], "/sys/fs/cgroup/a/b/io.weight");
        assert_eq!(of_groups[3], "/sys/fs/cgroup/blkio/a/b/blkio.weight");
    }

    #[test]
    fn a_tunable_has_its_file_by_release() {
        const TABLE: &[Tunable] = &[Tunable {
            name: "async_depth",
            unit: Unit::Count,
            default: 1,
            range: (1, 8),
            since: KernelVersion::new(5, 14),
            until: KernelVersion::FOREVER,
            help: "",
        }];
        let rows = Setting::tunables("mq-deadline", TABLE);
        for (kernel, file) in [
            ("6.19", "/sys/block/sda/queue/iosched/async_depth"),
            ("7.0", "/sys/block/sda/queue/async_depth"),
        ] {
            let kernel = KernelVersion::row(kernel);
            assert_eq!(rows[0].file(kernel, "sda", "").as_deref(), Some(file));
        }
    }

    #[test]
    fn what_is_no_file_says_what_it_is() {
        let place = |name: &str| find(name).map(Setting::place);
        assert_eq!(place("memory"), Some(Place::Boot("mem")));
        assert_eq!(place("cpus"), Some(Place::Boot("nr_cpus")));
        assert_eq!(place("hz"), Some(Place::Build("CONFIG_HZ")));
        assert_eq!(place("partition_start"), Some(Place::Ioctl("BLKPG")));
        assert_eq!(place("filesystem"), Some(Place::Mount));
        // All that is left in a folder is a file of the queue or of /proc/sys/vm.
        for s in all() {
            if let Place::Folder(folder) = s.place() {
                let name = s.name();
                assert!(
                    ["/sys/block/{disk}/queue", "/proc/sys/vm"].contains(&folder),
                    "{name}"
                );
            }
        }
    }
}
