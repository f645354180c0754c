// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real kernel, where one was built on this machine.

mod discards;
mod filesystems;
mod images;
mod logs;
mod stacks;

use blklab_kernel_target::{Built, Cache, Clock, Disk, Engine, HZ, Machine, Userland};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A kernel that was built of a release, with the usual ticks, if there is one.
fn kernel() -> Option<Built> {
    let kernels = Cache::of_user().ok()?.kernels();
    let is_usual = |kernel: &Built| kernel.hz == HZ && !kernel.is_of_tree();
    let newest = kernels.into_iter().rfind(is_usual);
    if newest.is_none() {
        blklab_testkit::skipped("no kernel was built on this machine");
    }
    newest
}

/// An image that is there, if QEMU can run it.
fn image() -> Option<Built> {
    let images = Cache::of_user().ok()?.kernels_of(Engine::Qemu);
    let image = images.into_iter().next_back();
    if image.is_none() || !blklab_testkit::has_program("qemu-system-x86_64") {
        blklab_testkit::skipped("no image of a kernel is here, or QEMU is missing");
        return None;
    }
    image
}

fn disk() -> Disk {
    let (info, params) = blklab_device::parse_spec("nvme-consumer").expect("a device");
    let no_files = |_: &str| Err("it has none".to_owned());
    let model = blklab_device::build(info.name, &params, 32, &no_files).expect("a model");
    let limits = blklab_device::limits(info.name, &params).expect("its limits");
    Disk::modelled("nvme-consumer", model, &limits)
}

fn run(kernel: &Built, script: &str, limit: Duration) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let machine = Machine {
        kernel,
        memory_bytes: 256 << 20,
        userland: Userland {
            programs: Vec::new(),
            own: Vec::new(),
            files: Vec::new(),
            modules: Vec::new(),
            script: script.to_owned(),
        },
        arguments: Vec::new(),
        disks: match kernel.engine {
            Engine::Uml => vec![disk()],
            Engine::Qemu => Vec::new(),
        },
        processors: 2,
        clock: Clock::Virtual,
        time_limit: limit,
    };
    let ended = machine
        .run(&AtomicBool::new(false))
        .map_err(|e| e.to_string())?;
    let mut files = BTreeMap::new();
    let read = ended.files(&mut |name, _, from| {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("its bytes");
        files.insert(name.to_owned(), bytes);
        Ok(())
    });
    read.map_err(|e| e.to_string())?;
    Ok(files)
}

#[test]
fn a_kernel_reads_a_modelled_disk_and_two_runs_are_the_same() {
    let Some(kernel) = kernel() else { return };
    let script = "dd if=/dev/vda of=/dev/null bs=4k count=1000 iflag=direct 2>&1\n\
                  cat /proc/uptime /sys/block/vda/stat /sys/block/vda/serial";
    let first = run(&kernel, script, Duration::from_secs(60)).expect("it runs");
    let log = String::from_utf8_lossy(&first["log"]).into_owned();
    assert!(log.contains("1000+0 records in"), "{log}");
    assert!(log.contains("nvme-consumer"), "{log}");
    assert_eq!(first["status"], b"0\n");
    let second = run(&kernel, script, Duration::from_secs(60)).expect("it runs");
    assert_eq!(first, second);
}

#[test]
fn a_kernel_that_hangs_or_dies_is_ended_and_its_last_words_are_told() {
    let Some(kernel) = kernel() else { return };
    // A loop without system calls: virtual time stands still.
    let hangs = run(&kernel, "while :; do :; done", Duration::from_secs(5));
    let error = hangs.expect_err("it does not end");
    assert!(error.contains("has not ended within 5 s"), "{error}");
    let dies = run(
        &kernel,
        "echo c > /proc/sysrq-trigger || kill -SEGV 1; poweroff -f",
        Duration::from_secs(30),
    );
    let error = dies.expect_err("nothing comes back");
    assert!(error.contains("the kernel has died"), "{error}");
}

#[test]
fn nothing_of_the_host_can_be_reached() {
    let Some(kernel) = kernel() else { return };
    let script = "cat /proc/filesystems\n\
                  mount -t hostfs none /mnt -o / && echo REACHED\n\
                  mount -t hostfs none /mnt -o ../../.. && echo REACHED\n\
                  ls /mnt /home /root /etc 2>&1";
    let files = run(&kernel, script, Duration::from_secs(60)).expect("it runs");
    let log = String::from_utf8_lossy(&files["log"]).into_owned();
    assert!(log.contains("ext4"), "{log}");
    assert!(!log.contains("\thostfs"), "{log}");
    assert!(!log.contains("REACHED") && !log.contains("passwd"), "{log}");
}

#[test]
#[ignore = "boots images for a quarter of a minute; make test-kernel"]
fn an_image_in_qemu_runs_the_same_twice() {
    let Some(image) = image() else { return };
    let script = "cat /proc/uptime /proc/interrupts; date; head -c 16 /dev/urandom | od -x\n\
                  nproc; ls /sys/block";
    let first = run(&image, script, Duration::from_secs(300)).expect("it runs");
    let log = String::from_utf8_lossy(&first["log"]).into_owned();
    assert!(log.contains("\n2\n"), "{log}");
    assert!(log.contains("Jan  1") && log.contains("2009"), "{log}");
    let second = run(&image, script, Duration::from_secs(300)).expect("it runs");
    assert_eq!(first, second);
}

#[test]
#[ignore = "boots images for a quarter of a minute; make test-kernel"]
fn an_image_that_dies_in_qemu_or_hangs_is_ended() {
    let Some(image) = image() else { return };
    let script = "echo 1 > /proc/sys/kernel/sysrq\necho c > /proc/sysrq-trigger";
    let error = run(&image, script, Duration::from_secs(300)).expect_err("it dies");
    assert!(
        error.contains("the kernel has died; its last words: "),
        "{error}"
    );
    let hangs = run(&image, "while :; do :; done", Duration::from_secs(2));
    let error = hangs.expect_err("it does not end");
    assert!(error.contains("has not ended within 2 s"), "{error}");
}
