// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line.

mod recommend;

pub(crate) use recommend::RecommendArgs;

use crate::trigger::Trigger;
use blklab::analysis::breakdown::By;
use blklab::analysis::names::Who;
use blklab::trace_file::{Columns, Rows};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// A laboratory for Linux block-I/O latency.
#[derive(Debug, Parser)]
#[command(
    name = "blklab",
    bin_name = "blklab",
    version,
    after_help = MAIN_EXAMPLES,
    max_term_width = 80,
    term_width = 80,
    color = clap::ColorChoice::Never,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const MAIN_EXAMPLES: &str = "\
An experiment is a workload (a fio job file, or explicit processes) on a block
stack (a kernel with its scheduler and tunables) on a device. It runs in
virtual time, so minutes take seconds, and the same run gives the same bits.

Examples:
  blklab run job.fio                          a fio job on a SATA disk
  blklab run job.fio --sched mq-deadline,bfq --set queue_depth=1,31
                                              four experiments in one table
  blklab workload job.fio --limit 20          what the job issues
  blklab list devices                         the devices to choose from

Exit status: 0 success, 1 a comparison failed or a job ended with an error, 2
bad input or another failure, 130 Ctrl-C, 143 SIGTERM.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run experiments: fio job files (any name) or experiment files (.toml, .json)
    Run(Box<RunArgs>),
    /// List what a job file issues, I/O by I/O, without running it
    Workload(WorkloadArgs),
    /// Compare the model with event logs measured on real kernels
    Conform(ConformArgs),
    /// Run published experiments again and compare the numbers
    Reproduce(ReproduceArgs),
    /// Show what can be chosen
    List(ListArgs),
    /// Read a trace: print it as blkparse does, or its statistics as btt does
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Record the block I/O of this machine, with the settings of its queues
    Record(RecordArgs),
    /// Say why I/O in a trace was slow: who waited, for what, and what to change
    Why(WhyArgs),
    /// Say what to set so that a job waits less, what others pay for it, and what to paste
    Recommend(Box<RecommendArgs>),
    /// Show runs and traces as one page: who waited, how long, why, down to single requests
    Report(ReportArgs),
    /// Compare runs and traces: what changed, by how much, how sure that is
    Compare(CompareArgs),
    /// Fit a device to measurements (of fio, or a trace): a file for --device
    FitDevice(FitDeviceArgs),
    /// Build, fetch, list and remove real kernels that run in virtual time
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Run thousands of experiments and keep their numbers (package for Python)
    Sweep(ProgramArgs),
    /// Look for the best settings of several aims (package for Python)
    Tune(ProgramArgs),
    /// Read thousands of traces and say which hosts and devices stand out (package for Python)
    Fleet(ProgramArgs),
    /// Show or write the example files that the command carries
    Example(ExampleArgs),
    /// Answer assistants: a server of the Model Context Protocol on standard input and output
    Mcp(McpArgs),
    /// Write a crate of your own with the source of a scheduler, to change it and compare the two
    NewScheduler(NewSchedulerArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write manual pages
    #[command(hide = true)]
    Man(ManArgs),
}

const RUN_EXAMPLES: &str = "\
Lists and repeated options make a matrix: every combination is an experiment,
all run side by side on all cores, and one table shows them. Options override
what a file says.

One experiment has a table for each direction, with a row for each name of a
job. Several have a table for each direction and name, with a row for each
experiment. Where there are many names, those that differ only in their numbers
share a row: file1…file41. The columns:
runt-min and runt-max, the shortest and longest run time of a job; clat50,
clat99 and max, median, 99th percentile and maximum of the completion latency
over all jobs; bandwidth and IOPS, over the time in which at least one of the
jobs ran (fio divides by the longest run time). Then, for the disk: requests it
got; merged, the share of bios that joined a request; Q2D and D2C, mean time of
a bio in the kernel and at the device; %util; and the mean number of bios in
flight.

Ctrl-C or SIGTERM ends the runs and shows the results so far; a second one quits
at once.

Examples:
  blklab run job.fio --kernel 2.6.28 --sched noop,deadline
  blklab run job.fio --device sata-7200-2008 --device sas-15k
  blklab run job.fio --device sata-7200-2008,rpm=5400 --set fifo_batch=1,16
  blklab run job.fio --kernel 2.6.28 --md none,raid1:2
  blklab run job.fio --repeat 5 --seed 1      medians, lowest and highest
  blklab run job.fio --output-format json+ --output result.json
  blklab run job.fio --repeat 5 --output-format csv --output result.csv
  blklab run job.fio --trace run              run.blktrace.0, for blkparse
  blklab run job.fio --out results            a run directory
  blklab run results                          the same run again
  blklab run dd+cat --set size=2g             a built-in scenario
  blklab run --trace-in run.blktrace.0 --sched bfq,none --loop closed

