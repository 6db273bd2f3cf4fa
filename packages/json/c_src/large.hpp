/*
 * large.hpp - integers of any size, from decimal digits and back.
 *
 * The VM gives and takes them in its external format: their bytes,
 * lowest first.  Both ways take time by the square of the digits, so both tick.
 */
#ifndef LARGE_HPP
#define LARGE_HPP

#include <string>

#include <fairnif.hpp>

/* The integer, valid until the next pause.  Throws system_limit when it is
 * larger than the VM's can be.  May pause. */
ERL_NIF_TERM large_integer(fair::task &t, const unsigned char *digits,
                           size_t count, bool negative);

/* Its digits with a minus sign where it has one.  May pause. */
std::string large_digits(fair::task &t, ERL_NIF_TERM integer);

#endif
