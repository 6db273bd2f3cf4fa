/*
 * resource.h - resource objects whose callbacks are tasks without a caller.
 */
#ifndef FAIR_RESOURCE_H
#define FAIR_RESOURCE_H

#include "task/task.h"

FAIR_HIDDEN fair_resource_type *fair__resource_open(
    ErlNifEnv *env, const fair_resource_options *options, size_t size);
FAIR_HIDDEN void *fair__resource_new(fair_resource_type *type, size_t size);

#endif
