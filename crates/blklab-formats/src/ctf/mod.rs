// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binary traces of LTTng: the Common Trace Format, version 1.8.
//!
//! A trace is a folder: `metadata`, a text in the language TSDL (often cut into packets) that
//! describes all that is in the other files, and a file of packets for each CPU. Nothing is
//! known beforehand but the language: how a packet begins, where an event has its time and
//! its number, and which fields it has is what the metadata say.
//!
//! | file | what |
//! |---|---|
//! | `tokens`, `parse` | the language |
//! | `types`, `metadata` | what it describes |
//! | `decode` | values out of bits |
//! | `channel` | the packets of one file, one event after the other |
//! | `folder` | which files belong to a trace |
//! | `read` | all channels in order of time |
//!
//! Source: the text of CTF 1.8.3 (<https://diamon.org/ctf/>); fields of events as in
//! lttng-modules.

mod channel;
mod decode;
mod folder;
mod metadata;
mod parse;
mod read;
mod tokens;
mod types;

pub use folder::{has_ctf_metadata, is_ctf_folder};
pub use read::CtfReader;

pub(crate) use folder::folder_of;

use crate::format::{Format, MAGIC_BYTES, Reader};
use crate::{FormatError, ReadCounts};
use blklab_trace::TraceHeader;
use folder::begins_like_ctf;

/// Its row. Whoever named a file of a folder was given the folder.
pub(crate) static FORMAT: Format = Format {
    name: "ctf",
    summary: "a folder of LTTng, CTF 1.8: metadata and a file for each CPU; read",
    has_printed_times: false,
    says_losses: true,
    says_flags: true,
    dialect: None,
    recognises: |input| Ok(begins_like_ctf(input.fill(MAGIC_BYTES)?)),
    open: |input, _| Err(FormatError::Folder { input: input.name }),
};

impl Reader for CtfReader {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        Some(self.header()).filter(|h| !h.kernel.is_empty())
    }
}
