/*
 * copy.h - terms that are copied: how large is one, and where may that be done?
 */
#ifndef FAIR_COPY_H
#define FAIR_COPY_H

#include "task/task.h"

enum { FAIR__COPY_WORDS = 4096 };   /* are copied in place: some 10 us */

/* It is copied as it is, and takes a few words. */
FAIR_HIDDEN bool fair__has_no_parts(ErlNifEnv *env, ERL_NIF_TERM term);
FAIR_HIDDEN bool fair__term_is_small(ErlNifEnv *env, ERL_NIF_TERM term);
/* It is too large for a normal scheduler, which this is. */
FAIR_HIDDEN bool fair__copy_on_dirty(ErlNifEnv *env, ERL_NIF_TERM term);
/* Takes the size of terms, in words as far as matters, off *left; false when
 * they are larger. */
FAIR_HIDDEN bool fair__terms_fit(ErlNifEnv *env, const ERL_NIF_TERM *terms,
                                 unsigned count, long *left);
FAIR_HIDDEN ERL_NIF_TERM fair__copy(fair_task *pub, ErlNifEnv *to,
                                    ERL_NIF_TERM term);
FAIR_HIDDEN ERL_NIF_TERM fair__copy_at_once(fair_task *pub, ErlNifEnv *to,
                                            ERL_NIF_TERM term);

#endif
