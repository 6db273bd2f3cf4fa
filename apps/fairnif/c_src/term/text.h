/*
 * text.h - characters as bytes.
 */
#ifndef FAIR_TEXT_H
#define FAIR_TEXT_H

#include "task/task.h"

/* How many bytes a character takes, and, unless `to` is NULL, these; 0 where the
 * encoding does not have it. */
FAIR_HIDDEN size_t fair__encode(unsigned code, enum fair_encoding encoding,
                                unsigned char *to);
FAIR_HIDDEN int fair__get_atom(fair_task *pub, ERL_NIF_TERM term, char *buf,
                               size_t size, enum fair_encoding encoding);

#endif
