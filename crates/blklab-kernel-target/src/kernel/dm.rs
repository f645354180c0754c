// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices of device mapper: their tables, for dmsetup.
//!
//! Source: Documentation/admin-guide/device-mapper, 6.12. Some need others below them that
//! have no name for people; of each kind one device is shown, the one that is used.

use super::layer::{BlockDevice, Layer};
use blklab_experiment::DmLayer;
use blklab_types::{Dev, Error, SECTOR_BYTES};

/// The major number by which devices of device mapper are told of: which they have depends
/// on what else a kernel has.
const MAJOR: u16 = 253;
/// Sectors of a MiB.
const MB: u64 = (1 << 20) / SECTOR_BYTES;
/// What makes them.
const PROGRAMS: &[(&str, &str)] = &[("dmsetup", "dmsetup")];
/// Metadata of a cache beside those of its blocks, and of each block.
const CACHE_METADATA_BYTES: u64 = 4 << 20;
const CACHE_BLOCK_BYTES: u64 = 16;

/// What a device is put on.
pub(super) struct Below {
    /// Paths of what is below: one, or the disks that are put together.
    pub(super) paths: Vec<String>,
    /// Sectors of each.
    pub(super) sectors: u64,
    /// Whether that is a disk.
    pub(super) is_disk: bool,
    /// Path and sectors of the fast disk, if there is one.
    pub(super) fast: Option<(String, u64)>,
    /// How many devices of device mapper there are.
    pub(super) nr_mapped: usize,
    /// How many loop devices there are.
    pub(super) nr_loops: u16,
}

/// Commands that make devices of device mapper, one after the other.
struct Making {
    commands: Vec<String>,
    nr_mapped: usize,
}

impl Making {
    /// Makes a device of a table and returns its path.
    fn device(&mut self, table: &str) -> String {
        let number = self.nr_mapped;
        self.commands.push(create(number, table));
        self.nr_mapped += 1;
        path(number)
    }

    /// A part of a device.
    fn part(&mut self, of: &str, start: u64, sectors: u64) -> String {
        self.device(&format!("0 {sectors} linear {of} {start}"))
    }

    /// The same whose first block says that there is nothing yet.
    fn empty_part(&mut self, of: &str, start: u64, sectors: u64) -> String {
        let part = self.part(of, start, sectors);
        let command = format!("dd if=/dev/zero of={part} bs=4096 count=1 conv=fsync 2> /dev/null");
        self.commands.push(command);
        part
    }
}

/// The path of a device of device mapper.
pub(super) fn path(number: usize) -> String {
    format!("/dev/dm-{number}")
}

/// The command that makes a device of a table.
pub(super) fn create(number: usize, table: &str) -> String {
    format!("printf '{table}\\n' | dmsetup create --noudevsync --noudevrules m{number}")
}

/// A device on others.
///
/// # Errors
/// If these are too small.
pub(super) fn layer(of: &DmLayer, below: &Below) -> Result<Layer, Error> {
    let mut making = Making {
        commands: Vec::new(),
        nr_mapped: below.nr_mapped,
    };
    let on = &below.paths[0];
    let (sectors, kept_from) = match of.kind.name {
        "linear" => (linear(below, &mut making), None),
        "striped" => (striped(of, below, &mut making), None),
        "crypt" => (crypt(of, on, below.sectors, &mut making), None),
        "thin" => thin(of, on, below.sectors, &mut making),
        "delay" => (delay(of, on, below.sectors, &mut making), None),
        "snapshot" => snapshot(of, on, below.sectors, &mut making),
        "cache" => (cache(of, below, &mut making)?, None),
        "writecache" => (writecache(of, below, &mut making)?, None),
        "flakey" => (flakey(of, on, below.sectors, &mut making)?, None),
        other => {
            let what = format!("dm: the target kernel does not make {other}");
            return Err(Error::not_modelled(what).about("dm"));
        }
    };
    if sectors == 0 {
        let what = format!("no room for {of} on {} sectors", below.sectors);
        return Err(refused(&what));
    }
    let number = making.nr_mapped - 1;
    Ok(Layer {
        what: of.kind.name.to_owned(),
        device: BlockDevice {
            name: format!("dm-{number}"),
            dev: Dev {
                major: MAJOR,
                minor: number as u16,
            },
        },
        sectors,
        commands: making.commands,
        nr_mapped: making.nr_mapped,
        programs: PROGRAMS.to_vec(),
        modules: modules(of.kind.name),
        on_filesystem: None,
        // Where a sector of it lies on the disks is known only if it is on one.
        kept_from: kept_from.map(|from| if below.is_disk { from } else { 0 }),
    })
}

