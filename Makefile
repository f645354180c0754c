# Everything here first sees to what it needs (scripts/setup.sh), so that it
# works on a fresh machine.
BUILD := @scripts/setup.sh build
TEST := @scripts/setup.sh test

.PHONY: help run quick test check bench pgo conform nightly test-kernel fuzz test-docs update-docs man msrv deny package python site web gallery

help:           ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 18

run:            ## the main job: a report of 2009 run again, with two seeds
	$(BUILD) cargo run --release --bin blklab -- reproduce ltt-2009-ssh --seeds 2 || test $$? = 1

quick:          ## what a change needs at once: lints, unit tests, measured cases
	$(TEST) scripts/quick.sh

test:           ## formatting, lints, all tests
	$(TEST) scripts/test.sh

check:          ## formatting and lints of everything, documentation and benchmarks included
	$(TEST) scripts/lint.sh

bench:          ## benchmarks of every crate
	$(BUILD) cargo bench --workspace

pgo:            ## the command with profile-guided optimisation, in target/pgo
	$(BUILD) scripts/pgo.sh

conform:        ## measured cases carried in the project against the model
	$(BUILD) cargo run --release --bin blklab -- conform testdata/legacy/cases

nightly:        ## 500 random experiments on the models and on each kernel that was built
	rm -rf target/nightly
	$(BUILD) cargo run --release --bin blklab -- conform --against kernel --kernel 6.1,6.12,7.3 --count 500 --keep target/nightly

test-kernel:    ## tests and measured cases that need a kernel that was built
	$(TEST) cargo test -p blklab-kernel-target -- --include-ignored && cargo run --release --bin blklab -- conform --target kernel testdata/fio-6.1/cases

fuzz:           ## ten minutes of fuzzing for each reader and parser
	$(BUILD) scripts/fuzz.sh 600

test-docs:      ## commands of documents that take minutes, which `test` leaves out
	$(BUILD) cargo test --release -p blklab-cli --test it -- --ignored long_commands_in_documents long_runs_of_reports one_line_changed every_copy

update-docs:    ## what programs print in documents, tables and figures, written anew
	$(BUILD) scripts/update-docs.sh

man:            ## manual pages, in target/man
	$(BUILD) cargo run --release --bin blklab -- man --out target/man

msrv:           ## the oldest supported compiler still compiles everything
	$(BUILD) scripts/msrv.sh

deny:           ## licences and known faults of dependencies
	$(BUILD) scripts/deny.sh

package:        ## every crate as it would be published, built from its package
	$(BUILD) cargo package --workspace

python:         ## the package for Python: its wheel, its tests
	$(TEST) scripts/python.sh test

site:           ## the docs as a site in target/site: pages, Python, Rust and command
	$(BUILD) scripts/python.sh site

web:            ## the script and style of reports, from their sources; needs node
	@scripts/web.sh

gallery:        ## the pictures of docs/gallery, and their pages in target/gallery
	$(BUILD) cargo build --release --bin blklab
	@scripts/gallery.sh target/release/blklab
