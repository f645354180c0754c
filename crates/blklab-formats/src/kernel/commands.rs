// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands of NVMe, SCSI and UFS.

use super::small;
use crate::fields::Fields;
use blklab_trace::{MmcRequest, NvmeCommand, ScsiCommand, ScsiResult, Tracepoint};

/// EIO: what a command that failed ends with.
pub(crate) const EIO: u16 = 5;

/// Longest CDB that is looked at: `READ(16)`.
const CDB_BYTES: usize = 16;
/// Bits of a command's identifier that are its tag (`nvme_tag_from_cid`,
/// drivers/nvme/host/nvme.h of 5.15).
const NVME_TAG_MASK: u64 = 0xfff;

fn nvme_command(f: &impl Fields) -> Option<NvmeCommand> {
    let ctrl = f.number("ctrl_id").or_else(|| {
        // In text the line begins with `nvme0:`.
        let name = f.text("name")?.strip_prefix(b"nvme")?;
        crate::text::decimal(name)
    });
    let cid = f.number("cid").or_else(|| f.number("cmdid"))?;
    Some(NvmeCommand {
        ctrl: ctrl? as u16,
        qid: f.number("qid")? as u16,
        tag: (cid & NVME_TAG_MASK) as u16,
    })
}

pub(super) fn nvme_setup(f: &impl Fields) -> Option<Tracepoint> {
    let command = nvme_command(f)?;
    // Words 10 and 11 are the block, the lower half of word 12 their number less one.
    let mut words = [0; 10];
    let from_words = (f.bytes("cdw10", &mut words) == words.len()).then(|| {
        let (block, nr) = words.split_at(8);
        let block = block.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        (block, u64::from(nr[0]) | u64::from(nr[1]) << 8)
    });
    let opcode = f.number("opcode").unwrap_or_else(|| nvme_opcode(f)) as u8;
    let less_one = f.number("len").or(from_words.map(|(_, nr)| nr));
    Some(Tracepoint::NvmeSetup {
        command,
        opcode,
        slba: f.number("slba").or(from_words.map(|w| w.0)).unwrap_or(0),
        blocks: match less_one {
            Some(n) if matches!(opcode, 1 | 2 | 8) => n as u32 + 1,
            _ => 0,
        },
    })
}

/// The opcode of a command whose name the text has (`enum nvme_opcode`,
/// include/linux/nvme.h); 0xff of another.
fn nvme_opcode(f: &impl Fields) -> u64 {
    match f.text("cmd") {
        Some(b"nvme_cmd_flush") => 0,
        Some(b"nvme_cmd_write") => 1,
        Some(b"nvme_cmd_read") => 2,
        Some(b"nvme_cmd_write_zeroes") => 8,
        Some(b"nvme_cmd_dsm") => 9,
        _ => 0xff,
    }
}

pub(super) fn nvme_complete(f: &impl Fields) -> Option<Tracepoint> {
    Some(Tracepoint::NvmeComplete {
        command: nvme_command(f)?,
        status: f.number("status")? as u16,
        retries: f.number("retries")?.min(u8::MAX.into()) as u8,
    })
}

pub(super) fn scsi(f: &impl Fields) -> Option<ScsiCommand> {
    let part = |name| f.number(name).map(|n| n as u16);
    let mut cdb = [0; CDB_BYTES];
    let nr_bytes = match f.bytes("cmnd", &mut cdb) {
        0 => f.bytes("raw", &mut cdb),
        n => n,
    };
    let cdb = &cdb[..nr_bytes];
    let opcode = f.number("opcode").map(|n| n as u8);
    let (lba, blocks) = place(cdb).unwrap_or_default();
    Some(ScsiCommand {
        host: part("host_no")?,
        channel: part("channel")?,
        id: part("id")?,
        lun: part("lun")?,
        opcode: opcode.or(cdb.first().copied())?,
        lba,
        blocks,
    })
}

