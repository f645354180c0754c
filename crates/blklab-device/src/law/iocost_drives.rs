// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drives that `iocost-benchmarks` measured, by six numbers each.
//!
//! Source: the results of resctl-bench in iocost-benchmark/iocost-benchmarks
//! (Apache-2.0), Linux 5.14 to 6.5; facts only. Of a drive that was measured
//! several times each number is the median (of an even number of them the
//! lower one).

use super::iocost;
use crate::info::{Build, DeviceInfo, Settings};
use crate::limits::DeviceLimits;

const NVME: DeviceLimits = DeviceLimits::NVME;
const SATA: DeviceLimits = DeviceLimits::SATA_FLASH;

const SOURCE: &str = "iocost-benchmarks: the six numbers; times beside them are typical ones";

/// The law with the numbers that the kernel has built in for a SATA SSD.
pub(crate) const IOCOST: DeviceInfo = DeviceInfo {
    name: "iocost",
    summary: "a drive by the six numbers of io.cost.model",
    source: "Linux 5.4, block/blk-iocost.c: the cost model and the numbers for a SATA SSD; \
             times beside them are typical ones",
    params: iocost::PARAMS,
    preset: &[],
    queue_depth: 31,
    limits: SATA,
    settings: Settings::NONE,
    build: Build::Plain(iocost::build),
};

/// A drive: name, model, queue depth, limits, size, and the six numbers.
macro_rules! drive {
    ($name:literal, $model:literal, $depth:literal, $limits:ident, $size:literal,
     $rbps:literal, $rseq:literal, $rrand:literal, $wbps:literal, $wseq:literal, $wrand:literal) => {
        DeviceInfo {
            name: concat!("iocost-", $name),
            summary: concat!($model, ", by six numbers"),
            source: SOURCE,
            queue_depth: $depth,
            limits: $limits,
            preset: &[
                ("capacity_sectors", $size),
                ("rbps", stringify!($rbps)),
                ("rseqiops", stringify!($rseq)),
                ("rrandiops", stringify!($rrand)),
                ("wbps", stringify!($wbps)),
                ("wseqiops", stringify!($wseq)),
                ("wrandiops", stringify!($wrand)),
            ],
            ..IOCOST
        }
    };
}

