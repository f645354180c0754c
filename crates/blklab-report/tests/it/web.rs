// SPDX-License-Identifier: MIT OR Apache-2.0
//! The committed build of the front end is that of its sources.

use std::path::Path;
use std::process::Command;

/// Types are right and `dist/` is what `make web` gives. Where npm or what it fetches is
/// missing, the test says so and skips.
#[test]
fn the_build_is_that_of_the_sources() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let run =
        |program: &str, args: &[&str]| Command::new(program).args(args).current_dir(&web).output();
    let is_there = |package: &str| web.join("node_modules").join(package).is_dir();
    if !["uplot", "fflate", "esbuild"].into_iter().all(is_there) {
        let fetched = run("npm", &["ci", "--no-audit", "--no-fund"]);
        if !fetched.is_ok_and(|done| done.status.success()) {
            return eprintln!("skipped: npm cannot fetch what the front end is built with");
        }
    }
    for (program, args) in [
        ("npx", &["tsc", "--noEmit"][..]),
        ("node", &["build.mjs", "--check"]),
    ] {
        let done = run(program, args).expect("node is there");
        let said = [done.stdout, done.stderr].concat();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}
