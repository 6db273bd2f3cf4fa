# fairnif: the targets that a stranger guesses; `make help` lists them.
#
# `make demo` and `make test` do all their own set-up on a fresh Debian 12 machine. What rebar3 says
# while it builds goes to stderr: stdout holds what the target is for (of bench-json: JSON only).

SIZE         ?= 536870912
SOAK_SECONDS ?= 600
SOAK_KILLS   ?= 1000000
SOAK_TASKS   ?= 100000
WATCH_SECONDS ?= 3600
WATCH_HOLDS ?= 200
WATCH_STARTS ?= 300
WATCH_NAMES ?= 1000
NEWEST_SECONDS ?= 2400
REBAR        ?= rebar3
DIST         ?= trixie
RUNS         ?= 10
MIX          ?= mix
ABREAST      ?= $(shell echo $$(($$(nproc) + 1)))

ALL_EXAMPLES := $(patsubst %/rebar.config,%,$(wildcard examples/*/rebar.config))
# Those in Rust are skipped, aloud, where there is no Rust for them.
SKIPPED      := $(shell tools/setup rust 2>/dev/null || echo $(filter examples/rust_%,$(ALL_EXAMPLES)))
EXAMPLES     := $(filter-out $(SKIPPED),$(ALL_EXAMPLES))
skip          = for example in $(SKIPPED); do echo "$$example: skipped: there is no Rust for it" >&2; done
MIX_PROJECTS := $(patsubst %/mix.exs,%,$(wildcard elixir/*/mix.exs examples/*/mix.exs))
JUDGING      := elixir/fairnif_lab examples/elixir_spinsleep

# No Mix project here has a dependency from Hex. Should Mix keep anything all the same, it does so
# here and not in the user's home.
export MIX_HOME ?= $(CURDIR)/_build/mix

# A test module or suite says in an attribute how it must be run. -tests(alone): it is about time, and
# wants both cores for itself. -tests(nodes): it starts nodes, takes long, and is not for check-fast.
# Nothing said: it runs beside others.
comma        := ,
EUNIT_TESTS   = apps/*/test/*_tests.erl
SUITES        = apps/*/test/*_SUITE.erl
alone         = $(shell grep -lE '^-tests\(alone\)' $(1))
beside        = $(shell grep -LE '^-tests\(alone\)' $(1))
TIMED_EXAMPLES = $(patsubst %/test/,%,$(dir $(call alone,examples/*/test/*_tests.erl)))
fast          = $(shell grep -LE '^-tests\((alone|nodes)\)' $(1))
empty        :=
commas        = $(subst $(empty) $(empty),$(comma),$(strip $(1)))
# In a folder of its own, so that Common Test may run beside it: rebar3 compiles tests anew for each.
eunit         = $(REBAR) as eunit eunit --module=$(call commas,$(basename $(notdir $(1))))
ct            = $(REBAR) ct --suite $(call commas,$(1))

.PHONY: help test-rust test-zig deps deps-test deps-http compile examples page all demo http test test-beside test-alone \
	check-fast test-c test-c-fast test-platforms test-eunit test-eunit-beside test-eunit-alone test-eunit-fast \
	test-ct test-ct-beside test-ct-alone test-page test-page-beside test-page-alone \
	test-examples test-examples-beside test-examples-alone test-elixir test-elixir-beside test-elixir-alone \
	test-stranger test-stranger-beside test-stranger-alone test-otp test-newest \
	test-erlang test-erlang-eunit test-erlang-ct \
	bench bench-json zoo manners soak sanitize coverage lint lint-fast \
	docs site clean

# Most targets meet in the same build directories. tools/abreast runs those that do not.
.NOTPARALLEL:

help:           ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: compile   ## a large NIF call beside Erlang work, fair and unfair [SIZE=bytes]
	@(cd examples/bitwise && $(REBAR) compile) >&2
	@bin/fairnif demo --size $(SIZE)

http: deps-http examples  ## a web server under load beside native code, six minutes
	@bin/fairnif lab http

# What is not about time runs abreast, one target more than there are processors, since most wait as
# much as they work; then what is about time runs alone: docs/internals/testing.md says what meets
# where. Each runner is a target of its own, and runs though another has failed.
test: test-beside test-alone  ## all tests and lint

# The longest first.
test-beside: deps-test deps-http all
	@tools/setup platforms
	@tools/setup browser
	@tools/abreast $(ABREAST) test-ct-beside test-eunit-beside test-c test-platforms \
		test-stranger-beside test-page-beside test-examples-beside \
		test-elixir-beside test-rust test-zig lint

test-alone: deps-test deps-http all
	@tools/abreast 1 test-eunit-alone test-ct-alone test-examples-alone test-elixir-alone \
		test-stranger-alone test-page-alone

check-fast: deps-test all  ## lint but dialyzer, C under ASan and UBSan, EUnit without nodes: 3 minutes
	@tools/abreast $(ABREAST) test-c-fast lint-fast test-eunit-fast

test-otp:       ## the same on another Debian release's Erlang, as root [DIST=trixie or sid]
	@tools/test_otp $(DIST)

# For CI, beside `make test` on the release it has.
test-newest:    ## as root: what Erlang there is to test and not about time, on Debian's newest Erlang
	@TARGETS=test-erlang timeout --kill-after=60 $(NEWEST_SECONDS) tools/test_otp sid; \
	case $$? in \
		0) ;; \
		3) echo "test-newest: 0 passed, 0 failed, 1 skipped: the newest Erlang was not tested" ;; \
		124) echo "test-newest: not over after $(NEWEST_SECONDS) s"; exit 1 ;; \
		*) exit 1 ;; \
	esac

# Without the pages, which no release changes; nor do storms and soaks have to do with one.
test-erlang: test-erlang-eunit test-erlang-ct

test-erlang-eunit: deps-test deps-http examples
	$(call eunit,$(call beside,$(EUNIT_TESTS)))

test-erlang-ct: deps-test deps-http examples
	$(call ct,$(filter-out %_soak_SUITE.erl %_storm_SUITE.erl,$(call beside,$(SUITES))))

bench: examples  ## side by side with other ways to do the same work
	@$(MAKE) -s -C bench >&2
	@bin/fairnif bench

bench-json: examples  ## the same, as JSON on stdout
	@$(MAKE) -s -C bench >&2
	@bin/fairnif bench --json -

zoo: deps-test compile  ## checks functions with known manners: are the verdicts right? [RUNS=10 LOAD=2]
	@$(REBAR) as test compile >&2
	@RUNS=$(RUNS) erl +S 1:1 -noinput -pa _build/test/lib/*/ebin _build/test/lib/fairnif_lab/test \
		-eval 'fairnif_lab_zoo:main()'

manners: compile  ## checks OTP's own functions, adds this release to docs/manners.md [ROWS=words TIME_MS=1000]
	@erl +S 1:1 -noinput -pa _build/default/lib/*/ebin \
		-eval 'fairnif_lab_manners:main("docs/manners.md")'

lint: lint-fast  ## warnings as errors, xref, dialyzer, edoc, shellcheck, style
	$(REBAR) dialyzer
	@echo "lint: nothing found"

lint-fast: deps-test all
	@tools/check_style
	@tools/check_layers
	@tools/check_states
	@tools/c_reference --check
	@tools/check_workflows
	@shellcheck $$(grep -lE '^#!.*[/ ](ba)?sh( |$$)' .ci/* bin/* tools/*)
	$(REBAR) xref
	@tools/check_calls
	@tools/docs >/dev/null
	@tools/setup page
	@$(MAKE) -s -C page check
	@for project in $(MIX_PROJECTS); do \
		(cd $$project && $(MIX) format --check-formatted) || exit 1; \
	done

docs: deps      ## reference of the Erlang modules, in _build/docs
	@$(REBAR) compile >&2
	@tools/docs

site: docs      ## the documentation as a site with search, in _build/site/html
	@tools/setup site
	@tools/site

clean:          ## removes everything built
	@$(MAKE) -s -C apps/fairnif/c_src clean
	@$(MAKE) -s -C apps/fairnif_driver/c_src clean
	@$(MAKE) -s -C apps/fairnif_watch/c_src/test clean
	@$(MAKE) -s -C page clean
	@for example in $(ALL_EXAMPLES); do $(MAKE) -s -C $$example clean || exit 1; done
	rm -rf $(addsuffix /_build,$(MIX_PROJECTS))
	rm -rf _build rebar.lock examples/*/rebar.lock rust/target

soak: deps-test all  ## for long [SOAK_SECONDS=600 SOAK_KILLS=1000000 SOAK_TASKS=100000 WATCH_SECONDS=3600 WATCH_HOLDS=200 WATCH_STARTS=300 WATCH_NAMES=1000]
	SOAK_SECONDS=$(SOAK_SECONDS) SOAK_KILLS=$(SOAK_KILLS) SOAK_TASKS=$(SOAK_TASKS) \
		WATCH_SECONDS=$(WATCH_SECONDS) WATCH_HOLDS=$(WATCH_HOLDS) WATCH_STARTS=$(WATCH_STARTS) \
		WATCH_NAMES=$(WATCH_NAMES) \
		$(REBAR) ct --suite \
		$$(echo apps/*/test/*_soak_SUITE.erl apps/fairnif_watch/test/*_storm_SUITE.erl \
			apps/fairnif/test/fairnif_scale_SUITE.erl \
			apps/fairnif_watch/test/*_names_SUITE.erl | tr ' ' ',')

# -Z without a nightly compiler. Some tests forget what they own: that leaks.
RUST_ASAN = RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0

sanitize:       ## the C unit tests under ASan+UBSan, TSan and valgrind, longer storms
	@tools/setup sanitize
	$(MAKE) -C apps/fairnif/c_src sanitize
	WATCH_STORM=4 $(MAKE) -C apps/fairnif_watch/c_src/test test
	@if tools/setup rust; then cd rust && $(RUST_ASAN) cargo test --quiet --package fairnif --lib \
		--target $$(rustc -vV | sed -n 's/^host: //p'); fi

coverage: deps-test deps-http all  ## which lines the C tests and EUnit run, by folder and application
	@tools/coverage

compile: deps   ## the applications
	@$(REBAR) compile >&2

examples: compile  ## the examples, which some experiments call
	@tools/setup examples
	@$(skip)
	@for example in $(EXAMPLES); do (cd $$example && $(REBAR) compile) >&2 || exit 1; done

# Who has no Node.js and cannot install it still gets everything but the pages.
all: examples   ## the applications, the examples, the pages
	@$(MAKE) -s page || echo "the pages are not built: all works but --html and --http" >&2

page:           ## the report page and the live page; needs Node.js 18 and npm
	@tools/setup page
	@$(MAKE) -s -C page >&2

deps:           ## the Debian packages that building and running need
	@tools/setup build

deps-test:      ## those that testing needs as well
	@tools/setup test

# A web server and what loads it: one experiment, and its tests.
deps-http: deps
	@tools/setup http
	@tools/cowboy

# Compilers and emulators of processors give way to what runs beside them: EUnit gives a test 5 s.
test-c: deps-test
	nice $(MAKE) -C apps/fairnif/c_src test
	nice $(MAKE) -C apps/fairnif_watch/c_src/test test

test-c-fast: deps-test
	$(MAKE) -C apps/fairnif/c_src test
	WATCH_STORM=0.25 $(MAKE) -C apps/fairnif_watch/c_src/test all SANITIZE=address,undefined

test-platforms:  ## the C tests for other processors, C libraries, systems
	@tools/setup platforms
	nice $(MAKE) -C apps/fairnif/c_src platforms

# The experiments run the examples.
test-eunit: deps-test deps-http all
	$(REBAR) eunit

test-eunit-beside: deps-test deps-http all
	$(call eunit,$(call beside,$(EUNIT_TESTS)))

test-eunit-alone: deps-test deps-http all
	$(call eunit,$(call alone,$(EUNIT_TESTS)))

test-eunit-fast: deps-test all
	$(call eunit,$(call fast,$(EUNIT_TESTS)))

test-ct: deps-test all
	$(REBAR) ct

test-ct-beside: deps-test all
	$(call ct,$(call beside,$(SUITES)))

test-ct-alone: deps-test all
	$(call ct,$(call alone,$(SUITES)))

# Every experiment, quick, and checks: their reports, and live nodes, looked at in Chromium.
test-page: test-page-beside test-page-alone

test-page-beside: deps-test deps-http all
	@tools/setup browser
	$(MAKE) -C page test-reports

test-page-alone: deps-test all
	@tools/setup browser
	$(MAKE) -C page test-live

test-examples: test-examples-beside test-examples-alone

test-examples-beside: TESTED = $(filter-out $(TIMED_EXAMPLES),$(EXAMPLES))
test-examples-alone: TESTED = $(TIMED_EXAMPLES)
test-examples-beside test-examples-alone: deps-test
	@$(skip)
	@status=0; for example in $(TESTED); do \
		echo "$$example:"; $(MAKE) -C $$example test || status=1; \
	done; exit $$status

# Warnings are errors here, and not where these are somebody's dependencies. Some judge a NIF.
test-elixir: test-elixir-beside test-elixir-alone  ## the Mix projects: elixir/ and the example

test-elixir-beside: TESTED = $(filter-out $(JUDGING),$(MIX_PROJECTS))
test-elixir-alone: TESTED = $(JUDGING)
test-elixir-beside test-elixir-alone: deps-test all
	@status=0; for project in $(TESTED); do \
		echo "$$project:"; \
		(cd $$project && MIX_ENV=test $(MIX) compile --warnings-as-errors && $(MIX) test) \
			|| status=1; \
	done; exit $$status

# The library that the VM's tests of it load is fairnif_rust_tests' own.
test-rust:      ## the Rust crate; skipped, aloud, where there is no Rust for it
	@if tools/setup rust; then cd rust && nice cargo test --quiet \
		&& { ! cargo clippy --version >/dev/null 2>&1 || nice cargo clippy --quiet -- -D warnings; } \
		&& RUSTDOCFLAGS=-Dwarnings nice cargo doc --quiet --package fairnif --no-deps; \
	else echo "test-rust: 0 passed, 0 failed, 1 skipped: there is no Rust for it"; fi

test-zig: deps-test compile  ## what the guide shows in Zig; skipped, aloud, where there is none
	@tools/zig_test

test-stranger: test-stranger-beside test-stranger-alone

test-stranger-beside: deps-test
	@tools/stranger_test example mix watch languages git packages

# Their `make check' judges a NIF.
test-stranger-alone: deps-test
	@tools/stranger_test new new-mix
