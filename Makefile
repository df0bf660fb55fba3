# `make bench` is the main job. `make check` is the short loop, `make test` runs everything that a
# change can break, `make nightly` the exhaustive rest. Each works as the first command on a fresh
# machine. BENCH goes to the command: `make bench BENCH="--server reference --full"`; the short
# windows of --quick are the default, so that a first look takes minutes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
BENCH ?= --quick
export PIP_DISABLE_PIP_VERSION_CHECK := 1

NATIVE := $(shell find reference_server harness/native -name '*.[ch]pp' -o -name CMakeLists.txt) CMakeLists.txt
# Folders, not files: an editable install follows edits, but must be told of new modules.
MODULES := $(shell find harness -type d -not -path '*/native*' -not -name __pycache__ -not -path '*/tests*')

# Python compiles each module once, also where the shell says otherwise: else every command that a test
# starts compiles all it imports. Before the stamps, as a folder of compiled modules makes its folder newer.
unexport PYTHONDONTWRITEBYTECODE
COMPILED = $(BIN)/python -m compileall -q -x /tests/ harness

.PHONY: help setup lock audit audit-answers bench check field field-eighth test nightly lint check-native test-compiled \
  test-native test-python test-shared test-timed sanitizers nightly-tests nightly-images nightly-liars nightly-clang \
  nightly-fuzz fuzz-keep fuzz-readers nightly-valgrind coverage mutants stability kills soak perf aa clean \
  needs needs-check needs-test needs-nightly

help:
	@echo "make bench    launch, attack, load and score the servers of images/; the main job"
	@echo "make check    the short loop: lint, types, the tests that start no process; about a minute"
	@echo "make test     everything that a change can break; 12 minutes on two cores, when built"
	@echo "make nightly  the exhaustive rest: sanitizers, clang, all golden lists, long fuzz"
	@echo "make field    builds, verifies and judges all servers of images/; hours, and it goes on where it was stopped"
	@echo "make setup    install the command as $(BIN)/httpmark"
	@echo "make lock     lock the versions and hashes of all packages, in requirements/"
	@echo "make audit    what the index of packages knows of weaknesses in those that are locked"
	@echo "make stability  whether servers get the same verdicts twenty times; hours"
	@echo "make kills    whether commands that are killed at any moment lose or leave anything; over an hour"
	@echo "make soak     an hour of mixed load with faults on each engine of the reference server; it must stay as it was"
	@echo "make fuzz-readers  a long search for what breaks the harness's readers; FUZZ_SECONDS each"
	@echo "make coverage which lines and branches of the server's parser and of the judge their tests reach"
	@echo "make mutants  which changes of the reference server no case notices; hours"
	@echo "make perf     benchmarks: the reference server, null, hyper and Go; the load generators"
	@echo "make aa       what this machine can tell apart: one server against itself, 40 times"
	@echo "make lint     ruff, mypy, clang-format"

