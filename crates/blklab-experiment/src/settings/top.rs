// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of the experiment as a whole.

use super::{Access, Form, Home, Place, Setting, setting};
use blklab_fio::release::Release;
use blklab_kernel::Unit;
use blklab_types::Error;
use blklab_types::Hz;

/// Largest seed: experiment files in TOML hold no larger number.
pub(crate) const SEED_MAX: u64 = i64::MAX as u64;

/// A row whose value is a text.
const fn text(
    name: &'static str,
    help: &'static str,
    default: &'static str,
    get: fn(&crate::Experiment) -> String,
    set: fn(&mut crate::Experiment, &str, &crate::Catalogue) -> Result<(), Error>,
) -> Setting {
    setting(Unit::Count, 0, (0, 0))
        .form(Form::Text)
        .manual("", default)
        .at(Home::Top, name, help, Access::Text { get, set })
}

pub(super) static SETTINGS: &[Setting] = &[
    text(
        "target",
        "what runs it",
        "sim",
        |e| e.target.clone(),
        |e, value, _| {
            value.clone_into(&mut e.target);
            Ok(())
        },
    ),
    text(
        "kernel_source",
        "folder of a kernel's tree, which the target kernel builds and runs",
        "",
        |e| e.kernel_source.clone(),
        crate::Experiment::choose_kernel_source,
    ),
    text(
        "without",
        "what releases changed that the models leave out, as block-layer:6.14+bfq:6.16",
        "none",
        |e| e.without.join("+"),
        crate::Experiment::choose_without,
    ),
    setting(Unit::Count, 250, (100, 1000))
        .taken_at(Place::Build("CONFIG_HZ"))
        .form(Form::OneOf("kernels have", &[100, 250, 300, 1000]))
        .at(
            Home::Top,
            "hz",
            "ticks per second: 100, 250, 300 or 1000",
            Access::Number {
                get: |e| Some(i64::from(e.hz.0)),
                set: |e, hz| {
                    e.hz_chosen = hz.is_some();
                    e.hz = hz.map_or_else(|| e.kernel.hz(), |hz| Hz(hz as u32));
                },
            },
        ),
    setting(Unit::Count, 0, (0, SEED_MAX as i64)).at(
        Home::Top,
        "seed",
        "seed of everything random; 0 is fio's own timing",
        Access::Number {
            get: |e| i64::try_from(e.seed).ok(),
            set: |e, seed| e.seed = seed.unwrap_or(0).unsigned_abs(),
        },
    ),
    setting(Unit::Bool, 0, (0, 1))
        .effective(|e, _| e.vary_offsets.then_some(1))
        .at(
            Home::Top,
            "vary_offsets",
            "random numbers of fio follow the seed where the job file says no randrepeat",
            Access::Number {
                get: |e| e.vary_offsets.then_some(1),
                set: |e, on| e.vary_offsets = on.is_some_and(|on| on != 0),
            },
        ),
    text(
        "fio",
        "release of fio that job files follow, 1.24 or 3.33",
        "3.33",
        |e| e.fio.name().to_owned(),
        |e, value, _| {
            e.fio = value
                .parse::<Release>()
                .map_err(|err| Error::new(err.to_string()))?;
            Ok(())
        },
    ),
    text(
        "dm",
        "device mapper on the disk or array: crypt, thin:chunk_kb=256+crypt",
        "none",
        |e| e.dm.to_string(),
        |e, value, _| {
            e.dm = crate::DmSpec::parse(value)?;
            Ok(())
        },
    ),
    text(
        "filesystem",
        "what the files lie on, with options: ext3:data=journal",
        "extents",
        |e| e.filesystem.to_string(),
        crate::Experiment::choose_filesystem,
    )
    .taken_at(Place::Mount),
];
