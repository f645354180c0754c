// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands of drivers, from when they get them to when they are done with them.

use super::{OPEN_MAX, Spell, What, evidence};
use crate::findings::finding::Evidence;
use blklab_trace::{KernelEvent, MmcRequest, NvmeCommand, ScsiCommand, ScsiResult, Tracepoint};
use blklab_types::{Dev, Time};
use std::collections::BTreeMap;

/// One try of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandTry {
    /// Its first logical block; of 512 bytes, 4 KiB or another size, which no event says.
    pub lba: u64,
    /// What it does, as its standard numbers it.
    pub opcode: u8,
    /// Which driver has it.
    pub driver: &'static str,
    /// What went wrong, if something did.
    pub fault: Option<Fault>,
}

/// How a try of a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The driver took too long; it was aborted.
    Timeout,
    /// The driver did not take it.
    Refused(i32),
    /// SCSI says why.
    Failed(ScsiResult),
    /// The status of NVMe.
    Status(u16),
    /// The errno of MMC.
    Errno(u16),
}

impl Fault {
    /// In words.
    pub fn words(self) -> String {
        match self {
            Fault::Timeout => "timed out".to_owned(),
            Fault::Refused(rtn) => format!("not taken by its driver ({rtn:#x})"),
            Fault::Failed(result) => format!("failed ({result})"),
            Fault::Status(status) => format!("failed (NVMe status {status:#x})"),
            Fault::Errno(errno) => format!("failed (errno {errno})"),
        }
    }
}

impl CommandTry {
    /// Whether it is for these sectors: blocks are of 512 bytes or of 4 KiB.
    pub fn is_at(&self, sector: u64) -> bool {
        self.lba == sector || self.lba.checked_mul(8) == Some(sector)
    }

    pub(super) fn words(&self) -> String {
        let (driver, lba) = (self.driver, self.lba);
        match self.fault {
            Some(fault) => format!("the command of {driver} at block {lba} {}", fault.words()),
            None => format!("{driver} had the command at block {lba}"),
        }
    }
}

/// Which command of SCSI: no event has a number for it that all kernels print.
type ScsiKey = (u16, u16, u16, u16, u8, u64);

fn key(c: &ScsiCommand) -> ScsiKey {
    (c.host, c.channel, c.id, c.lun, c.opcode, c.lba)
}

/// Commands under way.
#[derive(Debug, Default)]
pub(super) struct Commands {
    scsi: BTreeMap<ScsiKey, (Time, Evidence)>,
    nvme: BTreeMap<NvmeCommand, (Time, Evidence, u8, u64)>,
    ufs: BTreeMap<u32, (Time, Evidence, u64)>,
    mmc: BTreeMap<MmcRequest, (Time, Evidence, u8, u32)>,
}

impl Commands {
    pub(super) fn event(&mut self, number: u64, e: &KernelEvent) -> Option<Spell> {
        match e.point {
            Tracepoint::ScsiStart(c) => {
                let has_room = self.scsi.len() < OPEN_MAX;
                if has_room {
                    self.scsi.insert(key(&c), (e.time, evidence(number, e)));
                }
                None
            }
            Tracepoint::ScsiDone { command, result } => {
                let fault = (!result.is_good()).then_some(Fault::Failed(result));
                self.scsi_ended(number, e, &command, fault)
            }
            Tracepoint::ScsiTimeout(command) => {
                self.scsi_ended(number, e, &command, Some(Fault::Timeout))
            }
            Tracepoint::ScsiRefused { command, rtn } => {
                self.scsi_ended(number, e, &command, Some(Fault::Refused(rtn)))
            }
            Tracepoint::NvmeSetup {
                command,
                opcode,
                slba,
                ..
            } => {
                if command.qid > 0 && self.nvme.len() < OPEN_MAX {
                    let begun = (e.time, evidence(number, e), opcode, slba);
                    self.nvme.insert(command, begun);
                }
                None
            }
            Tracepoint::NvmeComplete {
                command, status, ..
            } => {
                let (from, begun, opcode, lba) = self.nvme.remove(&command)?;
                let fault = (status != 0).then_some(Fault::Status(status));
                let command = CommandTry {
                    lba,
                    opcode,
                    driver: "nvme",
                    fault,
                };
                Some(tried(number, e, from, begun, command))
            }
            Tracepoint::UfsCommand {
                is_sent, tag, lba, ..
            } => {
                if is_sent {
                    if self.ufs.len() < OPEN_MAX {
                        self.ufs.insert(tag, (e.time, evidence(number, e), lba));
                    }
                    return None;
                }
                let (from, begun, lba) = self.ufs.remove(&tag)?;
                let command = CommandTry {
                    lba,
                    opcode: 0,
                    driver: "ufs",
                    fault: None,
                };
                Some(tried(number, e, from, begun, command))
            }
            Tracepoint::MmcStart {
                request,
                opcode,
                block,
                ..
            } => {
                if self.mmc.len() < OPEN_MAX {
                    let begun = (e.time, evidence(number, e), opcode as u8, block);
                    self.mmc.insert(request, begun);
                }
                None
            }
            Tracepoint::MmcDone { request, error } => {
                let (from, begun, opcode, block) = self.mmc.remove(&request)?;
                let command = CommandTry {
                    lba: block.into(),
                    opcode,
                    driver: "mmc",
                    fault: (error != 0).then_some(Fault::Errno(error)),
                };
                Some(tried(number, e, from, begun, command))
            }
            _ => None,
        }
    }

    fn scsi_ended(
        &mut self,
        number: u64,
        e: &KernelEvent,
        c: &ScsiCommand,
        fault: Option<Fault>,
    ) -> Option<Spell> {
        let begun = self.scsi.remove(&key(c));
        let command = CommandTry {
            lba: c.lba,
            opcode: c.opcode,
            driver: "scsi",
            fault,
        };
        match begun {
            Some((from, begun)) => Some(tried(number, e, from, begun, command)),
            // A failure counts though its beginning is not in the trace.
            None => fault.map(|_| tried(number, e, e.time, evidence(number, e), command)),
        }
    }
}

fn tried(number: u64, e: &KernelEvent, from: Time, begun: Evidence, command: CommandTry) -> Spell {
    let mut all = vec![begun];
    if from < e.time || command.fault.is_none() {
        all.push(evidence(number, e));
    }
    Spell {
        from,
        to: e.time,
        dev: Dev::default(),
        pid: e.pid,
        what: What::Command(command),
        evidence: all,
    }
}
