// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run directories, all files of one: refused in one line, or read by everything that reads
//! them: its events, `why`, `report`, `compare`.

use crate::Target;
use crate::check::{fingerprint, one_line};
use crate::corpus;
use crate::well_formed::html;
use blklab::compare::{Options, Recordings, compare};
use blklab::run_directory::RunDir;
use blklab::why::{context_of, why};
use blklab_report::member::{Asked, of_run};
use blklab_report::{Report, html as written};
use blklab_trace::NullSink;
use blklab_types::Error;
use std::path::Path;

pub(crate) const TARGET: Target = Target {
    name: "run_directory",
    feed,
    samples: corpus::none,
};

/// Files of a run directory in their order in an input, divided by NUL; the last one has the
/// rest.
const FILES: [&str; 4] = ["experiment.toml", "job.fio", "result.json", "events.blk"];

fn feed(data: &[u8]) -> Option<u64> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path();
    let mut parts = data.splitn(FILES.len(), |b| *b == 0);
    for name in FILES {
        let part = parts.next().filter(|part| !part.is_empty());
        let Some(part) = part else { continue };
        std::fs::write(dir.join(name), part).expect("it can be written");
    }
    let run = RunDir::open(dir, &blklab::targets::catalogue());
    let run = run.inspect_err(|e| one_line(e)).ok()?;
    for told in [shown(&run), compared(dir)] {
        if let Err(e) = told {
            one_line(&e);
        }
    }
    Some(fingerprint(&(
        &run.record,
        run.experiment
            .to_toml("job.fio", &blklab::targets::catalogue())
            .ok(),
    )))
}

fn shown(run: &RunDir) -> Result<(), Error> {
    let context = context_of(&run.experiment, &blklab::targets::catalogue())?;
    if let Err(e) = why(&mut run.events()?, context.clone()) {
        one_line(&e);
    }
    let asked = Asked {
        label: "fuzz",
        source: "fuzz",
        context,
        shown_max: 1000,
    };
    let member = of_run(run, &mut run.events()?, asked, NullSink)?;
    let page = written::page(&Report::new(vec![member])).expect("a vector takes all");
    html(&page);
    run.check_events()
}

/// With itself nothing differs.
fn compared(dir: &Path) -> Result<(), Error> {
    let paths = [dir.to_path_buf(), dir.to_path_buf()];
    let options = Options::new(&paths, false, &[])?;
    let sides =
        Recordings::find(&paths, None, &blklab::targets::catalogue())?.read(&options, || {})?;
    let comparison = compare(&sides[0], &sides[1], &options)?;
    serde_json::to_string(&comparison).expect("plain data have a JSON form");
    assert!(comparison.settings.is_empty(), "settings of one run differ");
    assert!(
        comparison.first_difference.is_none(),
        "events of one run differ"
    );
    Ok(())
}
