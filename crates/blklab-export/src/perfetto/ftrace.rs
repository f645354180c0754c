// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events as Perfetto has those that it records itself: of ftrace. So a query finds them
//! (`select * from ftrace_event`), and a reader of events reads them.

use super::messages::FtraceEventBundle;
use blklab_formats::perfetto::{MESSAGE_MARK, number_of};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, SECTOR_BYTES};
use prost::encoding::{WireType, encode_key, encode_varint};

/// `FtraceEvent.generic`, for events that have no message of their own.
const GENERIC: u32 = 327;

/// `FtraceEvent.print`.
const PRINT: u32 = 3;

/// The tracepoint that says so; the bundle is of one event.
pub(super) fn bundle(event: &Event, time_ns: u64, comm: &str) -> FtraceEventBundle {
    let name = tracepoint(event.action);
    let (number, said) = match number_of(name) {
        Some((number, fields)) => (number, message(event, fields, comm)),
        None => (GENERIC, generic(name, event)),
    };
    of_one(event, time_ns, number, &said)
}

/// A message of the kernel, which blktrace has and ftrace has not.
pub(super) fn print(event: &Event, time_ns: u64, text: &str) -> FtraceEventBundle {
    let mut said = Vec::new();
    put_bytes(
        &mut said,
        2,
        format!("{MESSAGE_MARK}{} {text}\n", event.dev).as_bytes(),
    );
    of_one(event, time_ns, PRINT, &said)
}

fn of_one(event: &Event, time_ns: u64, number: u32, said: &[u8]) -> FtraceEventBundle {
    let mut one = Vec::new();
    put_number(&mut one, 1, time_ns);
    put_number(&mut one, 2, event.pid.into());
    put_bytes(&mut one, number, said);
    FtraceEventBundle {
        cpu: Some(event.cpu.into()),
        event: vec![one],
    }
}

fn tracepoint(action: Action) -> &'static str {
    match action {
        Action::Queue => "block_bio_queue",
        Action::BackMerge => "block_bio_backmerge",
        Action::FrontMerge => "block_bio_frontmerge",
        Action::GetRequest => "block_getrq",
        Action::SleepRequest => "block_sleeprq",
        Action::Requeue => "block_rq_requeue",
        Action::Issue => "block_rq_issue",
        Action::Complete => "block_rq_complete",
        Action::Plug => "block_plug",
        Action::Unplug => "block_unplug",
        Action::UnplugTimer => "block_unplug_timer",
        Action::Insert => "block_rq_insert",
        Action::Split => "block_split",
        Action::Bounce => "block_bio_bounce",
        Action::Remap => "block_bio_remap",
        // Messages are printed.
        Action::Message => "print",
    }
}

/// The fields of an event in the order of their numbers, from 1 on.
fn message(event: &Event, fields: &[&str], comm: &str) -> Vec<u8> {
    let mut said = Vec::new();
    for (number, field) in (1..).zip(fields) {
        match *field {
            "dev" => put_number(&mut said, number, dev_number(event.dev)),
            "sector" => put_number(&mut said, number, event.sector),
            "nr_sector" => {
                // Commands that are passed through have bytes alone.
                let is_command = event.rwbs.has(Rwbs::PC);
                let bytes = if is_command { 0 } else { event.bytes };
                put_number(&mut said, number, u64::from(bytes) / SECTOR_BYTES);
            }
            "bytes" => put_number(&mut said, number, event.bytes.into()),
            "rwbs" => {
                let plain = Rwbs(event.rwbs.0 & !Rwbs::PC.0);
                put_bytes(&mut said, number, plain.to_string().as_bytes());
            }
            "comm" => put_bytes(&mut said, number, comm.as_bytes()),
            // Negative numbers have all 64 bits.
            "errors" => {
                let code = -i64::from(event.error);
                put_number(&mut said, number, code.cast_unsigned());
            }
            "old_dev" => put_number(&mut said, number, dev_number(event.from_dev)),
            "old_sector" | "new_sector" | "nr_rq" => put_number(&mut said, number, event.arg),
            _ => {}
        }
    }
    said
}

/// `GenericFtraceEvent`: names with values.
fn generic(name: &str, event: &Event) -> Vec<u8> {
    let mut said = Vec::new();
    put_bytes(&mut said, 1, name.as_bytes());
    let mut field = Vec::new();
    put_bytes(&mut field, 1, b"nr_rq");
    put_number(&mut field, 5, event.arg);
    put_bytes(&mut said, 2, &field);
    said
}

/// As the kernel numbers devices: the major above 20 bits of minor.
fn dev_number(dev: Dev) -> u64 {
    u64::from(dev.major) << 20 | u64::from(dev.minor)
}

fn put_number(to: &mut Vec<u8>, field: u32, n: u64) {
    encode_key(field, WireType::Varint, to);
    encode_varint(n, to);
}

fn put_bytes(to: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    encode_key(field, WireType::LengthDelimited, to);
    encode_varint(bytes.len() as u64, to);
    to.extend_from_slice(bytes);
}
