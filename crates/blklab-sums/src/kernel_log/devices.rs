// SPDX-License-Identifier: MIT OR Apache-2.0
//! What drivers say of their devices: commands that were not answered, errors, resets.

use crate::reading::Subject;
use blklab_analysis::findings::counted;

/// A message, by the words that it has.
struct Message {
    marks: &'static [&'static str],
    kind: Kind,
}

/// What a driver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    TimedOut,
    Polled,
    Failed,
    MediaError,
    LinkError,
    Reset,
    Gone,
    Error,
}

static MESSAGES: &[Message] = &[
    Message {
        marks: &[" timeout, completion polled"],
        kind: Kind::Polled,
    },
    Message {
        marks: &[" timeout, aborting"],
        kind: Kind::TimedOut,
    },
    Message {
        marks: &[" timeout, reset controller"],
        kind: Kind::Reset,
    },
    Message {
        marks: &[" timeout, disable controller"],
        kind: Kind::Reset,
    },
    Message {
        marks: &["controller is down; will reset"],
        kind: Kind::Reset,
    },
    Message {
        marks: &["Emask 0x", "(timeout)"],
        kind: Kind::TimedOut,
    },
    Message {
        marks: &["Emask 0x", "(media error)"],
        kind: Kind::MediaError,
    },
    Message {
        marks: &["Emask 0x", "(ATA bus error)"],
        kind: Kind::LinkError,
    },
    Message {
        marks: &["failed command: "],
        kind: Kind::Failed,
    },
    Message {
        marks: &["hard resetting link"],
        kind: Kind::Reset,
    },
    Message {
        marks: &["attempting task abort"],
        kind: Kind::TimedOut,
    },
    Message {
        marks: &["uas_eh_abort_handler"],
        kind: Kind::TimedOut,
    },
    Message {
        marks: &["hostbyte=DID_TIME_OUT"],
        kind: Kind::TimedOut,
    },
    Message {
        marks: &["hostbyte=DID_NO_CONNECT"],
        kind: Kind::Gone,
    },
    Message {
        marks: &["Sense Key : Hardware Error"],
        kind: Kind::Error,
    },
    Message {
        marks: &["I/O Error (sct 0x"],
        kind: Kind::Error,
    },
    Message {
        marks: &["reset high-speed USB device number"],
        kind: Kind::Reset,
    },
    Message {
        marks: &["reset SuperSpeed", "USB device number"],
        kind: Kind::Reset,
    },
    Message {
        marks: &["timing out command"],
        kind: Kind::TimedOut,
    },
    Message {
        marks: &["Sense Key : Medium Error"],
        kind: Kind::MediaError,
    },
    Message {
        marks: &["critical medium error, dev "],
        kind: Kind::MediaError,
    },
    Message {
        marks: &["I/O error, dev "],
        kind: Kind::Error,
    },
    Message {
        marks: &["critical target error, dev "],
        kind: Kind::Error,
    },
    Message {
        marks: &["rejecting I/O to offline device"],
        kind: Kind::Gone,
    },
    Message {
        marks: &["Device not ready; aborting"],
        kind: Kind::Gone,
    },
    Message {
        marks: &["mmc", ": Timeout waiting for hardware"],
        kind: Kind::TimedOut,
    },
];

impl Kind {
    /// A word for it, what is counted, and what that means.
    fn text(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Kind::TimedOut => (
                "time-outs",
                "commands",
                "that the device had not answered when their time was over (30 s with scsi and nvme, \
                 unless it is set otherwise)",
            ),
            Kind::Polled => (
                "no interrupt",
                "commands",
                "that had ended, and no interrupt had said so until their time was over: the device was \
                 done, the interrupt is missing",
            ),
            Kind::Failed => ("failed", "commands", "in all"),
            Kind::MediaError => (
                "unreadable",
                "errors",
                "of the medium: before a disk says so it tries for seconds, and what is behind waits",
            ),
            Kind::LinkError => (
                "link",
                "errors",
                "between the host and the disk: cable, plug, power",
            ),
            Kind::Reset => (
                "resets",
                "resets",
                "during which all I/O of the device waits, and after which it is sent again",
            ),
            Kind::Gone => ("gone", "messages", "that the device does not come back"),
            Kind::Error => ("errors", "requests", "that ended with an error"),
        }
    }
}

/// What is said of a device.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) name: String,
    counts: Vec<(Kind, u64)>,
}

