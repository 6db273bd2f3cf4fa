/*
 * text.cpp - numbers and strings of JSON, see text.hpp.
 */
#include "text.hpp"

#include <charconv>
#include <cstring>

using byte = unsigned char;

/* -- numbers ----------------------------------------------------------------*/

static bool is_digit(byte c)
{
    return c >= '0' && c <= '9';
}

static const byte *digits(const byte *p, const byte *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* The grammar of what follows the first digits: at least one digit each. */
static flaw fraction_and_exponent(const byte **at, const byte *end)
{
    const byte *p = *at, *from;

    if (p < end && *p == '.') {
        from = ++p;
        *at = p = digits(p, end);
        if (p == from)
            return p == end ? flaw::end : flaw::byte;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        from = p;
        *at = p = digits(p, end);
        if (p == from)
            return p == end ? flaw::end : flaw::byte;
    }
    return flaw::none;
}

/* Of a number that no double is: it is too small where its first digit but
 * zeros stands, with its exponent, after the point. */
static bool is_tiny(const byte *p, const byte *end)
{
    long point = 0, exponent = 0;
    bool seen_point = false, seen_digit = false;

    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        seen_digit |= *p >= '1' && *p <= '9';
        if (*p == '.')
            seen_point = true;
        else if (!seen_point && seen_digit)
            point++;
        else if (seen_point && !seen_digit)
            point--;
    }
    if (p < end) {
        p += p[1] == '+' ? 2 : 1;
        std::from_chars_result r = std::from_chars(
            reinterpret_cast<const char *>(p),
            reinterpret_cast<const char *>(end), exponent);
        if (r.ec != std::errc())
            return *p == '-';
    }
    return exponent + point <= 0;
}

static flaw read_real(const byte *p, const byte *end, bool negative,
                      struct number *n)
{
    const char *first = reinterpret_cast<const char *>(p);
    const char *last = reinterpret_cast<const char *>(end);

    n->kind = number::real;
    if (std::from_chars(first, last, n->real_value).ec == std::errc())
        return flaw::none;
    if (!is_tiny(p + negative, end))
        return flaw::sequence;
    n->real_value = negative ? -0.0 : 0.0;
    return flaw::none;
}

flaw read_number(const byte *p, const byte *end, struct number *n)
{
    const byte *begin = p, *whole;
    bool negative = *p == '-';
    uint64_t value = 0;
    flaw wrong;

    p += negative;
    n->digits = whole = p;
    n->negative = negative;
    if (p < end && *p == '0')
        whole = p + 1;
    else
        for (; whole < end && is_digit(*whole); whole++)
            value = value * 10 + (*whole - '0');
    n->end = whole;
    if (whole == p)
        return p == end ? flaw::end : flaw::byte;
    wrong = fraction_and_exponent(&n->end, end);
    if (wrong != flaw::none)
        return wrong;
    if (n->end < end && !ends_word(*n->end))
        return flaw::byte;
    if (n->end > whole)
        return read_real(begin, n->end, negative, n);
    /* Up to 18 digits fit whatever they are. */
    n->kind = whole - p <= 18 ? number::integer : number::large;
    n->value = static_cast<int64_t>(negative ? 0 - value : value);
    return flaw::none;
}

size_t write_real(double value, char *out)
{
    char *end = std::to_chars(out, out + 32, value).ptr;

    if (std::memchr(out, '.', end - out) || std::memchr(out, 'e', end - out))
        return end - out;
    std::memcpy(end, ".0", 2);
    return end - out + 2;
}

/* -- strings ----------------------------------------------------------------*/

/* The value of four hexadecimal digits; -1 where they are none. */
static int hex4(const byte *p, const byte *end)
{
    unsigned value = 0;

    if (end - p < 4
        || std::from_chars(reinterpret_cast<const char *>(p),
                           reinterpret_cast<const char *>(p + 4), value, 16).ptr
           != reinterpret_cast<const char *>(p + 4))
        return -1;
    return static_cast<int>(value);
}

size_t write_utf8(unsigned c, byte *out)
{
    if (c < 0x80) {
        out[0] = static_cast<byte>(c);
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = static_cast<byte>(0x80 | (c & 0x3F));
    out[0] = static_cast<byte>(0xF00 >> n | c);
    return n;
}

/* After the `u`.  Surrogates come in pairs, or they are no character. */
static size_t read_unicode(const byte **at, const byte *end, byte out[4])
{
    const byte *p = *at;
    int c = hex4(p, end), low;

    if (c < 0)
        return 0;
    *at = p += 4;
    if (c < 0xD800 || c > 0xDFFF)
        return write_utf8(static_cast<unsigned>(c), out);
    if (c > 0xDBFF || end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return 0;
    low = hex4(p + 2, end);
    if (low < 0xDC00 || low > 0xDFFF)
        return 0;
    *at = p + 6;
    return write_utf8(0x10000u + ((c & 0x3FFu) << 10 | (low & 0x3FFu)), out);
}

size_t read_escape(const byte **at, const byte *end, byte out[4])
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const byte *p = *at;
    const char *found;

    if (p == end || *p == '\0')
        return 0;
    *at = p + 1;
    if (*p == 'u')
        return read_unicode(at, end, out);
    found = std::strchr(escapes, *p);
    if (!found)
        return 0;
    out[0] = static_cast<byte>(meant[found - escapes]);
    return 1;
}

byte *unescape(const byte **at, const byte *stop, const byte *end, byte *out)
{
    const byte *p = *at, *next;
    size_t n;

    while (p < stop) {
        next = static_cast<const byte *>(std::memchr(p, '\\', stop - p));
        if (!next)
            next = stop;
        std::memcpy(out, p, next - p);
        out += next - p;
        *at = p = next;
        if (p == stop)
            break;
        p++;
        n = read_escape(&p, end, out);
        if (n == 0)
            return nullptr;
        out += n;
        *at = p;
    }
    return out;
}

/* 0x80 in each byte that is a quote, a backslash, under 0x20 or over 0x7F. */
static uint64_t special(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, high = ones * 0x80;
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';

    return ((quote - ones) | (backslash - ones) | (word - ones * 0x20) | word)
        & high;
}

static bool needs_escape(byte c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

size_t plain(const byte *p, size_t size, bool *beyond)
{
    uint64_t word;
    size_t i = 0;

    for (;;) {
        while (size - i >= 8
               && (std::memcpy(&word, p + i, 8), !special(word)))
            i += 8;
        for (size_t end = size - i < 8 ? size : i + 8; i < end; i++) {
            if (needs_escape(p[i]))
                return i;
            *beyond |= p[i] > 0x7F;
        }
        if (i == size)
            return i;
    }
}

size_t write_escape(byte c, char *out)
{
    static const char hex[] = "0123456789abcdef";
    static const char meant[] = "\"\\\b\f\n\r\t", escapes[] = "\"\\bfnrt";
    const char *found = c ? std::strchr(meant, c) : nullptr;

    out[0] = '\\';
    if (found) {
        out[1] = escapes[found - meant];
        return 2;
    }
    std::memcpy(out + 1, "u00", 3);
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return 6;
}
