/*
 * large.cpp - integers of any size, see large.hpp.
 *
 * As numbers of base 2^64, lowest first.  19 decimal digits at a time.
 */
#include "large.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

using wide = unsigned __int128;

static constexpr unsigned GROUP = 19;           /* digits in 64 bits */
static constexpr uint64_t GROUP_BASE = 10000000000000000000u;
static constexpr size_t ROW = 2048;             /* words between two ticks */
static constexpr size_t ROW_WORDS = 16;         /* words that are one unit */

enum : unsigned char { VERSION = 131, SMALL_BIG = 110, LARGE_BIG = 111 };
static constexpr size_t SMALL_HEADER = 4, LARGE_HEADER = 7;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "words are bytes, lowest first");

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
static size_t read_words(fair::task &t, const unsigned char *digits,
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
            t.tick(n / ROW_WORDS);
        }
        if (carry)
            words[used++] = carry;
    }
    return used;
}

/* `words` with the header right before them. */
static ERL_NIF_TERM from_words(fair::task &t, unsigned char *words,
                               size_t count, bool negative)
{
    unsigned char *out = words - LARGE_HEADER;
    size_t bytes = count * 8;
    ERL_NIF_TERM term;

    *out++ = VERSION;
    *out++ = LARGE_BIG;
    for (int shift = 24; shift >= 0; shift -= 8)
        *out++ = static_cast<unsigned char>(bytes >> shift);
    *out = negative;
    if (!enif_binary_to_term(t.environment(), words - LARGE_HEADER,
                             LARGE_HEADER + bytes, &term, 0))
        throw fair::error(fair::atom("system_limit"));
    return term;
}

ERL_NIF_TERM large_integer(fair::task &t, const unsigned char *digits,
                           size_t count, bool negative)
{
    size_t most = count / GROUP + 1, used;

    if (most > UINT32_MAX / 8)
        throw fair::error(fair::atom("system_limit"));
    /* The first word is for the header. */
    std::vector<uint64_t> words(most + 1);
    used = read_words(t, digits, count, words.data() + 1);
    return from_words(t, reinterpret_cast<unsigned char *>(words.data() + 1),
                      used, negative);
}

/* The words of the VM's format. */
static std::vector<uint64_t> words_of(fair::task &t, ERL_NIF_TERM integer,
                                      bool *negative)
{
    ErlNifBinary bin;
    size_t header, bytes;

    if (!enif_term_to_binary(t.environment(), integer, &bin))
        throw std::bad_alloc();
    std::unique_ptr<ErlNifBinary, void (*)(ErlNifBinary *)> owned(
        &bin, [](ErlNifBinary *b) { enif_release_binary(b); });
    header = bin.data[1] == LARGE_BIG ? LARGE_HEADER : SMALL_HEADER;
    *negative = bin.data[header - 1];
    bytes = bin.size - header;
    std::vector<uint64_t> words((bytes + 7) / 8);
    memcpy(words.data(), bin.data + header, bytes);
    return words;
}

/* The digits, last one first, without leading zeros. */
static std::string backwards(fair::task &t, uint64_t *words, size_t used)
{
    std::string digits;
    uint64_t rest;
    size_t n;

    digits.reserve(used * 20 + 1);
    while (used > 0) {
        rest = 0;
        for (size_t i = used; i > 0; i -= n) {
            n = std::min(i, ROW);
            rest = divide(words + i - n, n, rest);
            t.tick(n / ROW_WORDS * 4);
        }
        while (used > 0 && words[used - 1] == 0)
            used--;
        for (unsigned i = 0; i < GROUP && (used > 0 || rest > 0); i++) {
            digits.push_back(static_cast<char>('0' + rest % 10));
            rest /= 10;
        }
    }
    return digits;
}

std::string large_digits(fair::task &t, ERL_NIF_TERM integer)
{
    bool negative;
    std::vector<uint64_t> words = words_of(t, integer, &negative);
    std::string digits = backwards(t, words.data(), words.size());

    if (negative)
        digits.push_back('-');
    std::reverse(digits.begin(), digits.end());
    return digits;
}
