/*
 * load.h - how an author's library finds the runtime.
 */
#ifndef FAIR_LOAD_H
#define FAIR_LOAD_H

#include "base/base.h"

FAIR_HIDDEN void fair__bind_library(ErlNifEnv *env,
                                    struct fair__handshake *hs);
FAIR_HIDDEN const struct fair__ops *fair__ops(void);

#endif
