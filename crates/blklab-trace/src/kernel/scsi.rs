// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands of SCSI.

use std::fmt;

/// Which command of SCSI, and for which blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiCommand {
    /// Host, channel, target.
    pub host: u16,
    /// The channel.
    pub channel: u16,
    /// The target.
    pub id: u16,
    /// The logical unit.
    pub lun: u16,
    /// What it does: the first byte of the CDB.
    pub opcode: u8,
    /// First logical block, where it has one.
    pub lba: u64,
    /// Logical blocks.
    pub blocks: u32,
}

/// `0:0:1:0 opcode 0x2a lba 2048 + 8`.
impl fmt::Display for ScsiCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}:{} opcode {:#04x} lba {} + {}",
            self.host, self.channel, self.id, self.lun, self.opcode, self.lba, self.blocks
        )
    }
}

/// How a command of SCSI ended (include/scsi/scsi_status.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiResult {
    /// What the driver says: `DID_*`, 0 is `DID_OK`.
    pub host: u8,
    /// What the device says: `SAM_STAT_*`, 0 is `SAM_STAT_GOOD`.
    pub status: u8,
}

impl ScsiResult {
    /// Names of what drivers say, by their number.
    pub const HOST: [&'static str; 16] = [
        "DID_OK",
        "DID_NO_CONNECT",
        "DID_BUS_BUSY",
        "DID_TIME_OUT",
        "DID_BAD_TARGET",
        "DID_ABORT",
        "DID_PARITY",
        "DID_ERROR",
        "DID_RESET",
        "DID_BAD_INTR",
        "DID_PASSTHROUGH",
        "DID_SOFT_ERROR",
        "DID_IMM_RETRY",
        "DID_REQUEUE",
        "DID_TRANSPORT_DISRUPTED",
        "DID_TRANSPORT_FAILFAST",
    ];

    /// Names of what devices say, with their number.
    pub const STATUS: [(u8, &'static str); 8] = [
        (0x00, "SAM_STAT_GOOD"),
        (0x02, "SAM_STAT_CHECK_CONDITION"),
        (0x04, "SAM_STAT_CONDITION_MET"),
        (0x08, "SAM_STAT_BUSY"),
        (0x18, "SAM_STAT_RESERVATION_CONFLICT"),
        (0x28, "SAM_STAT_TASK_SET_FULL"),
        (0x30, "SAM_STAT_ACA_ACTIVE"),
        (0x40, "SAM_STAT_TASK_ABORTED"),
    ];

    /// Whether the command succeeded.
    pub fn is_good(self) -> bool {
        self.host == 0 && matches!(self.status, 0 | 0x04)
    }
}

/// `DID_OK SAM_STAT_GOOD`.
impl fmt::Display for ScsiResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ScsiResult::HOST.get(usize::from(self.host)) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "host {:#04x}", self.host)?,
        }
        match ScsiResult::STATUS.iter().find(|(n, _)| *n == self.status) {
            Some((_, name)) => write!(f, " {name}"),
            None => write!(f, " status {:#04x}", self.status),
        }
    }
}
