// SPDX-License-Identifier: MIT OR Apache-2.0
//! One job as it will run, and the fix-ups that make it from its options.
//!
//! Behaviour of fio 3.33: the order of the fix-ups matters, and a clone goes
//! through all of them again, starting from its parent's results.

use crate::option::{EngineSpec, Queueing, engine};
use crate::release::Release;
use crate::replay::Replay;
use crate::seeds::{Seeds, start_delay_generator};
use crate::settings::{PerDir, Settings, ZoneMode};
use blklab_types::Place;
use blklab_types::{IoPrio, PrioClass};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Number, from 1, in order of creation: clones follow their parent.
    pub thread: u32,
    /// Which clone it is: 0 for the section's own job.
    pub subjob: u32,
    /// Name of its section, which also names its files.
    pub section: String,
    /// Name to display.
    pub name: String,
    /// Reporting group, from 0.
    pub group: u32,
    /// Full names of its files.
    pub files: Vec<String>,
    /// All options, with everything that depends on others resolved.
    pub settings: Settings,
    /// Seeds of its random generators.
    pub seeds: Seeds,
    /// The release of fio that it follows.
    pub release: Release,
    /// The recorded I/O that it replays.
    pub replay: Option<Arc<Replay>>,
    /// Stands for what the system's entropy would give the job.
    pub(crate) entropy: u64,
    /// Delay before it starts, after all files are laid out.
    pub start_delay_us: u64,
    /// Rate to keep, bytes per second; 0 for none.
    pub rate_bps: PerDir<u64>,
    /// The section's own options as written: name and value.
    pub options: Vec<(&'static str, Option<String>)>,
    /// Where its section starts.
    pub place: Place,
    /// Where each option was last given, in its section or a global one.
    option_places: Arc<OptionPlaces>,
    /// Low end of the start delay before the first draw; 0 for not drawn yet.
    start_delay_low_us: u64,
}

/// Where each option was last given, by name.
pub(crate) type OptionPlaces = BTreeMap<&'static str, Place>;

/// A priority by the numbers of its class and level, as fio has them.
pub fn io_prio(class: u32, level: u32) -> IoPrio {
    let class = match class {
        1 => PrioClass::RealTime,
        3 => PrioClass::Idle,
        _ => PrioClass::BestEffort,
    };
    IoPrio {
        class,
        level: level.min(7) as u8,
    }
}

impl Job {
    /// Its priority: `prio` and `prioclass`.
    pub fn ioprio(&self) -> IoPrio {
        let settings = &self.settings;
        match (settings.prioclass, settings.prio) {
            (None, None) => IoPrio::default(),
            // Where nothing is said fio hands over 0, the best level.
            (class, level) => io_prio(class.unwrap_or(2), level.unwrap_or(0)),
        }
    }

    /// The job of a section, before its fix-ups.
    pub(crate) fn new(
        section: &str,
        place: Place,
        settings: Settings,
        options: Vec<(&'static str, Option<String>)>,
        option_places: OptionPlaces,
    ) -> Job {
        let seeds = Seeds::new(&settings, 0, 0);
        Job {
            thread: 0,
            subjob: 0,
            section: section.to_owned(),
            name: settings.name.clone().unwrap_or_else(|| section.to_owned()),
            group: 0,
            files: Vec::new(),
            settings,
            seeds,
            release: Release::default(),
            replay: None,
            entropy: 0,
            start_delay_us: 0,
            rate_bps: [0; 3],
            options,
            place,
            option_places: Arc::new(option_places),
            start_delay_low_us: 0,
        }
    }

    /// Where the first of these options that was given stands; the section if none was.
    pub fn place_of(&self, options: &[&str]) -> &Place {
        let given = options
            .iter()
            .find_map(|name| self.option_places.get(*name));
        given.unwrap_or(&self.place)
    }

    /// Its engine, if fio 3.33 has it.
    pub fn engine(&self) -> Option<&'static EngineSpec> {
        engine(&self.settings.ioengine)
    }

    /// Whether its engine completes every request within the call, so that
    /// the queue depth stays at 1.
    pub fn is_synchronous(&self) -> bool {
        match self.engine().map(|engine| engine.queueing) {
            Some(Queueing::Synchronous) => true,
            Some(Queueing::ByDepth) => self.settings.iodepth == 1,
            _ => false,
        }
    }

    /// Whether its engine moves no data, so that files have no size.
    pub fn is_diskless(&self) -> bool {
        self.engine().is_some_and(|engine| engine.diskless)
    }

    /// Whether random blocks are recorded so that each is used once per pass.
    pub fn uses_random_map(&self) -> bool {
        let settings = &self.settings;
        let lfsr = settings.random_generator == crate::settings::Generator::Lfsr;
        settings.rw.random && !settings.norandommap && !lfsr
    }

    /// A copy before its own fix-ups.
    pub(crate) fn clone_as(&self, subjob: u32) -> Job {
        let mut clone = self.clone();
        clone.subjob = subjob;
        clone.settings.numjobs = 1;
        clone.settings.stonewall = false;
        clone.settings.new_group = false;
        clone
    }

