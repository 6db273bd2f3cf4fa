/*
 * fair.h - the part of fairnif.h that a watchdog needs: see fair.c.
 */
#ifndef WATCH_FAIR_H
#define WATCH_FAIR_H

#include <erl_nif.h>

#include "read/common.h"

struct fair_running {
    uint32_t where, number;
    int32_t tid;
    uint32_t arity;
    const char *module, *name;
    uint64_t since_ns, yields;
    ErlNifPid owner;
};

struct fair_ops {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    unsigned (*running)(struct fair_running *list, size_t item_size,
                        unsigned most);
};

#define FAIR_VISITS 0xFA170002u
struct fair_visitor {
    uint32_t size, kind;
    uint16_t abi_major, abi_minor;
    const struct fair_ops *table;
    uint64_t which;
};

struct watch;

WATCH_HIDDEN const struct fair_ops *watch__fair_bind(ErlNifEnv *env,
                                                     ERL_NIF_TERM runtime);
WATCH_HIDDEN void watch__fair_look(struct watch *w);

#endif
