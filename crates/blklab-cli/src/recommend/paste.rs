// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one pastes: a rule of udev, a file of sysctl, a drop-in of a systemd unit, or what to
//! write into a control group, and advice for an application.
//!
//! Sources: udev(7), sysctl.d(5), systemd.resource-control(5).

use crate::output::hanging;
use anyhow::Result;
use blklab_recommend::{Paste, Tried};
use std::io::Write;

pub(super) fn show(out: &mut impl Write, best: &Tried, disks: &[String]) -> Result<()> {
    let disk = disks.last().map_or("sda", String::as_str);
    attributes(out, best, disk)?;
    sysctls(out, best)?;
    groups(out, best, disk)?;
    for paste in &best.paste {
        match paste {
            Paste::RootGroup { file, value } => {
                writeln!(
                    out,
                    "\n# once after boot; MAJ:MIN is what lsblk says of {disk}"
                )?;
                writeln!(out, "echo 'MAJ:MIN {value}' > /sys/fs/cgroup/{file}")?;
            }
            Paste::Application { job, advice } => {
                writeln!(out)?;
                hanging(out, &format!("{job}: "), 2, advice)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// One rule of udev for all attributes of the disk.
fn attributes(out: &mut impl Write, best: &Tried, disk: &str) -> Result<()> {
    let attributes = best.paste.iter().filter_map(|p| match p {
        Paste::Attribute { path, value } => Some(format!("ATTR{{{path}}}=\"{value}\"")),
        _ => None,
    });
    let attributes: Vec<String> = attributes.collect();
    if attributes.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n# /etc/udev/rules.d/60-io.rules; then udevadm trigger"
    )?;
    write!(
        out,
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{disk}\""
    )?;
    for attribute in attributes {
        write!(out, ", \\\n  {attribute}")?;
    }
    Ok(writeln!(out)?)
}

fn sysctls(out: &mut impl Write, best: &Tried) -> Result<()> {
    let mut is_first = true;
    for paste in &best.paste {
        let Paste::Sysctl { key, value } = paste else {
            continue;
        };
        if std::mem::take(&mut is_first) {
            writeln!(out, "\n# /etc/sysctl.d/60-io.conf; then sysctl --system")?;
        }
        writeln!(out, "{key} = {value}")?;
    }
    Ok(())
}

/// A drop-in of the unit of each job. What systemd has no word for is said as it is.
fn groups(out: &mut impl Write, best: &Tried, disk: &str) -> Result<()> {
    let mut last = "";
    for paste in &best.paste {
        let Paste::Group { job, file, value } = paste else {
            continue;
        };
        let lines = unit_lines(file, value, disk);
        if job != last {
            writeln!(
                out,
                "\n# systemctl edit UNIT-OF-{job}; it has a group of its own then"
            )?;
            if lines.is_some() {
                writeln!(out, "[Service]")?;
            }
        }
        last = job;
        match lines {
            Some(lines) => lines.iter().try_for_each(|line| writeln!(out, "{line}"))?,
            None => writeln!(
                out,
                "echo {value} > /sys/fs/cgroup/system.slice/UNIT-OF-{job}/{file}"
            )?,
        }
    }
    Ok(())
}

/// What systemd calls a file of a group.
fn unit_lines(file: &str, value: &str, disk: &str) -> Option<Vec<String>> {
    match file {
        "io.max" => {
            let line = |word: &str| {
                let (key, n) = word.split_once('=')?;
                let name = match key {
                    "rbps" => "IOReadBandwidthMax",
                    "wbps" => "IOWriteBandwidthMax",
                    "riops" => "IOReadIOPSMax",
                    "wiops" => "IOWriteIOPSMax",
                    _ => return None,
                };
                Some(format!("{name}=/dev/{disk} {n}"))
            };
            value.split_whitespace().map(line).collect()
        }
        "io.latency" => {
            let us = value.strip_prefix("target=")?;
            Some(vec![format!("IODeviceLatencyTargetSec=/dev/{disk} {us}us")])
        }
        "io.weight" => Some(vec![format!("IOWeight={value}")]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::unit_lines;

    #[test]
    fn files_of_groups_have_names_in_systemd() {
        let max = unit_lines("io.max", "rbps=1000 wbps=2000", "sda").expect("it has");
        assert_eq!(
            max,
            [
                "IOReadBandwidthMax=/dev/sda 1000",
                "IOWriteBandwidthMax=/dev/sda 2000"
            ]
        );
        let target = unit_lines("io.latency", "target=5000", "sda").expect("it has");
        assert_eq!(target, ["IODeviceLatencyTargetSec=/dev/sda 5000us"]);
        assert_eq!(
            unit_lines("io.weight", "50", "sda"),
            Some(vec!["IOWeight=50".to_owned()])
        );
        assert_eq!(unit_lines("io.bfq.weight", "50", "sda"), None);
    }
}
