/*
 * large.hpp - integers of any size, from decimal digits and back.
 *
 * The VM hands them out and takes them in its external format: their bytes,
 * lowest first.  Both ways take time by the square of the digits, so both tick.
 */
#ifndef LARGE_HPP
#define LARGE_HPP

#include <fairnif.h>

/* The integer; 0 when it is larger than the VM's can be, or memory is out.
 * May pause. */
ERL_NIF_TERM large_integer(fair_task *t, const unsigned char *digits,
                           size_t count, bool negative);

/* Its digits with a minus sign where it has one, in memory of fair_alloc's;
 * how many in `*count`.  NULL when memory is out.  May pause. */
char *large_digits(fair_task *t, ERL_NIF_TERM integer, size_t *count);

#endif
