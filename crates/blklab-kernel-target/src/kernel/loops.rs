// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loop devices: what losetup is told, and the file of a filesystem that one may lie on.

use super::dm::{Below, refused};
use super::filesystem;
use super::layer::{BlockDevice, Layer};
use crate::build::path_in_machine;
use blklab_experiment::DmLayer;
use blklab_types::{Dev, Error, SECTOR_BYTES};

/// The name of its kind among those of device mapper.
pub(super) const KIND: &str = "loop";
/// The number that kernels give loop devices.
const MAJOR: u16 = 7;
/// What makes them.
const LOSETUP: (&str, &str) = ("losetup", "mount");
/// Sectors of a MiB.
const MB: u64 = (1 << 20) / SECTOR_BYTES;
/// A filesystem has room for a file of so much of its device, in percent.
const ROOM_PERCENT: u64 = 90;

/// A loop device on what is below, or on a file of a filesystem there.
///
/// # Errors
/// If the file does not fit.
pub(super) fn layer(of: &DmLayer, below: &Below) -> Result<Layer, Error> {
    let number = below.nr_loops;
    let name = format!("{KIND}{number}");
    let device = &below.paths[0];
    let volume = filesystem::without_options(of.value("fs"));
    let mut commands = Vec::new();
    let mut programs = vec![LOSETUP];
    let (on, sectors) = match &volume {
        None => (device.clone(), below.sectors),
        Some(volume) => {
            let megabytes = of.number("size_mb").unwrap_or(0);
            if megabytes * MB > below.sectors / 100 * ROOM_PERCENT {
                return Err(refused(&format!(
                    "{of}: no room for a file of {megabytes} MiB in {} on {} sectors; size_mb \
                     says its length",
                    volume.name, below.sectors
                )));
            }
            let folder = format!("/{name}");
            let file = format!("{folder}/file");
            programs.push(volume.program);
            commands.extend([
                volume.make_command(device),
                format!("mkdir -p {folder}"),
                volume.mount_command(device, &folder),
                // Of what was never written, reads would not come to what is below.
                format!(
                    "dd if=/dev/zero of={file} bs=1048576 count={megabytes} conv=fsync 2> /dev/null"
                ),
            ]);
            (file, megabytes * MB)
        }
    };
    let block = of.number("sector_size").unwrap_or(SECTOR_BYTES);
    let sectors = sectors / (block / SECTOR_BYTES) * (block / SECTOR_BYTES);
    let is_direct = of.value("direct_io") == "1";
    let direct = if is_direct { "on" } else { "off" };
    let losetup = path_in_machine(LOSETUP.0);
    commands.extend([
        // The next one comes into being when somebody asks for it.
        format!("{losetup} -f > /dev/null"),
        // With partitions, which files without a filesystem are.
        format!("{losetup} --partscan --direct-io={direct} --sector-size {block} /dev/{name} {on}"),
        format!(
            "[ $(cat /sys/block/{name}/loop/dio) = {} ]",
            u8::from(is_direct)
        ),
    ]);
    let kept_from = volume.is_some().then_some(0);
    Ok(Layer {
        what: KIND.to_owned(),
        device: BlockDevice {
            name,
            dev: Dev {
                major: MAJOR,
                minor: number,
            },
        },
        sectors,
        commands,
        programs,
        modules: vec![KIND],
        on_filesystem: volume,
        nr_mapped: below.nr_mapped,
        kept_from,
    })
}

#[cfg(test)]
mod tests {
    use super::super::dm::Below;
    use super::layer;
    use blklab_experiment::DmSpec;

    fn made(text: &str, sectors: u64) -> Result<super::Layer, String> {
        let spec = DmSpec::parse(text).expect("it is known");
        let below = Below {
            paths: vec!["/dev/md0".to_owned()],
            sectors,
            is_disk: false,
            fast: None,
            nr_mapped: 2,
            nr_loops: 1,
        };
        layer(&spec.layers[0], &below).map_err(|e| e.to_string())
    }

    #[test]
    fn it_lies_on_what_is_below_or_on_a_file_there() {
        let plain = made("loop:direct_io=1:sector_size=4096", 1001).expect("it can be made");
        assert_eq!((plain.sectors, plain.nr_mapped), (1000, 2));
        assert_eq!(plain.kept_from, None);
        let line = plain.commands.join("\n");
        assert!(
            line.contains("--direct-io=on --sector-size 4096 /dev/loop1 /dev/md0"),
            "{line}"
        );
        let file = made("loop:fs=ext4:size_mb=64", 1 << 20).expect("it can be made");
        assert_eq!((file.sectors, file.kept_from), (131_072, Some(0)));
        let line = file.commands.join("\n");
        assert!(
            line.contains("mount -t ext4 -o loud,noinit_itable /dev/md0 /loop1"),
            "{line}"
        );
        assert!(line.contains("--direct-io=off --sector-size 512 /dev/loop1 /loop1/file"));
        let error = made("loop:fs=xfs", 1 << 20).expect_err("it does not fit");
        assert!(
            error.contains("no room for a file of 1024 MiB in xfs"),
            "{error}"
        );
    }
}
