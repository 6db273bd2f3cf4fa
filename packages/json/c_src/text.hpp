/*
 * text.hpp - numbers and strings of JSON as C++ has them, and back.
 *
 * Knows nothing of tasks and terms.  A `slice` of text is read within its
 * bounds and not a byte further.
 */
#ifndef TEXT_HPP
#define TEXT_HPP

#include <cstddef>
#include <cstdint>

/* Why text is no JSON, in the terms of OTP's module json. */
enum class flaw { none, end, byte, sequence };

struct number {
    enum { integer, large, real } kind;
    bool negative;              /* of a large one */
    int64_t value;
    double real_value;
    const unsigned char *digits;    /* of a large one, without its sign */
    const unsigned char *end;       /* where it ends, or what is wrong is */
};

/* Reads the number that begins at `p`, a minus sign or a digit. */
flaw read_number(const unsigned char *p, const unsigned char *end,
                 struct number *n);

/* Whether a number or a word may end before this byte. */
static inline bool ends_word(unsigned char c)
{
    return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\n'
        || c == '\r' || c == '\t' || c == ':';
}

/* What one escape is: `*p` is after its backslash, and afterwards behind it, or
 * behind what is wrong with it.  Writes at most four bytes; answers how many, 0
 * where it is none. */
size_t read_escape(const unsigned char **p, const unsigned char *end,
                   unsigned char out[4]);

/* Writes a string of JSON without its escapes, from `*p` to `stop`, or behind
 * an escape in which that lies; no more bytes than it reads.  Answers where
 * they end, or NULL, and then `*p` is where the bad escape begins. */
unsigned char *unescape(const unsigned char **p, const unsigned char *stop,
                        const unsigned char *end, unsigned char *out);

/* Writes a character, at most four bytes; answers how many. */
size_t write_utf8(unsigned c, unsigned char *out);

/* How many bytes at the begin need no escape; sets `*beyond` where one of them
 * is not ASCII. */
size_t plain(const unsigned char *p, size_t size, bool *beyond);

/* Writes the escape of a byte that needs one, at most six bytes; answers how
 * many. */
size_t write_escape(unsigned char c, char *out);

/* The shortest that reads as the same number, and as one with a fraction or an
 * exponent; at most 32 bytes. */
size_t write_real(double value, char *out);

#endif
