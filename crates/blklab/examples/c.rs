//! tmp
use blklab::conform::*;
fn main() {
    let paths: Vec<_> = std::env::args().skip(1).map(Into::into).collect();
    let mut v = vec![];
    for c in find_cases(&paths).unwrap() {
        match run_case(&c, None) {
            Ok(r) => {
                if r.ran {
                    println!(
                        "{} {} {:.3} {}/{} side {}\n    {:?}\n    {:?}",
                        r.id,
                        r.identical,
                        r.dispatch_prefix,
                        r.dispatches_simulated,
                        r.dispatches,
                        r.side_lines_identical,
                        r.first_difference,
                        r.first_side_difference
                    );
                } else if !r.skipped.as_ref().unwrap().contains("not modelled") {
                    println!("SKIP {} {:?}", r.id, r.skipped);
                }
                v.push(r)
            }
            Err(e) => println!("ERR {e}"),
        }
    }
    println!("{:?}", Report::new(v).summary);
}
