// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording on made-up machines, and on this one where it lets us.

use blklab_formats::TraceFile;
use blklab_record::{GROUPS, Options, Recorder, Roots, all_disks, clean, context_of, find_disk};
use blklab_trace::{Action, Item, TraceSource as _};
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// A file, and the folders that it lies in.
fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("room");
    fs::write(path, text).expect("room");
}

/// A machine with a disk, its partition, and an array on it.
fn machine(root: &Path) -> Roots {
    let block = "sys/devices/pci/block/sda";
    write(root, &format!("{block}/dev"), "8:0\n");
    write(root, &format!("{block}/queue/nr_requests"), "64\n");
    write(
        root,
        &format!("{block}/queue/scheduler"),
        "none [mq-deadline] \n",
    );
    write(root, &format!("{block}/queue/iosched/fifo_batch"), "16\n");
    write(root, &format!("{block}/device/queue_depth"), "31\n");
    write(root, &format!("{block}/mq/0/cpu_list"), "0, 1\n");
    write(root, &format!("{block}/sda1/dev"), "8:1\n");
    write(root, &format!("{block}/sda1/partition"), "1\n");
    write(root, "sys/devices/virtual/block/md0/dev", "9:0\n");
    let link = |to: &str, at: &str| {
        let at = root.join(at);
        fs::create_dir_all(at.parent().expect("a folder")).expect("room");
        std::os::unix::fs::symlink(root.join(to), at).expect("room");
    };
    let md = "sys/devices/virtual/block/md0";
    link(&format!("{block}/sda1"), &format!("{md}/slaves/sda1"));
    for (name, to) in [("sda", block), ("md0", md)] {
        link(to, &format!("sys/block/{name}"));
    }
    for (name, to) in [
        ("sda", block.to_owned()),
        ("sda1", format!("{block}/sda1")),
        ("md0", md.to_owned()),
    ] {
        link(&to, &format!("sys/class/block/{name}"));
    }
    write(root, "sys/devices/system/cpu/online", "0-3\n");
    write(root, "proc/sys/kernel/osrelease", "6.12.5-test\n");
    write(root, "proc/sys/vm/dirty_ratio", "20\n");
    let mounts = "proc /proc proc rw 0 0\n/dev/sda1 /home ext4 rw,noatime 0 0\n";
    write(root, "proc/self/mounts", mounts);
    write(root, "sys/fs/cgroup/cgroup.controllers", "io\n");
    let limits =
        "8:16 rbps=1 wbps=max riops=max wiops=max\n8:0 rbps=max wbps=max riops=9 wiops=max\n";
    write(root, "sys/fs/cgroup/slow/io.max", limits);
    write(root, "sys/fs/cgroup/slow/io.weight", "default 50\n");
    write(root, "sys/fs/cgroup/slow/cgroup.procs", "12\n340\n");
    Roots::at(root.join("tracefs"), root.join("sys"), root.join("proc"))
}

#[test]
fn disks_are_found_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let roots = machine(dir.path());
    let names: Vec<String> = all_disks(&roots).into_iter().map(|d| d.name).collect();
    assert_eq!(names, ["sda", "md0"]);
    assert_eq!(find_disk(&roots, "sda").expect("a disk").name, "sda");
    // A partition's events are its disk's; an array's are below it, too.
    assert_eq!(find_disk(&roots, "sda1").expect("a disk").name, "sda");
    let array = find_disk(&roots, "md0").expect("an array");
    let all: Vec<&str> = array.with_below().iter().map(|d| d.name.as_str()).collect();
    assert_eq!(all, ["md0", "sda"]);
    let error = find_disk(&roots, "sdq")
        .expect_err("no such disk")
        .to_string();
    assert!(error.ends_with("the disks are sda, md0"), "{error}");
    assert!(find_disk(&roots, "/dev/null").is_err());
}

#[test]
fn the_context_says_what_sysfs_says() {
    let dir = tempfile::tempdir().expect("a folder");
    let roots = machine(dir.path());
    let disk = find_disk(&roots, "sda").expect("a disk");
    assert_eq!(
        context_of(&roots, &disk),
        "kernel=6.12.5-test\ndevice=sda\ncpus=4\nqueue/nr_requests=64\n\
         queue/scheduler=none [mq-deadline]\nqueue/iosched/fifo_batch=16\n\
         device/queue_depth=31\nmq.queues=1\nvm.dirty_ratio=20\n\
         mount=/dev/sda1 /home ext4 rw,noatime 0 0\n\
         cgroup.slow.io.max=8:0 rbps=max wbps=max riops=9 wiops=max\n\
         cgroup.slow.io.weight=default 50\n\
         cgroup.slow.processes=12 340\n"
    );
}

