/*
 * decode.cpp - from JSON to terms, in slices.
 *
 * A window of the document at a time (window.hpp) is indexed; its tokens are
 * then taken one by one, and what they stand for is put together in a tree
 * (tree.hpp).  After each STRIDE tokens the body ticks.  Nothing is divided but
 * that: a window is done in a few microseconds, and so is the largest string in
 * one.  Longer strings are taken by the block, and numbers of more than 18
 * digits have ticks of their own.
 */
#include "decode.hpp"

#include <algorithm>
#include <cstring>

#include "large.hpp"
#include "text.hpp"
#include "tree.hpp"
#include "window.hpp"

namespace {

using byte = unsigned char;

constexpr unsigned STRIDE = tree::MOST;     /* tokens between two ticks */
/* Units are tokens; of work without any, this many bytes count as one, and this
 * many of a string with escapes. */
constexpr size_t BYTES = 64, ESCAPED_BYTES = 16;
/* Longer strings are not copied but refer to the document. */
constexpr ptrdiff_t COPIED = 64;
constexpr ptrdiff_t BLOCK = 4096;
/* Of strings with escapes; longer ones are written where they stay. */
constexpr size_t SCRATCH = 1024;

struct {
    ERL_NIF_TERM yes, no, null, error, invalid_byte, unexpected_sequence,
        unexpected_end;
} atoms;

/* What may come next. */
enum class next { value, first_value, key, first_key, colon, comma, nothing };

/* The text is no JSON: at this offset, and what is wrong has that length. */
struct refused {
    flaw why;
    size_t at, length;
};

class decoder {
public:
    decoder(fair::task &task, const fair::iodata &json, bool copying)
        : t(task), text(json.data()), size(json.size()), copy(copying),
          source(t, t.encode<fair::bytes>(json)), document_term(source.get()),
          made(t), win(size) {}

    ERL_NIF_TERM document();
    ERL_NIF_TERM reason(const refused &r) const;

private:
    void tokens();
    size_t end_of(uint32_t i) const
    {
        return start + (i + 1 < win.count ? win.at[i + 1] : win.length);
    }
    void token(size_t at, size_t end);
    void value(size_t at, size_t end);
    void word(size_t at, const char *chars, ERL_NIF_TERM atom);
    void number(size_t at);
    ERL_NIF_TERM large(const struct number &n);
    void string(const byte *from, const byte *end);
    bool is_short(const byte *from, const byte *end) const;
    void key(const byte *from, const byte *end);
    void escaped(const byte *from, const byte *end);
    void long_string();
    void measure(size_t *at, size_t *length);
    void copied(const byte *from, const byte *end, size_t length);
    [[noreturn]] void bad_escape(const byte *p) const;
    [[noreturn]] void fail(flaw why, size_t at, size_t length = 1) const;
    void close();
    void add(ERL_NIF_TERM term);
    void tick(size_t units);