/// The modules that drive devices of a kind.
fn modules(kind: &str) -> Vec<&'static str> {
    let own: &[&str] = match kind {
        "crypt" => &["xts", "dm-crypt"],
        "thin" => &["dm-thin-pool"],
        "delay" => &["dm-delay"],
        "snapshot" => &["dm-snapshot"],
        "cache" => &["dm-cache", "dm-cache-smq"],
        "writecache" => &["dm-writecache"],
        "flakey" => &["dm-flakey"],
        _ => &[],
    };
    let all = std::iter::once("dm-mod").chain(own.iter().copied());
    all.collect()
}

pub(super) fn refused(what: &str) -> Error {
    Error::new(format!("dm: {what}")).about("dm")
}

fn linear(below: &Below, making: &mut Making) -> u64 {
    let each = below.sectors;
    let parts = (0..).zip(&below.paths);
    let lines = parts.map(|(i, on)| format!("{} {each} linear {on} 0", i * each));
    making.device(&lines.collect::<Vec<_>>().join("\\n"));
    each.saturating_mul(below.paths.len() as u64)
}

fn striped(of: &DmLayer, below: &Below, making: &mut Making) -> u64 {
    let n = below.paths.len() as u64;
    let chunk = of.number("chunk_kb").unwrap_or(0) * 2;
    let sectors = below.sectors / chunk * chunk * n;
    let on = below.paths.iter().map(|path| format!(" {path} 0"));
    let on = on.collect::<String>();
    making.device(&format!("0 {sectors} striped {n} {chunk}{on}"));
    sectors
}

fn crypt(of: &DmLayer, on: &str, below: u64, making: &mut Making) -> u64 {
    let bytes = of.number("sector_size").unwrap_or(SECTOR_BYTES);
    let step = (bytes / SECTOR_BYTES).max(1);
    let sectors = below / step * step;
    let key_bytes = of.number("key_bits").unwrap_or(512) / 8;
    let key: String = (0..key_bytes).map(|i| format!("{i:02x}")).collect();
    const FLAGS: [&str; 6] = [
        "allow_discards",
        "same_cpu_crypt",
        "submit_from_crypt_cpus",
        "no_read_workqueue",
        "no_write_workqueue",
        "high_priority",
    ];
    let mut options: Vec<String> = Vec::new();
    options.extend(
        FLAGS
            .iter()
            .filter(|f| of.value(f) == "1")
            .map(|f| (*f).to_owned()),
    );
    if bytes != SECTOR_BYTES {
        options.push(format!("sector_size:{bytes}"));
    }
    making.device(&format!(
        "0 {sectors} crypt aes-xts-plain64 {key} 0 {on} 0{}",
        counted(&options)
    ));
    sectors
}

/// Optional arguments behind their number; nothing if there are none.
fn counted(options: &[String]) -> String {
    match options {
        [] => String::new(),
        options => format!(" {} {}", options.len(), options.join(" ")),
    }
}

