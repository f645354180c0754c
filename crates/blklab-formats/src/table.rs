// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of trace formats that are read: the row of each module, in the order in which
//! they are tried.

use crate::format::{Format, Opened, Others};
use crate::input::Input;
use crate::rows::{alibaba, disksim, fio, fiu, mqsim, msr, spc, tencent};
use crate::source::Source;
use crate::{FormatError, blkparse, blktrace, block_dump, braces, compact, ctf, ftrace};
use crate::{snoop, tracedat, vscsi};

/// All formats: those that a few bytes tell first, of rows the most particular first.
pub static FORMATS: [&Format; 21] = [
    &blktrace::FORMAT,
    &compact::FORMAT,
    &tracedat::FORMAT,
    &ctf::FORMAT,
    &blkparse::read::FORMAT,
    &ftrace::FORMAT,
    &snoop::FORMAT,
    &braces::FORMAT,
    &blkparse::columns::FORMAT,
    &block_dump::FORMAT,
    &fio::IOLOG_FORMAT,
    &msr::FORMAT,
    &alibaba::FORMAT,
    &spc::FORMAT,
    &fio::LAT_LOG_FORMAT,
    &tencent::FORMAT,
    &fiu::FORMAT,
    &disksim::DISKSIM_VALIDATE_FORMAT,
    &disksim::DISKSIM_FORMAT,
    &mqsim::FORMAT,
    &vscsi::FORMAT,
];

/// The format of an input; none if no row recognises it.
pub(crate) fn recognise(input: &mut Input<Source>) -> Result<Option<&'static Format>, FormatError> {
    input.skip_byte_order_mark()?;
    for format in FORMATS {
        if (format.recognises)(input)? {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// Reads an input as one of this format.
pub(crate) fn open(format: &Format, input: Input<Source>) -> Opened {
    (format.open)(input, others_than(format))
}

/// Mails have lines of several programs side by side: the dialects that may stand
/// beside that of a row.
fn others_than(format: &Format) -> Others {
    if format.dialect.is_none() {
        return Others::new();
    }
    let others = FORMATS.iter().filter(|other| other.name != format.name);
    others
        .filter_map(|other| other.dialect)
        .map(|make| make())
        .collect()
}