    /// Seeds the job as thread number `thread` and resolves its options.
    /// Returns warnings.
    ///
    /// # Errors
    /// What fio refuses, in its words.
    pub(crate) fn fix_up(&mut self, thread: u32, entropy: u64) -> Result<Vec<String>, String> {
        self.thread = thread;
        self.seeds = Seeds::new(&self.settings, thread, entropy);
        self.entropy = entropy;
        let mut warnings = Vec::new();
        fix_zones(&mut self.settings)?;
        let settings = &mut self.settings;
        settings.overwrite |= settings.rw.reads;
        settings.direct |= settings.atomic;
        if settings.filesize.1 == 0 {
            settings.filesize.1 = settings.filesize.0;
        }
        fix_block_sizes(settings, &mut warnings);
        self.draw_start_delay();
        let settings = &mut self.settings;
        fix_depth(settings);
        settings.nrfiles = settings.nrfiles.min(self.files.len() as u32);
        if settings.openfiles == 0 || settings.openfiles > settings.nrfiles {
            settings.openfiles = settings.nrfiles;
        }
        fix_rates(settings)?;
        if settings.distribution != crate::settings::Distribution::Random {
            settings.norandommap = true;
        }
        if settings.fill_device && settings.size == 0 {
            settings.size = u64::MAX;
        }
        if settings.size != 0 && settings.size < settings.smallest_bs() {
            return Err(format!(
                "fio: size too small, must not be less than minimum block size: {} < {}",
                settings.size,
                settings.smallest_bs()
            ));
        }
        if settings.is_given("randseed") {
            settings.randrepeat = false;
        }
        settings.loops = settings.loops.max(1);
        if settings.time_based && settings.runtime_us == 0 {
            settings.time_based = false;
            warnings
                .push("time_based requires a runtime/timeout setting: it is ignored".to_owned());
        }
        let variable = settings.min_bs[1] != settings.max_bs[1];
        if settings.verify && settings.rw.random && settings.norandommap && variable {
            warnings.push(
                "norandommap with verify and variable block sizes: later writes may overlap"
                    .to_owned(),
            );
        }
        self.settings.cmdprio.check(&self.name)?;
        self.fix_rate_bps()?;
        Ok(warnings)
    }

    fn draw_start_delay(&mut self) {
        let (low, high) = self.settings.startdelay_us;
        self.start_delay_us = low;
        if high == 0 {
            return;
        }
        if self.start_delay_low_us == 0 {
            self.start_delay_low_us = low;
        }
        let low = self.start_delay_low_us;
        let mut rng = start_delay_generator(&self.seeds, &self.settings);
        self.start_delay_us = if low == high {
            low
        } else {
            rng.between(low, high)
        };
        self.settings.startdelay_us.0 = self.start_delay_us;
    }

    fn fix_rate_bps(&mut self) -> Result<(), String> {
        for dir in 0..3 {
            let (bytes, ios) = (self.settings.rate[dir], self.settings.rate_iops[dir]);
            let per_io = self.settings.min_bs[dir];
            self.rate_bps[dir] = if bytes != 0 {
                bytes
            } else {
                u64::from(ios).saturating_mul(per_io)
            };
            if (bytes != 0 || ios != 0) && self.rate_bps[dir] == 0 {
                return Err("rate lower than supported".to_owned());
            }
        }
        Ok(())
    }
}

fn fix_zones(settings: &mut Settings) -> Result<(), String> {
    if settings.zonemode == ZoneMode::None && settings.zonesize != 0 {
        return Err("fio: --zonemode=none and --zonesize are not compatible.".to_owned());
    }
    if settings.zonemode == ZoneMode::Strided && settings.zonesize == 0 {
        return Err("fio: --zonesize must be specified when using --zonemode=strided.".to_owned());
    }
    if settings.zonemode == ZoneMode::Strided && settings.openfiles > 1 {
        settings.zonemode = ZoneMode::None;
    }
    if settings.zonerange == 0 {
        settings.zonerange = settings.zonesize;
    }
    Ok(())
}

fn fix_block_sizes(settings: &mut Settings, warnings: &mut Vec<String>) {
    for dir in 0..3 {
        if settings.min_bs[dir] == 0 {
            settings.min_bs[dir] = settings.bs[dir];
        }
        if settings.max_bs[dir] == 0 {
            settings.max_bs[dir] = settings.bs[dir];
        }
    }
    for dir in 0..3 {
        if settings.ba[dir] == 0 || !settings.rw.random {
            settings.ba[dir] = settings.min_bs[dir];
        }
    }
    if settings.ba != settings.min_bs && !settings.norandommap {
        settings.norandommap = true;
        warnings.push("Any use of blockalign= turns off randommap".to_owned());
    }
}

fn fix_depth(settings: &mut Settings) {
    let depth = settings.iodepth;
    if settings.iodepth_low == 0 || settings.iodepth_low > depth {
        settings.iodepth_low = depth;
    }
    if settings.iodepth_batch == 0 || settings.iodepth_batch > depth {
        settings.iodepth_batch = depth;
    }
    settings.iodepth_batch_complete_max = settings
        .iodepth_batch_complete_max
        .max(settings.iodepth_batch_complete_min);
}

fn fix_rates(settings: &Settings) -> Result<(), String> {
    let any = |rates: &[u64]| rates.iter().any(|&rate| rate != 0);
    let any_ios = |rates: &[u32]| rates.iter().any(|&rate| rate != 0);
    let both = any(&settings.rate) && any_ios(&settings.rate_iops);
    let both_min = any(&settings.rate_min) && any_ios(&settings.rate_iops_min);
    if both || both_min {
        return Err("fio: rate and rate_iops are mutually exclusive".to_owned());
    }
    for dir in 0..3 {
        let bytes = settings.rate[dir] != 0 && settings.rate[dir] < settings.rate_min[dir];
        let ios =
            settings.rate_iops[dir] != 0 && settings.rate_iops[dir] < settings.rate_iops_min[dir];
        if bytes || ios {
            return Err("fio: minimum rate exceeds rate".to_owned());
        }
    }
    Ok(())
}
