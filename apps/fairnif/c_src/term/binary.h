/*
 * binary.h - binaries that a task holds.
 */
#ifndef FAIR_BINARY_H
#define FAIR_BINARY_H

#include "task/task.h"

FAIR_HIDDEN void fair__bins_init(void);
FAIR_HIDDEN bool fair__bins_pause(struct fair__task *t);
/* As fair__hold_release. */
FAIR_HIDDEN unsigned fair__bins_release(struct fair__task *t, unsigned most);

/* Both structs are the same but for who may write. */
static inline fair_bin *fair__as_bin(fair_bytes *bytes)
{
    _Static_assert(sizeof(fair_bytes) == sizeof(fair_bin)
                   && offsetof(fair_bytes, size) == offsetof(fair_bin, size)
                   && offsetof(fair_bytes, ref) == offsetof(fair_bin, ref),
                   "one layout");
    return (fair_bin *)bytes;
}

FAIR_HIDDEN int fair__get_bytes(fair_task *pub, ERL_NIF_TERM term,
                                fair_bytes *bytes);
FAIR_HIDDEN int fair__new_bin(fair_task *pub, size_t size, fair_bin *bin);
FAIR_HIDDEN int fair__resize_bin(fair_task *pub, fair_bin *bin, size_t size);
FAIR_HIDDEN void fair__release_bin(fair_task *pub, fair_bin *bin);
FAIR_HIDDEN void fair__release_bytes(fair_task *pub, fair_bytes *bytes);
FAIR_HIDDEN ERL_NIF_TERM fair__make_bin(fair_task *pub, fair_bin *bin);
FAIR_HIDDEN ERL_NIF_TERM fair__make_bytes(fair_task *pub, fair_bytes *bytes);
/* Memory that is about to be freed gets lighter by up to `most`: its pages go
 * back to the system piece by piece, since all at once may take long. */
FAIR_HIDDEN unsigned fair__lighten(void *memory, size_t *size, unsigned most);

#endif
