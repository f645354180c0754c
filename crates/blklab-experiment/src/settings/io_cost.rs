// SPDX-License-Identifier: MIT OR Apache-2.0
//! `io.cost.qos`, `io.cost.model` and `io.latency` as they are written and read.

use blklab_types::{IoCostModel, IoCostQos, IoCostRates, IoCostTarget, no_such, shown};
use std::fmt::Write as _;

const QOS: [&str; 8] = [
    "enable", "ctrl", "rpct", "rlat", "wpct", "wlat", "min", "max",
];
const MODEL: [&str; 8] = [
    "ctrl",
    "model",
    "rbps",
    "rseqiops",
    "rrandiops",
    "wbps",
    "wseqiops",
    "wrandiops",
];

/// Most rates are a hundred times the device's (`VRATE_MIN_PPM`, `VRATE_MAX_PPM`).
const RATE_PPM: (u32, u32) = (10_000, 100_000_000);

/// The words `KEY=VALUE` of a line; none: it has another word.
fn pairs(text: &str) -> impl Iterator<Item = Result<(&str, &str), String>> {
    text.split_whitespace().map(|word| {
        let pair = word.split_once('=');
        pair.ok_or_else(|| format!("'{}' is not KEY=VALUE", shown(word)))
    })
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
    let bad = |_| format!("'{}={}' has no such value", shown(key), shown(value));
    value.parse().map_err(bad)
}

/// Percent with two digits behind the point, in millionths.
fn ppm(key: &str, value: &str) -> Result<u64, String> {
    let bad = || format!("'{}={}' is no percentage", shown(key), shown(value));
    let (whole, rest) = value.split_once('.').unwrap_or((value, ""));
    let digits = |text: &str| text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(rest) {
        return Err(bad());
    }
    let hundredths: u64 = format!("{rest:0<2}")[..2].parse().map_err(|_| bad())?;
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    Ok(whole * 10_000 + hundredths * 100)
}

/// `auto` or `user`.
fn is_user(value: &str) -> Result<bool, String> {
    match value {
        "user" => Ok(true),
        "auto" => Ok(false),
        _ => Err(format!("ctrl is auto or user, not '{}'", shown(value))),
    }
}

/// Writes words such as `enable=1 rpct=95 rlat=5000`: what they name changes, and numbers
/// are the user's from then on, unless `ctrl=auto` comes behind them.
pub(crate) fn write_qos(qos: &mut Option<IoCostQos>, text: &str) -> Result<(), String> {
    let mut new = qos.unwrap_or_default();
    let bad = |what: String| {
        format!(
            "io.cost.qos: {what}; write enable=, ctrl=, rpct=, rlat= (us), wpct=, wlat=, min=, max= \
             (percent), as in enable=1 rpct=95 rlat=5000 min=50 max=150"
        )
    };
    let mut any = false;
    for pair in pairs(text) {
        let (key, value) = pair.map_err(bad)?;
        set_qos(&mut new, key, value).map_err(bad)?;
        any = true;
    }
    if !any {
        return Err(bad("nothing is said".to_owned()));
    }
    if !new.is_user {
        new = IoCostQos {
            enable: new.enable,
            ..IoCostQos::default()
        };
    }
    let least = new.min_ppm.unwrap_or(RATE_PPM.0);
    if least > new.max_ppm.unwrap_or(RATE_PPM.1) {
        return Err(bad("min is above max".to_owned()));
    }
    *qos = Some(new);
    Ok(())
}

fn set_qos(qos: &mut IoCostQos, key: &str, value: &str) -> Result<(), String> {
    let percentile = || match ppm(key, value)? {
        n if n <= 1_000_000 => Ok(n as u32),
        _ => Err(format!("'{key}={}' is above 100 percent", shown(value))),
    };
    let rate = || {
        let most = u64::from(RATE_PPM.1);
        let n = ppm(key, value)?.clamp(u64::from(RATE_PPM.0), most);
        Ok::<u32, String>(n as u32)
    };
    match key {
        "enable" => {
            qos.enable = number::<u64>(key, value)? != 0;
            return Ok(());
        }
        "ctrl" => {
            qos.is_user = is_user(value)?;
            return Ok(());
        }
        "rpct" => qos.read.ppm = Some(percentile()?),
        "wpct" => qos.write.ppm = Some(percentile()?),
        "rlat" => qos.read.latency_us = Some(number(key, value)?),
        "wlat" => qos.write.latency_us = Some(number(key, value)?),
        "min" => qos.min_ppm = Some(rate()?),
        "max" => qos.max_ppm = Some(rate()?),
        _ => return Err(no_such("word", key, &QOS)),
    }
    qos.is_user = true;
    Ok(())
}

/// The words that write the same.
pub(crate) fn qos_text(qos: &IoCostQos) -> String {
    let mut text = format!("enable={}", u8::from(qos.enable));
    if qos.is_user {
        text += " ctrl=user";
    }
    let percent = |ppm: u32| format!("{}.{:02}", ppm / 10_000, ppm % 10_000 / 100);
    let target = |letter: char, t: &IoCostTarget| {
        let part = t.ppm.map(|n| format!(" {letter}pct={}", percent(n)));
        let latency = t.latency_us.map(|n| format!(" {letter}lat={n}"));
        part.unwrap_or_default() + &latency.unwrap_or_default()
    };
    text += &target('r', &qos.read);
    text += &target('w', &qos.write);
    for (key, rate) in [("min", qos.min_ppm), ("max", qos.max_ppm)] {
        if let Some(n) = rate {
            let _ = write!(text, " {key}={}", percent(n));
        }
    }
    text
}

