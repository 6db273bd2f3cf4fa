/*
 * private.h - the table for applications of the runtime's own.
 */
#ifndef FAIR_PRIVATE_H
#define FAIR_PRIVATE_H

#include "base/base.h"
#include "fairnif_private.h"

FAIR_HIDDEN extern const struct fair__private fair__private;

#endif
