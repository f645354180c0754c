# Everything here installs what it needs (scripts/setup.sh), so that it works
# on a fresh machine.
.PHONY: help run test check bench fuzz conform update-golden clean

help:           ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 18

run: setup      ## the main job: ssh-like readers beside a dd, published numbers beside ours
	cargo run --quiet --release --bin blklab -- reproduce ltt-2009-ssh || test $$? = 1

test: setup     ## formatting, lints, all tests
	scripts/test.sh

check: setup    ## formatting and lints alone
	scripts/lint.sh

bench: setup    ## benchmarks of every crate
	cargo bench --workspace

conform: setup  ## measured cases carried in the project against the model
	cargo run --quiet --release --bin blklab -- conform testdata/legacy/cases

fuzz: setup     ## ten minutes of fuzzing per parser
	scripts/fuzz.sh 600

.PHONY: setup
setup:
	@scripts/setup.sh