/// Writes words such as `rbps=100000000 rrandiops=5000`, as [`write_qos`] does.
pub(crate) fn write_model(model: &mut Option<IoCostModel>, text: &str) -> Result<(), String> {
    let mut new = model.unwrap_or_default();
    let bad = |what: String| {
        format!(
            "io.cost.model: {what}; write ctrl=, model=linear, rbps=, rseqiops=, rrandiops=, wbps=, \
             wseqiops=, wrandiops=, as in rbps=500000000 rrandiops=9000"
        )
    };
    let mut any = false;
    for pair in pairs(text) {
        let (key, value) = pair.map_err(bad)?;
        set_model(&mut new, key, value).map_err(bad)?;
        any = true;
    }
    if !any {
        return Err(bad("nothing is said".to_owned()));
    }
    *model = Some(if new.is_user {
        new
    } else {
        IoCostModel::default()
    });
    Ok(())
}

fn set_model(model: &mut IoCostModel, key: &str, value: &str) -> Result<(), String> {
    let field = match key {
        "ctrl" => {
            model.is_user = is_user(value)?;
            return Ok(());
        }
        "model" if value == "linear" => return Ok(()),
        "model" => return Err(format!("there is the model linear, not '{}'", shown(value))),
        "rbps" => &mut model.read.bytes_per_s,
        "rseqiops" => &mut model.read.sequential_per_s,
        "rrandiops" => &mut model.read.random_per_s,
        "wbps" => &mut model.write.bytes_per_s,
        "wseqiops" => &mut model.write.sequential_per_s,
        "wrandiops" => &mut model.write.random_per_s,
        _ => return Err(no_such("word", key, &MODEL)),
    };
    *field = Some(number(key, value)?);
    model.is_user = true;
    Ok(())
}

/// The words that write the same.
pub(crate) fn model_text(model: &IoCostModel) -> String {
    let mut text = if model.is_user {
        "ctrl=user"
    } else {
        "ctrl=auto"
    }
    .to_owned();
    let mut rates = |letter: char, r: &IoCostRates| {
        let named = [
            ("bps", r.bytes_per_s),
            ("seqiops", r.sequential_per_s),
            ("randiops", r.random_per_s),
        ];
        for (name, value) in named {
            if let Some(n) = value {
                let _ = write!(text, " {letter}{name}={n}");
            }
        }
    };
    rates('r', &model.read);
    rates('w', &model.write);
    text
}

/// Writes `target=MICROSECONDS`; `max` or 0: none.
pub(crate) fn write_latency(target_us: &mut Option<u64>, text: &str) -> Result<(), String> {
    let bad = || {
        format!(
            "io.latency = {}: expected target=MICROSECONDS or target=max",
            shown(text)
        )
    };
    let mut new = None;
    let mut any = false;
    for pair in pairs(text) {
        let Ok(("target", value)) = pair else {
            return Err(bad());
        };
        new = match value {
            "max" => None,
            n => Some(n.parse().map_err(|_| bad())?),
        };
        any = true;
    }
    if !any {
        return Err(bad());
    }
    *target_us = new.filter(|&n| n > 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qos_is_read_and_written() {
        let mut qos = None;
        write_qos(&mut qos, "enable=1 rpct=95.5 rlat=2000 min=25 max=150.00").expect("words");
        let text = qos_text(&qos.expect("it was written"));
        let expected = "enable=1 ctrl=user rpct=95.50 rlat=2000 min=25.00 max=150.00";
        assert_eq!(text, expected);
        let mut again = None;
        write_qos(&mut again, &text).expect("its own words");
        assert_eq!(again, qos);
        write_qos(&mut again, "ctrl=auto").expect("words");
        assert_eq!(qos_text(&again.expect("it was written")), "enable=1");
        for bad in [
            "",
            "enable",
            "rpct=101",
            "rpct=x",
            "min=60 max=50",
            "rat=1",
            "ctrl=me",
        ] {
            let refused = write_qos(&mut again, bad).expect_err(bad);
            assert!(refused.starts_with("io.cost.qos: "), "{refused}");
        }
    }

    #[test]
    fn the_model_is_read_and_written() {
        let mut model = None;
        let text = "ctrl=user rbps=4000000000 rseqiops=8000 wrandiops=7";
        write_model(&mut model, &format!("model=linear {text}")).expect("words");
        assert_eq!(model_text(&model.expect("it was written")), text);
        write_model(&mut model, "ctrl=auto").expect("words");
        assert_eq!(model, Some(IoCostModel::default()));
        assert!(write_model(&mut model, "model=square").is_err());
        assert!(write_model(&mut model, "rbps=-1").is_err());
    }

    #[test]
    fn targets_are_microseconds() {
        let mut target = None;
        write_latency(&mut target, "target=800").expect("a target");
        assert_eq!(target, Some(800));
        write_latency(&mut target, "target=max").expect("none");
        assert_eq!(target, None);
        for bad in ["800", "target=", "target=8ms", ""] {
            assert!(write_latency(&mut target, bad).is_err(), "{bad}");
        }
    }
}
