// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command as its users see it: arguments and files in; text, files and
//! exit codes out.

mod again;
mod carried;
mod cgroups;
mod compare;
mod conform;
mod csv_table;
mod docs;
mod documents;
mod errors;
mod fio_cases;
mod fio_errors;
mod fio_json;
mod fio_logs;
mod fio_modes;
mod fio_options;
mod fio_steady;
mod golden;
mod interrupt;
mod machines;
mod md;
mod messages;
mod own_runs;
mod plan;
mod progress;
mod re_enact;
mod record;
mod repeat;
mod replay;
mod report;
mod reproduce;
mod run;
mod run_directories;
mod same;
mod settings;
mod strangers;
mod support;
mod syncs;
mod to_fio;
mod trace;
mod trace_in;
mod transcript;
mod what_if;
mod why;
mod workload;
