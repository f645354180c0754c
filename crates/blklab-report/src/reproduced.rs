// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of `blklab reproduce` as one page: what was published beside what the model
//! gives, how far that is off, and which orderings hold.
//!
//! What is read is the JSON that `reproduce` writes.

mod page;
mod picture;

pub use page::page;

use serde::{Deserialize, Serialize};

/// The result of some studies.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reproduced {
    /// The studies.
    pub studies: Vec<Study>,
    /// Published numbers and ours, by study.
    pub numbers: Vec<Number>,
    /// Figures that orderings compare and nobody published.
    pub unpublished: Vec<Measured>,
    /// What has to hold between figures.
    pub orderings: Vec<Ordering>,
}

/// A published experiment.
#[derive(Debug, Serialize, Deserialize)]
pub struct Study {
    /// Its name.
    pub name: String,
    /// In a line.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// What is known to be different here.
    pub differs: String,
}

/// What was measured, and ours.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The study.
    pub study: String,
    /// The configuration in it.
    pub configuration: String,
    /// Whose.
    pub subject: String,
    /// What is measured.
    pub metric: String,
    /// Its unit; 1 for counts and shares.
    pub unit: String,
    /// Ours over the seeds; none if nothing ran.
    pub ours: Option<Spread>,
    /// Seeds that ran.
    pub runs: u64,
}

/// Median, lowest and highest.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

/// A published number and ours.
#[derive(Debug, Serialize, Deserialize)]
pub struct Number {
    /// What it is about.
    #[serde(flatten)]
    pub measured: Measured,
    /// As published.
    pub published: f64,
    /// Our median over it.
    pub ratio: Option<f64>,
    /// How far ours may be off, in words.
    pub tolerance: String,
    /// The same as the least and the largest ratio; none where there is no bound.
    pub allowed: [Option<f64>; 2],
    /// Whether the median is that near.
    pub within: bool,
    /// `calibrated`: a parameter was fitted to it; or `predicted`.
    pub kind: String,
    /// That parameter.
    pub parameter: Option<String>,
    /// What a reader should know.
    pub remark: String,
}

/// Something that has to hold between figures.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ordering {
    /// The study.
    pub study: String,
    /// In words.
    pub text: String,
    /// Who says so: `published`, `expected` or `contradicted`.
    pub basis: String,
    /// What is compared.
    pub value: Option<f64>,
    /// Least and most that it may be.
    pub expected: [Option<f64>; 2],
    /// Whether it holds; none if there were too few runs to tell.
    pub holds: Option<bool>,
    /// What a reader should know.
    pub remark: String,
}

impl Reproduced {
    /// Reads what `blklab reproduce --output-format json` wrote.
    ///
    /// # Errors
    /// If it is something else: where, and what is missing.
    pub fn read(text: &str) -> Result<Reproduced, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The page's data.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON form")
    }

    /// Each chart as a picture of its own: the name of its file without its end, and SVG.
    pub fn charts(&self) -> Vec<(String, String)> {
        let overview = picture::overview(self).map(|(svg, label)| svg.standalone(&label));
        let mut files: Vec<_> = overview
            .map(|svg| ("overview".to_owned(), svg))
            .into_iter()
            .collect();
        for s in &self.studies {
            let drawn = picture::of_study(self, s);
            files.extend(drawn.map(|(svg, label)| (s.name.clone(), svg.standalone(&label))));
        }
        files
    }

    fn of<'a>(&'a self, study: &'a Study) -> impl Iterator<Item = &'a Number> {
        self.numbers
            .iter()
            .filter(|n| n.measured.study == study.name)
    }
}

impl Number {
    fn is_calibrated(&self) -> bool {
        self.kind == "calibrated"
    }

    fn verdict(&self) -> &'static str {
        match (self.is_calibrated(), self.within) {
            (true, _) => "calibrated",
            (false, true) => "within",
            (false, false) => "OFF",
        }
    }

    /// How many times too large or too small, whichever it is.
    fn off(&self) -> f64 {
        self.ratio.map_or(f64::INFINITY, |r| r.max(1.0 / r))
    }
}

impl Measured {
    /// What is measured, with its unit.
    fn what(&self) -> String {
        match self.unit.as_str() {
            "1" => format!("{} {}", self.subject, self.metric),
            unit => format!("{} {}, {unit}", self.subject, self.metric),
        }
    }

    /// Ours, with the lowest and highest of several seeds.
    fn ours_text(&self) -> String {
        match self.ours {
            None => "nothing ran".to_owned(),
            Some(s) if s.min < s.max => format!(
                "{} ({} to {})",
                figure(s.median),
                figure(s.min),
                figure(s.max)
            ),
            Some(s) => figure(s.median),
        }
    }
}

/// A number with three or four figures, as `blklab reproduce` prints it too.
pub fn figure(x: f64) -> String {
    match x {
        x if x >= 1000.0 => format!("{x:.0}"),
        x if x >= 100.0 => format!("{x:.1}"),
        x if x >= 0.1 || x == 0.0 => format!("{x:.2}"),
        x => format!("{x:.4}"),
    }
}
