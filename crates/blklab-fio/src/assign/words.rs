// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options whose value is a word, perhaps with a postfix.

use crate::lists;
use crate::settings::*;
use crate::value::{leading_integer, real_number, size_number};

/// Changes the settings.
///
/// # Errors
/// What is wrong with the postfix, in fio's words.
pub(super) fn keyword_option(
    settings: &mut Settings,
    name: &str,
    word: &'static str,
    postfix: Option<&str>,
) -> Result<(), String> {
    match name {
        "rw" => direction(settings, word, postfix)?,
        "rw_sequencer" => {
            settings.sequencer = if word == "identical" {
                Sequencer::Identical
            } else {
                Sequencer::Sequential
            };
        }
        "random_generator" => {
            settings.random_generator = match word {
                "lfsr" => Generator::Lfsr,
                "tausworthe64" => Generator::Tausworthe64,
                _ => Generator::Tausworthe,
            };
        }
        "random_distribution" => {
            settings.distribution = distribution(word, postfix, settings.kb_base)?;
        }
        "file_service_type" => file_service(settings, word, postfix)?,
        "thinktime_blocks_type" => {
            settings.thinktime_count = if word == "issue" {
                ThinkCount::Issue
            } else {
                ThinkCount::Complete
            };
        }
        "io_submit_mode" => settings.offload = word == "offload",
        "rate_process" => {
            settings.rate_process = if word == "poisson" {
                RateProcess::Poisson
            } else {
                RateProcess::Linear
            };
        }
        "steadystate" => steady_state(settings, word, postfix)?,
        "zonemode" => {
            settings.zonemode = match word {
                "strided" => ZoneMode::Strided,
                "zbd" => ZoneMode::Zbd,
                _ => ZoneMode::None,
            };
        }
        "sync" => {
            settings.sync = match word {
                "sync" | "1" => SyncWrites::Sync,
                "dsync" => SyncWrites::Dsync,
                _ => SyncWrites::None,
            };
        }
        "fadvise_hint" => {
            settings.fadvise_hint = match word {
                "0" => FadviseHint::None,
                "random" => FadviseHint::Random,
                "sequential" => FadviseHint::Sequential,
                _ => FadviseHint::ByPattern,
            };
        }
        "fallocate" => {
            settings.fallocate = match word {
                "none" | "0" => Fallocate::None,
                "posix" | "1" => Fallocate::Posix,
                "keep" => Fallocate::KeepSize,
                "truncate" => Fallocate::Truncate,
                _ => Fallocate::Native,
            };
        }
        "cpus_allowed_policy" => settings.affinity.split = word == "split",
        "exit_what" => {
            settings.exit_what = match word {
                "stonewall" => ExitWhat::Stonewall,
                "all" => ExitWhat::All,
                _ => ExitWhat::Group,
            };
        }
        "continue_on_error" => settings.continue_on_error = continue_on_error(word),
        "verify" => settings.verify = word != "0",
        "kb_base" => settings.kb_base = if word == "1000" { 1000 } else { 1024 },
        _ => {}
    }
    Ok(())
}

fn continue_on_error(word: &str) -> ContinueOnError {
    let all = matches!(word, "all" | "1");
    ContinueOnError {
        reads: all || matches!(word, "read" | "io"),
        writes: all || matches!(word, "write" | "io"),
        verify: all || word == "verify",
    }
}

fn direction(settings: &mut Settings, word: &str, postfix: Option<&str>) -> Result<(), String> {
    settings.rw = Pattern::from_keyword(word);
    settings.sequencer_count = 1;
    settings.stride = 0;
    match postfix {
        None => {}
        Some(count) if settings.rw.random => {
            settings.sequencer_count = leading_integer(count, 10).unwrap_or(0) as u32;
        }
        Some(size) => {
            let stride =
                size_number(size, settings.kb_base).ok_or("fio: rw postfix parsing failed")?;
            settings.stride = stride.cast_signed();
        }
    }
    Ok(())
}

