/*
 * list.h - lists, iolists and strings of any length, in slices.
 */
#ifndef FAIR_LIST_H
#define FAIR_LIST_H

#include "task/task.h"

FAIR_HIDDEN int fair__get_iolist(fair_task *pub, ERL_NIF_TERM term,
                                 fair_bytes *bytes);
FAIR_HIDDEN int fair__get_string(fair_task *pub, ERL_NIF_TERM list,
                                 char **chars, size_t *length,
                                 enum fair_encoding encoding);
FAIR_HIDDEN int fair__get_list_length(fair_task *pub, ERL_NIF_TERM list,
                                      size_t *length);
FAIR_HIDDEN int fair__list_next(fair_task *pub, unsigned root,
                                ERL_NIF_TERM *head);
FAIR_HIDDEN void fair__list_push(fair_task *pub, unsigned root,
                                 ERL_NIF_TERM head);
FAIR_HIDDEN int fair__list_reverse(fair_task *pub, unsigned root);

#endif