A run directory holds experiment.toml (every default spelled out), job.fio,
result.json (fio's json+ with a blklab object) and events.blk (the trace). Of
several experiments each has its own below DIR.

An experiment file is TOML, or JSON with the same keys. All are optional but
the workload: job (text of a fio job file), job_file, scenario (a table with
its name and parameters), processes, or replay (a table with a trace).

  title = \"small batches for a reader beside a writer\"
  kernel = \"2.6.28\"
  scheduler = \"deadline\"
  job_file = \"job.fio\"
  [tunables]
  fifo_batch = 4
  [queue]
  nr_requests = 128
  [device]
  name = \"sata-7200-2008\"
  rpm = 5400
  queue_depth = 4
  [vm]
  memory = \"2g\"";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// fio job files, experiment files, run directories, or built-in scenarios
    /// (blklab list scenarios); - is a job file on standard input
    #[arg(required_unless_present = "trace_in", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Run the bios of a trace again, process by process, in place of a FILE: any trace
    /// that is read (docs/traces.md), or a run directory, whose stack is the default then
    #[arg(long, value_name = "TRACE", conflicts_with = "files")]
    pub(crate) trace_in: Option<PathBuf>,
    /// With --trace-in: open, at the recorded times; closed, when what their
    /// processes waited for has ended, and after their pauses [default: open]
    #[arg(long = "loop", value_name = "open|closed", requires = "trace_in")]
    pub(crate) timing: Option<String>,
    /// With --trace-in: the device whose bios are run, where there are several
    #[arg(long, value_name = "MAJOR,MINOR", requires = "trace_in")]
    pub(crate) trace_dev: Option<String>,
    /// With --trace-in: as-recorded; shift, all down as far as they can go; wrap,
    /// round and round on a smaller device [default: as-recorded]
    #[arg(long, value_name = "HOW", requires = "trace_in")]
    pub(crate) sectors: Option<String>,
    /// Kernel: a release, 2.6.16 to 7.3, what uname -r prints, or a distribution (rhel8, debian-12;
    /// blklab list kernels) [default: the file's, else 7.3]
    #[arg(long, value_name = "V")]
    pub(crate) kernel: Vec<String>,
    /// With several kernels: say which of the kernel's changes make the difference, by leaving
    /// each out of the models of the later one
    #[arg(long, requires = "kernel")]
    pub(crate) changes: bool,
    /// What runs it: see blklab list targets [default: the file's, else sim]
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Vec<String>,
    /// With --target kernel: a folder with a kernel's tree, which is built and run in place
    /// of a release; several make a matrix
    #[arg(long, value_name = "DIR", conflicts_with = "kernel")]
    pub(crate) kernel_source: Vec<String>,
    /// I/O scheduler [default: the file's, else the kernel's]
    #[arg(long, value_name = "NAME")]
    pub(crate) sched: Vec<String>,
    /// Device and its parameters, or a file FILE.toml with a device table
    /// [default: the file's, else sata-7200-2008]
    #[arg(long, value_name = "NAME[,K=V…]")]
    pub(crate) device: Vec<String>,
    /// md array of such devices with 2 to 16 members: raid1:2, raid0:4,chunk_kb=64,
    /// or none (several make a matrix). The target kernel has linear, raid4, raid5,
    /// raid6 and raid10, too, and the keys layout and bitmap
    #[arg(long, value_name = "LEVEL:N[,K=V…]")]
    pub(crate) md: Vec<String>,
    /// Device mapper on the device or the array, of the target kernel: see blklab list
    /// dm; KIND+KIND: one on the other (several with commas make a matrix)
    #[arg(long, value_name = "KIND[,K=V…]")]
    pub(crate) dm: Vec<String>,
    /// What the experiments of a matrix are judged by, as blklab recommend takes it: 'sync
    /// p99.9 of wal' [default: the p99.9 of the job that is worst off, of its syncs where
    /// jobs sync]
    #[arg(long = "for", value_name = "FIGURE")]
    pub(crate) figure: Option<String>,
    /// A setting: see blklab list tunables; several values make a matrix
    #[arg(long, value_name = "KEY=V1,V2…")]
    pub(crate) set: Vec<String>,
    /// Memory of the machine, e.g. 2g [default: the file's, else 8g]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Processor time of one I/O in fio and its system call, in ns; several
    /// make a matrix [default: the file's, else 1000]
    #[arg(long, value_name = "NS")]
    pub(crate) cpu_cost: Vec<String>,
    /// Release of fio that job files follow, 1.24 or 3.33 [default: the
    /// file's, else 3.33]
    #[arg(long, value_name = "V")]
    pub(crate) fio: Vec<String>,
    /// Filesystem that holds the files, with options: see blklab list filesystems
    /// [default: the file's, else extents]
    #[arg(long, value_name = "NAME[,K=V…]")]
    pub(crate) fs: Vec<String>,
    /// Switch a historical patch on (A+B: both; A,none: with and without):
    /// see blklab list patches
    #[arg(long, value_name = "NAME[,NAME…]")]
    pub(crate) patch: Vec<String>,
    /// Run each experiment N times with different seeds; auto: until the 95 %
    /// interval of METRIC (clat_p99_ns) is within ±WIDTH % (5) of its mean, or
    /// MAX (30) times
    #[arg(
        long,
        value_name = "N|auto[:METRIC[:WIDTH[:MAX]]]",
        default_value = "1"
    )]
    pub(crate) repeat: String,
    /// Repetitions draw the same random offsets, as fio does without randrepeat=0; without
    /// this they draw others where the job file says nothing of randrepeat
    #[arg(long)]
    pub(crate) repeat_exact: bool,
    /// Seed of the first repetition [default: the file's, else 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Experiments that run side by side [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Only these sections of job files
    #[arg(long, value_name = "NAME")]
    pub(crate) section: Vec<String>,
    /// Write a run directory for each experiment
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Let job files write logs outside of --out and the working folder
    #[arg(long)]
    pub(crate) allow_paths: bool,
    /// Write the trace: NAME.txt as blkparse prints it, NAME.blk in blklab's
    /// compact form, NAME.csv or NAME.parquet as a table, NAME.pftrace for
    /// Perfetto, NAME.iolog for fio, anything else as blktrace's binary
    /// NAME.blktrace.0
    #[arg(long, value_name = "NAME")]
    pub(crate) trace: Option<PathBuf>,
    /// What the rows of such a table are [default: events]
    #[arg(long, value_name = "ROWS", value_enum, requires = "trace")]
    pub(crate) trace_rows: Option<TableRows>,
    /// table; csv, one table for programs; or fio's own: normal, json, json+,
    /// terse (several with commas)
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output_format: String,
    /// Version of the terse format (2 to 5)
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) terse_version: u32,
    /// Write the result here instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Run every experiment twice and compare the digests
    #[arg(long)]
    pub(crate) verify_digest: bool,
}

const WORKLOAD_EXAMPLES: &str = "\
One line per I/O that a job issues, in its order: the number of the job's
thread, read, write or another operation, offset and length in bytes, file.
Jobs that end after a time (time_based) do not end here: use --limit.

What a job issues depends on the machine where it names disks (/dev/sda),
percentages of them, or $mb_memory and $ncpus: the options for the machine are
those of run, with the same defaults.

Examples:
  blklab workload job.fio --limit 20
  blklab workload job.fio --device sas-15k --memory 2g
  blklab workload job.fio --output-format csv";

#[derive(Debug, Args)]
#[command(after_help = WORKLOAD_EXAMPLES)]
pub(crate) struct WorkloadArgs {
    /// The job file; - is standard input
    #[arg(value_name = "JOB")]
    pub(crate) file: PathBuf,
    /// At most N lines of each job
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Only these sections
    #[arg(long, value_name = "NAME")]
    pub(crate) section: Vec<String>,
    /// Kernel: a release, 2.6.16 to 7.3, what uname -r prints, or a distribution (rhel8, debian-12;
    /// blklab list kernels) [default: the file's, else 7.3]
    #[arg(long, value_name = "V")]
    pub(crate) kernel: Option<String>,
    /// Device and its parameters, or a file FILE.toml with a device table
    /// [default: the file's, else sata-7200-2008]
    #[arg(long, value_name = "NAME[,K=V…]")]
    pub(crate) device: Option<String>,
    /// md array of such devices, as in run
    #[arg(long, value_name = "LEVEL:N[,K=V…]")]
    pub(crate) md: Option<String>,
    /// A setting: see blklab list tunables
    #[arg(long, value_name = "KEY=V")]
    pub(crate) set: Vec<String>,
    /// Memory of the machine, e.g. 2g [default: the file's, else 8g]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Seed, for jobs with randrepeat=0 [default: the file's, else 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Release of fio that it follows, 1.24 or 3.33 [default: the file's,
    /// else 3.33]
    #[arg(long, value_name = "V")]
    pub(crate) fio: Option<String>,
    /// How to show it
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = WorkloadFormat::Table)]
    pub(crate) output_format: WorkloadFormat,
}

/// Formats of `blklab workload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadFormat {
    /// Columns for people
    Table,
    /// job,op,offset,length,file
    Csv,
}

const CONFORM_NOTES: &str = "\
A case is an experiment file with explicit processes; RESULTS/ID.csv.gz (or
.csv) is the log that the real kernel's scheduler left of it. A case is
identical if every queue, merge, allocate, insert, dispatch and complete line
has the same time, process and place. 'in order' is the share of dispatches
before the first that differs; 'plugs' compares plug, unplug and timer lines,
'messages' what the scheduler said, where the kernel recorded it.

A disk is a .diskspecs file of DiskSim with a .trace of measured requests beside
it. 'rms' is the root mean square of the horizontal distance between the
measured and the simulated distribution of response times; the means are of all
response times.