fn thin(of: &DmLayer, on: &str, below: u64, making: &mut Making) -> (u64, Option<u64>) {
    let chunk = of.number("chunk_kb").unwrap_or(0) * 2;
    let metadata = of.number("metadata_mb").unwrap_or(0) * MB;
    let sectors = below.saturating_sub(metadata) / chunk * chunk;
    let metadata_on = making.empty_part(on, sectors, metadata);
    let data_on = making.part(on, 0, sectors);
    let flags = [
        "skip_block_zeroing",
        "ignore_discard",
        "no_discard_passdown",
    ];
    let set = flags.iter().filter(|f| of.value(f) == "1");
    let options: Vec<String> = set.map(|f| (*f).to_owned()).collect();
    let number = making.nr_mapped;
    let pool = making.device(&format!(
        "0 {sectors} thin-pool {metadata_on} {data_on} {chunk} 0{}",
        counted(&options)
    ));
    making
        .commands
        .push(format!("dmsetup message m{number} 0 'create_thin 0'"));
    making.device(&format!("0 {sectors} thin {pool} 0"));
    (sectors, Some(sectors))
}

/// Below this a version of the kernel's driver polls the clock, which stands still while
/// somebody runs.
const POLLS_BELOW_MS: u64 = 50;

fn delay(of: &DmLayer, on: &str, sectors: u64, making: &mut Making) -> u64 {
    let classes = ["read_ms", "write_ms", "flush_ms"].map(|name| of.number(name).unwrap_or(0));
    let slowest = classes.into_iter().max().unwrap_or(0);
    if slowest < POLLS_BELOW_MS {
        making.commands.push(format!(
            "case \"$(dmsetup targets | grep '^delay ')\" in *v1.4.*) echo 'a delay below \
             {POLLS_BELOW_MS} ms polls the clock in this kernel, and virtual time stands still \
             then: give one of read_ms, write_ms and flush_ms {POLLS_BELOW_MS}'; false;; esac"
        ));
    }
    let classes = classes.map(|ms| format!(" {on} 0 {ms}")).concat();
    making.device(&format!("0 {sectors} delay{classes}"));
    sectors
}

fn snapshot(of: &DmLayer, on: &str, below: u64, making: &mut Making) -> (u64, Option<u64>) {
    let chunk = of.value("chunk_kb").parse().unwrap_or(16_u64) * 2;
    let copies = below / 100 * of.number("cow_percent").unwrap_or(20);
    let sectors = (below - copies) / chunk * chunk;
    let origin = making.part(on, 0, sectors);
    let cow = making.empty_part(on, sectors, copies);
    let persistent = if of.value("persistent") == "1" {
        "P"
    } else {
        "N"
    };
    making.device(&format!(
        "0 {sectors} snapshot {origin} {cow} {persistent} {chunk}"
    ));
    if of.value("of") == "origin" {
        making.device(&format!("0 {sectors} snapshot-origin {origin}"));
    }
    (sectors, Some(sectors))
}

/// The fast disk, if it has so many sectors.
fn fast<'a>(of: &DmLayer, below: &'a Below, wanted: u64) -> Result<&'a str, Error> {
    let Some((path, sectors)) = &below.fast else {
        return Err(refused(&format!("{} has no fast device", of.kind.name)));
    };
    if wanted > *sectors {
        let what = format!("{of} takes {wanted} sectors of its fast device, which has {sectors}");
        return Err(refused(&what));
    }
    Ok(path)
}

fn cache(of: &DmLayer, below: &Below, making: &mut Making) -> Result<u64, Error> {
    let chunk = of.number("chunk_kb").unwrap_or(0) * 2;
    let size = of.number("size_mb").unwrap_or(0) * MB / chunk * chunk;
    let metadata = CACHE_METADATA_BYTES + size / chunk * CACHE_BLOCK_BYTES;
    let metadata = metadata.div_ceil(4096) * 4096 / SECTOR_BYTES;
    if size == 0 {
        return Err(refused(&format!("{of}: no chunk fits size_mb")));
    }
    let fast = fast(of, below, metadata + size)?;
    let metadata_on = making.empty_part(fast, 0, metadata);
    let data_on = making.part(fast, metadata, size);
    let (mode, threshold) = (of.value("mode"), of.value("migration_threshold"));
    making.device(&format!(
        "0 {} cache {metadata_on} {data_on} {} {chunk} 1 {mode} smq 2 migration_threshold \
         {threshold}",
        below.sectors, below.paths[0]
    ));
    Ok(below.sectors)
}

