# A thin front: set-up by tools/setup, the build itself is meson's, in build/.
BUILD ?= build
PREFIX ?= /usr/local

.PHONY: all build demo test truth clean-root lint analyze fixtures bench install update-goldens clean setup-build setup-test setup-truth setup-lint setup-bench

all: build

setup-build:
	@tools/setup build
setup-test:
	@tools/setup build test
setup-truth:
	@tools/setup build test truth programs
setup-lint:
	@tools/setup build test lint
setup-bench:
	@tools/setup build bench

# The stamp is ninja's file: meson is asked once, ninja asks it again when a meson.build changes.
$(BUILD)/build.ninja:
	@meson setup $(BUILD) --prefix=$(PREFIX) >$(BUILD).setup.log 2>&1 || { cat $(BUILD).setup.log; rm -f $(BUILD).setup.log; exit 1; }
	@rm -f $(BUILD).setup.log

build: setup-build
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet product
	@echo "built $(BUILD)/whyslow"

demo: build
	@examples/demo $(BUILD)

test: setup-test
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@tools/run_tests $(BUILD)

# What measures this machine: one at a time, on a machine as quiet as it can be; then clean-root, for as long as is left.
# What is installed for it is part of its time.
truth:
	@begun=$$(date +%s); $(MAKE) --no-print-directory setup-truth && \
	    $(MAKE) --no-print-directory $(BUILD)/build.ninja && \
	    tools/run_tests $(BUILD) --truth --begun $$begun

lint: setup-lint
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@tools/lint $(BUILD)

# The two commands of the README in the root of a fresh machine, alone: a network and root.
clean-root: setup-truth
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@tools/run_tests $(BUILD) --truth 'truth/clean-root-*'

# Follows all ways through every function: minutes, and few findings.
analyze: setup-lint
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@tools/lint $(BUILD) --analyze

# Stored recordings that tests/replay reads, made anew; on a quiet machine.
fixtures: setup-test
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) fixtures

bench: setup-bench build
	@ninja -C $(BUILD) --quiet bench-programs
	@bench/run $(BUILD)

install: build
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@ninja -C $(BUILD) --quiet product
	@meson install -C $(BUILD) --no-rebuild

# Writes what the CLI tests print now over what they expect; read the diff before you commit it.
update-goldens: build
	@ninja -C $(BUILD) --quiet make-recordings
	@python3 tests/cli/runner.py --update --whyslow $(BUILD)/whyslow

clean:
	rm -rf $(BUILD) whyslow-out