A fio job is a case if results/ID.json beside its folder holds what fio reported.
'order' compares the order of dispatches with traces/ID.blktrace.0.zst (or the
beginning of the run, ID.txt as blkparse prints it), whose bios and completions
drive block layer and scheduler; 'first' is the share before the first
difference, 'common' that of the longest common subsequence. Then the job runs:
'outside' counts its figures (bandwidth, IOPS, clat p50, p95, p99, max) that are
more than 25 % off and outside the case's own band (variation.csv,
stability.csv); 'error' is the median distance of their ratios from 1, 'bandw'
the bandwidth of all jobs over the measured one.

With --causes, causes are planted in random experiments: class, kernel, scheduler,
device, sizes and severity are drawn from the seed. The same experiment without
the cause proves that it is one. blklab why gets the trace in four forms (all
events, D and C alone, lines of biosnoop, 40 lines of blkparse) and the settings
of the machine. A table by class shows how often the cause is named with who
suffers and who causes it, or, where a form does not show it, how often it is said
what is missing ('full' to '40 l.'); of all events, how many findings are 'right',
and how often who suffers, who causes it, and a remedy are named. A table by form
shows how many are 'named', named 'first', 'told' (what is missing is said),
'blamed' on something else, 'silent', or called 'fine'.

Exit status 1 if a case differs, 2 if none could run.

Examples:
  blklab conform testdata/legacy/cases
  blklab conform --causes
  blklab conform --causes --class idling,flush --count 20 --keep wrong
  blklab conform --causes --case idling-0     one of its scenarios
  blklab conform testdata/legacy/cases --output-format json
  blklab conform testdata/device/disksim
  blklab conform testdata/fio-6.1/cases";

#[derive(Debug, Args)]
#[command(after_help = CONFORM_NOTES, group = clap::ArgGroup::new("random").args(["causes", "against"]))]
pub(crate) struct ConformArgs {
    /// Cases (a fio job is one if results/ID.json lies beside its folder), disks
    /// (.diskspecs), folders of them or with a folder cases/, or folders of
    /// measured machines (results.csv, jobs/, results/). With --against: experiments
    /// to compare in place of random ones
    #[arg(required_unless_present_any = ["causes", "against"], value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Examine what blklab why says of random scenarios in which a cause is planted, or two,
    /// or none
    #[arg(long, conflicts_with_all = ["paths", "seeds", "cpu_cost", "results"])]
    pub(crate) causes: bool,
    /// Run experiments on the models and on this target, and compare orders and figures:
    /// random ones, or those of the paths
    #[arg(long, value_name = "TARGET", value_enum, conflicts_with_all = ["causes", "seeds", "cpu_cost", "results"])]
    pub(crate) against: Option<Against>,
    /// Of measured fio jobs and planted causes: what runs them, sim or kernel; what it does
    /// not take is not run, and named [default: sim]
    #[arg(long, value_name = "NAME", value_enum, conflicts_with_all = ["against", "cpu_cost"])]
    pub(crate) target: Option<CaseTarget>,
    /// Of random experiments: so many for each kernel [default: 50]; of planted causes: so
    /// many scenarios [default: 300]
    #[arg(long, value_name = "N", requires = "random", conflicts_with = "paths", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) count: Option<u64>,
    /// Of planted causes: these classes alone
    #[arg(
        long = "class",
        value_name = "NAME",
        requires = "causes",
        value_delimiter = ','
    )]
    pub(crate) classes: Vec<String>,
    /// Of random experiments: kernels that were built [default: 6.12]; of planted causes: the
    /// one kernel that they are drawn on [default: all that rules of findings were made with;
    /// on the target kernel 7.3]
    #[arg(
        long,
        value_name = "V",
        requires = "random",
        conflicts_with = "paths",
        value_delimiter = ','
    )]
    pub(crate) kernel: Vec<String>,
    /// Of random experiments: schedulers [default: none,mq-deadline,kyber,bfq]
    #[arg(
        long,
        visible_alias = "sched",
        value_name = "NAME",
        requires = "against",
        conflicts_with = "paths",
        value_delimiter = ','
    )]
    pub(crate) scheduler: Vec<String>,
    /// With --against and --causes: experiments side by side [default: the number of cores]
    #[arg(long, value_name = "N", requires = "random", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    /// With --against: begin none after so many seconds
    #[arg(long, value_name = "S", requires = "against", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) time_limit: Option<u64>,
    /// With --against: make each experiment that differs smaller as long as it differs in
    /// the same way, and keep it in this folder. With --causes: keep each trace that gets a
    /// wrong answer, with its context and what was planted
    #[arg(long, value_name = "DIR", requires = "random")]
    pub(crate) keep: Option<PathBuf>,
    /// Of planted causes and random experiments: seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Of measured machines and fio jobs: these cases only; of planted causes: what is
    /// said in these scenarios, with the file of their experiment
    #[arg(long = "case", value_name = "NAME", value_delimiter = ',')]
    pub(crate) cases: Vec<String>,
    /// Of measured machines: runs of each case, with seeds from 0 on
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) seeds: u32,
    /// Of fio jobs: processor time of one I/O in fio, in ns [default: that of
    /// the measuring machine, 1700]
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub(crate) cpu_cost: Option<u32>,
    /// Where the recorded logs are [default: results/ beside the cases]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// How to show it
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = ConformFormat::Table)]
    pub(crate) output_format: ConformFormat,
}

/// What the models are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Against {
    /// Real kernels in virtual time
    Kernel,
}

/// What runs measured cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CaseTarget {
    /// The models
    Sim,
    /// A real kernel in virtual time
    Kernel,
}

/// Formats of `conform`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConformFormat {
    /// For people
    Table,
    /// Measured machines and fio jobs as tables of a document
    Markdown,
    /// For programs
    Json,
}

/// Formats of commands that show one report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

const REPRODUCE_NOTES: &str = "\
Each published number stands beside ours: the median over the seeds, lowest and
highest, and the ratio. 'calibrated' numbers are those that a parameter of the
model was fitted to; only the others say something about the model. A predicted
number is within its tolerance if the median is within the factor shown.

Exit status 1 if a predicted number is not within, or a published ordering fails.

--testbeds N runs the experiments on N machines instead, drawn from what the
report does not tell (testbeds.toml of the study: memory, disk, placement, …),
and says of each number what all of them give, how many are within the
tolerance, what decides that, and which give all numbers together. Exit status 1
if no machine does.

Examples:
  blklab reproduce list
  blklab reproduce cfq-quantum-2010 --quick
  blklab reproduce ltt-2009-ssh ltt-2009-ls --testbeds 300 --save testbeds
  blklab reproduce --output-format markdown --output results.md";

