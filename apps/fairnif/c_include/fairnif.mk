# fairnif.mk: builds NIF libraries in C and C++, for rebar3, Mix and by hand. An author's Makefile is
#
#   NAME := tally
#   include $(firstword $(wildcard $(addsuffix /fairnif.mk,...)) fairnif.mk)
#
# (in full: docs/reference/building.md). Before the include it may add to CPPFLAGS, LDFLAGS, LDLIBS (-lz)
# and set SOURCES. With one NAME the library is built from all sources beside the Makefile; with several, each
# from the source of its name. Nothing is linked: the runtime passes its functions at load.
#
# From the environment or the command line:
#   CC, CFLAGS, CXX, CXXFLAGS, CPPFLAGS, LDFLAGS, LDLIBS  as usual
#   FAIR_DEBUG           1: the debug build, which reports broken rules
#   PRIV_DIR, BUILD_DIR  where libraries and objects go: in Mix below MIX_APP_PATH, else ../priv and
#                        ../_build/c_src
#   FAIRNIF_INCLUDE_DIR  where fairnif.h is; default: beside this file
#   ERTS_INCLUDE_DIR     where erl_nif.h is; default: what Erlang says, asked when something is compiled

ifndef NAME
$(error fairnif.mk: set NAME to the name of the library, before the include)
endif

# At once: what is included later would be the last.
ifndef FAIRNIF_INCLUDE_DIR
FAIRNIF_INCLUDE_DIR := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
endif
ifndef ERTS_INCLUDE_DIR
ERTS_INCLUDE_DIR = $(eval ERTS_INCLUDE_DIR := $(shell erl -noshell -eval \
	'io:format("~ts/erts-~ts/include", [code:root_dir(), erlang:system_info(version)]), \
	halt().'))$(ERTS_INCLUDE_DIR)
endif
# fairdrv.h, where that application is beside this one: as a checkout, a package, a folder of a repository.
FAIRNIF_DRIVER := $(wildcard $(FAIRNIF_INCLUDE_DIR)/../../fairnif_driver/c_include \
	$(FAIRNIF_INCLUDE_DIR)/../../../../fairnif_driver/apps/fairnif_driver/c_include)

CFLAGS    ?= -O3 -g
CXXFLAGS  ?= $(CFLAGS)
PRIV_DIR  ?= $(or $(MIX_APP_PATH:%=%/priv),../priv)
BUILD_DIR ?= $(or $(MIX_APP_PATH:%=%/c_src),../_build/c_src)

BUILD   := $(BUILD_DIR)/$(if $(FAIR_DEBUG),debug,usual)
BUILT   := $(NAME:%=$(BUILD)/%.so)
SOURCES ?= $(wildcard $(if $(word 2,$(NAME)),$(NAME:%=%.c) $(NAME:%=%.cpp),*.c *.cpp))
OBJECTS := $(patsubst %,$(BUILD)/%.o,$(basename $(SOURCES)))

FAIRNIF_COMPILER := $(firstword $(if $(filter %.cpp,$(SOURCES)),$(CXX),$(CC)))
ifeq ($(filter clean,$(MAKECMDGOALS))$(shell command -v $(FAIRNIF_COMPILER) 2>/dev/null),)
$(error $(FAIRNIF_COMPILER), the compiler, is not in PATH: on Debian install gcc and libc6-dev, or g++; \
	on Alpine build-base; on macOS run xcode-select --install)
endif

# -fstack-clash-protection: a too large frame meets the guard below the task's stack and is
# reported, instead of reaching past it. -fno-omit-frame-pointer: perf sees who called.
# -MMD: what includes a header that changed, fairnif.h too, is compiled again.
FAIRNIF_DARWIN := $(findstring darwin,$(shell $(CC) -dumpmachine))
FAIRNIF_FLAGS = -Wall -Wextra -fPIC -fvisibility=hidden -fno-omit-frame-pointer \
	$(if $(FAIRNIF_DARWIN),,-fstack-clash-protection) $(if $(FAIR_DEBUG),-DFAIR_DEBUG) \
	$(addprefix -I,$(FAIRNIF_INCLUDE_DIR) $(FAIRNIF_DRIVER)) -isystem $(ERTS_INCLUDE_DIR) -MMD -MP
FAIRNIF_LINK := $(strip -shared $(if $(FAIRNIF_DARWIN),-undefined dynamic_lookup))

.PHONY: all clean

# A library is replaced in one step: a node may have it.
all: $(BUILT)
	@for name in $(NAME); do \
		built=$(BUILD)/$$name.so to=$(PRIV_DIR)/$$name.so; mkdir -p "$${to%/*}" || exit 1; \
		cmp -s $$built $$to || { cp $$built $$to.new && mv $$to.new $$to; } || exit 1; \
	done

ifeq ($(words $(NAME)),1)
$(BUILT): $(OBJECTS)
else
$(BUILT): %.so: %.o
endif
$(BUILT):
	@mkdir -p $(@D)
	$(if $(filter %.cpp,$(SOURCES)),$(CXX) $(CXXFLAGS),$(CC) $(CFLAGS)) $(LDFLAGS) \
		$(FAIRNIF_LINK) -o $@ $^ $(LDLIBS)

$(BUILD)/%.o: %.c $(MAKEFILE_LIST)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CPPFLAGS) $(CFLAGS) $(FAIRNIF_FLAGS) -c -o $@ $<

$(BUILD)/%.o: %.cpp $(MAKEFILE_LIST)
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(CPPFLAGS) $(CXXFLAGS) $(FAIRNIF_FLAGS) -c -o $@ $<

clean:
	rm -rf $(NAME:%=$(PRIV_DIR)/%.so) $(BUILD_DIR)

-include $(OBJECTS:.o=.d)