/// What is missing is said before anything is made.
#[test]
fn the_context_says_what_a_device_is_made_of() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path();
    let roots = machine(root);
    let md = "sys/devices/virtual/block/md0/md";
    write(root, &format!("{md}/level"), "raid1\n");
    write(root, &format!("{md}/raid_disks"), "2\n");
    write(root, &format!("{md}/bitmap/location"), "+8\n");
    for (name, slot, state) in [
        ("sdb1", "1", "in_sync,write_mostly"),
        ("sda1", "0", "in_sync"),
    ] {
        write(root, &format!("{md}/dev-{name}/slot"), &format!("{slot}\n"));
        write(
            root,
            &format!("{md}/dev-{name}/state"),
            &format!("{state}\n"),
        );
    }
    let array = find_disk(&roots, "md0").expect("an array");
    let context = context_of(&roots, &array);
    for line in [
        "md.md0.level=raid1",
        "md.md0.raid_disks=2",
        "md.md0.bitmap/location=+8",
        "md.md0.members=0:sda1:in_sync 1:sdb1:in_sync,write_mostly",
        "below.sda.queue/nr_requests=64",
        "below.sda.queue/scheduler=none [mq-deadline]",
        "below.sda.queue/iosched/fifo_batch=16",
        "below.sda.device/queue_depth=31",
    ] {
        assert!(context.lines().any(|l| l == line), "{line}: {context}");
    }
}

#[test]
fn the_context_says_where_a_disk_is_mounted_and_what_its_journals_are() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path();
    let roots = machine(root);
    // The array lies on the partition, and is mounted, too.
    let holders = root.join("sys/devices/pci/block/sda/sda1/holders");
    fs::create_dir_all(&holders).expect("room");
    let md = root.join("sys/devices/virtual/block/md0");
    std::os::unix::fs::symlink(md, holders.join("md0")).expect("room");
    let mounts = "/dev/sda1 /home ext4 rw,noatime 0 0\n/dev/sdb /b xfs rw 0 0\n\
                  /dev/md0 /data ext4 rw 0 0\n";
    write(root, "proc/self/mounts", mounts);
    let options = "rw\ndelalloc\nbarrier\ncommit=5\ndata=ordered\ninode_readahead_blks=32\n";
    write(root, "proc/fs/ext4/md0/options", options);
    write(root, "sys/fs/ext4/md0/journal_task", "812\n");
    let info = "3 transactions (2 requested), each up to 4096 blocks\naverage:\n";
    write(root, "proc/fs/jbd2/md0-8/info", info);
    let disk = find_disk(&roots, "sda").expect("a disk");
    let context = context_of(&roots, &disk);
    for line in [
        "mount=/dev/sda1 /home ext4 rw,noatime 0 0",
        "mount.2=/dev/md0 /data ext4 rw 0 0",
        "journal.md0.options=delalloc,barrier,commit=5,data=ordered",
        "journal.md0.task=812",
        "journal.md0.log=internal, inode 8",
        "journal.md0.transaction_blocks_max=4096",
    ] {
        assert!(context.lines().any(|l| l == line), "{line}: {context}");
    }
    assert!(!context.contains("/dev/sdb"), "{context}");
}

#[test]
fn a_kernel_without_events() {
    let dir = tempfile::tempdir().expect("a folder");
    let roots = machine(dir.path());
    write(dir.path(), "tracefs/instances/other/x", "");
    let out = dir.path().join("t.dat");
    let start = |options: &Options| Recorder::start(&roots, options, &out).map(drop);
    let error = start(&Options::default())
        .expect_err("no events")
        .to_string();
    assert!(error.contains("this kernel has no block events"), "{error}");
    write(
        dir.path(),
        "tracefs/events/block/block_rq_issue/format",
        "name: x\n",
    );
    let options = Options {
        groups: GROUPS.iter().filter(|g| g.name == "nvme").collect(),
        ..Options::default()
    };
    let error = start(&options).expect_err("no NVMe").to_string();
    assert!(
        error.contains("no nvme events: it needs CONFIG_BLK_DEV_NVME"),
        "{error}"
    );
    assert!(!out.exists() && !dir.path().join("t.dat.partial").exists());
    assert_eq!(
        fs::read_dir(dir.path().join("tracefs/instances"))
            .unwrap()
            .count(),
        1
    );
}

