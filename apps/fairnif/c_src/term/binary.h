/*
 * binary.h - binaries that a task holds.
 */
#ifndef FAIR_BINARY_H
#define FAIR_BINARY_H

#include "task/task.h"

FAIR_HIDDEN void fair__bins_init(void);
FAIR_HIDDEN bool fair__bins_pause(struct fair__task *t);
FAIR_HIDDEN void fair__bins_release(struct fair__task *t);

FAIR_HIDDEN int fair__get_bin(fair_task *pub, ERL_NIF_TERM term,
                              fair_bin *bin);
FAIR_HIDDEN int fair__new_bin(fair_task *pub, size_t size, fair_bin *bin);
FAIR_HIDDEN int fair__resize_bin(fair_task *pub, fair_bin *bin, size_t size);
FAIR_HIDDEN void fair__release_bin(fair_task *pub, fair_bin *bin);
FAIR_HIDDEN ERL_NIF_TERM fair__make_bin(fair_task *pub, fair_bin *bin);

#endif