    fair::task &t;
    const byte *text;
    size_t size;
    bool copy;
    fair::root source;          /* the document as a binary */
    ERL_NIF_TERM document_term; /* the same, until the next tick */
    tree made;
    window win;
    size_t start = 0, word_end; /* of the window; of the last number or word */
    next expected = next::value;
    size_t beside = 0;          /* units besides the tokens */
    struct known {              /* a key in the text */
        const byte *at;
        size_t size;
        ERL_NIF_TERM term;
    } keys[64];
    uint64_t keys_since = UINT64_MAX;   /* fair_yields: valid as long */
};

/* Everything that pauses is between these two. */
void decoder::tick(size_t units)
{
    made.spill();
    t.tick(units);
    if (made.resume())
        document_term = source.get();
}

void decoder::fail(flaw why, size_t at, size_t length) const
{
    if (at >= size)
        throw refused{flaw::end, size, 0};
    throw refused{why, at, std::min(length, size - at)};
}

/* In the terms of OTP's json, with the offset. */
ERL_NIF_TERM decoder::reason(const refused &r) const
{
    ErlNifEnv *env = t.environment();
    ERL_NIF_TERM reason = atoms.unexpected_end;

    if (r.why == flaw::byte)
        reason = enif_make_tuple2(env, atoms.invalid_byte,
                                  enif_make_uint(env, text[r.at]));
    else if (r.why == flaw::sequence)
        reason = enif_make_tuple2(
            env, atoms.unexpected_sequence,
            enif_make_sub_binary(env, source.get(), r.at, r.length));
    return enif_make_tuple3(env, atoms.error, reason,
                            enif_make_uint64(env, r.at));
}

ERL_NIF_TERM decoder::document()
{
    while (start < size) {
        switch (win.read(text + start, size - start)) {
        case window::found::bad_byte:
            fail(flaw::byte, start + win.bad);
        case window::found::long_string:
            long_string();
            continue;
        case window::found::tokens:
            tick(win.length / BYTES);
            word_end = 0;
            tokens();
            start = std::max(start + win.length, word_end);
        }
    }
    if (expected != next::nothing)
        fail(flaw::end, size);
    return made.result();
}

void decoder::tokens()
{
    for (uint32_t i = 0, last; i < win.count; i = last) {
        last = std::min(win.count, i + STRIDE);
        beside = 0;
        for (uint32_t j = i; j < last; j++) {
            token(start + win.at[j], end_of(j));
            /* What is right after a key. */
            if (j + 1 < last && expected == next::colon
                && text[start + win.at[j + 1]] == ':') {
                expected = next::value;
                j++;
            }
        }
        tick(last - i + beside);
    }
}

/* The last byte before `end` that is no blank is its closing quote. */
static const byte *quote_before(const byte *end)
{
    while (*--end != '"')
        ;
    return end;
}

/* What begins at `at`; before `end` nothing else does. */
void decoder::token(size_t at, size_t end)
{
    byte c = text[at];

    switch (expected) {
    case next::first_key:
        if (c == '}')
            return close();
        [[fallthrough]];
    case next::key:
        if (c != '"')
            fail(flaw::byte, at);
        key(text + at + 1, quote_before(text + end));
        expected = next::colon;
        return;
    case next::colon:
        if (c != ':')
            fail(flaw::byte, at);
        expected = next::value;
        return;
    case next::first_value:
        if (c == ']')
            return close();
        [[fallthrough]];
    case next::value:
        return value(at, end);
    case next::comma:
        if (c == (made.in_object() ? '}' : ']'))
            return close();
        if (c != ',')
            fail(flaw::byte, at);
        expected = made.in_object() ? next::key : next::value;
        return;
    case next::nothing:
        fail(flaw::byte, at);
    }
}

void decoder::value(size_t at, size_t end)
{
    byte c = text[at];

    switch (c) {
    case '"':
        return string(text + at + 1, quote_before(text + end));
    case '{':
    case '[':
        made.open(c == '{');
        expected = c == '{' ? next::first_key : next::first_value;
        return;
    case 't':
        return word(at, "true", atoms.yes);
    case 'f':
        return word(at, "false", atoms.no);
    case 'n':
        return word(at, "null", atoms.null);
    default:
        return number(at);
    }
}

void decoder::add(ERL_NIF_TERM term)
{
    made.add(term);
    expected = made.empty() ? next::nothing : next::comma;
}

void decoder::close()
{
    made.close();
    document_term = source.get();
    expected = made.empty() ? next::nothing : next::comma;
}

void decoder::word(size_t at, const char *chars, ERL_NIF_TERM atom)
{
    size_t i = at;

    for (; *chars; chars++, i++) {
        if (i == size || text[i] != static_cast<byte>(*chars))
            fail(flaw::byte, i);
    }
    if (i < size && !ends_word(text[i]))
        fail(flaw::byte, i);
    word_end = i;
    add(atom);
}

/* -- numbers ----------------------------------------------------------------*/

void decoder::number(size_t at)
{
    struct number n;
    flaw wrong = read_number(text + at, text + size, &n);

    word_end = n.end - text;
    if (wrong == flaw::sequence)
        fail(wrong, at, word_end - at);
    if (wrong != flaw::none)
        fail(wrong, word_end);
    add(n.kind == number::integer ? enif_make_int64(made.env, n.value)
        : n.kind == number::real ? enif_make_double(made.env, n.real_value)
        : large(n));
}

/* The ticks of `large_integer` find everything spilled. */
ERL_NIF_TERM decoder::large(const struct number &n)
{
    ERL_NIF_TERM term;

    made.spill();
    term = large_integer(t, n.digits, n.end - n.digits, n.negative);
    made.resume();
    document_term = source.get();
    return term;
}

/* -- strings ----------------------------------------------------------------*/

/* The bytes by the eight, and up to seven that follow, which are the document's
 * too; whether a backslash is among them. */
static bool copy_words(byte *to, const byte *from, size_t n)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word, found = 0;

    for (size_t i = 0; i < n; i += 8) {
        std::memcpy(&word, from + i, 8);
        std::memcpy(to + i, &word, 8);
        word ^= ones * '\\';
        found |= (word - ones) & ~word;
    }
    return found & ones * 0x80;
}

/* Whether `copy_words` may read it, and it is to be copied. */
bool decoder::is_short(const byte *from, const byte *end) const
{
    return end - from <= COPIED && text + size - end >= 8;
}

void decoder::string(const byte *from, const byte *end)
{
    byte words[COPIED + 8];
    size_t n = end - from;
    ERL_NIF_TERM term;

    if (is_short(from, end)) {
        if (copy_words(words, from, n))
            return escaped(from, end);
        std::memcpy(enif_make_new_binary(made.env, n, &term), words, n);
    } else if (std::memchr(from, '\\', n)) {
        return escaped(from, end);
    } else if (end - from > COPIED && !copy) {
        term = enif_make_sub_binary(made.env, document_term, from - text, n);
    } else {
        std::memcpy(enif_make_new_binary(made.env, n, &term), from, n);
    }
    add(term);
}

