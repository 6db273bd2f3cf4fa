/*
 * type.h - the types of fair resources, and what each load of a library
 * says of them.
 */
#ifndef FAIR_RESOURCE_TYPES_H
#define FAIR_RESOURCE_TYPES_H

#include "task/task.h"

enum kind { CLEANUP, DOWN, STOP, KINDS };

/* What one load of a library said of a type. */
struct fair__version {
    fair_resource_options options;  /* what an older header lacks is zero */
    struct fair__lib lib;
    struct fair__nif nifs[KINDS];
    /* under the types' lock */
    unsigned uses;              /* callbacks, and 1 of the type */
    void *pin;                  /* once another one has its place */
};

/* What a library has of a type: those that say the same `size` have the same.
 * Never freed: code of an older one may still run. */
struct fair__view {
    fair_resource_type pub;
    struct fair__type *type;
    struct fair__view *next;
};

/* Of one of the VM's types, which has a name in a module; never freed.  What the
 * VM has freed may come again, at the same address. */
struct fair__type {
    ErlNifResourceType *vm;
    const char *module, *name;
    fair__u64 refused;          /* objects, each time: too small */
    /* under the types' lock */
    struct fair__view *views;
    struct fair__version *version;
    struct fair__version *opened;   /* by the load that is under way */
    struct fair__type *next;
    /* under the waiting lock */
    unsigned max_concurrent;           /* 0: the default */
    unsigned under_way;
    uint64_t due;
    struct fair__object *first, *last;  /* that wait for a turn */
    /* learned: how long they take, with a leaning to the longest */
    fair__u64 cost_ns[KINDS];
    fair__u64 objects;
};

/* Up to this many of its callbacks may be under way. */
FAIR_HIDDEN uint64_t fair__type_max_concurrent(const struct fair__type *type);
/* The author's functions, as of now; NULL when he has none of this kind, or
 * none for an object of that size. fair__version_unuse ends its use, and
 * answers what the caller must then release, if anything. */
FAIR_HIDDEN struct fair__version *fair__version_use(struct fair__type *type,
                                                    enum kind kind,
                                                    size_t size);
FAIR_HIDDEN void *fair__version_unuse(struct fair__version *version);
/* One of the VM's objects, zeroed; waits for memory. */
FAIR_HIDDEN void *fair__new_pin(ErlNifResourceType *type, size_t size);

/* Opens one in the load under way.  `calls` has what the VM calls for its
 * objects, and `body` is that of the callbacks' tasks. */
FAIR_HIDDEN fair_resource_type *fair__type_open(
    ErlNifEnv *env, const fair_resource_options *options, size_t size,
    ErlNifResourceTypeInit calls, fair_body body);

/* Loads come one after the other.  A library begins to be loaded: what it opens
 * is its own. */
FAIR_HIDDEN void fair__resource_loading(const char *module,
                                        const struct fair__ops *ops,
                                        ErlNifResourceType *task_type);
/* It is loaded, or was refused. */
FAIR_HIDDEN void fair__resource_loaded(int error);

struct fair__seen_type {        /* for readers: a copy */
    const char *module, *name;  /* never freed */
    uint64_t objects;           /* that there are */
    uint64_t due, under_way;    /* callbacks */
    unsigned max_concurrent;
    uint64_t refused;
};
/* Copies what is to be seen of as many types as fit; how many there are. */
FAIR_HIDDEN unsigned fair__resource_types(struct fair__seen_type *all,
                                          unsigned most);

#endif