/// Only instances of ours whose recorder is gone are removed.
#[test]
fn what_was_left_behind_is_removed() {
    let dir = tempfile::tempdir().expect("a folder");
    let instances = dir.path().join("instances");
    for name in ["blklab-1-0", "blklab-2-0", "other"] {
        fs::create_dir_all(instances.join(name)).expect("room");
    }
    let alive = fs::File::open(instances.join("blklab-2-0")).expect("a folder");
    alive.try_lock().expect("nobody has it");
    assert_eq!(clean(dir.path()).expect("cleaned"), ["blklab-1-0"]);
    assert!(instances.join("other").exists() && instances.join("blklab-2-0").exists());
    drop(alive);
    assert_eq!(clean(dir.path()).expect("cleaned"), ["blklab-2-0"]);
    assert!(clean(&dir.path().join("none")).is_err());
}

/// This machine, where it lets us.
fn here() -> Option<Roots> {
    match Roots::of_machine() {
        Ok(roots) if roots.tracefs.join("events/block").is_dir() => Some(roots),
        Ok(_) => {
            println!("skipped: no block events");
            None
        }
        Err(e) => {
            println!("skipped: {e}");
            None
        }
    }
}

/// What this kernel does for a write and an fsync is in the trace.
#[test]
fn the_io_of_this_machine() {
    let Some(roots) = here() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    // Where the working folder lies: temporary folders may have no disk.
    let Ok(disk) = find_disk(&roots, env!("CARGO_MANIFEST_DIR")) else {
        println!("skipped: the repository lies on no disk");
        return;
    };
    let out = dir.path().join("t.dat");
    let options = Options {
        disk: Some(disk.clone()),
        groups: GROUPS.iter().filter(|g| g.name == "sched").collect(),
        buffer_kb: 1024,
        ..Options::default()
    };
    let mut recorder = Recorder::start(&roots, &options, &out).expect("started");
    let instance = recorder.instance_path().to_path_buf();
    assert!(instance.starts_with(&roots.tracefs) && instance.exists());
    let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
    for _ in 0..20 {
        file.write_all(&[7; 1 << 16]).expect("room");
        file.sync_all().expect("stored");
        recorder.drain().expect("read");
    }
    let recorded = recorder.finish(&roots).expect("finished");
    assert!(!instance.exists());
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names, ["t.dat"]);
    let mut trace = TraceFile::open(&out).expect("a trace");
    let (mut nr, mut queued, mut named) = ([0_u64; 17], 0, false);
    while let Some(item) = trace.next_item().expect("it can be read") {
        match item {
            Item::Event(e) => {
                nr[e.action as usize] += 1;
                if !matches!(e.action, Action::Plug | Action::Unplug) {
                    let below = disk.with_below();
                    let is_wanted = |d: &&&blklab_record::Disk| {
                        (d.major, d.minor) == (e.dev.major.into(), e.dev.minor.into())
                    };
                    assert!(below.iter().any(|d| is_wanted(&d)), "{e}");
                }
                queued += u64::from(e.action == Action::Queue) * u64::from(e.bytes);
            }
            Item::Process { comm, .. } => named |= !comm.is_empty(),
            _ => {}
        }
    }
    assert!(
        queued >= 20 << 16 && named,
        "{queued}: {:?}",
        trace.counts()
    );
    assert!(nr[Action::Issue as usize] > 0 && nr[Action::Complete as usize] > 0);
    assert_eq!(trace.counts().damaged, 0, "{:?}", trace.counts());
    assert!(trace.header().is_some_and(|h| !h.kernel.is_empty()));
    let other: u64 = trace.counts().other_events;
    let events = trace.counts().events + trace.counts().kernel_events + other;
    assert!(recorded.nr_events >= events, "{recorded:?} {events}");
}

