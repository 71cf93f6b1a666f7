# Spillway: every command of the project. `make help` lists the targets.
#
# Conventions that keep this file short:
#   ROOM/**/NAME.c           goes into libROOM.a (rooms: sched protocols proxy loadgen bench)
#   ROOM/**/NAME_main.c      becomes the program build/VARIANT/bin/NAME, linked with the rooms it may use
#   tests/unit/ROOM/test_X.c, tests/property/ROOM/test_X.c  are cmocka programs, linked with what ROOM may use
#   tests/fuzz/ROOM/fuzz_X.c is a libFuzzer target
# VARIANT is `release`, or the sanitizers' names when SANITIZER=... is given.

SHELL := /bin/bash
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.SECONDEXPANSION:

SANITIZER ?=
BUILD ?= build
comma := ,
VARIANT := $(if $(SANITIZER),$(subst $(comma),-,$(SANITIZER)),release)
OUT := $(BUILD)/$(VARIANT)

CC := gcc
FUZZ_CC := clang
WARNINGS := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
DEFINES := -D_GNU_SOURCE
# Only when the packages are there: `make deps` and `make help` work before them.
PKGS := libevent_core libevent_extra libtirpc libcyaml jansson openssl libnghttp2 yaml-0.1
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
OPTIMISE := $(if $(SANITIZER),-O1 -fno-omit-frame-pointer,-O2)
CFLAGS = -std=gnu11 -g $(OPTIMISE) $(WARNINGS) $(DEFINES) -I. $(PKG_CFLAGS) -pthread \
         $(if $(SANITIZER),-fsanitize=$(SANITIZER) -fno-sanitize-recover=all) $(EXTRA_CFLAGS)
LDFLAGS = -pthread $(if $(SANITIZER),-fsanitize=$(SANITIZER))
LIBS_sched := -lm
LIBS_protocols := $(LIBS_sched)
LIBS_proxy = $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm
LIBS_loadgen = $(shell pkg-config --libs libevent_core jansson openssl libnghttp2 yaml-0.1 2>/dev/null) -lm
LIBS_bench = $(LIBS_loadgen)

# ---------------------------------------------------------------- rooms and what each may use
ROOMS := sched protocols proxy loadgen bench
USES_sched := sched
USES_protocols := protocols
USES_proxy := proxy protocols sched
USES_loadgen := loadgen protocols
USES_bench := bench loadgen protocols sched

sources = $(sort $(filter-out %_main.c,$(shell find $(1) -name '*.c' 2>/dev/null)))
mains = $(sort $(shell find $(1) -name '*_main.c' 2>/dev/null))
archive = $(OUT)/lib/lib$(1).a
archives = $(foreach r,$(USES_$(1)),$(if $(call sources,$(r)),$(call archive,$(r))))

ALL_SOURCES := $(sort $(shell find $(ROOMS) tests -name '*.c' -o -name '*.h' 2>/dev/null))
PROGRAMS :=
TESTS :=

.PHONY: all
all: ## build every program

define room_rules
OBJS_$(1) := $$(patsubst %.c,$(OUT)/obj/%.o,$$(call sources,$(1)))
$(call archive,$(1)): $$(OBJS_$(1))
	@mkdir -p $$(@D)
	@rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(if $(call sources,$(r)),$(eval $(call room_rules,$(r)))))

define program_rules
PROGRAMS += $(OUT)/bin/$(3)
$(OUT)/bin/$(3): $(OUT)/obj/$(2:.c=.o) $(call archives,$(1))
	@mkdir -p $$(@D)
	@echo "  LD    $$@"
	@$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LIBS_$(1))
endef
$(foreach r,$(ROOMS),$(foreach m,$(call mains,$(r)),$(eval $(call program_rules,$(r),$(m),$(patsubst %_main.c,%,$(notdir $(m)))))))

define test_rules
TESTS += $(OUT)/tests/$(2:tests/%.c=%)
$(OUT)/tests/$(2:tests/%.c=%): $(OUT)/obj/$(2:.c=.o) $(call archives,$(1))
	@mkdir -p $$(@D)
	@echo "  LD    $$@"
	@$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LIBS_$(1)) -lcmocka $$(if $$(filter protocols,$(1)),-ltirpc)
