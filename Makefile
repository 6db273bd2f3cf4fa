# fairnif: the targets that a stranger guesses; `make help` lists them.
#
# `make demo` and `make test` do all their own set-up on a fresh Debian 12 machine. What rebar3 says
# while it builds goes to stderr: stdout holds what the target is for (of bench-json: JSON only).

SIZE         ?= 536870912
SOAK_SECONDS ?= 600
SOAK_KILLS   ?= 1000000
SOAK_TASKS   ?= 100000
WATCH_SECONDS ?= 3600
WATCH_BLOCKS ?= 200
WATCH_STARTS ?= 300
WATCH_NAMES ?= 1000
NEWEST_SECONDS ?= 2400
REBAR        ?= rebar3
DIST         ?= trixie
RUNS         ?= 10
MIX          ?= mix
VERSION      := $(shell sed -n 's/.*{vsn, *"\([^"]*\)"}.*/\1/p' apps/fairnif/src/fairnif.app.src)
RELEASE      ?= https://github.com/fairnif/fairnif/releases/download/v$(VERSION)

# The examples, which `make test' builds and tests; the packages run in `make test-full'.
TEACHING     := bitwise cleanup counter_server driver echo levenshtein lists rust_markdown \
	spinsleep tcp
PROJECTS     := $(patsubst %/rebar.config,%,$(wildcard examples/*/rebar.config packages/*/rebar.config))
MIX_PROJECTS := $(patsubst %/mix.exs,%,$(wildcard elixir/*/mix.exs))
# These judge a NIF, and so are about time.
JUDGING      := elixir/fairnif_check

# No Mix project here has a dependency from Hex. Should Mix keep anything all the same, it does so
# here and not in the user's home.
export MIX_HOME ?= $(CURDIR)/_build/mix

.PHONY: help deps deps-test deps-http compile examples packages page precompiled hex all tests demo http \
	check-fast test test-full test-touched test-otp test-newest test-erlang \
	test-c-runtime test-c-real test-c-watch test-c-watch-vm test-c-watch-plain \
	test-platforms test-platforms-link test-rust test-loom test-zig test-page test-page-live \
	test-page-nodes test-examples test-spinsleep test-example-projects test-elixir \
	test-elixir-check test-package test-precompiled test-demo test-mix test-install test-container test-new-projects \
	demo-built bench bench-json bench-rust test-verdicts survey-otp soak sanitize coverage lint lint-fast dialyzer \
	docs site clean

# Warnings are errors here, and not where these are somebody's (fairnif.mk).
examples packages tests test-example-% test-package-%: export CPPFLAGS += -Werror

# Most targets meet in the same build directories. tools/run_lanes runs those that do not.
.NOTPARALLEL:

help:           ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo:           ## a large NIF call beside Erlang work, fair and unfair [SIZE=bytes]
	@tools/setup demo
	@if command -v $(REBAR) >/dev/null; then \
		$(MAKE) -s compile && (cd examples && EXAMPLES=bitwise $(REBAR) compile) >&2 \
			&& bin/fairnif demo --size $(SIZE); \
	else \
		$(MAKE) -s -j$$(nproc) demo-built >&2 && FAIRNIF_BUILT=demo bin/fairnif demo --size $(SIZE); \
	fi

# Without rebar3, as Debian's brings a graphical toolkit of 640 MB.
demo-built:
	@for app in apps/fairnif apps/fairnif_check apps/fairnif_experiments apps/fairnif_cli examples/bitwise; do \
		to=_build/demo/lib/$${app##*/}; mkdir -p $$to/ebin $$app/priv; \
		for dir in priv include; do ln -sfn ../../../../$$app/$$dir $$to/$$dir; done; \
		[ ! -d $$app/c_src ] || $(MAKE) -s -C $$app/c_src \
			FAIRNIF_INCLUDE_DIR=$(CURDIR)/apps/fairnif/c_include || exit 1; \
		ERL_LIBS=_build/demo/lib erlc +debug_info -I $$app/include -pa $$to/ebin -o $$to/ebin \
			$$(find $$app/src -name '*.erl' | sort) || exit 1; \
		cp $$app/src/*.app.src $$to/ebin/$${app##*/}.app; \
	done

http: deps-http examples  ## a web server under load beside native code, six minutes
	@bin/fairnif experiment http

# Which lanes each of these runs, and when, says tools/lanes.
check-fast: deps-test  ## between two edits: lint, C under ASan and UBSan, EUnit without nodes
	@tools/run_lanes fast

test: deps-test  ## for each change: all that protects a user from a lost node or a wrong answer
	@tools/run_lanes test

test-full: deps-test all  ## before a release: everything but soak and test-verdicts
	@tools/setup platforms
	@tools/run_lanes full

