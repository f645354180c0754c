// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of trace formats that are read: the row of each module, in the order in which
//! they are tried.

use crate::format::{Format, Opened, Others, Reader};
use crate::input::Input;
use crate::rows::{alibaba, disksim, fio, fiu, mqsim, msr, spc, tencent};
use crate::source::Source;
use crate::{FormatError, blkparse, blktrace, block_dump, braces, compact, ctf, driver};
use crate::{events_csv, events_parquet, foreign, ftrace, perfetto, qemu, snoop, tracedat, vscsi};

/// All formats: those that a few bytes tell first, of rows the most particular first.
pub static FORMATS: [&Format; 25] = [
    &blktrace::FORMAT,
    &compact::FORMAT,
    &tracedat::FORMAT,
    &ctf::FORMAT,
    &perfetto::FORMAT,
    &events_parquet::FORMAT,
    &blkparse::read::FORMAT,
    &ftrace::FORMAT,
    &events_csv::FORMAT,
    &snoop::FORMAT,
    &qemu::FORMAT,
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

/// What is looked at to tell JSON from lines of text.
const JSON_SAMPLE_BYTES: usize = 4096;

/// The format of an input; none if no row recognises it.
pub(crate) fn recognise(input: &mut Input<Source>) -> Result<Option<&'static Format>, FormatError> {
    input.skip_byte_order_mark()?;
    if foreign::chrome_json(input.fill(JSON_SAMPLE_BYTES)?).is_some() {
        return Ok(None);
    }
    for format in FORMATS {
        if (format.recognises)(input)? {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// Reads an input as one of this format.
pub(crate) fn open(format: &Format, input: Input<Source>) -> Opened {
    let reader = (format.open)(input, others_than(format))?;
    with_drivers(format, reader)
}

/// The same, with the commands of drivers as I/O where there is no other.
pub(crate) fn with_drivers(format: &Format, reader: Box<dyn Reader>) -> Opened {
    if driver::FORMATS.contains(&format.name) {
        return Ok(Box::new(driver::DriverReader::new(reader)?));
    }
    Ok(reader)
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