# What the core needs of the system: installed with apt where root or sudo allows, else said.
define INSTALL
missing=""; \
for pair in $(1); do \
  what=$${pair%%:*}; package=$${pair##*:}; \
  case "$$what" in \
    */*) [ -e "$$what" ] || missing="$$missing $$package" ;; \
    py-venv) $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || missing="$$missing $$package" ;; \
    *) PATH="$$PATH:/usr/sbin" command -v "$$what" >/dev/null 2>&1 || missing="$$missing $$package" ;; \
  esac; \
done; \
[ -z "$$missing" ] && exit 0; \
command -v apt-get >/dev/null 2>&1 || { echo "httpmark: install the equivalents of these Debian packages, then call make again:$$missing" >&2; exit 3; }; \
if [ "$$(id -u)" = 0 ]; then as=""; elif sudo -n true 2>/dev/null; then as="sudo -n"; \
else echo "httpmark: run this, then call make again: sudo apt-get install$$missing" >&2; exit 3; fi; \
echo "installing$$missing"; \
$$as apt-get update -qq && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends$$missing >/dev/null \
  || { echo "httpmark: apt-get could not install$$missing; see above" >&2; exit 3; }
endef

needs:
	@[ "$$(uname -s)" = Linux ] \
	  || { echo "httpmark: it runs on Linux only, and this is $$(uname -s); use a Linux machine, a container or WSL 2" >&2; exit 3; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "httpmark: Python 3.11 or newer is needed as $(PYTHON); call make PYTHON=/path/to/python3" >&2; exit 3; }
	@$(call INSTALL,py-venv:python3-venv g++:g++ /usr/include/openssl/ssl.h:libssl-dev /usr/include/zlib.h:zlib1g-dev /usr/include/liburing.h:liburing-dev nginx:nginx-light)

needs-check: needs
	@$(call INSTALL,/usr/include/gtest/gtest.h:libgtest-dev cmake:cmake ninja:ninja-build)

needs-test: needs-check
	@$(call INSTALL,wrk:wrk h2load:nghttp2-client openssl:openssl)

needs-nightly: needs-test
	@$(call INSTALL,clang++:clang /usr/share/doc/libclang-rt-dev:libclang-rt-dev strace:strace)

$(BIN)/python:
	@$(MAKE) --no-print-directory needs
	$(PYTHON) -m venv $(VENV)

# Of packages, exactly what requirements/ locks, each with its hash. LOCKED=no takes what pyproject.toml allows,
# for an index that builds wheels of its own.
LOCKED ?= yes
PACKAGES = $(BIN)/pip install -q $(if $(filter no,$(LOCKED)),-r requirements/build.in,--require-hashes -r requirements/$(1).txt)
INSTALL_OURS = $(BIN)/pip install -q --no-build-isolation $(if $(filter no,$(LOCKED)),,--no-deps) --config-settings=build-dir=build/wheel

$(VENV)/.installed: $(BIN)/python pyproject.toml requirements/setup.txt $(NATIVE) $(MODULES)
	@$(MAKE) --no-print-directory needs
	$(call PACKAGES,setup)
	$(INSTALL_OURS) -e .
	@$(COMPILED)
	@touch $@

# With the compiler, the CMake and the warnings of the tests' build: so ccache, where it is there, compiles once
# what both have.
$(VENV)/.dev: $(BIN)/python pyproject.toml requirements/dev.txt $(NATIVE) $(MODULES)
	@$(MAKE) --no-print-directory needs
	$(call PACKAGES,dev)
	$(INSTALL_OURS) \
	  $(foreach one,CMAKE_CXX_COMPILER=$(CXX) HTTPMARK_SERVER_WERROR=ON HTTPMARK_NATIVE_WERROR=ON,--config-settings=cmake.define.$(one)) \
	  -e '.[dev]'
	@$(COMPILED)
	@touch $@ $(VENV)/.installed

setup: $(VENV)/.installed

# Locks the versions and hashes of requirements/*.txt; what is locked stays where it still fits. LOCK=--upgrade
# takes the newest, LOCK='--upgrade-package NAME' the newest of one.
LOCK ?=
COMPILE = build/uv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
  --custom-compile-command 'make lock' $(LOCK) pyproject.toml requirements/build.in
lock:
	@[ -x build/uv/bin/uv ] || { $(PYTHON) -m venv build/uv && build/uv/bin/pip install -q uv; }
	$(COMPILE) -o requirements/setup.txt
	$(COMPILE) --all-extras -c requirements/setup.txt -o requirements/dev.txt

# Asks the index for known weaknesses of each package that is locked. An index that knows of none in an old
# package that has some, or of no package at all, is no answer: audit-answers says so.
AUDIT = build/audit/bin/pip-audit --strict --no-deps --disable-pip --progress-spinner off
audit: audit-answers
	$(AUDIT) --require-hashes -r requirements/dev.txt

audit-answers:
	@[ -x build/audit/bin/pip-audit ] || { $(PYTHON) -m venv build/audit && build/audit/bin/pip install -q pip-audit; }
	@echo 'jinja2==2.4.1' >build/audit/weak.txt
	@$(AUDIT) -r build/audit/weak.txt 2>&1 | grep -q 'CVE-\|PYSEC-\|GHSA-' || \
	  { echo "audit: the index of packages tells of no weakness of jinja2 2.4.1, so it cannot tell of any"; exit 1; }

bench: setup
	$(BIN)/httpmark run $(BENCH)

# All servers of images/: built, judged and verified. A run that was stopped goes on when it is
# started again: FIELD is its folder.
FIELD ?= httpmark-runs/field
field: setup
	-$(BIN)/httpmark images build --all --runtime auto
	@if [ -e $(FIELD)/result.json ]; then $(BIN)/httpmark run --resume $(FIELD); \
	else $(BIN)/httpmark run --all --suite rfc --suite smuggling --suite resilience --profile pipelined --profile keepalive --out $(FIELD); fi
	$(BIN)/httpmark images verify --all

# The tests of C++ that need no process: what parses, frames and scans.
CHECK_NATIVE := server\.(chunked|content_coding|cookies|deflate|answer_head|error|event_stream|extensions|flags|form|frames|framing|handshake|json_writer|limits|mask|media_type|message_buffer|multipart|parser|response|router|session|syntax|uri|utf8|violation)_test|native_(load_(histogram|response|source|url)|probe_(frames|layout|response_framing)|shared_http_date)_test

check: needs-check $(VENV)/.dev
	@$(MAKE) --no-print-directory -j2 --output-sync=line lint check-native
	$(BIN)/pytest -n 2 --dist worksteal -m "not process and not timed and not nightly" $(ARGS)

test: needs-test $(VENV)/.dev
	@$(MAKE) --no-print-directory test-compiled
	@$(MAKE) --no-print-directory test-python

nightly: needs-nightly $(VENV)/.dev
	@$(MAKE) --no-print-directory nightly-tests nightly-images nightly-liars nightly-clang nightly-valgrind nightly-fuzz sanitizers

# Once: where a CMakeLists.txt changes, the build asks CMake again by itself.
CONFIGURED := build/release/build.ninja
$(CONFIGURED): CMakePresets.json | needs-check $(VENV)/.dev
	@$(BIN)/cmake --preset release -DCMAKE_CXX_COMPILER=$(CXX) -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	  -DPython3_EXECUTABLE=$(abspath $(BIN))/python >/dev/null
	@touch $@

check-native: $(CONFIGURED)
	cmake --build --preset release
	ctest --preset release -j2 -R '^($(CHECK_NATIVE))$$' --output-on-failure --progress

test-native: needs-test $(CONFIGURED)
	cmake --build --preset release
	ctest --preset release -j2
	@$(COUNT) build/release/Testing/Temporary/LastTest.log
	$(BIN)/pytest -m "not nightly" reference_server/tests $(ARGS)

# What the reference server's tests say at their end, summed up.
COUNT = awk '/ Test: / { scenarios = $$3 == "server.spec_test" } \
  /^[0-9]+ tests, [0-9]+ assertions$$/ { t += $$1; a += $$3; if (scenarios) { st = $$1; sa = $$3 } } \
  END { printf "reference server: the 21 scenarios %d tests, %d assertions; all %d tests, %d assertions\n", st, sa, t, a }'

test-compiled: needs-test $(CONFIGURED)
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory test-native

# Tests below reference_server/ ask what test-native builds, so they come after it.
# What measures time runs alone. All else shares both processors between four, as it mostly waits. It
# comes after the build: beside a compiler, tests wait longer than the time that they give.
test-python: $(VENV)/.dev
	@$(MAKE) --no-print-directory test-shared
	@$(MAKE) --no-print-directory test-timed

test-shared: $(VENV)/.dev
	$(call TOGETHER,4,-m "not timed and not nightly" harness/tests $(ARGS))

# $(1) tests at a time on two processors. The few of them that fail are asked again alone, and told.
define TOGETHER
$(BIN)/pytest -n $(1) --dist worksteal $(2) || { [ $$? = 1 ] && \
	  HTTPMARK_ALONE_MAX=12 $(BIN)/pytest --last-failed --last-failed-no-failures none $(2); }
endef

test-timed: $(VENV)/.dev
	$(BIN)/pytest -m "timed and not nightly" $(ARGS)

nightly-tests: $(VENV)/.dev
	@export HYPOTHESIS_PROFILE=nightly; $(call TOGETHER,2,-m nightly --ignore $(IMAGES) --ignore $(LIARS) $(ARGS))

# Each server of images/ that is not built on each change, as a process and as a container.
IMAGES := harness/tests/project/test_images.py
nightly-images: $(VENV)/.dev
	$(call TOGETHER,2,-m nightly $(IMAGES) $(ARGS))

# Every command that talks to a target, before every server that lies: an hour, most of it waiting.
LIARS := harness/tests/project/test_liars.py
nightly-liars: $(VENV)/.dev
	$(call TOGETHER,2,-m nightly $(LIARS) $(ARGS))

# An eighth of them, another one with each commit: what is verified on each change beside the servers
# that every run uses.
EIGHTH ?= $(shell expr $$(git rev-list --count HEAD) % 8)
field-eighth: $(VENV)/.dev
	@export HTTPMARK_EIGHTH=$(EIGHTH); $(call TOGETHER,2,-m nightly $(IMAGES) $(ARGS))

nightly-clang: needs-nightly
	cmake --preset clang >/dev/null
	cmake --build --preset clang
	ctest --preset clang -j2

# What reads a client's bytes, under valgrind: no read of what was never written or is gone, and no leak.
PARSERS := chunked content_coding cookies deflate error extensions form frames framing handshake mask media_type \
  message_buffer multipart parser scan session syntax uri utf8
nightly-valgrind: needs-test $(CONFIGURED)
	@$(call INSTALL,valgrind:valgrind)
	cmake --build --preset release --target $(foreach one,$(PARSERS),httpmark-server-$(one)_test)
	@for one in $(PARSERS); do \
	  said=$$(valgrind -q --error-exitcode=9 --leak-check=full \
	    build/release/reference_server/httpmark-server-$${one}_test --gtest_brief=1 2>&1) \
	    || { echo "$$said" | tail -60; exit 1; }; \
	  echo "valgrind: $$one: $$(echo "$$said" | grep '^[0-9]* tests, '), nothing found"; \
	done

# What their tests, and the replay of their corpora, reach of what reads a client's bytes and of the judge: lines
# and branches of each file.
REPLAYED := chunked content_coding form handshake multipart parser session
coverage: needs-check $(VENV)/.dev
	@$(BIN)/cmake --preset coverage -DCMAKE_CXX_COMPILER=$(CXX) -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja >/dev/null
	cmake --build --preset coverage --target $(foreach one,$(PARSERS),httpmark-server-$(one)_test) \
	  $(foreach one,$(REPLAYED),httpmark-server-$(one)_replay)
	@find build/coverage -name '*.gcda' -delete
	ctest --preset coverage -j2 -R '^server\.($(subst $() ,|,$(PARSERS)))_test$$|^server\.($(subst $() ,|,$(REPLAYED)))_fuzz_replay$$'
	$(BIN)/gcovr --filter 'reference_server/src/(http|scan|content|websocket)/' \
	  --exclude '.*/(answer_head|collected_form|date|event_|json_|response|text_|websocket_).*' \
	  --exclude-throw-branches --exclude-unreachable-branches --txt-summary --txt - build/coverage
	COVERAGE_FILE=build/coverage/judge $(BIN)/pytest -n 2 --dist worksteal -m "not timed and not nightly" \
	  --cov=harness/judging --cov-branch --cov-report=term harness/tests/judging $(ARGS)

# Each parser of the reference server, and each reader of answers in harness/native, FUZZ_SECONDS long, from the
# corpus that is kept: how many inputs it tried and how many edges of the code they reached. FUZZ_SEED=0: another
# search each time. What fails is kept in build/fuzz/found/.
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 0
nightly-fuzz: needs-nightly
	cmake --preset fuzz >/dev/null
	cmake --build --preset fuzz --target $(notdir $(SERVER_FUZZERS) $(NATIVE_FUZZERS))
	@$(call FUZZ,$(SERVER_FUZZERS),httpmark-server-,reference_server/tests/corpus)
	@$(call FUZZ,$(NATIVE_FUZZERS),,harness/native/tests/corpus)
	@$(MAKE) --no-print-directory fuzz-readers
SERVER_FUZZERS := $(foreach one,parser chunked connection response content_coding form multipart preconditions ranges \
  target_path handshake session,build/fuzz/reference_server/httpmark-server-$(one)_fuzz)
NATIVE_FUZZERS := $(foreach one,load_response probe_response_framing,build/fuzz/harness/native/tests/$(one)_fuzz)
# The programs, what their names begin with, and the folder of their corpora.
define FUZZ
for program in $(1); do \
  one=$${program##*/$(2)}; one=$${one%_fuzz}; log=build/fuzz/$$one.log; \
  mkdir -p build/fuzz/found/$$one; \
  $$program -max_total_time=$(FUZZ_SECONDS) -seed=$(FUZZ_SEED) -print_final_stats=1 \
    -artifact_prefix=build/fuzz/found/$$one- build/fuzz/found/$$one $(3)/$$one 2>$$log \
    || { tail -20 $$log; exit 1; }; \
  echo "$$one: $$(sed -n 's/^stat::number_of_executed_units: //p' $$log) inputs," \
    "$$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' $$log | tail -1) edges reached, no finding"; \
done
endef

# Adds to the kept corpora the fewest of the inputs that nightly-fuzz came by which reach edges that they do not.
fuzz-keep:
	@$(call KEEP,$(SERVER_FUZZERS),httpmark-server-,reference_server/tests/corpus)
	@$(call KEEP,$(NATIVE_FUZZERS),,harness/native/tests/corpus)
define KEEP
for program in $(1); do \
  one=$${program##*/$(2)}; one=$${one%_fuzz}; \
  [ -d build/fuzz/found/$$one ] || { echo "$$one: nothing was found yet: make nightly-fuzz"; continue; }; \
  $$program -set_cover_merge=1 -use_counters=0 -max_len=1000 $(3)/$$one build/fuzz/found/$$one 2>build/fuzz/$$one.log \
    || { tail -20 build/fuzz/$$one.log; exit 1; }; \
  echo "$$one: $$(sed -n 's/^MERGE-OUTER: \([0-9]* new files\) .*/\1/p' build/fuzz/$$one.log)"; \
done
endef

# The readers of the harness, FUZZ_SECONDS each, from the files that they read here.
fuzz-readers: $(VENV)/.dev
	$(BIN)/python -m httpmark.harness.tests.fuzz_readers --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) $(ARGS)

sanitizers: needs-test
	for preset in asan tsan; do \
	  cmake --preset $$preset >/dev/null && cmake --build --preset $$preset && ctest --preset $$preset -j2 || exit 1; \
	done

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p build/typing/httpmark
	@for folder in harness scenarios images reports reference_server; do ln -sfn ../../../$$folder build/typing/httpmark/$$folder; done
	MYPYPATH=build/typing $(BIN)/mypy -p httpmark.harness
	@if command -v clang-format >/dev/null 2>&1; then \
	  find reference_server harness/native -name '*.[ch]pp' | xargs clang-format --dry-run -Werror; \
	else echo "clang-format is not here: formatting of C++ not looked at"; fi

# A run that was stopped goes on when it is started again with the same seed.
MUTANTS ?= --seed 1 --count 200
mutants: needs-check $(VENV)/.dev
	$(BIN)/python -m httpmark.harness.tests.mutants $(MUTANTS)

# Stopped, it goes on where it was.
STABILITY ?= --rounds 20 --quick --busy
stability: $(VENV)/.dev
	$(BIN)/python -m httpmark.harness.tests.stability $(STABILITY)

# KILLS times. Another seed each time, which is told; KILLS_SEED=N takes that one.
KILLS ?= 200
KILLS_SEED ?=
kills: $(VENV)/.dev
	$(BIN)/python -m httpmark.harness.tests.kills --kills $(KILLS) $(if $(KILLS_SEED),--seed $(KILLS_SEED)) $(ARGS)
# For each engine so many seconds. ARGS="--engine uring --json FILE" for one of them, and all that was seen.
SOAK_S ?= 3600
soak: $(VENV)/.dev
	$(BIN)/python -m httpmark.harness.tests.soak --seconds $(SOAK_S) $(ARGS)

perf: setup
	@$(call INSTALL,wrk:wrk h2load:nghttp2-client strace:strace openssl:openssl nginx:nginx-light)
	$(BIN)/cmake -S . -B build/perf -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
	$(BIN)/cmake --build build/perf -j 2 --target httpmark-server httpmark-null httpmark-load httpmark-parser-bench httpmark-answer-bench
	$(BIN)/python reference_server/bench/figures.py build/perf
	$(BIN)/python reference_server/bench/websocket_figures.py build/perf
	$(BIN)/httpmark bench reference rust_hyper fasthttp go_net_http --profile keepalive --profile pipelined \
	  --path '/echo?hello=world' $(ARGS)
	$(BIN)/httpmark bench reference null rust_hyper go_net_http --profile pipelined $(ARGS)
	$(BIN)/httpmark bench reference null --profile pipelined --engine wrk $(ARGS)
	-$(BIN)/httpmark calibrate

# What this machine can tell apart: one server against itself.
aa: setup
	$(BIN)/httpmark compare reference --aa 40 --pairs 5 --quick $(ARGS)

clean:
	rm -rf $(VENV) build