#[derive(Debug, Args)]
#[command(after_help = REPRODUCE_NOTES)]
pub(crate) struct ReproduceArgs {
    /// Experiments by name; all if none is given; list shows them
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Runs of each configuration, with seeds from 0 on
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "quick")]
    pub(crate) seeds: u32,
    /// One run of each configuration
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run on this many machines, drawn from what the report does not tell
    #[arg(long, value_name = "N", conflicts_with_all = ["quick", "seeds"])]
    pub(crate) testbeds: Option<u32>,
    /// Seed that draws them
    #[arg(long, value_name = "S", default_value_t = 1, requires = "testbeds")]
    pub(crate) testbed_seed: u64,
    /// Keep them in this folder: runs.jsonl with what is done (a second call goes
    /// on there), testbeds.json and samples.csv
    #[arg(long, value_name = "DIR", requires = "testbeds")]
    pub(crate) save: Option<PathBuf>,
    /// Runs side by side [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// How to show it
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = ReproduceFormat::Table)]
    pub(crate) output_format: ReproduceFormat,
    /// Write the result here instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Formats of `blklab reproduce`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReproduceFormat {
    /// For people
    Table,
    /// For programs
    Json,
    /// For documents
    Markdown,
}

const LIST_EXAMPLES: &str = "\
Examples:
  blklab list schedulers --kernel 2.6.28      those of one release
  blklab list devices sata-7200-2008          one, with all its parameters
  blklab list tunables bfq                    those of bfq; also queue, machine
  blklab list tunables wbt_lat_usec           one in full
  blklab list tunables --output-format json";

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    pub(crate) what: ListWhat,
    /// As of this kernel release
    #[arg(long, value_name = "V")]
    pub(crate) kernel: Option<String>,
    /// One entry with all its parameters, by name
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// How to show it
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table)]
    pub(crate) output_format: PlainFormat,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListWhat {
    /// I/O schedulers
    Schedulers,
    /// Tunables of schedulers, queue and machine
    Tunables,
    /// Device models
    Devices,
    /// What runs experiments
    Targets,
    /// Kernel presets
    Kernels,
    /// What each release changed, with its source
    Changes,
    /// Historical patches
    Patches,
    /// Built-in scenarios
    Scenarios,
    /// Filesystems and their options
    Filesystems,
    /// Device mapper that the target kernel has, and its parameters
    Dm,
    /// Trace formats
    Formats,
    /// Findings of blklab why
    Findings,
    /// I/O engines of fio jobs
    Engines,
    /// Options of fio jobs and what each does here
    FioOptions,
}

const TRACE_EXAMPLES: &str = "\
A trace is NAME.blktrace.CPU (of blktrace, or of blklab run --trace NAME), text
that blkparse printed, NAME.blk, or a run directory; compressed with gzip, zstd
or xz if you like, from a pipe, or from standard input (-).

Times count from the first event, as blkparse prints them; text that blkparse
printed keeps the times it has. What the recorder lost, and records that are
damaged or impossible, are counted: info shows how many, the others say so.

Examples:
  blklab run job.fio --trace run
  blklab trace print run -q                   run.blktrace.0, without summary
  blklab trace stats run                      where bios spent their time
  zcat old.txt.gz | blklab trace stats -      the same, of a pipe
  blklab trace convert run run.blk            compact, for keeping
  blklab trace convert run run.pftrace        for ui.perfetto.dev
  blklab trace convert run run.parquet --rows bios";

const STATS_NOTES: &str = "\
Without options it shows what btt shows, and percentiles, depths and amounts by
process. --by, --histogram and --queue show what they name instead, and --all
everything. JSON has all of it, with windows of a second unless --by says
otherwise.

A row of --by: bios queued (#Q), their length, bios for each request (merging),
the median distance in sectors from the one queued before, and how long they
took. A bio belongs to the window in which it was queued. docs/metrics.md says
what each number means.

Examples:
  blklab trace stats run --by process,window=100ms
  blklab trace stats run --histogram q2c,d2c
  blklab trace stats run --queue";

/// A way of telling bios apart.
fn by(text: &str) -> Result<By, String> {
    let expected = "expected process, direction, size, or window, as in window=100ms";
    match text.split_once('=') {
        None => match text {
            "process" => Ok(By::Process),
            "direction" => Ok(By::Direction),
            "size" => Ok(By::Size),
            "window" => Ok(By::Window(SECOND_NS)),
            _ => Err(expected.to_owned()),
        },
        Some(("window", length)) => duration_ns(length).map(By::Window),
        Some(_) => Err(expected.to_owned()),
    }
}

/// A window, if none is named.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// A time with its unit.
pub(crate) fn duration_ns(text: &str) -> Result<u64, String> {
    let expected = "expected a time with its unit (us, ms, s, m, h), as in 100ms";
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(expected.to_owned()),
    };
    let ns = number.parse::<f64>().map_err(|_| expected)? * scale;
    // Up to a year, beyond which nothing is measured in ns.
    if (1.0..3.2e16).contains(&ns) {
        Ok(ns as u64)
    } else {
        Err("expected a time from 1ns to a year".to_owned())
    }
}

/// A moment: seconds, exact to the nanosecond, or a time with its unit.
pub(crate) fn moment_ns(text: &str) -> Result<u64, String> {
    let expected = "expected a moment, as in 12.5s or 350ms";
    let plain = text.strip_suffix('s').unwrap_or(text);
    let (seconds, fraction) = plain.split_once('.').unwrap_or((plain, "0"));
    let are_digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !are_digits(seconds) || !are_digits(fraction) || fraction.len() > 9 {
        return duration_ns(text).map_err(|_| expected.to_owned());
    }
    let number = |t: &str| t.parse::<u64>().ok();
    let ns = number(seconds)
        .and_then(|s| s.checked_mul(SECOND_NS))
        .zip(number(&format!("{fraction:0<9}")))
        .and_then(|(s, ns)| s.checked_add(ns));
    ns.ok_or_else(|| expected.to_owned())
}

/// The name of a phase.
fn phase(text: &str) -> Result<String, String> {
    let phases = blklab::analysis::Phases::default();
    let names = phases.named().map(|(name, _)| name.to_lowercase());
    let text = text.to_lowercase();
    if text == "all" || names.contains(&text) {
        Ok(text)
    } else {
        Err(format!("expected all, or one of {}", names.join(", ")))
    }
}

/// Ticks that a kernel may have in a second.
fn hz(text: &str) -> Result<u32, String> {
    let known = ["100", "250", "300", "1000"];
    let hz = text.parse().ok().filter(|_| known.contains(&text));
    hz.ok_or_else(|| format!("expected one of {}", known.join(", ")))
}

const KERNEL_EXAMPLES: &str = "\
A kernel is built as User Mode Linux: a program, which needs neither root nor a
disk. Its source is Debian's package linux-source-RELEASE, fetched by apt from
the mirror that this machine uses, or a folder. Nothing is installed, and a
folder stays as it is. Kernels are kept in ~/.cache/blklab.

Examples:
  blklab kernel build 7.3                     some 8 minutes of processor time
  blklab kernel build --kernel-source ~/linux your tree, with your patches
  blklab kernel build 7.3 --hz 1000           a thousand ticks a second
  blklab kernel fetch 6.12
  blklab kernel add arch/x86/boot/bzImage --modules /lib/modules/6.12.1
  blklab kernel list
  blklab kernel remove 7.3";