test-touched: tests all  ## of test-full what a change touches, as CI does [BASE=commit]
	@tools/setup platforms
	@tools/run_lanes touched $(BASE)

test-otp:       ## `make test' on another Debian release's Erlang, as root [DIST=trixie or sid]
	@tools/test_otp $(DIST)

test-newest:    ## as root: Erlang's tests that are not about time, on Debian's newest Erlang
	@TARGETS=test-erlang timeout --kill-after=60 $(NEWEST_SECONDS) tools/test_otp sid; \
	case $$? in \
		0) ;; \
		3) echo "test-newest: 0 passed, 0 failed, 1 skipped: the newest Erlang was not tested" ;; \
		124) echo "test-newest: not over after $(NEWEST_SECONDS) s"; exit 1 ;; \
		*) exit 1 ;; \
	esac

test-erlang: tests
	@tools/run_lanes newest

bench: bench-rust  ## side by side with other ways to do the same work
	@bin/fairnif bench

bench-json: bench-rust  ## the same, as JSON on stdout
	@bin/fairnif bench --json -

bench-rust: examples packages
	@$(MAKE) -s -C apps/fairnif_experiments/c_src rust >&2

test-verdicts: deps-test compile  ## checks functions with known manners: are the verdicts right? [RUNS=10 LOAD=2]
	@$(REBAR) as test compile >&2
	@RUNS=$(RUNS) erl +S 1:1 -noinput -pa _build/test/lib/*/ebin _build/test/lib/fairnif_check/test \
		-eval 'fairnif_check_zoo:main()'

survey-otp: compile  ## checks OTP's own functions, adds this release to survey/otp.md [ROWS=words TIME_MS=1000]
	@erl +S 1:1 -noinput -pa _build/default/lib/*/ebin \
		-eval 'fairnif_check_manners:main("survey/otp.md")'

lint: lint-fast dialyzer  ## warnings as errors, xref, dialyzer, edoc, shellcheck, style

dialyzer: compile
	$(REBAR) dialyzer

lint-fast: deps-test compile
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
	@tools/check_snippets

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
	rm -rf $(addsuffix /_build,examples packages $(PROJECTS) $(MIX_PROJECTS))
	rm -rf $(addsuffix /priv,$(PROJECTS)) $(addsuffix /rebar.lock,$(PROJECTS))
	rm -rf _build rebar.lock rust/target

soak: deps-test all  ## for long [SOAK_SECONDS=600 SOAK_KILLS=1000000 SOAK_TASKS=100000 WATCH_SECONDS=3600 WATCH_BLOCKS=200 WATCH_STARTS=300 WATCH_NAMES=1000]
	SOAK_SECONDS=$(SOAK_SECONDS) SOAK_KILLS=$(SOAK_KILLS) SOAK_TASKS=$(SOAK_TASKS) \
		WATCH_SECONDS=$(WATCH_SECONDS) WATCH_BLOCKS=$(WATCH_BLOCKS) WATCH_STARTS=$(WATCH_STARTS) \
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

# The hooks of rebar3 run make, for the C: on all processors.
compile: deps   ## the applications
	@MAKEFLAGS=$${MAKEFLAGS:--j$$(nproc 2>/dev/null || echo 1)} $(REBAR) compile >&2

examples: compile  ## the examples, which some experiments call [EXAMPLES=names]
	@tools/setup examples
	@cd examples && $(REBAR) compile >&2

packages: compile  ## the packages: libraries to install
	@tools/setup examples
	@cd packages && $(REBAR) compile >&2