endef
$(foreach r,$(ROOMS),$(foreach t,$(sort $(wildcard tests/unit/$(r)/test_*.c tests/unit/$(r)/*/test_*.c tests/property/$(r)/test_*.c)),\
  $(eval $(call test_rules,$(r),$(t)))))

$(OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(OUT)/obj -name '*.d' 2>/dev/null)

# The files that are built into the load tools.
EMBEDDED := $(wildcard conf/profiles/*.yaml conf/traces/*.trace)
$(OUT)/obj/loadgen/embedded/embedded.o $(BUILD)/fuzz/obj/loadgen/embedded/embedded.o: $(EMBEDDED)

all: $(PROGRAMS)

# ---------------------------------------------------------------- fuzz targets (clang, libFuzzer + ASan + UBSan)
FUZZ_OUT := $(BUILD)/fuzz
FUZZ_SECONDS ?= 10
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/*/fuzz_*.c))
FUZZ_TARGETS := $(patsubst tests/fuzz/%.c,$(FUZZ_OUT)/bin/%,$(FUZZ_SOURCES))
FUZZ_FLAGS = -std=gnu11 -g -O1 $(DEFINES) -I. $(PKG_CFLAGS) -fsanitize=address,undefined -fno-sanitize-recover=all -pthread

$(FUZZ_OUT)/obj/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	@$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
$(FUZZ_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	@$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
define fuzz_rules
$(FUZZ_OUT)/bin/$(2:tests/fuzz/%.c=%): $(FUZZ_OUT)/obj/$(2:.c=.o) \
    $(foreach r,$(USES_$(1)),$(patsubst %.c,$(FUZZ_OUT)/obj/%.o,$(call sources,$(r))))
	@mkdir -p $$(@D)
	@echo "  FUZZ  $$@"
	@$(FUZZ_CC) $$(FUZZ_FLAGS) -fsanitize=fuzzer -o $$@ $$^ $$(LIBS_$(1)) $$(if $$(filter protocols,$(1)),-ltirpc -lhttp_parser)
endef
$(foreach r,$(ROOMS),$(foreach f,$(filter tests/fuzz/$(r)/%,$(FUZZ_SOURCES)),$(eval $(call fuzz_rules,$(r),$(f)))))
-include $(shell find $(FUZZ_OUT)/obj -name '*.d' 2>/dev/null)
.SECONDARY:

.PHONY: fuzz build-fuzz
build-fuzz: $(FUZZ_TARGETS)
fuzz: $(FUZZ_TARGETS) ## fuzz every parser for FUZZ_SECONDS (default 10) each
	@for t in $(FUZZ_TARGETS); do n=$$(basename $$t); \
	  corpus=$(FUZZ_OUT)/corpus/$$n; mkdir -p $$corpus; seeds=tests/fuzz/seeds/$$n; \
	  echo "== $$n"; $$t -max_total_time=$(FUZZ_SECONDS) -timeout=5 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
	     -artifact_prefix=$(FUZZ_OUT)/ $$corpus $$( [ -d $$seeds ] && echo $$seeds ) || exit 1; done
	@echo "fuzz: $(words $(FUZZ_TARGETS)) targets, $(FUZZ_SECONDS) s each, nothing found"

# ---------------------------------------------------------------- tests
ROOM ?=
PYTEST ?= /usr/bin/python3 -m pytest -q -p no:cacheprovider
CHOSEN_TESTS = $(if $(ROOM),$(foreach t,$(TESTS),$(if $(findstring /$(ROOM)/,$(t)),$(t))),$(TESTS))
export ASAN_OPTIONS ?= detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS ?= halt_on_error=1:allocator_may_return_null=1:suppressions=$(CURDIR)/tests/tsan.supp

.PHONY: build-tests unit
build-tests: $(TESTS)
unit: $$(CHOSEN_TESTS) ## unit and property tests (ROOM=sched for one room; SANITIZER=address,undefined)
	@failed=; for t in $(CHOSEN_TESTS); do echo "== $${t#$(OUT)/tests/}"; $$t || failed="$$failed $$t"; done; \
	  if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

.PHONY: integration
integration: all ## tests on real peers: nginx, nfs-ganesha, libnfs, curl, a kernel NFS client (T=path for one)
	@$(if $(SANITIZER),$(MAKE) --no-print-directory SANITIZER= $(BUILD)/release/bin/spillload)
	@SPILLWAY_BIN=$(abspath $(OUT))/bin SPILLWAY_PLAIN_BIN=$(abspath $(BUILD))/release/bin \
	  $(PYTEST) $(or $(T),tests/integration tests/fault)

.PHONY: lint format format-check tidy
lint: format-check tidy ## format check and clang-tidy
format: ## rewrite every source in the project's format
	@clang-format -i $(ALL_SOURCES)
format-check:
	@clang-format --dry-run -Werror $(ALL_SOURCES)
TIDY_STAMPS := $(patsubst %.c,$(BUILD)/tidy/%.ok,$(filter %.c,$(ALL_SOURCES)))
tidy: $(TIDY_STAMPS)
$(BUILD)/tidy/%.ok: %.c .clang-tidy
	@mkdir -p $(@D)
	@echo "  TIDY  $<"
	@clang-tidy --quiet --warnings-as-errors='*' $< -- -std=gnu11 $(DEFINES) -I. $(PKG_CFLAGS) 2>$@.log || { cat $@.log; exit 1; }
	@$(CC) -std=gnu11 $(DEFINES) -I. $(PKG_CFLAGS) -MM -MP -MT $@ -MF $(@:.ok=.d) $<
	@touch $@
-include $(shell find $(BUILD)/tidy -name '*.d' 2>/dev/null)

# On every core, unless the caller has said how many jobs to run.
PARALLEL = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))
.PHONY: check
check: deps ## every test: lint, unit, property, fuzz, integration, under the sanitizers (SANITIZER=... for one alone)
ifeq ($(SANITIZER),)
	@$(MAKE) --no-print-directory $(PARALLEL) lint all
	@$(MAKE) --no-print-directory $(PARALLEL) SANITIZER=address,undefined all build-tests
	@$(MAKE) --no-print-directory SANITIZER=address,undefined unit
	@$(MAKE) --no-print-directory $(PARALLEL) SANITIZER=thread all build-tests
	@$(MAKE) --no-print-directory SANITIZER=thread unit
	@$(MAKE) --no-print-directory $(PARALLEL) build-fuzz
	@$(MAKE) --no-print-directory fuzz
	@$(MAKE) --no-print-directory SANITIZER=thread integration T=tests/integration/test_threads.py
	@$(MAKE) --no-print-directory SANITIZER=address,undefined integration
else
	@$(MAKE) --no-print-directory $(PARALLEL) all build-tests
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory integration
endif
	@echo "check: all passed"

# ---------------------------------------------------------------- the demo and the benches
.PHONY: demo
demo: deps ## the main job on embedded services: two flows, without and with scheduling, HTTP and NFS
	@$(MAKE) --no-print-directory $(PARALLEL) all
	@SPILLWAY_BIN=$(abspath $(OUT))/bin /usr/bin/python3 bench/demo.py

.PHONY: figures
figures: deps ## the figures of the paper's evaluation, simulated: CSV and PNG in build/figures
	@$(MAKE) --no-print-directory $(OUT)/bin/spillsim
	@SPILLWAY_BIN=$(abspath $(OUT))/bin /usr/bin/python3 bench/sim/figures.py $(BUILD)/figures

.PHONY: report
report: deps ## what the programs do on this machine, in about five minutes: build/report/index.html
	@$(MAKE) --no-print-directory $(PARALLEL) all
	@SPILLWAY_BIN=$(abspath $(OUT))/bin /usr/bin/python3 bench/report/make_report.py $(BUILD)/report

BENCHES := $(patsubst bench/bench_%.py,%,$(wildcard bench/bench_*.py))
.PHONY: bench $(BENCHES:%=bench-%)
$(BENCHES:%=bench-%): bench-%: all
	@mkdir -p $(BUILD)/bench
	@SPILLWAY_BIN=$(abspath $(OUT))/bin SPILLWAY_RESULTS=$(abspath $(BUILD))/bench /usr/bin/python3 bench/bench_$*.py
bench: $(BENCHES:%=bench-%) ## every bench, then one table (bench-NAME for one)
	@/usr/bin/python3 bench/table.py $(BUILD)/bench

# ---------------------------------------------------------------- set-up, installing, cleaning
DEPS := build-essential pkg-config libevent-dev libtirpc-dev libcyaml-dev libyaml-dev libjansson-dev uthash-dev \
        libcmocka-dev libhttp-parser-dev clang clang-tidy clang-format libclang-rt-14-dev llvm-14 \
        python3 python3-pytest python3-yaml nginx-light haproxy nfs-ganesha nfs-ganesha-vfs libnfs-utils libnfs-dev rpcbind \
        user-mode-linux busybox-static nfs-common curl wrk iproute2 strace procps util-linux kmod \
        gnuplot-nox libssl-dev libnghttp2-dev nghttp2-server nghttp2-client openssl
.PHONY: deps
deps: ## install what is missing (Debian packages; as root or through sudo)
	@missing=; for p in $(DEPS); do \
	  dpkg-query -W -f '$${db:Status-Status}' $$p 2>/dev/null | grep -qx installed || missing="$$missing $$p"; done; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ]; then as=; elif command -v sudo >/dev/null; then as=sudo; else \
	  echo "make deps: missing packages:$$missing" >&2; \
	  echo "make deps: neither root nor sudo here; run as root: apt-get install --no-install-recommends$$missing" >&2; exit 1; fi; \
	echo "installing:$$missing"; \
	$$as apt-get update -q && $$as env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -q --no-install-recommends $$missing

