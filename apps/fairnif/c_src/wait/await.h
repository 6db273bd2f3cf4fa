/*
 * await.h - the NIFs of fairnif:await/1.
 */
#ifndef FAIR_AWAIT_H
#define FAIR_AWAIT_H

#include "base/base.h"

FAIR_HIDDEN fair__nif_function fair__await, fair__expire, fair__settle,
    fair__asked, fair__answer;

#endif
