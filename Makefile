# A thin front: set-up by tools/setup, the build itself is meson's, in build/.
BUILD ?= build
PREFIX ?= /usr/local

.PHONY: all build demo test lint bench install update-goldens clean setup-build setup-test setup-lint setup-bench

all: build

setup-build:
	@tools/setup build
setup-test:
	@tools/setup build test
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
	@ninja -C $(BUILD) --quiet
	@echo "built $(BUILD)/whyslow"

demo: build
	@examples/demo $(BUILD)

test: setup-test
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@tools/run_tests $(BUILD)

lint: setup-lint
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@tools/lint $(BUILD)

bench: setup-bench build
	@bench/run $(BUILD)

install: build
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@meson install -C $(BUILD)

# Writes what the CLI tests print now over what they expect; read the diff before you commit it.
update-goldens: build
	@python3 tests/cli/runner.py --update --whyslow $(BUILD)/whyslow

clean:
	rm -rf $(BUILD) whyslow-out
