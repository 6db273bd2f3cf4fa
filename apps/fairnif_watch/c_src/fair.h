/*
 * fair.h - the part of fairnif.h that a watchdog needs: see fair.c.
 */
#ifndef WATCH_FAIR_H
#define WATCH_FAIR_H

#include <erl_nif.h>
#include <stdint.h>

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

struct fair_visitor {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    const struct fair_ops *table;
    uint64_t which;
};

#endif
