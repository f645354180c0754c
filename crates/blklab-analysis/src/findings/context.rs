// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known about the machine beside its trace: kernel, scheduler and tunables,
//! limits of the queue, write cache, control groups, mounts.
//!
//! The text form is one `key=value` a line. Keys are paths below
//! `/sys/block/DEVICE` (`queue/nr_requests`, `queue/iosched/fifo_batch`,
//! `device/queue_depth`), and `kernel`, `device`, `mount`, `vm.NAME`,
//! `cgroup.NAME.FILE`. A detector asks for what it needs; nothing that is not said
//! is assumed.

use blklab_kernel::KernelVersion;
use blklab_types::{IoPrio, Pid};
use std::collections::BTreeMap;
use std::fmt;

/// Attributes below `queue/` whose value is a number, as far as anything here asks
/// for them (`Documentation/ABI/stable/sysfs-block`).
const NUMBERS: &[&str] = &[
    "chunk_sectors",
    "discard_granularity",
    "discard_max_bytes",
    "hw_sector_size",
    "logical_block_size",
    "max_hw_sectors_kb",
    "max_sectors_kb",
    "max_segment_size",
    "max_segments",
    "minimum_io_size",
    "nomerges",
    "nr_requests",
    "nr_zones",
    "optimal_io_size",
    "physical_block_size",
    "read_ahead_kb",
    "rotational",
    "rq_affinity",
    "wbt_lat_usec",
    "zone_write_granularity",
];

/// Attributes below `queue/` whose value is a text.
const TEXTS: &[&str] = &["scheduler", "write_cache", "zoned"];

/// Keys that stand alone: of the machine, and of the trace that it was recorded with.
const WORDS: &[&str] = &[
    "kernel",
    "device",
    "cpus",
    "mount",
    "dev_number",
    "trace_format",
    "buffered_writers",
    "fio_jobs",
];

/// What keys with more behind it begin with: paths below `/sys/block/DEVICE`, and what
/// recorders say of page cache, hardware queues, control groups, mounts and their journals, of
/// what arrays and mapped devices are made of, and of processes.
const BEGINS: &[&str] = &[
    "queue/", "device/", "vm.", "mq.", "cgroup.", "io.", "mount.", "journal.", "md.", "dm.",
    "below.", "ioprio.",
];

fn is_key(key: &str) -> bool {
    WORDS.contains(&key) || BEGINS.iter().any(|begin| key.starts_with(begin))
}

/// That a context has no such key, and what would be one.
fn no_such_key(key: &str) -> String {
    if NUMBERS.contains(&key) || TEXTS.contains(&key) {
        return format!("{key}: a context has no such key; did you mean queue/{key}?");
    }
    format!(
        "{}: a context has no such key: {}, or what begins with {}",
        blklab_types::shown(key),
        WORDS.join(", "),
        BEGINS.join(", ")
    )
}

/// What is known beside the trace; empty if nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    kernel: Option<KernelVersion>,
    facts: BTreeMap<String, String>,
}

/// Why a context cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextError {
    /// The line, from 1; 0 if it has none.
    pub line: usize,
    what: String,
}

impl fmt::Display for ContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ContextError {}

