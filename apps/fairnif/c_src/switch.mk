# Which file of task/arch/ switches between a scheduler's stack and a task's:
#
#   x86_64, aarch64   assembly, for ELF and, where it is asked for, macOS (not tried there yet)
#   ucontext          the C library's, for any other processor
#   none              no tasks: every mode runs as a plain dirty NIF
#
# Chosen by what the compiler builds for; FAIRNIF_SWITCH=... overrides it, in
# the environment or as an argument of make.

TARGET := $(shell $(CC) -dumpmachine)
PROCESSOR := $(firstword $(subst -, ,$(TARGET)))
HERE := $(dir $(lastword $(MAKEFILE_LIST)))

# musl has no ucontext; what it builds for Linux has ELF like any other.
ELF := $(if $(findstring linux,$(TARGET))$(findstring bsd,$(TARGET)),yes)
FAIRNIF_SWITCH ?= $(strip $(if $(ELF),\
    $(if $(wildcard $(HERE)task/arch/$(PROCESSOR).S),$(PROCESSOR),\
    $(if $(findstring musl,$(TARGET)),none,ucontext)),none))

SWITCH_SOURCE = $(firstword $(wildcard $(HERE)task/arch/$(FAIRNIF_SWITCH).[Sc]))
ifeq ($(SWITCH_SOURCE),)
$(error FAIRNIF_SWITCH is "$(FAIRNIF_SWITCH)": there are $(sort $(basename \
    $(notdir $(wildcard $(HERE)task/arch/*.[Sc])))))
endif

SWITCH_FLAGS = -DFAIR_SWITCH='"$(FAIRNIF_SWITCH)"' \
    $(if $(filter none,$(FAIRNIF_SWITCH)),-DFAIR_NO_TASKS)
# task/arch/none.c stands in for them.
NOT_WITH_SWITCH = $(if $(filter none,$(FAIRNIF_SWITCH)),\
    $(HERE)task/stack.c $(HERE)task/overflow.c)

# The runtime's folders, each above those before it: `make lint` sees that includes go down only.
LAYERS = base thread task term wait life resource nif
RUNTIME_SOURCES = $(filter-out $(NOT_WITH_SWITCH),\
    $(wildcard $(LAYERS:%=$(HERE)%/*.c))) $(SWITCH_SOURCE)
