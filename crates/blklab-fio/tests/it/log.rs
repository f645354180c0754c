// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's own log of a job, line by line but for the times.

use blklab_fio::iolog::IologWriter;
use blklab_fio::parse::{Fixed, ParseOptions, parse};
use blklab_fio::range::{FileState, find_ranges};
use blklab_fio::run::Step;
use blklab_fio::workload::Listing;

#[test]
fn log_of_a_job_with_syncs_and_two_passes() {
    let text =
        "[a]\nioengine=null\nrw=randwrite\nfsync=2\nsize=32k\nnrfiles=2\nend_fsync=1\nloops=2\n";
    let mut file =
        parse("a.fio", text, &ParseOptions::default(), &Fixed::default()).expect("accepted");
    let job = file.jobs.remove(0);
    let ranges = find_ranges(&job, |_| FileState::Missing).expect("set up");
    let names = job.files.clone();
    let name = |file: u32| names[file as usize].as_str();
    let mut log =
        IologWriter::new(Vec::new(), 0, names.iter().map(String::as_str)).expect("memory");
    let mut listing = Listing::new(job, &ranges).expect("started");
    while let Some(step) = listing.next_step() {
        let written = match step {
            Step::Open { file } => log.open(0, name(file)),
            Step::Close { file, .. } => log.close(0, name(file)),
            Step::Issue(io) => log.io(0, name(io.file), &io),
            _ => Ok(()),
        };
        written.expect("memory");
    }
    let written = String::from_utf8(log.into_inner()).expect("text");
    let expected = "\
fio version 3 iolog
a.0.0 add
a.0.1 add
a.0.0 open
a.0.0 write 0 4096
a.0.1 open
a.0.1 write 8192 4096
a.0.0 sync 8192 0
a.0.1 write 12288 4096
a.0.0 write 4096 4096
a.0.1 sync 4096 0
a.0.0 write 8192 4096
a.0.1 write 0 4096
a.0.0 sync 0 0
a.0.1 write 4096 4096
a.0.0 write 12288 4096
a.0.1 sync 12288 0
a.0.0 close
a.0.1 close
a.0.0 open
a.0.0 sync 12288 0
a.0.1 open
a.0.1 write 0 4096
a.0.0 write 8192 4096
a.0.1 sync 8192 0
a.0.0 write 12288 4096
a.0.1 write 4096 4096
a.0.0 sync 4096 0
a.0.1 write 8192 4096
a.0.0 write 0 4096
a.0.1 sync 0 0
a.0.0 write 4096 4096
a.0.1 write 12288 4096
a.0.0 sync 12288 0
a.0.1 sync 12288 0
a.0.0 close
a.0.1 close
";
    let timeless: String = written
        .lines()
        .map(|line| line.strip_prefix("0 ").unwrap_or(line).to_owned() + "\n")
        .collect();
    assert_eq!(timeless, expected);
}