impl Context {
    /// Reads lines of `key=value`; empty lines and those that begin with `#` say
    /// nothing.
    ///
    /// # Errors
    /// A line without `=`, a value that cannot be one of its key.
    pub fn parse(text: &str) -> Result<Context, ContextError> {
        let mut context = Context::default();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim_start_matches('\u{feff}').trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = |what| ContextError { line: i + 1, what };
            let Some((key, value)) = line.split_once('=') else {
                let shown = blklab_types::shown(line);
                return Err(at(format!(
                    "{shown}: expected key=value, as in queue/nr_requests=128"
                )));
            };
            context.set(key, value).map_err(|e| at(e.what))?;
        }
        Ok(context)
    }

    /// Sets one fact; the last word counts.
    ///
    /// # Errors
    /// A value that cannot be one of its key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ContextError> {
        let (key, value) = (key.trim(), value.trim());
        let fail = |expected: &str| ContextError {
            line: 0,
            what: format!("{key}={}: expected {expected}", blklab_types::shown(value)),
        };
        if key.is_empty() {
            return Err(fail("a key before ="));
        }
        if !is_key(key) {
            return Err(ContextError {
                line: 0,
                what: no_such_key(key),
            });
        }
        let own = key.strip_prefix("queue/").unwrap_or_default();
        if key == "kernel" {
            let name = value.split_whitespace().next().unwrap_or_default();
            let kernel = KernelVersion::of_name(name);
            self.kernel = Some(kernel.ok_or_else(|| fail("a release, as in 6.12"))?);
        } else if (NUMBERS.contains(&own) || key == "device/queue_depth")
            && value.parse::<u64>().is_err()
        {
            return Err(fail("a number"));
        } else if key.starts_with(IOPRIO) && value.parse::<IoPrio>().is_err() {
            return Err(fail(
                "an I/O priority as ionice prints it, as in idle or best-effort: prio 4",
            ));
        }
        self.facts.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Sets a fact by its short name: an attribute of the queue, `queue_depth`, else
    /// a tunable of the scheduler; anything with `/` or `.` is a key of the text form.
    ///
    /// # Errors
    /// As [`Context::set`].
    pub fn set_short(&mut self, name: &str, value: &str) -> Result<(), ContextError> {
        let key = match name.trim() {
            name if name.contains(['/', '.']) || ["kernel", "device", "mount"].contains(&name) => {
                name.to_owned()
            }
            "queue_depth" => "device/queue_depth".to_owned(),
            name if NUMBERS.contains(&name) || TEXTS.contains(&name) => format!("queue/{name}"),
            name => format!("queue/iosched/{name}"),
        };
        self.set(&key, value)
    }

    /// Names of attributes of the queue that [`Context::set_short`] knows.
    pub fn queue_names() -> impl Iterator<Item = &'static str> {
        let more = ["queue_depth"];
        NUMBERS.iter().chain(TEXTS).copied().chain(more)
    }

    /// Takes all that another one knows.
    pub fn add(&mut self, other: Context) {
        self.kernel = other.kernel.or(self.kernel);
        self.facts.extend(other.facts);
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// All facts, by key.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.facts.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// The kernel.
    pub fn kernel(&self) -> Option<KernelVersion> {
        self.kernel
    }

    /// The processes that write through the page cache and wait for no write-back, in words.
    pub fn buffered_writers(&self) -> Option<&str> {
        self.facts.get("buffered_writers").map(String::as_str)
    }

    /// The name of the device: sda, nvme0n1.
    pub fn device(&self) -> Option<&str> {
        self.text("device")
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.facts.get(key).map(String::as_str)
    }

    /// An attribute of the queue that is a number.
    pub fn queue(&self, name: &str) -> Option<u64> {
        self.text(&format!("queue/{name}"))?.parse().ok()
    }

    /// The scheduler: the one in brackets, or the only one.
    pub fn scheduler(&self) -> Option<&str> {
        let text = self.text("queue/scheduler")?;
        let chosen = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        match chosen {
            Some((name, _)) => Some(name),
            None => Some(text).filter(|t| !t.is_empty() && !t.contains(' ')),
        }
    }

    /// Whether the scheduler is one of these; none if it is not known.
    pub fn scheduler_is(&self, names: &[&str]) -> Option<bool> {
        self.scheduler().map(|s| names.contains(&s))
    }

    /// A tunable of the scheduler.
    pub fn tunable(&self, name: &str) -> Option<i64> {
        self.text(&format!("queue/iosched/{name}"))?.parse().ok()
    }

    /// The largest request in sectors.
    pub fn sectors_max(&self) -> Option<u64> {
        self.queue("max_sectors_kb").map(|kb| kb * 2)
    }

    /// Whether the device has a cache for writes that a flush empties.
    pub fn has_write_cache(&self) -> Option<bool> {
        self.text("queue/write_cache").map(|t| t == "write back")
    }

    /// Whether it takes the writes of a zone in order only.
    pub fn is_zoned(&self) -> Option<bool> {
        self.text("queue/zoned").map(|t| t.starts_with("host"))
    }

    /// Whether it is a disk that rotates.
    pub fn rotates(&self) -> Option<bool> {
        self.queue("rotational").map(|n| n != 0)
    }

    /// Commands that the device takes at a time.
    pub fn queue_depth(&self) -> Option<u64> {
        self.text("device/queue_depth")?.parse().ok()
    }

    /// Limits of control groups: name of the group and what its `io.max` says, of
    /// those that have one.
    pub fn io_max(&self) -> impl Iterator<Item = (&str, &str)> {
        self.of_groups("io.max")
    }

    /// The control group of a process, if the context says so: `cgroup.GROUP.processes` has
    /// numbers of processes, or their names, apart by blanks; `cgroup.GROUP.submitters` those that
    /// had I/O while it was recorded.
    pub fn group_of(&self, pid: Pid, comm: Option<&str>) -> Option<&str> {
        let number = pid.to_string();
        let is_it = |word: &str| word == number || Some(word) == comm;
        let said = self.of_groups("processes");
        let mut groups = said.chain(self.of_groups("submitters"));
        let found = groups.find(|(_, said)| said.split_whitespace().any(is_it));
        found.map(|(group, _)| group)
    }

    /// The I/O priority of a process, if the context says so: `ioprio.WHO`, WHO being its number
    /// or name.
    pub fn ioprio_of(&self, pid: Pid, comm: Option<&str>) -> Option<IoPrio> {
        let number = self.text(&format!("{IOPRIO}{pid}"));
        let said = number.or_else(|| self.text(&format!("{IOPRIO}{}", comm?)));
        said?.parse().ok()
    }

    /// The names of fio's jobs in order, copies included (`fio_jobs`, apart by blanks).
    pub fn fio_jobs(&self) -> impl Iterator<Item = &str> {
        self.text("fio_jobs").unwrap_or_default().split_whitespace()
    }

    /// Latencies that groups are guaranteed (`io.latency`): the group and what it says.
    pub fn io_latency(&self) -> impl Iterator<Item = (&str, &str)> {
        let has_target = |(_, said): &(&str, &str)| {
            let target = said
                .split_whitespace()
                .find_map(|w| w.strip_prefix("target="));
            target.is_some_and(|us| us != "0")
        };
        self.of_groups("io.latency").filter(has_target)
    }

    /// Whether io.cost shares the device out (`io.cost.qos` of the root group).
    pub fn has_io_cost(&self) -> bool {
        let said = self.io_cost_qos().unwrap_or_default();
        said.split_whitespace().any(|word| word == "enable=1")
    }

    /// What io.cost aims at, if the context says it.
    pub fn io_cost_qos(&self) -> Option<&str> {
        self.text("io.cost.qos")
    }

    /// What io.cost takes I/O to cost, if the context says it.
    pub fn io_cost_model(&self) -> Option<&str> {
        self.text("io.cost.model")
    }

    /// Whether anything is known of control groups.
    pub fn has_groups(&self) -> bool {
        let is_of_groups = |key: &str| key.starts_with("cgroup.") || key.starts_with("io.cost.");
        self.facts().any(|(key, _)| is_of_groups(key))
    }

    /// What a file of control groups says, of those where it says something.
    pub fn of_groups<'a>(&'a self, file: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.facts().filter_map(move |(key, value)| {
            let group = key.strip_prefix("cgroup.")?.strip_suffix(file)?;
            let group = group.strip_suffix('.')?;
            (!value.is_empty()).then_some((group, value))
        })
    }
}