fn distribution(word: &str, postfix: Option<&str>, kb_base: u32) -> Result<Distribution, String> {
    if let "zoned" | "zoned_abs" = word {
        let absolute = word == "zoned_abs";
        let list = postfix.ok_or_else(|| format!("fio: mismatch in zoned input <{word}>"))?;
        let zones = lists::zones(list, kb_base, absolute)?;
        return Ok(if absolute {
            Distribution::ZonedAbs(zones)
        } else {
            Distribution::Zoned(zones)
        });
    }
    let number = |text: &str| real_number(text).ok_or("fio: random postfix parsing failed");
    let (first, center) =
        match postfix.map(|postfix| postfix.split_once(':').unwrap_or((postfix, ""))) {
            Some((first, center)) if word != "random" => (Some(number(first)?), center),
            _ => (None, ""),
        };
    let center = if center.is_empty() {
        None
    } else {
        Some(number(center)?)
    };
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err("fio: random center out of range (0 <= center <= 1.0)".to_owned());
    }
    Ok(match word {
        "zipf" => Distribution::Zipf {
            theta: checked_theta(first.unwrap_or(1.1))?,
            center,
        },
        "pareto" => Distribution::Pareto {
            power: checked_power(first.unwrap_or(0.2))?,
            center,
        },
        "normal" => Distribution::Normal {
            deviation_percent: checked_deviation(first.unwrap_or(0.0))?,
            center,
        },
        _ => Distribution::Random,
    })
}

fn checked_theta(theta: f64) -> Result<f64, String> {
    if theta == 1.0 {
        Err("fio: zipf theta must be different from 1.0".to_owned())
    } else {
        Ok(theta)
    }
}

fn checked_power(power: f64) -> Result<f64, String> {
    if power <= 0.0 || power >= 1.0 {
        return Err("fio: pareto input out of range (0 < input < 1.0)".to_owned());
    }
    Ok(power)
}

fn checked_deviation(percent: f64) -> Result<f64, String> {
    if !(0.0..100.0).contains(&percent) {
        return Err("fio: normal deviation out of range (0 <= input < 100.0)".to_owned());
    }
    Ok(percent)
}

fn file_service(settings: &mut Settings, word: &str, postfix: Option<&str>) -> Result<(), String> {
    let real = || match postfix {
        Some(text) => real_number(text)
            .map(Some)
            .ok_or("fio: file service type random postfix parsing failed"),
        None => Ok(None),
    };
    settings.file_service = match word {
        "zipf" => FileService::Zipf(checked_theta(real()?.unwrap_or(1.1))?),
        "pareto" => FileService::Pareto(checked_power(real()?.unwrap_or(0.2))?),
        "normal" | "gauss" => FileService::Normal(checked_deviation(real()?.unwrap_or(0.0))?),
        other => {
            if let Some(count) = postfix {
                settings.file_service_count = leading_integer(count, 10).unwrap_or(0) as u32;
            }
            match other {
                "random" => FileService::Random,
                "sequential" => FileService::Sequential,
                _ => FileService::RoundRobin,
            }
        }
    };
    Ok(())
}

/// The criterion and its limit: a percentage of the mean, I/Os per second with
/// decimals, or bytes per second with a suffix.
fn steady_state(settings: &mut Settings, word: &str, postfix: Option<&str>) -> Result<(), String> {
    let limit =
        postfix.ok_or("fio: steadystate threshold must be specified in addition to criterion")?;
    let measure = match word {
        "iops" | "iops_slope" => SteadyMeasure::Iops,
        _ => SteadyMeasure::Bandwidth,
    };
    let value =
        match (limit.split_once('%'), measure) {
            (Some((percent, _)), _) => real_number(percent)
                .ok_or("fio: could not parse steadystate threshold percentage")?,
            (None, SteadyMeasure::Iops) => real_number(limit)
                .ok_or("fio: steadystate IOPS threshold postfix parsing failed")?,
            (None, SteadyMeasure::Bandwidth) => size_number(limit, settings.kb_base)
                .ok_or("fio: steadystate BW threshold postfix parsing failed")?
                .cast_signed() as f64,
        };
    settings.steady = SteadyOptions {
        measure,
        is_slope: word.ends_with("_slope"),
        limit: value,
        is_percent: limit.contains('%'),
        ..settings.steady
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions() {
        let read = |word, postfix| distribution(word, postfix, 1024);
        assert_eq!(
            read("zipf", None),
            Ok(Distribution::Zipf {
                theta: 1.1,
                center: None
            })
        );
        assert_eq!(
            read("zipf", Some("1.2:0.5")),
            Ok(Distribution::Zipf {
                theta: 1.2,
                center: Some(0.5)
            })
        );
        assert!(read("zipf", Some("1")).is_err());
        assert!(read("pareto", Some("1.5")).is_err());
        assert!(read("normal", Some("10:2")).is_err());
        assert!(read("zoned", None).is_err());
    }
}
