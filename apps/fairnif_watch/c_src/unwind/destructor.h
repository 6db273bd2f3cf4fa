/*
 * destructor.h - the resource type whose destructor a function is.
 */
#ifndef WATCH_DESTRUCTOR_H
#define WATCH_DESTRUCTOR_H

#include <erl_nif.h>

#include "read/common.h"

struct watch__types {
    uint64_t own;               /* ours, one of the VM's ring; 0: not known how
                                   they are made */
    unsigned destructor, module, name;  /* which word of a type */
};

/* Of our own type, its destructor, module and name */
WATCH_HIDDEN void watch__types_learn(struct watch__types *types,
                                     const void *own, uint64_t destructor,
                                     ERL_NIF_TERM module, ERL_NIF_TERM name);
/* Is the function that begins there the destructor of a resource type?  Two
 * atoms. */
WATCH_HIDDEN bool watch__type_of(const struct watch__types *types,
                                 uint64_t function, ERL_NIF_TERM *module,
                                 ERL_NIF_TERM *name);

#endif
