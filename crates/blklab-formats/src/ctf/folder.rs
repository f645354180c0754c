// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which folders and files a trace consists of.

use super::metadata::Metadata;
use super::parse::parse;
use crate::FormatError;
use crate::source::Source;
use crate::store::Order;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// What the metadata of all folders may have together, in bytes: those of a kernel with all
/// its events have about one million.
const METADATA_MAX: u64 = 64 << 20;
/// Folders in folders: `session/archives/chunk/kernel`, `ust/uid/1000/64-bit`.
const DEPTH_MAX: u32 = 6;
/// Begins a packet of a stream.
pub(super) const PACKET_MAGIC: u32 = 0xc1fc_1fc1;
/// Begins a packet of metadata.
const METADATA_MAGIC: u32 = 0x75d1_1d57;
/// Begins metadata in plain text.
const PLAIN: &[u8] = b"/* CTF 1";
/// What is in front of the text in a packet of metadata.
const METADATA_HEADER_BYTES: usize = 37;
/// Begins metadata of CTF 2, which is JSON behind a record separator.
const SECOND: &[u8] = b"\x1e";
/// Name of the file with metadata.
const METADATA: &str = "metadata";

/// Whether a folder is a trace of LTTng, or has one in it.
pub fn is_ctf_folder(path: &Path) -> bool {
    path.is_dir() && folders(path).is_ok_and(|found| !found.is_empty())
}

/// Whether a folder has the metadata of such a trace in itself: what is written there would
/// be taken for a part of it.
pub fn has_ctf_metadata(path: &Path) -> bool {
    has_metadata(path)
}

/// Whether a file begins like one of such a trace.
pub(crate) fn begins_like_ctf(head: &[u8]) -> bool {
    let numbers = head.first_chunk().map(|bytes| {
        let little = u32::from_le_bytes(*bytes);
        [little, little.swap_bytes()]
    });
    let is_packet = numbers.is_some_and(|orders| {
        let magics = [PACKET_MAGIC, METADATA_MAGIC];
        orders.iter().any(|number| magics.contains(number))
    });
    is_packet || head.starts_with(PLAIN)
}

/// The folder of a trace of which one file was named.
pub(crate) fn folder_of(file: &Path) -> Option<PathBuf> {
    let parent = match file.parent()? {
        here if here.as_os_str().is_empty() => Path::new("."),
        folder => folder,
    };
    has_metadata(parent).then(|| parent.to_owned())
}

/// The folders with metadata in and below one, in order.
pub(super) fn folders(path: &Path) -> Result<Vec<PathBuf>, FormatError> {
    let mut found = Vec::new();
    search(path, 0, &mut found)?;
    Ok(found)
}

/// Whether a folder has a file with metadata, and not another one of that name.
fn has_metadata(folder: &Path) -> bool {
    let path = folder.join(METADATA);
    if !path.is_file() {
        return false;
    }
    let Ok(source) = Source::open(&path) else {
        return false;
    };
    let mut head = Vec::new();
    let read = source.take(PLAIN.len() as u64).read_to_end(&mut head);
    read.is_ok() && (begins_like_ctf(&head) || head.starts_with(SECOND))
}

fn search(path: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<(), FormatError> {
    if has_metadata(path) {
        found.push(path.to_owned());
        return Ok(());
    }
    if depth == DEPTH_MAX {
        return Ok(());
    }
    for entry in entries(path)? {
        // Links may lead in circles.
        if entry.symlink_metadata().is_ok_and(|m| m.is_dir()) {
            search(&entry, depth + 1, found)?;
        }
    }
    Ok(())
}

/// What is in a folder, in order of the names.
fn entries(path: &Path) -> Result<Vec<PathBuf>, FormatError> {
    let at = |e| FormatError::at("read the folder", path, e);
    let entries = std::fs::read_dir(path).map_err(at)?;
    let mut all = Vec::new();
    for entry in entries {
        all.push(entry.map_err(at)?.path());
    }
    all.sort();
    Ok(all)
}

/// The files with packets in a folder.
pub(super) fn stream_files(folder: &Path) -> Result<Vec<PathBuf>, FormatError> {
    let mut files = entries(folder)?;
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name != METADATA && !name.starts_with('.') && path.is_file()
    });
    Ok(files)
}

/// Reads the metadata of a folder.
pub(super) fn metadata(folder: &Path) -> Result<Metadata, FormatError> {
    let path = folder.join(METADATA);
    let mut bytes = Vec::new();
    let source = Source::open(&path)?;
    let read = source.take(METADATA_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|e| FormatError::at("read", &path, e))?;
    described(&bytes, &path.to_string_lossy())
}

/// What metadata describe, plain or in packets.
pub(super) fn described(bytes: &[u8], name: &str) -> Result<Metadata, FormatError> {
    let fault = |line: u32, problem: String| FormatError::Metadata {
        input: name.to_owned(),
        line,
        problem,
    };
    if bytes.len() as u64 > METADATA_MAX {
        let what = format!("more than {} MiB", METADATA_MAX >> 20);
        return Err(fault(0, what));
    }
    if bytes.starts_with(SECOND) {
        return Err(FormatError::Version {
            input: name.to_owned(),
            format: "CTF",
            found: 2,
            supported: "1.8 (lttng create --trace-format=ctf-1.8)",
        });
    }
    let text = unpacked(bytes).map_err(|what| fault(0, what.to_owned()))?;
    let text = String::from_utf8_lossy(&text);
    parse(&text).map_err(|problem| fault(problem.line, problem.what))
}

/// The text of metadata.
fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    let little = Order { big_endian: false };
    let order = match little.u32(bytes) {
        Some(METADATA_MAGIC) => little,
        Some(magic) if magic.swap_bytes() == METADATA_MAGIC => Order { big_endian: true },
        _ => return Ok(bytes.to_vec()),
    };
    let (mut text, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        if order.u32(rest) != Some(METADATA_MAGIC) || rest.len() < METADATA_HEADER_BYTES {
            return Err("a packet does not begin as one");
        }
        let bytes_at = |at: usize| order.u32(&rest[at..]).map_or(0, |bits| bits as usize / 8);
        let (content, size) = (bytes_at(24), bytes_at(28));
        if rest[32..35] != [0, 0, 0] {
            return Err("compressed, encrypted or with checksums: such packets are not supported");
        }
        if content < METADATA_HEADER_BYTES || size < content || size > rest.len() {
            return Err("the sizes of a packet make no sense, or the file was cut");
        }
        text.extend_from_slice(&rest[METADATA_HEADER_BYTES..content]);
        rest = &rest[size..];
    }
    Ok(text)
}
