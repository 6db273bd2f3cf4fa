/*
 * large.cpp - integers of any size, see large.hpp.
 *
 * As numbers of base 2^64, lowest first.  19 decimal digits at a time.
 */
#include "large.hpp"

#include <algorithm>
#include <cstdint>

using wide = unsigned __int128;

static constexpr unsigned GROUP = 19;           /* digits in 64 bits */
static constexpr uint64_t GROUP_BASE = 10000000000000000000u;
static constexpr size_t ROW = 2048;             /* words between two ticks */
static constexpr size_t ROW_WORDS = 16;         /* words that are one unit */

enum : unsigned char { VERSION = 131, SMALL_BIG = 110, LARGE_BIG = 111 };
static constexpr size_t SMALL_HEADER = 4, LARGE_HEADER = 7;

/* words = words * factor + carry; what is carried on. */
static uint64_t multiply(uint64_t *words, size_t n, uint64_t factor,
                         uint64_t carry)
{
    for (size_t i = 0; i < n; i++) {
        wide x = static_cast<wide>(words[i]) * factor + carry;

        words[i] = static_cast<uint64_t>(x);
        carry = static_cast<uint64_t>(x >> 64);
    }
    return carry;
}

/* words = words / GROUP_BASE, from the highest on; what remains. */
static uint64_t divide(uint64_t *words, size_t n, uint64_t rest)
{
    while (n-- > 0) {
        wide x = static_cast<wide>(rest) << 64 | words[n];

        words[n] = static_cast<uint64_t>(x / GROUP_BASE);
        rest = static_cast<uint64_t>(x % GROUP_BASE);
    }
    return rest;
}

/* Ten to the power of how many digits there are, and their value. */
static uint64_t group(const unsigned char *digits, unsigned n, uint64_t *value)
{
    uint64_t power = 1;

    *value = 0;
    for (unsigned i = 0; i < n; i++) {
        *value = *value * 10 + (digits[i] - '0');
        power *= 10;
    }
    return power;
}

/* How many words it has. */
static size_t read_words(fair_task *t, const unsigned char *digits,
                         size_t count, uint64_t *words)
{
    uint64_t power, carry;
    size_t used = 0, n;

    for (unsigned taken; count > 0; count -= taken, digits += taken) {
        taken = count % GROUP ? count % GROUP : GROUP;
        power = group(digits, taken, &carry);
        for (size_t i = 0; i < used; i += n) {
            n = std::min(used - i, ROW);
            carry = multiply(words + i, n, power, carry);
            fair_tick(t, n / ROW_WORDS);
        }
        if (carry)
            words[used++] = carry;
    }
    return used;
}

static ERL_NIF_TERM from_words(fair_task *t, unsigned char *header,
                               size_t words, bool negative)
{
    unsigned char *out = header;
    size_t bytes = words * 8;
    ERL_NIF_TERM term;

    *out++ = VERSION;
    *out++ = LARGE_BIG;
    for (int shift = 24; shift >= 0; shift -= 8)
        *out++ = static_cast<unsigned char>(bytes >> shift);
    *out++ = negative;
    return enif_binary_to_term(fair_env(t), header, LARGE_HEADER + bytes,
                               &term, 0) ? term : 0;
}

ERL_NIF_TERM large_integer(fair_task *t, const unsigned char *digits,
                           size_t count, bool negative)
{
    size_t most = count / GROUP + 1, used;
    ERL_NIF_TERM term;
    unsigned char *memory;

    if (most > UINT32_MAX / 8)
        return 0;
    /* So that the words are aligned, and the header is right before them. */
    memory = static_cast<unsigned char *>(fair_alloc(t, (most + 1) * 8));
    if (!memory)
        return 0;
    used = read_words(t, digits, count,
                      reinterpret_cast<uint64_t *>(memory + 8));
    term = from_words(t, memory + 8 - LARGE_HEADER, used, negative);
    fair_free(t, memory);
    return term;
}

/* The words of the VM's format, in memory of fair_alloc's. */
static uint64_t *words_of(fair_task *t, ERL_NIF_TERM integer, size_t *count,
                          bool *negative)
{
    size_t header, bytes;
    uint64_t *words;
    ErlNifBinary bin;

    if (!enif_term_to_binary(fair_env(t), integer, &bin))
        return nullptr;
    header = bin.data[1] == LARGE_BIG ? LARGE_HEADER : SMALL_HEADER;
    *negative = bin.data[header - 1];
    bytes = bin.size - header;
    *count = (bytes + 7) / 8;
    words = static_cast<uint64_t *>(fair_alloc(t, *count * 8));
    if (words) {
        words[*count - 1] = 0;
        memcpy(words, bin.data + header, bytes);
    }
    enif_release_binary(&bin);
    return words;
}

/* Writes the digits of the words before `end`, without leading zeros. */
static char *write_words(fair_task *t, uint64_t *words, size_t used, char *end)
{
    uint64_t rest;
    size_t n;

    while (used > 0) {
        rest = 0;
        for (size_t i = used; i > 0; i -= n) {
            n = std::min(i, ROW);
            rest = divide(words + i - n, n, rest);
            fair_tick(t, n / ROW_WORDS * 4);
        }
        while (used > 0 && words[used - 1] == 0)
            used--;
        for (unsigned i = 0; i < GROUP && (used > 0 || rest > 0); i++) {
            *--end = static_cast<char>('0' + rest % 10);
            rest /= 10;
        }
    }
    return end;
}

char *large_digits(fair_task *t, ERL_NIF_TERM integer, size_t *count)
{
    char *digits, *begin, *end;
    uint64_t *words;
    size_t used;
    bool negative;

    words = words_of(t, integer, &used, &negative);
    if (!words)
        return nullptr;
    digits = static_cast<char *>(fair_alloc(t, used * 20 + 1));
    if (!digits)
        return nullptr;
    end = digits + used * 20 + 1;
    begin = write_words(t, words, used, end);
    fair_free(t, words);
    if (negative)
        *--begin = '-';
    *count = end - begin;
    memmove(digits, begin, *count);
    return digits;
}
