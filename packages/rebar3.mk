# The usual targets, for those who type make; rebar3 does the work.

REBAR ?= rebar3

.PHONY: all compile test clean

all: compile

compile:
	$(REBAR) compile

test:
	$(REBAR) eunit

clean:
	rm -rf _build priv