PREFIX ?= /usr/local
DESTDIR ?=
.PHONY: install
install: all install-library ## install programs, man pages, samples and the scheduling library under PREFIX (default /usr/local)
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man{1,5,8} \
	  $(DESTDIR)$(PREFIX)/share/doc/spillway
	install -m 755 $(OUT)/bin/spillway $(OUT)/bin/spillctl $(DESTDIR)$(PREFIX)/sbin
	install -m 755 $(OUT)/bin/spillload $(OUT)/bin/spillorigin $(OUT)/bin/spillsim $(DESTDIR)$(PREFIX)/bin
	for s in 1 5 8; do install -m 644 conf/man/*.$$s $(DESTDIR)$(PREFIX)/share/man/man$$s; done
	install -m 644 conf/*.yaml conf/spillway.service README.md CHANGELOG.md LICENSE docs/*.md $(DESTDIR)$(PREFIX)/share/doc/spillway
	for d in workloads profiles traces; do install -d $(DESTDIR)$(PREFIX)/share/doc/spillway/$$d; \
	  install -m 644 conf/$$d/* $(DESTDIR)$(PREFIX)/share/doc/spillway/$$d; done

# The library is one object of which only what its headers name is visible: its inner functions can't
# collide with those of a program that links it.
LIBRARY_HEADERS := sched/sched.h sched/feedback/feedback.h sched/window/window.h
LIBRARY := $(OUT)/lib/libspillway-sched.a
VERSION = $(shell sed -n 's/^\#define SPILLWAY_VERSION "\(.*\)"/\1/p' proxy/control/version.h)
$(LIBRARY): $(OBJS_sched) $(LIBRARY_HEADERS)
	@mkdir -p $(@D)
	@grep -ohE '\bsched_[a-z0-9_]+' $(LIBRARY_HEADERS) | sort -u >$(@:.a=.names)
	@$(CC) -r -nostdlib -o $(@:.a=.o) $(OBJS_sched)
	@objcopy --keep-global-symbols=$(@:.a=.names) $(@:.a=.o)
	@rm -f $@ && ar rcs $@ $(@:.a=.o)

.PHONY: install-library
install-library: $(LIBRARY) ## install the scheduling library alone: headers, libspillway-sched.a, spillway-sched.pc
	install -d $(DESTDIR)$(PREFIX)/include/spillway $(DESTDIR)$(PREFIX)/lib/pkgconfig \
	  $(DESTDIR)$(PREFIX)/share/doc/spillway/examples
	install -m 644 $(LIBRARY_HEADERS) $(DESTDIR)$(PREFIX)/include/spillway
	install -m 644 $(LIBRARY) $(DESTDIR)$(PREFIX)/lib
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' conf/spillway-sched.pc.in \
	  >$(DESTDIR)$(PREFIX)/lib/pkgconfig/spillway-sched.pc
	install -m 644 docs/examples/fair_share.c $(DESTDIR)$(PREFIX)/share/doc/spillway/examples

.PHONY: clean help
clean: ## remove everything that was built
	rm -rf $(BUILD)
help: ## this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'
	@for b in $(BENCHES); do printf '  make %-14s %s\n' bench-$$b "$$(sed -n '2s/^"""//p' bench/bench_$$b.py | sed 's/"""$$//')"; done
