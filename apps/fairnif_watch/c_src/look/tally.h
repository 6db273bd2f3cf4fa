/*
 * tally.h - what runs most.
 */
#ifndef WATCH_TALLY_H
#define WATCH_TALLY_H

#include "look/state.h"

WATCH_HIDDEN void watch__sample(struct watch *w);

#endif
