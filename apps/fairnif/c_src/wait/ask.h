/*
 * ask.h - what a task asks its caller for: messages, calls of Erlang functions.
 */
#ifndef FAIR_ASK_H
#define FAIR_ASK_H

#include "wait/wake.h"

FAIR_HIDDEN void fair__post(fair_task *pub, ERL_NIF_TERM to,
                            ERL_NIF_TERM message, int reply);
FAIR_HIDDEN int fair__ask(fair_task *pub, const ERL_NIF_TERM *request,
                          unsigned parts, ERL_NIF_TERM *answer);

#endif
