// SPDX-License-Identifier: MIT OR Apache-2.0
//! What texts without I/Os show of block I/O, and what they cannot show: tables of sums (`iostat`,
//! `/proc/diskstats`, `io.stat` and `io.pressure` of control groups, histograms of bcc, bpftrace and
//! others, btt, `zpool iostat`, reports of huatuo's iotracing, percentiles of Rezolus), the output
//! of fio, times of calls (ext4slower, strace, ioping), and kernels' logs of tasks that hang and devices that do not answer.
//!
//! None of them has a single I/O, so that nothing here is a cause: [`reading()`] says what
//! follows from the sums (how many were under way by Little's law, what a device takes at
//! least, which latencies are of two kinds) and what a recording would show beside it.
//!
//! ```
//! # use blklab_sums::{reading, Sums, SumsKind};
//! let text = "Device  r/s  r_await  w/s  w_await  aqu-sz  %util\n\
//!             sda     4.0  98.0     210  148.0    31.5    100.0\n";
//! let sums = Sums { kind: SumsKind::Iostat, text: text.to_owned(), is_cut: false };
//! let reading = reading(&sums).unwrap();
//! let at_a_time = reading.subjects[0].figures["under_way"];
//! assert!((at_a_time - (4.0 * 0.098 + 210.0 * 0.148)).abs() < 0.01);
//! ```

mod btt;
mod calls;
mod diskstats;
mod fio;
mod flow;
mod histogram;
mod huatuo;
mod io_stat;
mod iostat;
mod iostat_json;
mod iostat_text;
mod kernel_log;
mod load;
mod number;
mod pressure;
mod processes;
mod reading;
mod rezolus;
mod table;
mod zpool;

pub use blklab_formats::{Sums, SumsKind};
pub use reading::{Form, Reading, Shown, Subject};

use blklab_types::Error;

/// What the sums show.
///
/// # Errors
/// If they are cut or written so that no figure can be read.
pub fn reading(sums: &Sums) -> Result<Reading, Error> {
    let text = sums.text.as_str();
    let mut reading = match sums.kind {
        SumsKind::Iostat => iostat::read(text),
        SumsKind::Diskstats => diskstats::read(text),
        SumsKind::IoStat => io_stat::read(text),
        SumsKind::Pressure => pressure::read(text),
        SumsKind::Histogram => histogram::read(text),
        SumsKind::Huatuo => huatuo::read(text),
        SumsKind::Rezolus => rezolus::read(text),
        SumsKind::Btt => btt::read(text),
        SumsKind::Fio => fio::read(text),
        SumsKind::Zpool => zpool::read(text),
        SumsKind::Calls => calls::read(text),
        SumsKind::Processes => processes::read(text),
        SumsKind::KernelLog => kernel_log::read(text),
    }?;
    if sums.is_cut {
        let mib = blklab_formats::SUMS_BYTES_MAX >> 20;
        reading
            .notes
            .push(format!("only the first {mib} MiB were read"));
    }
    Ok(reading)
}