# RELEASE: where the archives are going to be, for those who install them.
precompiled: compile  ## libraries for six systems, in _build/precompiled, which `make hex' then names [RELEASE=url]
	@tools/setup zig
	@rm -rf _build/precompiled
	@for app in fairnif fairnif_check fairnif_driver fairnif_watch; do \
		from=apps/$$app/c_src/precompiled to=_build/precompiled/$$app; mkdir -p $$to; \
		cp apps/fairnif_cli/priv/templates/precompiled/c_src/precompiled $$from && \
		PATH="$(CURDIR)/_build/zig/bin:$$PATH" \
			escript $$from build $$app $(VERSION) $(RELEASE) || exit 1; \
		mv $$from apps/$$app/_build/precompiled/precompiled.config $$to; \
		mv apps/$$app/_build/precompiled/*.tar.gz _build/precompiled; \
	done

hex: page       ## what is to be published on Hex, and a registry of it, in _build/hex [HEX_PORT: serves it there]
	@rm -rf _build/hex
	@tools/hex _build/hex $(HEX_PORT)

# The tests, and the libraries that they load: once, before many run at the same time.
tests: deps-test deps-http compile
	@$(REBAR) as test compile >&2
	@cd examples && EXAMPLES="$(TEACHING)" $(REBAR) as test compile >&2
	@for module in fairnif_test fairnif_test_driver fairnif_check_zoo fairnif_watch_test; do \
		erl -noinput -pa _build/test/lib/*/ebin _build/test/lib/*/test \
			-eval "ok = $$module:build(), halt()." || exit 1; \
	done

# Who has no Node.js and cannot install it still gets everything but the pages.
all: examples packages  ## the applications, the examples, the packages, the pages
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

test-c-runtime:
	$(MAKE) -C apps/fairnif/test/c

test-c-real:
	$(MAKE) -C apps/fairnif/test/c real

test-c-watch:
	WATCH_STORM=0.25 $(MAKE) -C apps/fairnif_watch/c_src/test all SANITIZE=address,undefined

test-c-watch-vm:
	$(MAKE) -C apps/fairnif_watch/c_src/test in_vm
	WATCH_STORM=0.25 $(MAKE) -C apps/fairnif_watch/c_src/test threads

test-c-watch-plain:
	$(MAKE) -C apps/fairnif_watch/c_src/test all

test-platforms-link:
	@tools/setup platforms
	$(MAKE) -C apps/fairnif/test/c link

test-platforms:
	@tools/setup platforms
	$(MAKE) -C apps/fairnif/c_src platforms

# The pages: reports from recorded figures; from experiments and checks that run here and now; and
# live nodes. The last is about time.
test-page: deps-test page
	@tools/setup browser
	REPORTS="latency matrix share" $(MAKE) -C page test-reports

test-page-live: deps-test deps-http all
	@tools/setup browser
	LIVE=1 $(MAKE) -C page test-reports

test-page-nodes: deps-test all
	@tools/setup browser
	$(MAKE) -C page test-live

# A VM for each, as each changes what is the VM's.
test-examples: tests
	@status=0; for example in $(filter-out spinsleep,$(TEACHING)); do \
		modules=$$(basename -s .erl -a examples/$$example/test/*_tests.erl); \
		tools/run_tests $$modules || status=1; \
	done; exit $$status

test-spinsleep: tests
	@tools/run_tests spinsleep_tests

# As a user does, each in its own folder.
test-example-%: deps-test compile
	cd examples/$* && LARGE=1 $(REBAR) eunit

test-package-%: deps-test compile
	LARGE=1 $(MAKE) -C packages/$* test
	[ ! -f packages/$*/mix.exs ] || { cd packages/$* && $(MIX) test; }

test-example-projects:
	@status=0; for example in $(TEACHING); do \
		$(MAKE) test-example-$$example || status=1; \
	done; exit $$status

# Warnings are errors here, and not where these are somebody's dependencies.
test-elixir: PROJECTS = $(filter-out $(JUDGING),$(MIX_PROJECTS))
test-elixir-check: PROJECTS = $(JUDGING)
test-elixir-check: SCRIPT = ../../examples/spinsleep/spinsleep.exs
test-elixir test-elixir-check: deps-test all
	@status=0; for project in $(PROJECTS); do \
		echo "$$project:"; \
		(cd $$project && MIX_ENV=test $(MIX) compile --warnings-as-errors && $(MIX) test \
			$(if $(SCRIPT),&& MIX_ENV=test $(MIX) run $(SCRIPT))) || status=1; \
	done; exit $$status

# The library that the VM's tests of it load is fairnif_rust_tests' own.
test-rust:      ## the Rust crate; skipped, aloud, where there is no Rust for it
	@if tools/setup rust; then cd rust && cargo test --quiet --workspace --exclude fairnif_loom \
		&& { ! cargo clippy --version >/dev/null 2>&1 || cargo clippy --quiet -- -D warnings; } \
		&& RUSTDOCFLAGS=-Dwarnings cargo doc --quiet --package fairnif --no-deps; \
	else echo "test-rust: 0 passed, 0 failed, 1 skipped: there is no Rust for it"; fi

# What wakes a call, in every order of its threads.
test-loom:
	@if tools/setup rust; then cd rust && cargo test --quiet --package fairnif_loom; \
	else echo "test-loom: 0 passed, 0 failed, 1 skipped: there is no Rust for it"; fi

test-zig: deps-test compile  ## what the guide shows in Zig; skipped, aloud, where there is none
	@tools/zig_test

# One stranger for each build tool.
test-package: deps-test
	@tools/install_test packages packages-mix

# Six systems' libraries, users without a compiler, and other systems' nodes.
test-precompiled: deps-test
	@tools/install_test precompiled loaded

test-demo: deps-test
	@tools/install_test demo

test-mix: deps-test
	@tools/install_test mix

test-container: # a node in a container, scraped by Prometheus: as root
	@tools/container_test

test-install: deps-test
	@tools/install_test example watch languages git crate

# Their `make check' judges a NIF.
test-new-projects: deps-test
	@tools/install_test new new-mix