/* Where a key of at least one byte belongs in the table. */
static unsigned place_of(const byte *from, size_t n)
{
    uint64_t first, last;

    std::memcpy(&first, from, 8);
    if (n < 8)
        first <<= 64 - 8 * n;
    std::memcpy(&last, n < 8 ? from : from + n - 8, 8);
    if (n < 8)
        last = n;
    return ((first ^ (last >> 7 | last << 57)) * 0x9E3779B97F4A7C15u) >> 58;
}

/* The same keys come again and again.  Until the next pause they are the same
 * terms: that saves time here, and memory in what becomes of them. */
void decoder::key(const byte *from, const byte *end)
{
    size_t n = end - from;
    struct known *k;

    if (n == 0 || !is_short(from, end))
        return string(from, end);
    if (keys_since != fair_yields(&t)) {
        std::memset(keys, 0, sizeof keys);
        keys_since = fair_yields(&t);
    }
    k = &keys[place_of(from, n)];
    if (k->size == n && std::memcmp(k->at, from, n) == 0)
        return add(k->term);
    string(from, end);
    *k = {from, n, made.last()};
}

void decoder::escaped(const byte *from, const byte *end)
{
    byte plain[SCRATCH], *last;
    ERL_NIF_TERM term;
    size_t n;

    if (end - from > static_cast<ptrdiff_t>(sizeof plain))
        return copied(from, end, end - from);
    beside += (end - from) / ESCAPED_BYTES;
    last = unescape(&from, end, end, plain);
    if (!last)
        bad_escape(from);
    n = last - plain;
    std::memcpy(enif_make_new_binary(made.env, n, &term), plain, n);
    add(term);
}

/* `p` is at its backslash. */
void decoder::bad_escape(const byte *p) const
{
    size_t at = p - text;

    if (at + 1 < size && text[at + 1] != 'u')
        fail(flaw::byte, at + 1);
    if (at + 6 > size)
        fail(flaw::end, size);
    fail(flaw::sequence, at, 6);
}

/* Into a binary of `length` bytes, or less, in slices. */
void decoder::copied(const byte *from, const byte *end, size_t length)
{
    fair::binary bin(t, length);
    byte *out = bin.data();
    const byte *stop;

    for (; from < end; tick(BLOCK / BYTES)) {
        stop = end - from > BLOCK ? from + BLOCK : end;
        out = unescape(&from, stop, end, out);
        if (!out)
            bad_escape(from);
    }
    bin.resize(out - bin.data());
    add(fair::codec<fair::binary>::make(t, bin));
}

/* One that does not end in the window that it begins. */
void decoder::long_string()
{
    bool is_key = expected == next::key || expected == next::first_key;
    size_t from = start + 1, end = from, length;

    if (expected == next::colon || expected == next::comma
        || expected == next::nothing)
        fail(flaw::byte, start);
    measure(&end, &length);
    start = end + 1;
    if (copy || length < end - from)
        copied(text + from, text + end, length);
    else
        add(enif_make_sub_binary(made.env, document_term, from, length));
    if (is_key)
        expected = next::colon;
}

/* Looks for the end of the string that is at `*at`, and counts its bytes
 * without escapes. */
void decoder::measure(size_t *at, size_t *length)
{
    const byte *p = text + *at, *end = text + size, *next;
    byte out[4];
    size_t n, left;
    bool beyond;

    for (*length = 0; p < end && *p != '"'; tick(n / BYTES)) {
        beyond = false;
        left = end - p;
        n = plain(p, std::min<size_t>(left, BLOCK), &beyond);
        if (beyond && n < left)
            n = whole_characters(p, n);
        if (beyond && !is_utf8(p, n))
            fail(flaw::byte, p - text + not_utf8(p, n));
        p += n;
        *length += n;
        if (n > 0)
            continue;
        if (*p != '\\')
            fail(flaw::byte, p - text);
        next = p + 1;
        n = read_escape(&next, end, out);
        if (n == 0)
            bad_escape(p);
        *length += n;
        p = next;
    }
    if (p == end)
        fail(flaw::end, size);
    *at = p - text;
}

} // namespace

fair::term decode(fair::task &t, const fair::iodata &json, bool copy_strings)
{
    decoder d(t, json, copy_strings);

    try {
        return fair::term(d.document());
    } catch (const refused &r) {
        return fair::term(d.reason(r));
    }
}

void decode_load(ErlNifEnv *env)
{
    atoms.yes = enif_make_atom(env, "true");
    atoms.no = enif_make_atom(env, "false");
    atoms.null = enif_make_atom(env, "null");
    atoms.error = enif_make_atom(env, "error");
    atoms.invalid_byte = enif_make_atom(env, "invalid_byte");
    atoms.unexpected_sequence = enif_make_atom(env, "unexpected_sequence");
    atoms.unexpected_end = enif_make_atom(env, "unexpected_end");
}