/// What to do with kernels.
#[derive(Debug, Subcommand)]
#[command(after_help = KERNEL_EXAMPLES)]
pub(crate) enum KernelCommand {
    /// Build kernels, unless they are there
    Build {
        /// Releases that Debian has the source of, such as 7.3
        #[arg(value_name = "RELEASE", required_unless_present = "kernel_source")]
        releases: Vec<String>,
        /// A folder with the source, which stays as it is
        #[arg(long, value_name = "DIR", conflicts_with = "releases")]
        kernel_source: Option<PathBuf>,
        /// Ticks per second: 100, 250, 300 or 1000
        #[arg(long, value_name = "HZ", default_value_t = blklab_kernel_target::HZ.0, value_parser = hz)]
        hz: u32,
    },
    /// Fetch images of Debian's kernels, for QEMU, unless they are there
    Fetch {
        /// Releases that Debian has an image of, such as 6.12
        #[arg(value_name = "RELEASE", required = true)]
        releases: Vec<String>,
        /// Debian's flavour: cloud-amd64 (small), amd64 (all drivers) or rt-amd64
        #[arg(long, value_name = "FLAVOUR", default_value = blklab_kernel_target::FLAVOUR)]
        flavour: String,
    },
    /// Keep an image of yours, for QEMU, under the release that is in it
    Add {
        /// The image: arch/x86/boot/bzImage of a tree that was built
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// The folder of its modules: that of modules.dep, or where they were installed
        #[arg(long, value_name = "DIR")]
        modules: Option<PathBuf>,
    },
    /// The kernels that are there: name, what runs it, size, source
    List,
    /// Remove kernels
    Remove {
        /// Names, or releases: of several of a release the one that was built last
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}

/// What to do with a trace.
#[derive(Debug, Subcommand)]
#[command(after_help = TRACE_EXAMPLES)]
pub(crate) enum TraceCommand {
    /// The events as blkparse prints them
    Print {
        /// A trace: NAME.blktrace.0 or NAME, NAME.blk, blkparse text, or -
        file: PathBuf,
        #[command(flatten)]
        read: ReadArgs,
        /// Leave the summary out
        #[arg(short, long)]
        quiet: bool,
    },
    /// Latency splits, merges, depth and seeks, as btt counts them
    #[command(after_help = STATS_NOTES)]
    Stats {
        /// A trace
        file: PathBuf,
        #[command(flatten)]
        read: ReadArgs,
        /// Tables of bios by who queued them, what they do, how large they are, or
        /// when they were queued
        #[arg(long, value_name = "process|direction|size|window[=1s]", value_delimiter = ',', value_parser = by)]
        by: Vec<By>,
        /// Histograms of these phases: q2q, q2g, s2g, g2i, q2m, i2d, m2d, d2c, q2c,
        /// or all
        #[arg(long, value_name = "PHASE", value_delimiter = ',', value_parser = phase)]
        histogram: Vec<String>,
        /// Depths met at Q and at D, idle time with work queued, flushes
        #[arg(long)]
        queue: bool,
        /// All of these, behind what is shown without options
        #[arg(long, conflicts_with_all = ["by", "histogram", "queue"])]
        all: bool,
        /// How to show it
        #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table)]
        output_format: PlainFormat,
    },
    /// The slowest I/Os with their lives, phase by phase
    Slow {
        /// A trace
        file: PathBuf,
        /// How many
        #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
        count: u16,
        #[command(flatten)]
        stack: StackArgs,
        /// How to show it
        #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table)]
        output_format: PlainFormat,
    },
    /// The life of the requests at a sector, or of the one that an event belongs to
    Life {
        /// A trace
        file: PathBuf,
        /// A sector, or #N: the event N of the trace, counted from 1
        #[arg(value_name = "SECTOR|#N")]
        which: String,
        /// How many at most
        #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
        count: u16,
        #[command(flatten)]
        stack: StackArgs,
        /// How to show it
        #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table)]
        output_format: PlainFormat,
    },
    /// What was recognised, the kinds of events, time span, devices, what was lost or
    /// damaged, and what can therefore be concluded
    Info {
        /// A trace
        file: PathBuf,
        #[command(flatten)]
        read: ReadArgs,
        /// How to show it
        #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table)]
        output_format: PlainFormat,
    },
    /// The same events in another format, by the name of the output, which may
    /// replace another trace but no other file
    Convert {
        /// A trace
        file: PathBuf,
        #[command(flatten)]
        read: ReadArgs,
        /// NAME.txt as blkparse prints it; NAME.blk, blklab's compact form;
        /// NAME.csv or NAME.parquet, a table; NAME.pftrace or
        /// NAME.perfetto-trace; NAME.iolog for fio; any other name for
        /// NAME.blktrace.0
        output: PathBuf,
        /// What the rows of a table are [default: events]
        #[arg(long, value_name = "ROWS", value_enum)]
        rows: Option<TableRows>,
    },
    /// A fio job that does what the processes of the trace did, and how near it comes
    ToFio(ToFioArgs),
}

const TO_FIO_NOTES: &str = "\
Each process becomes a section: mode, sizes, range, depth, pauses or rate, syncs
and start are inferred. What the page cache wrote is written through the page
cache. The job runs in the simulation, on the stack that the trace is from
(options, or a run directory), and what came of it stands beside the trace. A
device that is not named is fitted to the trace: how long commands take by
direction, length, place and number beside them. With --exact the job replays
logs, one for each process, that have every bio at its time.

Examples:
  blklab run job.fio --out results
  blklab trace to-fio results                 on the stack of the run
  blklab trace to-fio results/events.blk -o inferred.fio --sched bfq
  blklab trace to-fio results --exact -o exact.fio";

#[derive(Debug, Args)]
#[command(after_help = TO_FIO_NOTES)]
pub(crate) struct ToFioArgs {
    /// A trace, or a run directory
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Write the job here; without it, to standard output
    #[arg(short, long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write every bio into logs beside FILE, and a job that replays them
    #[arg(long)]
    pub(crate) exact: bool,
    /// The device whose bios count, where there are several
    #[arg(long, value_name = "MAJOR,MINOR")]
    pub(crate) trace_dev: Option<String>,
    /// The disk that the job names [default: /dev/sda]
    #[arg(long, value_name = "FILE")]
    pub(crate) filename: Option<String>,
    /// An experiment file or run directory with the stack that the trace is from
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) stack: Option<PathBuf>,
    /// What is known of the machine, as for blklab why; several add up
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) context: Vec<PathBuf>,
    /// Kernel release that it is from
    #[arg(long, value_name = "V")]
    pub(crate) kernel: Option<String>,
    /// Its I/O scheduler
    #[arg(long, value_name = "NAME")]
    pub(crate) sched: Option<String>,
    /// Its device and parameters; fit: a law fitted to the trace, as without it
    /// where --stack names none
    #[arg(long, value_name = "NAME[,K=V…]|fit")]
    pub(crate) device: Option<String>,
    /// A setting of it: see blklab list tunables
    #[arg(long, value_name = "KEY=V")]
    pub(crate) set: Vec<String>,
    /// How to show it
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table)]
    pub(crate) output_format: PlainFormat,
}

/// Rows of tables that traces are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableRows {
    /// Events, in the order of the trace
    Events,
    /// Requests, from their first Q to their last C
    Ios,
    /// Bios, from Q to C
    Bios,
}

impl TableRows {
    /// As the library calls them.
    pub(crate) fn rows(self) -> Rows {
        match self {
            TableRows::Events => Rows::Events,
            TableRows::Ios => Rows::Ios,
            TableRows::Bios => Rows::Bios,
        }
    }
}