/// The first block and the number of blocks of a CDB, where it has them (SBC-4).
fn place(cdb: &[u8]) -> Option<(u64, u32)> {
    let number = |from: usize, len: usize| -> Option<u64> {
        let bytes = cdb.get(from..from + len)?;
        Some(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    };
    let (lba, blocks) = match cdb.first()? {
        // READ(6), WRITE(6)
        0x08 | 0x0a => (number(1, 3)? & 0x1f_ffff, number(4, 1)?),
        // READ(10), WRITE(10), WRITE AND VERIFY(10), VERIFY(10), WRITE SAME(10),
        // SYNCHRONIZE CACHE(10)
        0x28 | 0x2a | 0x2e | 0x2f | 0x41 | 0x35 => (number(2, 4)?, number(7, 2)?),
        // READ(12), WRITE(12), VERIFY(12)
        0xa8 | 0xaa | 0xaf => (number(2, 4)?, number(6, 4)?),
        // READ(16), WRITE(16), VERIFY(16), WRITE SAME(16), SYNCHRONIZE CACHE(16)
        0x88 | 0x8a | 0x8f | 0x93 | 0x91 => (number(2, 8)?, number(10, 4)?),
        _ => return None,
    };
    Some((lba, blocks as u32))
}

pub(super) fn scsi_refused(f: &impl Fields) -> Option<Tracepoint> {
    Some(Tracepoint::ScsiRefused {
        command: scsi(f)?,
        rtn: f.number("rtn")? as i32,
    })
}

pub(super) fn scsi_done(f: &impl Fields) -> Option<Tracepoint> {
    let result = match f.number("result") {
        Some(n) => ScsiResult {
            host: (n >> 16) as u8,
            status: n as u8,
        },
        None => {
            let (host, status) = (f.text("host")?, f.text("status")?);
            let known = ScsiResult::HOST.iter().position(|n| n.as_bytes() == host);
            let said = ScsiResult::STATUS.iter().find(|n| n.1.as_bytes() == status);
            // Those without a name are printed as numbers.
            let number = |text: &[u8]| super::text::number(text).map(|n| n as u8);
            ScsiResult {
                host: known.map(|n| n as u8).or_else(|| number(host))?,
                status: said.map(|n| n.0).or_else(|| number(status))?,
            }
        }
    };
    let command = scsi(f)?;
    Some(Tracepoint::ScsiDone { command, result })
}

/// `str_t` is a number in binary from 5.10 on (`enum ufs_trace_str_t`, include/ufs/ufshcd.h):
/// 0 is a command that is sent, 1 one that is done.
pub(super) fn ufs(f: &impl Fields) -> Option<Tracepoint> {
    let line = f.line().unwrap_or_default();
    let says = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    let is_sent = match f.number("str_t") {
        Some(0) => true,
        Some(1) => false,
        Some(_) => return None,
        None if says(b"send") => true,
        None if says(b"complete") => false,
        None => return None,
    };
    let bytes = f.number("transfer_len").or_else(|| f.number("size"));
    Some(Tracepoint::UfsCommand {
        is_sent,
        tag: small(f, "tag")?,
        lba: f.number("lba").or_else(|| f.number("LBA"))?,
        opcode: f.number("opcode").unwrap_or(0) as u8,
        // Without data it is -1 (include/trace/events/ufs.h).
        bytes: bytes.and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
    })
}

/// The host's name stands in front: `mmc0`.
fn mmc_request(f: &impl Fields) -> Option<MmcRequest> {
    let host = f.text("name")?.strip_prefix(b"mmc")?;
    Some(MmcRequest {
        host: crate::text::decimal(host)?.try_into().ok()?,
        tag: f.number("tag").unwrap_or(0) as i32,
    })
}

pub(super) fn mmc_start(f: &impl Fields) -> Option<Tracepoint> {
    let either = |a, b| f.number(a).or_else(|| f.number(b)).map(|n| n as u32);
    Some(Tracepoint::MmcStart {
        request: mmc_request(f)?,
        opcode: small(f, "cmd_opcode")?,
        arg: small(f, "cmd_arg")?,
        block: small(f, "blk_addr").unwrap_or(0),
        blocks: small(f, "blocks")?,
        block_bytes: either("block_size", "blksz")?,
        data_flags: small(f, "data_flags")?,
    })
}

pub(super) fn mmc_done(f: &impl Fields) -> Option<Tracepoint> {
    // What is no errno is an error all the same.
    let errno = |name| f.error(name).map_or(0, |code| code.unwrap_or(EIO));
    let (of_command, of_data) = (errno("cmd_err"), errno("data_err"));
    Some(Tracepoint::MmcDone {
        request: mmc_request(f)?,
        error: if of_command == 0 { of_data } else { of_command },
    })
}

#[cfg(test)]
mod tests {
    use super::super::{TextFields, decode};
    use super::*;

    fn read(name: &str, line: &str) -> String {
        match decode(name.as_bytes(), &TextFields(line.as_bytes())) {
            Some(Some((_, point))) => point.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn places_of_commands() {
        assert_eq!(place(&[0x28, 0, 0, 0, 8, 0, 0, 0, 16, 0]), Some((2048, 16)));
        assert_eq!(place(&[0x0a, 0xe1, 0, 2, 3, 0]), Some((0x1_0002, 3)));
        let mut cdb = [0; 16];
        (cdb[0], cdb[3], cdb[13]) = (0x8a, 1, 9);
        assert_eq!(place(&cdb), Some((1 << 48, 9)));
        assert_eq!(
            (place(&[0x28, 0, 0]), place(&[0x12; 6]), place(&[])),
            (None, None, None)
        );
    }

    #[test]
    fn commands_in_text() {
        let scsi = "host_no=2 channel=0 id=1 lun=0 data_sgl=1 prot_sgl=0 prot_op=SCSI_PROT_NORMAL \
                    driver_tag=17 scheduler_tag=3 cmnd=(WRITE_10 lba=2048 txlen=8 protect=0 \
                    raw=2a 00 00 00 08 00 00 00 08 00)";
        assert_eq!(
            read("scsi_dispatch_cmd_start", scsi),
            "scsi_dispatch_cmd_start: 2:0:1:0 opcode 0x2a lba 2048 + 8"
        );
        let done = format!(
            "{scsi} result=(driver=DRIVER_OK host=DID_TIME_OUT message=COMMAND_COMPLETE \
             status=SAM_STAT_GOOD) sense=(key=0x0 asc=0x0 ascq=0x0)"
        );
        assert_eq!(
            read("scsi_dispatch_cmd_done", &done),
            "scsi_dispatch_cmd_done: 2:0:1:0 opcode 0x2a lba 2048 + 8, DID_TIME_OUT SAM_STAT_GOOD"
        );
        assert_eq!(
            read("scsi_dispatch_cmd_error", &format!("{scsi} rtn=4181")),
            "scsi_dispatch_cmd_error: 2:0:1:0 opcode 0x2a lba 2048 + 8, rtn 0x1055"
        );
        let nvme = "nvme0: disk=nvme0n1, qid=1, cmdid=24593, nsid=1, flags=0x0, meta=0x0, \
                    cmd=(nvme_cmd_read slba=4096, len=7, ctrl=0x0, dsmgmt=0, reftag=0)";
        assert_eq!(
            read("nvme_setup_cmd", nvme),
            "nvme_setup_cmd: nvme0 queue 1 tag 17, opcode 0x02, slba 4096 + 8"
        );
        let done =
            "nvme0: disk=nvme0n1, qid=1, cmdid=17, res=0x0, retries=2, flags=0x0, status=0x281";
        assert_eq!(
            read("nvme_complete_rq", done),
            "nvme_complete_rq: nvme0 queue 1 tag 17, status 0x281, 2 retries"
        );
        let ufs = "send_req: 1d84000.ufshc: tag: 5, DB: 0x20, size: 4096, IS: 0, LBA: 808, \
                   opcode: 0x2a (WRITE_10), group_id: 0x0, hwq_id: 0";
        assert_eq!(
            read("ufshcd_command", ufs),
            "ufshcd_command: sent, tag 5, opcode 0x2a, lba 808 + 4096 bytes"
        );
        let mmc = "mmc0: start struct mmc_request[00000000c0ffee01]: cmd_opcode=25 cmd_arg=0x3e8 \
                   cmd_flags=0xb5 cmd_retries=0 stop_opcode=12 stop_arg=0x0 stop_flags=0x49d \
                   stop_retries=0 sbc_opcode=0 sbc_arg=0x0 sbc_flags=0x0 sbc_retires=0 blocks=8 \
                   block_size=512 blk_addr=1000 data_flags=0x100 tag=0 can_retune=0 doing_retune=0 \
                   retune_now=0 need_retune=0 hold_retune=0 retune_period=0";
        assert_eq!(
            read("mmc_request_start", mmc),
            "mmc_request_start: mmc0 tag 0, opcode 25, arg 0x3e8, block 1000 + 8"
        );
        let done = "mmc0: end struct mmc_request[00000000c0ffee01]: cmd_opcode=25 cmd_err=0 \
                    cmd_resp=0x900 0x0 0x0 0x0 cmd_retries=0 stop_opcode=12 stop_err=0 \
                    stop_resp=0x0 0x0 0x0 0x0 stop_retries=0 bytes_xfered=0 data_err=-110 tag=0";
        assert_eq!(
            read("mmc_request_done", done),
            "mmc_request_done: mmc0 tag 0, error 110"
        );
    }
}
