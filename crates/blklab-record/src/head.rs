// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace says before its pages: the layouts of pages and events, and the machine.

use crate::groups::Group;
use crate::instance::Instance;
use crate::{RecordError, Roots};
use blklab_formats::tracedat::TraceDatHead;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Reads a file in large steps: some of tracefs end after the first read, however short
/// that is (`show_header`, kernel/trace/trace_events.c).
pub(crate) fn read_large(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut text, mut buf) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buf)? {
            0 => return Ok(text),
            n => text.extend_from_slice(&buf[..n]),
        }
    }
}

/// What the file says before its pages.
pub(crate) fn head(
    roots: &Roots,
    instance: &Instance,
    enabled: &[(&Group, Vec<String>)],
) -> Result<TraceDatHead, RecordError> {
    let events = roots.tracefs.join("events");
    let read = |path: PathBuf| read_large(&path).map_err(|e| RecordError::at("read", &path, &e));
    let header_page = read(events.join("header_page"))?;
    let Some(page_bytes) = page_bytes(&String::from_utf8_lossy(&header_page)) else {
        let path = events.join("header_page");
        return Err(RecordError::new(format!(
            "{}: no field data with offset and size",
            path.display()
        )));
    };
    let mut formats = Vec::new();
    for (group, names) in enabled {
        let folder = events.join(group.name);
        let texts = names
            .iter()
            .map(|name| read(folder.join(name).join("format")));
        formats.push((group.name.to_owned(), texts.collect::<Result<_, _>>()?));
    }
    let mut ftrace_formats = Vec::new();
    if let Ok(entries) = fs::read_dir(events.join("ftrace")) {
        let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        paths.sort_unstable();
        let texts = paths
            .iter()
            .filter_map(|path| fs::read(path.join("format")).ok());
        ftrace_formats.extend(texts);
    }
    let uname = rustix::system::uname();
    let words = [
        uname.sysname(),
        uname.nodename(),
        uname.release(),
        uname.version(),
        uname.machine(),
    ];
    Ok(TraceDatHead {
        page_bytes,
        header_page,
        header_event: read(events.join("header_event"))?,
        ftrace_formats,
        formats,
        clock: instance.read("trace_clock")?.trim().to_owned(),
        uname: words.map(|w| w.to_string_lossy().into_owned()).join(" "),
        ..TraceDatHead::default()
    })
}

/// Bytes of a page: where its data begin, and how long they are.
fn page_bytes(header_page: &str) -> Option<u32> {
    let line = header_page.lines().find(|line| line.contains(" data;"))?;
    let number = |name: &str| -> Option<u32> {
        let (_, rest) = line.split_once(name)?;
        rest.split(';').next()?.trim().parse().ok()
    };
    number("offset:")?.checked_add(number("size:")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_kernel() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        assert_eq!(page_bytes(text), Some(4096));
        assert_eq!(page_bytes("field: int overwrite; offset:8; size:1;"), None);
    }
}