const FIT_DEVICE_NOTES: &str = "\
The measurements are results of fio (json or json+) with direct=1: random reads
at several depths and sizes, writes, both mixed, a reader beside a writer. With
--jobs it prints the job files for that. Jobs of one reporting group count as
running side by side; a name with 'fresh' stands for a drive of which everything
was discarded, all others for one that was written until that was steady.

Loads are run straight against the model, and its parameters moved until the
logarithms of IOPS and percentiles of completion latency are as near to the
measured ones as they get (least squares). One of --hold-out loads is kept back:
how far it is off says how good predictions are. Each parameter has its error;
those that the measurements do not tell are named. The same files give the same
result.

Also read: such figures as CSV (a row for each direction of a load), a trace
(from which the law measured is found, and judged by the last quarter of the
commands), and the six numbers of io.cost.model.

Without -o the file goes to standard output, with the tables as remarks.
docs/fit-device.md has more.

Examples:
  blklab fit-device --jobs --disk /dev/nvme0n1 --out jobs
  blklab fit-device testdata/fit/samsung-980-pro.csv -o drive.toml
  blklab run job.fio --device testdata/fit/drive.toml
  blklab fit-device testdata/fit/reads.json --like nvme-consumer,ways=4";

#[derive(Debug, Args)]
#[command(after_help = FIT_DEVICE_NOTES)]
pub(crate) struct FitDeviceArgs {
    /// What was measured; - is standard input
    #[arg(required_unless_present = "jobs", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write the description of the device here; without it, to standard output
    #[arg(short, long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The SSD to begin with, and parameters of it [default: the nearest of the
    /// presets]
    #[arg(long, value_name = "NAME[,K=V…]")]
    pub(crate) like: Option<String>,
    /// Keep one of N loads back; 0: none
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) hold_out: usize,
    /// Time from a completion to the process that waits, which is not the device's, in
    /// us [default: 5; 0 for SPDK and for results of blklab]
    #[arg(long, value_name = "US", value_parser = host_us)]
    pub(crate) host_us: Option<f64>,
    /// Print job files for fio whose results are wanted
    #[arg(long, conflicts_with_all = ["files", "output", "like", "host_us"])]
    pub(crate) jobs: bool,
    /// Of the job files: the disk, on which all data are lost
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/dev/nvme0n1",
        requires = "jobs"
    )]
    pub(crate) disk: String,
    /// Of the job files: seconds of each load
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, requires = "jobs", value_parser = seconds)]
    pub(crate) runtime: f64,
    /// Write the job files into this folder
    #[arg(long, value_name = "DIR", requires = "jobs")]
    pub(crate) out: Option<PathBuf>,
    /// How to show it
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table, conflicts_with = "jobs")]
    pub(crate) output_format: PlainFormat,
}

fn host_us(text: &str) -> Result<f64, String> {
    let us = text
        .parse::<f64>()
        .ok()
        .filter(|us| (0.0..=1000.0).contains(us));
    us.ok_or_else(|| "expected microseconds from 0 to 1000".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|s| (0.01..=86_400.0).contains(s));
    seconds.ok_or_else(|| "expected seconds from 0.01 to 86400".to_owned())
}

const RECORD_NOTES: &str = "\
It records what the kernel's tracepoints of the block layer show, through a
tracefs instance of its own: other tracing is neither used nor disturbed. It
needs root. Recording ends when COMMAND does, after --for, with Ctrl-C, or behind
what --trigger waits for.

The trace is a trace.dat, version 6: the kernel's pages as they are, which
blklab, trace-cmd and KernelShark read. Beside it lies NAME.context.txt with the
kernel, the queue's settings, the scheduler's tunables, mounts and control
groups, as blklab why --context reads them. Without DEVICE all devices are
recorded, and each that had I/O has a context.

Events that the buffers had no room for are counted and shown; --buffer makes
them larger. What a recorder that was killed left in tracefs is removed at the
next start, or with --clean. docs/record.md has more.

Examples:
  sudo blklab record sda --for 10s
  sudo blklab record -o fio.dat -- fio job.fio
  sudo blklab record /home --also jbd2,sched -- make
  sudo blklab record sda --trigger 'q2c>100ms' --last 30s";

#[derive(Debug, Args)]
#[command(after_help = RECORD_NOTES)]
pub(crate) struct RecordArgs {
    /// A block device by name or path, or any file or folder on one; with the
    /// devices that it lies on [default: all]
    #[arg(value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Record for so long: 500ms, 10s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = duration_ns, conflicts_with = "command")]
    pub(crate) duration_ns: Option<u64>,
    /// Keep this last time alone, in memory, until the recording ends
    #[arg(long, value_name = "TIME", value_parser = duration_ns)]
    pub(crate) last: Option<u64>,
    /// End when an I/O takes longer than this, and keep what came before it (--last) [default of
    /// --last: 10s]: q2c, q2d or d2c, as in 'q2c>100ms'
    #[arg(long, value_name = "PHASE>TIME", value_parser = trigger)]
    pub(crate) trigger: Option<Trigger>,
    /// Go on for so long behind it
    #[arg(long, value_name = "TIME", value_parser = duration_ns, requires = "trigger", default_value = "1s")]
    pub(crate) then: u64,
    /// The trace; its context lies beside it
    #[arg(long, short, value_name = "FILE", default_value = "trace.dat")]
    pub(crate) output: PathBuf,
    /// Record these too: jbd2, ext4, xfs, writeback, wbt, nvme, scsi, sched
    /// (switches of the tasks that submit I/O)
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    pub(crate) also: Vec<String>,
    /// Record through which functions of the kernel a task came to queue each bio (its stack),
    /// for blklab why, trace slow and trace life; this makes each I/O a little longer
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Buffer of each CPU: 64k, 8m
    #[arg(long, value_name = "SIZE", default_value = "8m", value_parser = buffer_kb)]
    pub(crate) buffer: u32,
    /// Remove what killed recorders left in tracefs, and record nothing
    #[arg(long, conflicts_with_all = ["device", "duration_ns", "also", "command", "last", "trigger", "stacks"])]
    pub(crate) clean: bool,
    /// Record while this runs
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

fn trigger(text: &str) -> Result<Trigger, String> {
    Trigger::parse(text, duration_ns)
}

/// A size of a buffer, in KiB.
fn buffer_kb(text: &str) -> Result<u32, String> {
    let text = text.to_lowercase();
    let (number, scale) = match text.strip_suffix(['k', 'm', 'g']) {
        Some(number) if text.ends_with('k') => (number, 1),
        Some(number) if text.ends_with('m') => (number, 1 << 10),
        Some(number) => (number, 1 << 20),
        None => return Err("expected a size with its unit (k, m, g), as in 8m".to_owned()),
    };
    let kb = number
        .parse::<u32>()
        .ok()
        .and_then(|n| n.checked_mul(scale));
    match kb {
        Some(kb @ 8..=4_194_304) => Ok(kb),
        _ => Err("expected a size from 8k to 4g, as in 8m".to_owned()),
    }
}

const WHY_NOTES: &str = "\
Findings come with those who suffered and those who caused it, the events that
show it, how sure it is, what is missing to be sure, and what to change; the
worst total delay first. Where nothing stands out, that is the answer. Events
alone leave much open: what else is known of the machine is a context, lines of
key=value or a copy of /sys/block/DEVICE. One line of shell writes it:

