// SPDX-License-Identifier: MIT OR Apache-2.0
//! What drivers of disks do by release.

use blklab_block::mq::Refusal;
use blklab_device::Driver;

blklab_kernel::features! {
    /// What the drivers of a release do.
    pub(crate) struct Features {
        /// Drivers without hardware behind them (null_blk, the simulated disk) tell the
        /// queue that their device discards.
        plain_discards: bool = false,
        /// SCSI disks, those of libata too, discard.
        scsi_discards: bool = false,
        /// NVMe drives discard.
        nvme_discards: bool = false,
        /// virtio disks discard.
        virtio_discards: bool = false,
        /// null_blk takes lists of requests (`queue_rqs`), and starts a request after it
        /// has looked at its budget.
        null_blk_takes_lists: bool = false,
        /// null_blk has a queue for who polls (`poll_queues`).
        null_blk_polls: bool = false,
    }

    /// What releases changed in drivers.
    pub(crate) const CHANGES = {
        "2.6.28": "drivers without hardware discard as soon as the block layer does",
            "block/blk-barrier.c" => {
            plain_discards: true,
        }
        // "libata: Add support for TRIM"
        "2.6.33": "SCSI and SATA disks discard", "drivers/ata/libata-scsi.c, drivers/scsi/sd.c" => {
            scsi_discards: true,
        }
        // "NVMe: Add discard support for capable devices"
        "3.9": "NVMe drives discard", "drivers/block/nvme.c" => {
            nvme_discards: true,
        }
        // "virtio_blk: add discard and write zeroes support"
        "5.0": "virtio disks discard", "drivers/block/virtio_blk.c" => {
            virtio_discards: true,
        }
        "6.1": "null_blk has a hardware queue more, for who polls: kblockd's runs go round the \
                processors (as in 6.1.176)",
            "drivers/block/null_blk/main.c, block/blk-mq.c" => {
            null_blk_polls: true,
        }
        "6.7": "null_blk takes lists of requests, and starts one after it has looked at its budget",
            "drivers/block/null_blk/main.c" => {
            null_blk_takes_lists: true,
        }
    };
}

impl Features {
    /// Whether a driver tells the queue that its device discards.
    pub(crate) fn discards(&self, driver: Driver) -> bool {
        match driver {
            Driver::Scsi => self.scsi_discards,
            Driver::Nvme => self.nvme_discards,
            Driver::Virtio => self.virtio_discards,
            Driver::NullBlk | Driver::SimDisk => self.plain_discards,
        }
    }

    /// Hardware queues of a driver for who polls.
    pub(crate) fn poll_queues(&self, driver: Driver) -> u16 {
        u16::from(driver == Driver::NullBlk && self.null_blk_polls)
    }

    /// How a driver refuses what it has no room for.
    pub(crate) fn refusal(&self, driver: Driver) -> Refusal {
        match driver {
            Driver::NullBlk if self.null_blk_takes_lists => Refusal::TakesLists,
            Driver::NullBlk => Refusal::AfterStart,
            Driver::Scsi | Driver::Nvme | Driver::Virtio | Driver::SimDisk => Refusal::BeforeStart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
