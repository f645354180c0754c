// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stacks of tasks that queue bios: a trigger of the event has the kernel write them behind it
//! (Documentation/trace/events.rst, kernel/trace/trace_events_trigger.c).

use crate::instance::Instance;
use crate::{RecordError, Roots};
use blklab_formats::tracedat::StackAddresses;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

/// The event behind which a stack is written.
const TRIGGER: &str = "events/block/block_bio_queue/trigger";

/// Its stacks.
const FORMAT: &str = "events/ftrace/kernel_stack/format";

/// Has stacks recorded of the bios that `filter` lets through, of all if there is none.
///
/// # Errors
/// One line: what this kernel lacks, or hides.
pub(crate) fn start(
    roots: &Roots,
    instance: &Instance,
    page_bytes: u32,
    filter: Option<&str>,
) -> Result<StackAddresses, RecordError> {
    if !are_addresses_shown(roots) {
        return Err(RecordError::new(
            "stacks cannot be recorded: the kernel hides where its functions are (/proc/kallsyms), \
             so that they would have no names: sysctl kernel.kptr_restrict=1 shows them to root",
        ));
    }
    let format = std::fs::read_to_string(roots.tracefs.join(FORMAT));
    let format = format.ok().filter(|_| instance.file(TRIGGER).exists());
    let addresses = format.and_then(|text| StackAddresses::new(page_bytes, &text));
    let Some(addresses) = addresses else {
        return Err(RecordError::new(
            "stacks cannot be recorded: events of this kernel have no triggers (Linux before 3.14)",
        ));
    };
    let trigger = match filter {
        Some(filter) => format!("stacktrace if {filter}"),
        None => "stacktrace".to_owned(),
    };
    instance.set(TRIGGER, &trigger).map_err(|e| {
        RecordError::new(format!(
            "stacks cannot be recorded: this kernel keeps none, it needs CONFIG_STACKTRACE ({e})"
        ))
    })?;
    Ok(addresses)
}

/// The lines of `/proc/kallsyms` that name what was found.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn symbols(roots: &Roots, found: &StackAddresses) -> Result<String, RecordError> {
    let path = roots.proc.join("kallsyms");
    let text = File::open(&path).and_then(|file| found.symbols(BufReader::new(file)));
    text.map_err(|e| RecordError::at("read", &path, &e))
}

/// Whether `/proc/kallsyms` has addresses: where they are hidden, all are 0.
fn are_addresses_shown(roots: &Roots) -> bool {
    let Ok(file) = File::open(roots.proc.join("kallsyms")) else {
        return false;
    };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let mut first = lines.take(16);
    first.any(|line| {
        line.bytes()
            .take_while(u8::is_ascii_hexdigit)
            .any(|b| b != b'0')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("room");
        fs::write(path, text).expect("room");
    }

    #[test]
    fn what_a_kernel_lacks_is_said() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        let roots = Roots::at(root.join("tracefs"), root.join("sys"), root.join("proc"));
        fs::create_dir_all(roots.tracefs.join("instances")).expect("room");
        let instance = Instance::create(&roots.tracefs).expect("a folder");
        let tried = |filter| start(&roots, &instance, 4096, filter).map(drop);
        let refused = || tried(None).expect_err("it lacks something").to_string();
        let says = |what: &str| assert!(refused().contains(what), "{}", refused());
        write(root, "proc/kallsyms", "0000000000000000 T _text\n");
        says("sysctl kernel.kptr_restrict=1");
        write(root, "proc/kallsyms", "ffffffff81000000 T _text\n");
        says("no triggers");
        let trigger = instance.file(TRIGGER);
        let name = trigger
            .strip_prefix(root)
            .expect("below")
            .to_str()
            .expect("text");
        write(root, name, "");
        says("no triggers");
        let format = "name: kernel_stack\nID: 4\nfield:int size;\toffset:8;\tsize:4;\n\
                      field:unsigned long caller[8];\toffset:16;\tsize:64;\n";
        write(root, &format!("tracefs/{FORMAT}"), format);
        tried(None).expect("it has all");
        assert_eq!(fs::read_to_string(&trigger).expect("text"), "stacktrace");
        tried(Some("dev == 8")).expect("it has all");
        assert!(
            fs::read_to_string(&trigger)
                .expect("text")
                .ends_with("if dev == 8")
        );
        // The kernel refuses what it was not built for.
        fs::remove_file(&trigger).expect("it is there");
        fs::create_dir(&trigger).expect("room");
        says("CONFIG_STACKTRACE");
    }
}