  (cd /sys/block/sda && grep -r . queue device/queue_depth 2>/dev/null |
   sed 's/:/=/'; echo kernel=$(uname -r)) > context.txt

Sums are read as well: iostat -x (text, JSON), /proc/diskstats, io.stat and
io.pressure, histograms of biolatency and bpftrace, reports of huatuo, percentiles
of Rezolus. They have no single I/Os, so that the answer is no cause but what
follows from them, what they hide, and what to record.

Where the kernel is known the trace is re-enacted, too: what was submitted and
when commands ended is fed into the model of that kernel and scheduler. The
report says how far its dispatches are the recorded ones and, if they are, what
each request waited for. That is marked as such and never mixed with what the
events say.

With --what-if the recorded I/O runs again in the model, on a device with the
service times of the recorded one: as it was, which is compared with the
recording first, and with each finding's remedy; or with changes:

  sched=NAME  set=KEY=V,…  patch=NAME  device=NAME,parameter=V,…
  depth=PROCESS:N (at most N under way)  batch=PROCESS:N (N under one plug)
  prio=PROCESS:0…7|idle  sync=PROCESS (its writes are sync)
  job=JOB:OPTION (a fio job has this option: job=backup:direct=1)

A run directory has its context in it. An experiment is run first, on what
--kernel, --sched, --device, --fs, --memory, --set and --section say on top of its
file, as blklab run does; --variant chooses one of several. In both cases
--what-if changes the experiment and runs it again, so that nothing is inferred. docs/why.md explains each finding; blklab
list findings lists them with their rules.

Examples:
  blklab why testdata/blkparse/sync-write-2.6.24.txt --sched cfq
  blklab why testdata/blkparse/missed-merge.txt --set max_sectors_kb=512
  blklab why testdata/blkparse/missed-merge.txt --output-format json
  blklab why testdata/blkparse/sync-write-2.6.24.txt --kernel 2.6.24
  blklab why testdata/sums/iostat.txt         sums in place of a trace
  blklab why results                          a run directory
  blklab why results --what-if sched=none
  blklab why testdata/blkparse/missed-merge.txt --fio testdata/rows/lat.log
  blklab why testdata/blkparse/sync-write-stall-2.6.26.txt --slow pdflush
  blklab why testdata/blkparse/sync-write-stall-2.6.26.txt --at 0.5s
  blklab why examples/random-read.fio --device sata-7200-2008 --what-if";

#[derive(Debug, Args)]
#[command(after_help = WHY_NOTES)]
pub(crate) struct WhyArgs {
    /// A trace of any kind that is read, sums in its place (iostat, diskstats, histograms), a
    /// run directory, a folder with the runs of a matrix, or an experiment that is run first: a
    /// fio job file, an experiment file, a built-in scenario
    #[arg(value_name = "TRACE|SUMS|RUN|MATRIX|JOB")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// The device of an experiment that is run first, as blklab run takes it
    #[arg(long, value_name = "NAME[,K=V…]")]
    pub(crate) device: Option<String>,
    /// What runs it, as blklab run takes it
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// A folder with a kernel's tree, as blklab run takes it
    #[arg(long, value_name = "DIR", conflicts_with = "kernel")]
    pub(crate) kernel_source: Option<String>,
    /// The filesystem that holds its files, as blklab run takes it
    #[arg(long, value_name = "NAME[,K=V…]")]
    pub(crate) fs: Option<String>,
    /// The memory of its machine, as blklab run takes it
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Only these sections of its job file
    #[arg(long, value_name = "NAME[,NAME…]")]
    pub(crate) section: Vec<String>,
    /// This one of the configurations that its file compares
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Run the recorded I/O again in the model, or the experiment itself where it is at
    /// hand, as it was and with each finding's remedy, or with these changes; given
    /// several times, each by itself
    #[arg(long, value_name = "CHANGES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) what_if: Vec<String>,
    /// The slowest I/Os of a process, by its number (1234, 'pid 1234') or its name (fio,
    /// 'comm fio'), with where their time went
    #[arg(long, value_name = "PROCESS", value_parser = Who::parse)]
    pub(crate) slow: Option<Who>,
    /// What was under way at this moment, and what it waited for: 12.5s as the lines of the
    /// report count
    #[arg(long, value_name = "TIME", value_parser = moment_ns)]
    pub(crate) at: Option<u64>,
    /// What fio says of the same time, as JSON or a log of latencies: how much of it is before
    /// the block layer, in the queue, at the device
    #[arg(long, value_name = "FILE")]
    pub(crate) fio: Vec<PathBuf>,
    /// All that is known of each finding: how it came about, all who suffer and cause it, all
    /// remedies, all evidence
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,
    /// At most so many findings
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// How to show it
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table)]
    pub(crate) output_format: PlainFormat,
}

impl WhyArgs {
    /// An option that is given and asks for more than findings.
    pub(crate) fn about_one(&self) -> Option<&'static str> {
        match self {
            a if a.slow.is_some() => Some("--slow"),
            a if a.at.is_some() => Some("--at"),
            a if !a.fio.is_empty() => Some("--fio"),
            _ => None,
        }
    }

    /// An option that is given and means single I/Os, which sums have not.
    pub(crate) fn of_single_ios(&self) -> Option<&'static str> {
        let what_if = (!self.what_if.is_empty()).then_some("--what-if");
        self.stack.given().or(what_if).or(self.about_one())
    }

    /// An option that is given and says something of an experiment that runs.
    pub(crate) fn of_experiments(&self) -> Option<&'static str> {
        match self {
            a if a.device.is_some() => Some("--device"),
            a if a.target.is_some() => Some("--target"),
            a if a.kernel_source.is_some() => Some("--kernel-source"),
            a if a.fs.is_some() => Some("--fs"),
            a if a.memory.is_some() => Some("--memory"),
            a if !a.section.is_empty() => Some("--section"),
            a if a.variant.is_some() => Some("--variant"),
            _ => None,
        }
    }
}

const REPORT_NOTES: &str = "\
The page is one file that needs nothing else: it opens from disk, in any browser
of 2023 or later, on a phone and printed, too. It begins with who waited, how
long, why and what would help, in words and one picture; below are the numbers,
the time line of requests (zoom down to single ones; each shows its life and what
it waited for), who was served, latency and load over time, distributions, the
findings with their evidence, the experiment in full, and where all of it is from.

Several runs, or a folder of them (run --out DIR of a matrix), are compared on one
page. What is known of the machine of a trace is said as for blklab why; where the
kernel is known, the page also has what its model says that requests waited for.

Of many requests the page shows a sample; the slowest ones, and the slowest of
each interval, are never left out. Numbers and intervals count all of them.

Examples:
  blklab run examples/random-read.fio --sched mq-deadline,bfq --out results
  blklab report results -o report.html
  blklab report results/bfq -o bfq.html
  blklab report testdata/blkparse/sync-write-2.6.24.txt -o trace.html
  blklab report results --output-format json -o report.json
  blklab report results --svg pictures         for papers and mails
  blklab reproduce cfq-quantum-2010 --quick --format json --output quantum.json
  blklab report quantum.json -o quantum.html   published beside modelled";