/// Takes a line for what a driver says.
pub(super) fn read(devices: &mut Vec<Device>, line: &str) {
    let is_said = |m: &&Message| m.marks.iter().all(|mark| line.contains(mark));
    let Some(message) = MESSAGES.iter().find(is_said) else {
        return;
    };
    // What a command failed with is in a line of its own, which does not name the disk.
    let last = devices.last().map(|device| device.name.clone());
    let Some(name) = device(line).or(last) else {
        return;
    };
    let place = devices.iter().position(|device| device.name == name);
    let place = place.unwrap_or_else(|| {
        devices.push(Device {
            name,
            counts: Vec::new(),
        });
        devices.len() - 1
    });
    let counts = &mut devices[place].counts;
    match counts.iter_mut().find(|(kind, _)| *kind == message.kind) {
        Some((_, count)) => *count += 1,
        None => counts.push((message.kind, 1)),
    }
}

/// The device that a line names: `dev sda`, `[sda]`, `nvme0:`, `ata1.00:`, `mmc0:`.
fn device(line: &str) -> Option<String> {
    if let Some((_, behind)) = line.split_once(" dev ") {
        let name = behind.split([',', ' ', ':']).next()?;
        return Some(name.to_owned()).filter(|name| !name.is_empty());
    }
    line.split_whitespace().find_map(|word| {
        let bare = word.trim_matches(['[', ']', ':']);
        let number = |prefix: &str| {
            let rest = bare.strip_prefix(prefix)?;
            let digits = rest.split(['.', 'n']).next()?;
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| format!("{prefix}{digits}"))
        };
        let is_named = word.ends_with(':') && word != bare;
        let driver = ["nvme", "ata", "mmc"]
            .into_iter()
            .filter(|_| is_named)
            .find_map(number);
        let is_disk = word.starts_with("[sd") && word.ends_with(']');
        driver.or_else(|| is_disk.then(|| bare.to_owned()))
    })
}

impl Device {
    pub(super) fn subject(&self) -> Subject {
        let mut subject = Subject::new(self.name.clone());
        let mut counts = self.counts.clone();
        counts.sort_unstable();
        for (kind, count) in counts {
            let (about, noun, means) = kind.text();
            subject.show(about, format!("{} {means}", counted(count, noun)));
            subject.figure(about.replace([' ', '-'], "_"), count as f64);
        }
        if self.is_unanswered() {
            subject.show(
                "so",
                "the device did not answer, or what is between it and the kernel did not (cable, \
                 controller, host of the virtual machine, network). No scheduler and no queue of Linux \
                 makes a command last that long. SMART, the driver's and the host's logs go on from here",
            );
        }
        subject
    }

    /// Whether commands were not answered in time.
    pub(super) fn is_unanswered(&self) -> bool {
        self.counts.iter().any(|(kind, _)| *kind == Kind::TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<Device> {
        let mut devices = Vec::new();
        text.lines().for_each(|line| read(&mut devices, line));
        devices
    }

    #[test]
    fn devices_by_the_words_of_their_drivers() {
        let nvme = said(
            "[  265.31] nvme nvme1: I/O 775 QID 2 timeout, aborting\n[  265.32] nvme nvme1: Abort status: 0x6\n\
             [  296.03] nvme nvme1: I/O 775 QID 2 timeout, reset controller\n",
        );
        assert_eq!(nvme[0].name, "nvme1");
        assert_eq!(nvme[0].counts, [(Kind::TimedOut, 1), (Kind::Reset, 1)]);
        assert!(nvme[0].subject().shows.iter().any(|s| s.about == "so"));
        let ata = said(
            "[1.0] ata1.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x6 frozen\n\
             [1.1] ata1.00: failed command: READ FPDMA QUEUED\n[1.2] res 40/00:10:d0 Emask 0x4 (timeout)\n\
             [1.3] ata1: hard resetting link\n[9.0] blk_update_request: I/O error, dev sda, sector 88\n",
        );
        assert_eq!((ata[0].name.as_str(), ata[0].counts.len()), ("ata1", 3));
        assert_eq!(ata[1].name, "sda");
        assert!(!ata[1].is_unanswered());
        let scsi = said("sd 0:0:1:0: [sdb] tag#5 timing out command, waited 180s\n");
        assert_eq!(scsi[0].name, "sdb");
        let usb = said(
            "sd 0:0:0:0: [sda] tag#28 uas_eh_abort_handler 0 uas-tag 10 inflight: CMD OUT\n\
             usb 2-1.4: reset SuperSpeed USB device number 3 using xhci-hcd\n",
        );
        assert_eq!(usb[0].name, "sda");
        assert_eq!(usb[0].counts, [(Kind::TimedOut, 1), (Kind::Reset, 1)]);
    }

    #[test]
    fn other_lines_say_nothing() {
        assert!(said("nvme nvme0: 8/0/0 default/read/poll queues\nata1: EH complete\n").is_empty());
        assert!(said("res 40/00 Emask 0x4 (timeout)\n").is_empty());
    }
}
