// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios as fio job files.

use super::Scenario;
use std::fmt::Write as _;

/// Start of a reader of the experiment of January 2009, in seconds.
fn reader_start_s(reader: u64) -> u64 {
    /// Of readers 35 to 41, after those that start every 4 s.
    const LATE: [u64; 7] = [134, 138, 142, 146, 150, 200, 260];
    match usize::try_from(reader).ok().and_then(|r| r.checked_sub(34)) {
        None => 4 * reader,
        Some(i) => match LATE.get(i) {
            Some(start) => *start,
            None => 264 + 4 * (i - LATE.len()) as u64,
        },
    }
}

impl Scenario {
    /// The scenario as a fio job file. Jobs that a program of its own stands
    /// for ([`Scenario::programs`]) move no data there: engine null.
    pub fn job_text(&self) -> String {
        match self.spec().name {
            "dd" => self.dd("dd"),
            "dd+ls" => self.dd_and_readers(&format!("bs=4k\nsize={}", 4096 * self.number("reads"))),
            "dd+ssh" => {
                let readers = format!("bsrange=4k-44k\nsize={}", self.number("read_size"));
                self.dd_and_readers(&readers)
            }
            "dd+cat" => self.dd_and_cat(),
            "pvfs-bench" => self.pvfs_bench(),
            "aio-batch" => self.aio_batch(),
            _ => self.program_alone(),
        }
    }

    /// The scenario as a fio job file where nothing but fio runs: that of
    /// [`Scenario::job_text`], in which a program is a fio job that does the same.
    ///
    /// # Errors
    /// Why no fio job does.
    pub fn job_text_without_programs(&self) -> Result<String, &'static str> {
        match self.spec().name {
            "dd+cat" => Err("cat reads files of sizes that no fio job draws, and their inodes"),
            "compilebench" => Err("it makes and removes folders, which no fio job does"),
            "pvfs-bench" if self.word("mode") != "pwrite" => Err(
                "it hands lists of asynchronous writes to its own threads, which no engine of \
                 fio does; mode=pwrite can be had",
            ),
            "pvfs-bench" if self.number("regions") != 1 => {
                Err("a fio job has one region in an operation; regions=1 can be had")
            }
            "pvfs-bench" => Ok(format!(
                "[pvfs-bench]\nrw=write\nbs={}\nsize={}\nioengine=psync\nfadvise_hint=0\n\
                 invalidate=0\n",
                self.number("bs"),
                self.number("bs").saturating_mul(self.number("ops"))
            )),
            _ => Ok(self.job_text()),
        }
    }

    /// A writer without advice or dropped caches.
    fn dd(&self, section: &str) -> String {
        let has_bs = self.has("bs");
        format!(
            "[{section}]\nioengine=sync\nrw=write\nbs={}\nsize={}\ndirect={}\nfadvise_hint=0\n\
             invalidate=0\n",
            if has_bs { self.number("bs") } else { 1 << 20 },
            self.number("size"),
            if has_bs { self.number("direct") } else { 0 },
        )
    }

    fn dd_and_readers(&self, what: &str) -> String {
        let mut text = format!(
            "[job1]\nrw=write\nbs=1m\nsize={}\n\n[global]\nrw=randread\nfilesize={}\n{what}\n",
            self.number("size"),
            if self.has("file_size") {
                self.number("file_size")
            } else {
                30 << 20
            },
        );
        for reader in 0..self.number("readers") {
            let start = reader_start_s(reader);
            let _ = write!(text, "\n[file{}]\nstartdelay={start}\n", reader + 1);
        }
        text
    }

    fn dd_and_cat(&self) -> String {
        let mut text = String::new();
        for writer in 0..self.number("writers") {
            let name = match writer {
                0 => "dd".to_owned(),
                n => format!("dd{}", n + 1),
            };
            text += &self.dd(&name);
            text.push('\n');
        }
        let _ = write!(
            text,
            "[cat]\nnew_group\nioengine=null\nrw=read\nbs={}\nsize=1g\nstartdelay={}\n",
            self.number("read_bs"),
            self.number("start")
        );
        text
    }

    fn pvfs_bench(&self) -> String {
        let bs = self.number("bs");
        let size = bs.saturating_mul(self.number("ops"));
        let depth = match self.word("mode") {
            "pwrite" => 1,
            _ => self.number("depth"),
        };
        format!("[pvfs-bench]\nrw=write\nbs={bs}\nsize={size}\nioengine=null\niodepth={depth}\n")
    }

    fn aio_batch(&self) -> String {
        let batch = self.number("batch");
        let (submit, wait) = match self.word("refill") {
            "one" => (1, 1),
            _ => (batch, batch),
        };
        let mut text = format!(
            "[global]\nioengine=libaio\ndirect=1\nrw=randread\nbs={}\nsize={}\nfilename=/dev/sda\n\
             iodepth={batch}\niodepth_batch={submit}\niodepth_batch_complete_min={wait}\n\
             iodepth_batch_complete_max={batch}\nruntime={}\ntime_based\nnorandommap\n\
             invalidate=0\n",
            self.number("bs"),
            self.number("size"),
            self.number("runtime"),
        );
        for task in 0..self.number("tasks") {
            let offset = task * self.number("size");
            let _ = write!(text, "\n[task{}]\noffset={offset}\n", task + 1);
        }
        text
    }

    fn program_alone(&self) -> String {
        let name = self.spec().name;
        format!("[{name}]\nioengine=null\nrw=write\nbs=4k\nsize=1g\n")
    }
}