#[derive(Debug, Args)]
#[command(after_help = REPORT_NOTES)]
pub(crate) struct ReportArgs {
    /// Run directories, folders of them, traces of any kind that is read; or the JSON of
    /// one result of blklab reproduce
    #[arg(value_name = "RUN|MATRIX|TRACE|RESULT", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Write the page here; without it, to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The page, or the data in it
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = ReportFormat::Html)]
    pub(crate) output_format: ReportFormat,
    /// What the experiments of a matrix are judged by, as blklab recommend takes it: 'sync
    /// p99.9 of wal' [default: the p99.9 of the job that is worst off, of its syncs where
    /// jobs sync]
    #[arg(long = "for", value_name = "FIGURE")]
    pub(crate) figure: Option<String>,
    /// Write each chart as a picture of its own, CHART.svg, into this folder; the page
    /// is then written only with --output
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
    /// The same as CHART.png, twice as many pixels wide
    #[arg(long, value_name = "DIR")]
    pub(crate) png: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
}

/// Formats of `report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A page for people
    Html,
    /// Its data, for programs
    Json,
}

const COMPARE_NOTES: &str = "\
Each label of a folder with the runs of a matrix is a side, its repetitions are
the side's runs; any other run directory or trace is a side by itself. The
first is compared with all others.

Of each metric: the ratio, its 95 % interval by the bootstrap over runs, and a
verdict, which is corrected for the number of comparisons (Holm). Runs of the
same seed have the same arrivals and are compared in pairs. Percentiles are
those of the I/Os of all runs together, maxima the median of the runs' own.
'no difference shown' is a verdict: these runs do not tell the sides apart.

Also: the settings that differ, the findings of blklab why that came and went
(in half of a side's runs or more), the first event that differs. Histograms
have logarithms of time and number: a single I/O is seen beside millions.

Of traces, and with --bios, the bios are compared from Q to C, by process name
and direction, after the warm-up (MSER-5). A recording without repetitions is
divided into 20 stretches, which take the place of runs.

Examples:
  blklab run job.fio --sched mq-deadline,bfq --repeat 5 --out matrix
  blklab compare matrix
  blklab compare matrix --base bfq --metric clat_p99_ns --metric iops
  blklab compare matrix --bios --output-format json
  blklab compare results matrix/bfq-run1";

#[derive(Debug, Args)]
#[command(after_help = COMPARE_NOTES)]
pub(crate) struct CompareArgs {
    /// Run directories, folders of them, traces
    #[arg(required = true, value_name = "RUN|TRACE")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// The side that the others are compared with [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) base: Option<String>,
    /// Bios of the trace, from Q to C, in place of the calls of jobs
    #[arg(long)]
    pub(crate) bios: bool,
    /// A metric, by its column in CSV [default: bandwidth, latencies]
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// How to show it
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table)]
    pub(crate) output_format: PlainFormat,
    /// Write the result here instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How a trace is to be read.
#[derive(Debug, Default, Args)]
pub(crate) struct ReadArgs {
    /// Read traces as rows of these columns, as in 'time comm pid dev op sector bytes
    /// lat_us'; - is a column to pass over
    #[arg(long, value_name = "TITLES", value_parser = Columns::parse)]
    pub(crate) columns: Option<Columns>,
}

impl ReadArgs {
    /// The columns, if any are named.
    pub(crate) fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }
}

/// What is known of the machine that a trace was recorded on, and how it is to be read.
#[derive(Debug, Default, Args)]
pub(crate) struct StackArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// What is known of the machine: a file of key=value lines, an experiment file,
    /// or a copy of /sys/block/DEVICE; several add up
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) context: Vec<PathBuf>,
    /// The kernel's release: its model re-enacts the trace
    #[arg(long, value_name = "V")]
    pub(crate) kernel: Option<String>,
    /// The I/O scheduler; try: each of the kernel's, and the one that fits best
    /// counts, as without it
    #[arg(long, value_name = "NAME|try")]
    pub(crate) sched: Option<String>,
    /// An attribute of the queue or a tunable of the scheduler, as in sysfs
    #[arg(long, value_name = "KEY=V")]
    pub(crate) set: Vec<String>,
}

impl StackArgs {
    /// One that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        match self {
            a if !a.context.is_empty() => Some("--context"),
            a if a.kernel.is_some() => Some("--kernel"),
            a if a.sched.is_some() => Some("--sched"),
            a if !a.set.is_empty() => Some("--set"),
            _ => None,
        }
    }

    /// Whether any of them is given.
    pub(crate) fn says_something(&self) -> bool {
        self.given().is_some()
    }
}

const MCP_NOTES: &str = "\
Tools: why, stats, slow, what_if, and with --allow-write run, which writes a run
directory. Each answers with the JSON that the command gives; what is wrong is an
error of the tool in the command's words. Files are found from the folder that
the server is started in. docs/mcp.md has configurations.";

#[derive(Debug, Args)]
#[command(after_help = MCP_NOTES)]
pub(crate) struct McpArgs {
    /// Let assistants run jobs, which write run directories
    #[arg(long)]
    pub(crate) allow_write: bool,
}

const NEW_SCHEDULER_NOTES: &str = "\
The crate has the scheduler's source as it is in this build, tests that hold for
any scheduler, and a program that runs a fio job under the original and the
copy: which is better, by how much, how sure, and where their orders part.

Examples:
  blklab new-scheduler --like mq-deadline my-deadline
  cd my-deadline && cargo run --quiet                its job.fio
  cargo run --quiet -- JOB.fio device=sata-ssd       another job and device";

#[derive(Debug, Args)]
#[command(after_help = NEW_SCHEDULER_NOTES)]
pub(crate) struct NewSchedulerArgs {
    /// A new folder for the crate
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The scheduler to copy: mq-deadline, bfq, kyber, deadline, cfq, noop
    #[arg(long, value_name = "NAME")]
    pub(crate) like: String,
    /// What the copy is called [default: my-NAME]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The source tree of blklab that the crate is built with [default: where this command
    /// was built]
    #[arg(long, value_name = "DIR")]
    pub(crate) blklab: Option<PathBuf>,
}

const EXAMPLE_EXAMPLES: &str = "\
Examples:
  blklab example
  blklab example random-read.fio > job.fio
  blklab example sixteen-years.toml --out examples";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE_EXAMPLES)]
pub(crate) struct ExampleArgs {
    /// The one to print; without it all are listed
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Write it into this folder instead, with the files it needs
    #[arg(long, value_name = "DIR", requires = "name")]
    pub(crate) out: Option<PathBuf>,
    /// How to show the list
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table, conflicts_with = "name")]
    pub(crate) output_format: PlainFormat,
}

/// What is handed over to a program.
#[derive(Debug, Args)]
pub(crate) struct ProgramArgs {
    /// What the program takes that the package for Python brings: blklab-sweep --help,
    /// blklab-tune --help, blklab-fleet --help
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    pub(crate) args: Vec<std::ffi::OsString>,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  blklab completions bash > blklab.bash       for ~/.local/share/bash-completion/
                                              completions/blklab
  blklab completions zsh > _blklab            for a folder of $fpath
  blklab completions fish > blklab.fish       for ~/.config/fish/completions/";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder they are written to
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}
