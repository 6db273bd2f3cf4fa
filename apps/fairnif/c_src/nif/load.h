/*
 * load.h - how an author's library finds the runtime.
 */
#ifndef FAIR_LOAD_H
#define FAIR_LOAD_H

#include "base/base.h"

FAIR_HIDDEN void fair__bind_library(ErlNifEnv *env,
                                    struct fair__question *is);
/* What an author's library says once its load or upgrade is over. */
FAIR_HIDDEN void fair__library_loaded(int error);

#endif
