/*
 * type.h - resource types of module fairnif.
 */
#ifndef FAIR_TYPE_H
#define FAIR_TYPE_H

#include "base/base.h"

FAIR_HIDDEN ErlNifResourceType *fair__open_type(ErlNifEnv *env,
                                                const char *name,
                                                ErlNifResourceTypeInit init);

#endif