/// All of them: rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops.
#[rustfmt::skip]
pub(crate) const DRIVES: [DeviceInfo; 36] = [
    drive!("ct1000p3p", "CT1000P3PSSD8", 1023, NVME, "1000GB", 4579942252, 391807, 134655, 2220783051, 128640, 17024),
    drive!("s500pro-1tb", "Fanxiang S500Pro 1TB", 1023, NVME, "1024GB", 3449179331, 410455, 276878, 2034855987, 254124, 116737),
    drive!("hfs256gd9tng", "HFS256GD9TNG-62A0A", 1023, NVME, "256GB", 1060861522, 52286, 63053, 192329466, 12308, 16085),
    drive!("hfs512gd9tng", "HFS512GD9TNG-62A0A", 1023, NVME, "512GB", 1301184436, 72046, 116693, 195808171, 12944, 14937),
    drive!("hfs512gde9x", "HFS512GDE9X083N", 1023, NVME, "512GB", 2343445944, 235177, 179295, 1117809730, 13732, 37518),
    drive!("ssdpekka256", "INTEL SSDPEKKA256G7", 1023, NVME, "256GB", 1320294621, 69820, 44932, 115458797, 14566, 16743),
    drive!("sa2000m8-250", "KINGSTON SA2000M8250G", 1023, NVME, "250GB", 1141712103, 112075, 112003, 299105340, 77975, 66629),
    drive!("kxg50znv256", "KXG50ZNV256G TOSHIBA", 1023, NVME, "256GB", 1117569948, 95448, 73693, 329185978, 10805, 17890),
    drive!("kxg6aznv512", "KXG6AZNV512G TOSHIBA", 1023, NVME, "512GB", 2419411544, 256089, 229994, 833689535, 12618, 22672),
    drive!("kxg6azn-smpl", "KXG6AZNV512G TOSHIBA SAMPLE", 1023, NVME, "512GB", 2405115803, 247704, 222650, 619726841, 12148, 21573),
    drive!("nm790-2tb", "Lexar SSD NM790 2TB", 1023, NVME, "2048GB", 7070240113, 725474, 331995, 5612792974, 107404, 7694),
    drive!("mtfdhba256", "MTFDHBA256TCK-1AS15ABYY", 1023, NVME, "256GB", 325195137, 84942, 82035, 529805450, 7477, 6305),
    drive!("mtfdhba512", "MTFDHBA512TCK", 1023, NVME, "512GB", 325580439, 87572, 87630, 587222430, 7437, 6997),
    drive!("mtfdkba512", "MTFDKBA512TFH", 1023, NVME, "512GB", 2167752017, 238028, 126416, 2621803180, 97338, 78924),
    drive!("mzul2256", "MZUL2256HCHQ-00AFB", 1023, NVME, "256GB", 1891663391, 81210, 80403, 413702163, 9825, 9678),
    drive!("mzul2512", "MZUL2512HCJQ-00AFB", 1023, NVME, "512GB", 2307671870, 157904, 154404, 809458071, 9806, 9686),
    drive!("p300-1tb", "Patriot M.2 P300 1024GB", 1023, NVME, "1024GB", 2334801964, 55516, 151996, 1608004243, 59875, 5246),
    drive!("mzvlw256", "SAMSUNG MZVLW256HEHP-00000", 1023, NVME, "256GB", 1230733300, 130658, 134555, 345351950, 59439, 22450),
    drive!("shgp31-1tb", "SHGP31-1000GM-2", 1023, NVME, "1000GB", 1624686235, 385771, 387016, 1492865898, 227279, 229634),
    drive!("phoenix-512", "SKhynix Phoenix", 1023, NVME, "512GB", 1298262706, 73023, 116693, 195808171, 12433, 15064),
    drive!("860-250gb", "Samsung SSD 860", 31, SATA, "250GB", 571977404, 94009, 98549, 377003734, 91213, 87471),
    drive!("870-1tb", "Samsung SSD 870", 31, SATA, "1000GB", 571729370, 98145, 98441, 540333225, 93088, 92973),
    drive!("970evo-500gb", "Samsung SSD 970 EVO 500GB", 1023, NVME, "500GB", 1215197792, 124555, 138950, 758247377, 169949, 40472),
    drive!("970pro-512gb", "Samsung SSD 970 PRO 512GB", 1023, NVME, "512GB", 3235739592, 343800, 376844, 2209311382, 239923, 241421),
    drive!("980pro-1tb", "Samsung SSD 980 PRO 1TB", 1023, NVME, "1000GB", 2548800265, 364653, 304477, 2314893629, 66718, 84113),
    drive!("990evo-1tb", "Samsung SSD 990 EVO 1TB", 1023, NVME, "1000GB", 3486432981, 534594, 696447, 759173240, 191551, 505898),
    drive!("990pro-2tb", "Samsung SSD 990 PRO 2TB", 1023, NVME, "2000GB", 6444139408, 596055, 781780, 6596183680, 73312, 73748),
    drive!("pc711-512gb", "Skhynix PC711 NVMe 512GB", 1023, NVME, "512GB", 2342618237, 220857, 179931, 1163478144, 13869, 35881),
    drive!("sn580-1tb", "WD Blue SN580 1TB", 1023, NVME, "1000GB", 4162438684, 333128, 184441, 3901107743, 27165, 24733),
    drive!("sn720-256gb", "WDC CL SN720 SDAQNTW-256G-1020", 1023, NVME, "256GB", 2268394791, 82316, 91345, 377802583, 18821, 13765),
    drive!("sn720-512gb", "WDC CL SN720 SDAQNTW-512G-1020", 1023, NVME, "512GB", 2261429578, 133520, 172299, 387258257, 20688, 17199),
    drive!("sn720-512g-b", "WDC CL SN720 SDAQNTW-512G-2000", 1023, NVME, "512GB", 2209891186, 132041, 174071, 572629150, 22175, 17311),
    drive!("sn730-256gb", "WDC CL SN730 SDBQNTY-256G-2020", 1023, NVME, "256GB", 2318575949, 129795, 124482, 442821435, 20139, 14988),
    drive!("sn730-512gb", "WDC CL SN730 SDBQNTY-512G-2020", 1023, NVME, "512GB", 2253765139, 207165, 241160, 694780820, 23757, 18615),
    drive!("sn770-1tb", "WD_BLACK SN770 1TB", 1023, NVME, "1000GB", 5189848346, 334463, 191439, 4277425341, 26868, 24667),
    drive!("sn850x-1tb", "WD_BLACK SN850X 1000GB", 1023, NVME, "1000GB", 6930200320, 378339, 291533, 3819097619, 23719, 37730),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use blklab_types::{BioFlags, Op, SplitMix64};

    const DEPTH: usize = 256;

    /// Commands of so many sectors per second at that depth.
    fn per_s(name: &str, op: Op, sectors: u32, random: bool) -> f64 {
        let mut host = Host::build(name, DEPTH as u32);
        let mut addresses = SplitMix64(3);
        let (mut sent, mut done) = (0, 0);
        let mut begin = host.now;
        while done < 900 {
            while sent - done < DEPTH {
                let n = u64::from(sectors);
                let sector = if random {
                    addresses.below(100_000_000 / n) * n
                } else {
                    sent as u64 * n
                };
                host.submit(op, BioFlags::NONE, sector, sectors);
                sent += 1;
            }
            done += host.step().expect("goes on").len();
            if done == 300 {
                begin = host.now;
            }
        }
        600.0 * 1e9 / (host.now - begin).ns() as f64
    }

    #[test]
    fn each_drive_has_its_six_numbers() {
        for info in &DRIVES {
            let number = |name: &str| -> f64 {
                let given = info.preset.iter().find(|(n, _)| *n == name);
                given.expect("given").1.parse().expect("a number")
            };
            for (name, op, sectors, random) in [
                ("rbps", Op::Read, 2048, false),
                ("rseqiops", Op::Read, 8, false),
                ("rrandiops", Op::Read, 8, true),
                ("wbps", Op::Write, 2048, false),
                ("wseqiops", Op::Write, 8, false),
                ("wrandiops", Op::Write, 8, true),
            ] {
                let bytes = if name.ends_with("bps") {
                    f64::from(sectors) * 512.0
                } else {
                    1.0
                };
                let ours = per_s(info.name, op, sectors, random) * bytes;
                // A page of a stream has no more room than its share of the rate.
                let most = if name.ends_with("bps") {
                    f64::INFINITY
                } else {
                    number(if op == Op::Read { "rbps" } else { "wbps" }) / 4096.0
                };
                let ratio = ours / number(name).min(most);
                assert!(
                    (0.85..1.02).contains(&ratio),
                    "{}: {name}: {ratio}",
                    info.name
                );
            }
        }
    }
}