/// Who writes the file comes through its filesystem.
#[test]
fn the_stacks_of_this_machine() {
    let Some(roots) = here() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let Ok(disk) = find_disk(&roots, env!("CARGO_MANIFEST_DIR")) else {
        println!("skipped: the repository lies on no disk");
        return;
    };
    let out = dir.path().join("t.dat");
    let options = Options {
        disk: Some(disk),
        buffer_kb: 1024,
        has_stacks: true,
        ..Options::default()
    };
    let mut recorder = match Recorder::start(&roots, &options, &out) {
        Ok(recorder) => recorder,
        Err(e) => {
            assert!(
                e.to_string().starts_with("stacks cannot be recorded: "),
                "{e}"
            );
            return;
        }
    };
    let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
    for _ in 0..5 {
        file.write_all(&[7; 1 << 16]).expect("room");
        file.sync_all().expect("stored");
        recorder.drain().expect("read");
    }
    let recorded = recorder.finish(&roots).expect("finished");
    let mut trace = TraceFile::open(&out).expect("a trace");
    let (mut queued, mut named) = (0, false);
    while let Some(item) = trace.next_item().expect("it can be read") {
        match item {
            Item::Event(e) => queued += u64::from(e.action == Action::Queue),
            Item::Stack { functions, .. } => named |= functions.contains("fsync"),
            _ => {}
        }
    }
    assert!(recorded.nr_stacks > 0 && named, "{recorded:?}");
    assert_eq!(
        (trace.counts().stacks, trace.counts().damaged),
        (recorded.nr_stacks, 0)
    );
    // Tracing may be switched on or off between an event and its stack.
    assert!(queued + 2 >= recorded.nr_stacks, "{queued} {recorded:?}");
}

/// A buffer that is too small loses events, which are counted.
#[test]
fn lost_events_are_counted() {
    let Some(roots) = here() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("t.dat");
    let options = Options {
        buffer_kb: 8,
        ..Options::default()
    };
    let mut recorder = Recorder::start(&roots, &options, &out).expect("started");
    let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
    for _ in 0..200 {
        file.write_all(&[7; 4096]).expect("room");
        file.sync_all().expect("stored");
    }
    recorder.drain().expect("read");
    let recorded = recorder.finish(&roots).expect("finished");
    assert!(recorded.nr_lost > 0, "{recorded:?}");
    let mut trace = TraceFile::open(&out).expect("a trace");
    while trace.next_item().expect("it can be read").is_some() {}
    assert!(trace.counts().lost > 0, "{:?}", trace.counts());
}

/// A recorder that is given up leaves nothing.
#[test]
fn a_recorder_that_is_dropped() {
    let Some(roots) = here() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("t.dat");
    let options = Options {
        buffer_kb: 64,
        ..Options::default()
    };
    let recorder = Recorder::start(&roots, &options, &out).expect("started");
    let path = recorder.instance_path().to_path_buf();
    assert!(path.exists());
    // Another one leaves it alone: it is locked.
    let cleaned = clean(&roots.tracefs).expect("cleaned");
    let name = path
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert!(!cleaned.contains(&name) && path.exists());
    drop(recorder);
    assert!(!path.exists());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Who is in a group counts where io.cost shares the disk out by its weight, and for limits of
/// the first version.
#[test]
fn the_context_says_who_shares_the_disk() {
    let dir = tempfile::tempdir().expect("a folder");
    let roots = machine(dir.path());
    let root = dir.path().join("sys/fs/cgroup");
    let write = |path: &str, text: &str| write(&root, path, text);
    write(
        "io.cost.qos",
        "8:0 enable=1 ctrl=user min=95.00 max=95.00\n",
    );
    write("io.cost.model", "8:0 ctrl=user model=linear rbps=1\n");
    write("web/io.weight", "default 300\n");
    write("web/cgroup.procs", "7\n");
    write("blkio/old/blkio.throttle.read_iops_device", "8:0 100\n");
    write("blkio/old/cgroup.procs", "9\n");
    let disk = find_disk(&roots, "sda").expect("a disk");
    let said = context_of(&roots, &disk);
    for line in [
        "io.cost.qos=8:0 enable=1 ctrl=user min=95.00 max=95.00",
        "io.cost.model=8:0 ctrl=user model=linear rbps=1",
        "cgroup.web.io.weight=default 300",
        "cgroup.web.processes=7",
        "cgroup.old.blkio.throttle.read_iops_device=8:0 100",
        "cgroup.old.processes=9",
    ] {
        assert!(said.lines().any(|l| l == line), "{line} of\n{said}");
    }
}
