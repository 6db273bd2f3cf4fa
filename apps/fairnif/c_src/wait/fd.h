/*
 * fd.h - descriptors: what Erlang holds of one, who uses it, when it is closed.
 */
#ifndef FAIR_FD_H
#define FAIR_FD_H

#include "wait/waiters.h"

struct fair__fd_use {           /* a descriptor that a task got */
    struct fair__fd *fd;
    struct fair__fd_use *next;
};

FAIR_HIDDEN ERL_NIF_TERM fair__adopt_fd(fair_task *pub, int fd);
FAIR_HIDDEN int fair__get_fd(fair_task *pub, ERL_NIF_TERM term, int *fd);
FAIR_HIDDEN int fair__close_fd(fair_task *pub, ERL_NIF_TERM term);
/* As fair__hold_release. */
FAIR_HIDDEN unsigned fair__fds_release(struct fair__task *t, unsigned most);

FAIR_HIDDEN bool fair__fd_open_types(ErlNifEnv *env);
FAIR_HIDDEN struct fair__fd *fair__fd_new(const struct fair__task *t, int fd,
                                          int *error);
FAIR_HIDDEN struct fair__fd *fair__fd_used(const struct fair__task *t,
                                           int fd);
FAIR_HIDDEN void fair__fd_shut(struct fair__fd *f, ErlNifEnv *env);
FAIR_HIDDEN int fair__fd_select(struct fair__fd *f, ErlNifEnv *env,
                                enum ErlNifSelectFlags what,
                                const ErlNifPid *to, ERL_NIF_TERM message);
FAIR_HIDDEN int fair__fd_unselect(struct fair__fd *f, ErlNifEnv *env,
                                  enum ErlNifSelectFlags what);

#endif