/// What keys of I/O priorities begin with.
const IOPRIO: &str = "ioprio.";

/// Whether a group is another one, or below it.
pub(super) fn is_in(group: &str, other: &str) -> bool {
    let below = group.strip_prefix(other);
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The scheduler that a message of the kernel comes from: CFQ and BFQ begin theirs with
/// their names (`cfq_log`, block/cfq-iosched.c; `bfq_log`, block/bfq-iosched.h).
pub(super) fn scheduler_of_message(text: &str) -> Option<&'static str> {
    ["cfq", "bfq"].into_iter().find(|name| {
        let rest = text.strip_prefix(name).and_then(|rest| rest.chars().next());
        rest.is_some_and(|c| c == ' ' || c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::PrioClass;

    #[test]
    fn a_context_is_read_and_asked() {
        let text = "# a machine\nkernel=6.12.117+deb12-amd64\nqueue/scheduler=none [mq-deadline] \n\
                    queue/nr_requests=64\nqueue/iosched/fifo_batch=16\n\
                    queue/write_cache=write back\ncgroup.batch.io.max=8:0 riops=100\n\
                    cgroup.web.io.max=\n\ndevice/queue_depth=31\nqueue/max_sectors_kb=64\n";
        let c = Context::parse(text).expect("sound");
        assert_eq!(c.kernel(), Some(KernelVersion::row("6.12.117")));
        assert_eq!(c.scheduler(), Some("mq-deadline"));
        assert_eq!(
            (c.queue("nr_requests"), c.tunable("fifo_batch")),
            (Some(64), Some(16))
        );
        assert_eq!(
            (c.has_write_cache(), c.queue_depth()),
            (Some(true), Some(31))
        );
        assert_eq!(c.sectors_max(), Some(128));
        assert_eq!(c.io_max().collect::<Vec<_>>(), [("batch", "8:0 riops=100")]);
        assert_eq!((c.rotates(), c.queue("read_ahead_kb")), (None, None));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        let error = |text| Context::parse(text).expect_err("not sound");
        let e = error("kernel=6.1\nnr_requests 5\n");
        assert_eq!(
            (e.line, e.to_string().contains("expected key=value")),
            (2, true)
        );
        assert!(
            error("queue/nr_requests=many")
                .to_string()
                .contains("a number")
        );
        assert!(error("kernel=new").to_string().contains("a release"));
    }

    #[test]
    fn a_process_is_in_the_group_that_names_it() {
        let text = "cgroup.tenant.io.max=8:0 rbps=1\ncgroup.tenant/slow.processes=12 rsync\n\
                    cgroup.ten.processes=13\ncgroup./.processes=14";
        let c = Context::parse(text).expect("sound");
        assert_eq!(c.group_of(12, None), Some("tenant/slow"));
        assert_eq!(c.group_of(99, Some("rsync")), Some("tenant/slow"));
        assert_eq!(c.group_of(14, Some("fio")), Some("/"));
        assert_eq!(c.group_of(1, Some("init")), None);
    }

    #[test]
    fn what_is_recorded_of_stacks_mounts_and_submitters_is_read() {
        let text = "mount=/dev/md0 / ext4 rw 0 0\nmount.2=/dev/md0 /b ext4 rw 0 0\n\
                    journal.md0.task=812\nmd.md0.level=raid1\ndm.dm-0.table=0 8 linear 8:0 0\n\
                    below.sda.queue/iosched/fifo_batch=16\n\
                    cgroup.a.processes=7\ncgroup./.submitters=7 9\n";
        let context = Context::parse(text).expect("a context");
        // Where both say it, what was said when recording began counts.
        assert_eq!(context.group_of(7, None), Some("a"));
        assert_eq!(context.group_of(9, None), Some("/"));
        assert!(Context::parse("raid.level=1").is_err());
    }

    #[test]
    fn priorities_are_those_that_ionice_prints() {
        let text = "ioprio.7=best-effort: prio 2\nioprio.scan=idle\nioprio.log=rt,0\n";
        let context = Context::parse(text).expect("a context");
        let prio = |pid, comm| context.ioprio_of(pid, comm).map(|p| (p.class, p.level));
        assert_eq!(prio(7, Some("scan")), Some((PrioClass::BestEffort, 2)));
        assert_eq!(prio(8, Some("scan")), Some((PrioClass::Idle, 0)));
        assert_eq!(prio(9, Some("log")), Some((PrioClass::RealTime, 0)));
        assert_eq!(prio(9, None), None);
        for wrong in ["ioprio.7=best", "ioprio.7=rt 8", "ioprio.7=rt 1 2"] {
            let error = Context::parse(wrong).expect_err("none").to_string();
            assert!(error.contains("as ionice prints it"), "{error}");
        }
    }

    #[test]
    fn messages_tell_the_scheduler() {
        for (text, scheduler) in [
            ("cfq4312S arm_idle: 8", Some("cfq")),
            ("cfq idle timer fired", Some("cfq")),
            (
                "bfq [bfq_limit_depth] wr_busy 0 sync 0 depth 8",
                Some("bfq"),
            ),
            ("bfq713S merging with queue 711", Some("bfq")),
            ("cfqd", None),
            ("throtl /test1 [R] bio.", None),
        ] {
            assert_eq!(scheduler_of_message(text), scheduler, "{text}");
        }
    }

    #[test]
    fn a_kernel_is_what_uname_prints() {
        for (text, release) in [
            ("2.6.9-89.EL", KernelVersion::v2_6(9)),
            ("2.6.32-71.el6.x86_64", KernelVersion::v2_6(32)),
            ("6.18.44-fc-v669 #1 SMP", KernelVersion::row("6.18.44")),
        ] {
            let mut c = Context::default();
            c.set("kernel", text).expect("it is one");
            assert_eq!(c.kernel(), Some(release));
        }
        assert!(Context::default().set("kernel", "6").is_err());
    }

    #[test]
    fn short_names_are_those_of_sysfs() {
        let mut c = Context::default();
        for (name, value) in [
            ("nr_requests", "8"),
            ("queue_depth", "4"),
            ("slice_idle", "0"),
        ] {
            c.set_short(name, value).expect("sound");
        }
        assert_eq!(
            (c.queue("nr_requests"), c.queue_depth()),
            (Some(8), Some(4))
        );
        assert_eq!(c.tunable("slice_idle"), Some(0));
    }
}