fn writecache(of: &DmLayer, below: &Below, making: &mut Making) -> Result<u64, Error> {
    let size = of.number("size_mb").unwrap_or(0) * MB;
    let (high, low) = (of.number("high_watermark"), of.number("low_watermark"));
    if low > high {
        return Err(refused(&format!(
            "{of}: low_watermark is above high_watermark"
        )));
    }
    let fast = fast(of, below, size)?;
    let cache_on = making.empty_part(fast, 0, size);
    making.device(&format!(
        "0 {} writecache s {} {cache_on} {} 6 high_watermark {} low_watermark {} \
         autocommit_time {}",
        below.sectors,
        below.paths[0],
        of.value("block_size"),
        of.value("high_watermark"),
        of.value("low_watermark"),
        of.value("autocommit_ms"),
    ));
    Ok(below.sectors)
}

fn flakey(of: &DmLayer, on: &str, sectors: u64, making: &mut Making) -> Result<u64, Error> {
    let (up, down) = (of.value("up_s"), of.value("down_s"));
    if up == "0" && down == "0" {
        return Err(refused("flakey: up_s and down_s are both 0"));
    }
    let feature = match of.value("feature") {
        "none" => String::new(),
        feature => format!(" 1 {feature}"),
    };
    making.device(&format!("0 {sectors} flakey {on} 0 {up} {down}{feature}"));
    Ok(sectors)
}

#[cfg(test)]
mod tests {
    use super::{Below, layer};
    use blklab_experiment::DmSpec;

    fn commands(text: &str, paths: &[&str], sectors: u64) -> Vec<String> {
        let spec = DmSpec::parse(text).expect("it is known");
        let below = Below {
            paths: paths.iter().map(|p| (*p).to_owned()).collect(),
            sectors,
            is_disk: true,
            fast: Some(("/dev/vdb".to_owned(), 1 << 30)),
            nr_mapped: 0,
            nr_loops: 0,
        };
        let made = layer(&spec.layers[0], &below).expect("it fits");
        made.commands
    }

    #[test]
    fn tables_are_those_of_device_mapper() {
        let check = |text: &str, expected: &str| {
            let all = commands(text, &["/dev/vda"], 1 << 24);
            let last = all.last().expect("a command");
            let table = last.split('\'').nth(1).unwrap_or_default();
            assert_eq!(table, expected, "{text}");
        };
        check("linear", "0 16777216 linear /dev/vda 0\\n");
        check(
            "crypt:key_bits=256:no_read_workqueue=1:sector_size=4096",
            "0 16777216 crypt aes-xts-plain64 \
             000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 0 /dev/vda 0 2 \
             no_read_workqueue sector_size:4096\\n",
        );
        check(
            "delay:read_ms=60",
            "0 16777216 delay /dev/vda 0 60 /dev/vda 0 10 /dev/vda 0 10\\n",
        );
        check("thin", "0 14680064 thin /dev/dm-2 0\\n");
        check(
            "snapshot:of=snapshot",
            "0 13421760 snapshot /dev/dm-0 /dev/dm-1 P 32\\n",
        );
        check(
            "writecache:size_mb=64",
            "0 16777216 writecache s /dev/vda /dev/dm-0 4096 6 high_watermark 50 low_watermark 45 \
             autocommit_time 1000\\n",
        );
        check(
            "flakey:feature=drop_writes",
            "0 16777216 flakey /dev/vda 0 5 1 1 drop_writes\\n",
        );
        let two = commands("striped", &["/dev/vda", "/dev/vdb"], 1000);
        assert!(
            two[0].contains("'0 1792 striped 2 128 /dev/vda 0 /dev/vdb 0\\n'"),
            "{two:?}"
        );
    }
}
