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
#include <optional>

#include "large.hpp"
#include "text.hpp"
#include "tree.hpp"
#include "window.hpp"

namespace {

using byte = unsigned char;

constexpr unsigned STRIDE = tree::MOST;     /* tokens between two ticks */
/* Units are tokens; of work without any so many bytes count as one. */
constexpr size_t BYTES = 64;
/* Longer strings are not copied but refer to the document. */
constexpr ptrdiff_t COPIED = 64;
constexpr ptrdiff_t BLOCK = 4096;
/* Of strings with escapes; longer ones are written where they stay. */
constexpr size_t SCRATCH = 1024;

struct {
    ERL_NIF_TERM yes, no, null, error, invalid_byte, unexpected_sequence,
        unexpected_end, system_limit;
} atoms;

/* What may come next. */
enum class next { value, first_value, key, first_key, colon, comma, nothing };

class decoder {
public:
    decoder(fair_task *task, const byte *bytes, size_t length, bool copying)
        : t(task), text(bytes), size(length), copy(copying) {}

    ERL_NIF_TERM run(fair_bin *document_bin);

private:
    bool document();
    bool tokens();
    size_t end_of(uint32_t i) const
    {
        return start + (i + 1 < win.count ? win.at[i + 1] : win.length);
    }
    bool token(size_t at, size_t end);
    bool value(size_t at, size_t end);
    bool word(size_t at, const char *chars, ERL_NIF_TERM atom);
    bool number(size_t at);
    bool large(const struct number &n);
    bool string(size_t at, size_t end);
    bool string_of(const byte *from, const byte *end);
    bool is_short(const byte *from, const byte *end) const;
    bool key(size_t at, size_t end);
    bool escaped(const byte *from, const byte *end);
    bool long_string();
    bool measure(size_t *at, size_t *length);
    bool copied(const byte *from, const byte *end, size_t length);
    bool bad_escape(const byte *p);
    bool close();
    bool add(ERL_NIF_TERM term);
    void tick(size_t units);
    bool fail(flaw why, size_t at, size_t length = 1);
    bool enomem();

    fair_task *t;
    const byte *text;
    size_t size;
    bool copy;
    unsigned source;            /* root: the document as a binary */
    ERL_NIF_TERM document_term; /* valid until the next tick */
    tree made;
    window win;
    size_t start = 0, word_end;     /* of the window; of the last number or word */
    next expected = next::value;
    std::optional<ERL_NIF_TERM> failure;
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
    fair_tick(t, units);
    made.resume();
    document_term = fair_kept(t, source);
}

/* As OTP's json, with the offset. */
bool decoder::fail(flaw why, size_t at, size_t length)
{
    ErlNifEnv *env = fair_env(t);
    ERL_NIF_TERM reason = atoms.unexpected_end;

    if (at >= size)
        why = flaw::end;
    if (why == flaw::byte)
        reason = enif_make_tuple2(env, atoms.invalid_byte,
                                  enif_make_uint(env, text[at]));
    else if (why == flaw::sequence)
        reason = enif_make_tuple2(
            env, atoms.unexpected_sequence,
            enif_make_sub_binary(env, fair_kept(t, source), at,
                                 std::min(length, size - at)));
    failure = enif_make_tuple3(env, atoms.error, reason,
                               enif_make_uint64(env, std::min(at, size)));
    return false;
}

bool decoder::enomem()
{
    failure = fair_enomem(t);
    return false;
}

ERL_NIF_TERM decoder::run(fair_bin *document_bin)
{
    if (!win.open(size) || !fair_defer(t, window::drop, win.owned()))
        return fair_enomem(t);
    made.begin(t);
    source = fair_root(t, fair_make_bin(t, document_bin));
    document_term = fair_kept(t, source);
    return document() ? made.result() : *failure;
}

bool decoder::document()
{
    while (start < size) {
        switch (win.read(text + start, size - start)) {
        case window::found::bad_byte:
            return fail(flaw::byte, start + win.bad);
        case window::found::long_string:
            if (!long_string())
                return false;
            continue;
        case window::found::tokens:
            tick(win.length / BYTES);
            word_end = 0;
            if (!tokens())
                return false;
            start = std::max(start + win.length, word_end);
        }
    }
    return expected == next::nothing || fail(flaw::end, size);
}

bool decoder::tokens()
{
    for (uint32_t i = 0, last; i < win.count; tick(last - i), i = last) {
        last = std::min(win.count, i + STRIDE);
        for (uint32_t j = i; j < last; j++) {
            if (!token(start + win.at[j], end_of(j)))
                return false;
            /* What is right after a key and after most values. */
            if (j + 1 < last && expected == next::colon
                && text[start + win.at[j + 1]] == ':') {
                expected = next::value;
                j++;
            }
        }
    }
    return true;
}

/* What begins at `at`; before `end` nothing else does. */
bool decoder::token(size_t at, size_t end)
{
    byte c = text[at];

    switch (expected) {
    case next::first_key:
        if (c == '}')
            return close();
        [[fallthrough]];
    case next::key:
        if (c != '"')
            return fail(flaw::byte, at);
        if (!key(at, end))
            return false;
        expected = next::colon;
        return true;
    case next::colon:
        expected = next::value;
        return c == ':' || fail(flaw::byte, at);
    case next::first_value:
        if (c == ']')
            return close();
        [[fallthrough]];
    case next::value:
        return value(at, end);
    case next::comma:
        if (c == ',') {
            expected = made.in_object() ? next::key : next::value;
            return true;
        }
        if (c == (made.in_object() ? '}' : ']'))
            return close();
        break;
    case next::nothing:
        break;
    }
    return fail(flaw::byte, at);
}

bool decoder::value(size_t at, size_t end)
{
    byte c = text[at];

    switch (c) {
    case '"':
        return string(at, end);
    case '{':
    case '[':
        made.open(c == '{');
        expected = c == '{' ? next::first_key : next::first_value;
        return true;
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

bool decoder::add(ERL_NIF_TERM term)
{
    made.add(term);
    expected = made.empty() ? next::nothing : next::comma;
    return true;
}

bool decoder::close()
{
    if (!made.close())
        return enomem();
    document_term = fair_kept(t, source);
    expected = made.empty() ? next::nothing : next::comma;
    return true;
}

bool decoder::word(size_t at, const char *chars, ERL_NIF_TERM atom)
{
    size_t i = at;

    for (; *chars; chars++, i++) {
        if (i == size || text[i] != static_cast<byte>(*chars))
            return fail(flaw::byte, i);
    }
    if (i < size && !ends_word(text[i]))
        return fail(flaw::byte, i);
    word_end = i;
    return add(atom);
}

/* -- numbers -----------------------------------------------------------------*/

bool decoder::number(size_t at)
{
    struct number n;
    flaw wrong;

    n.end = text + at;
    if (text[at] != '-' && (text[at] < '0' || text[at] > '9'))
        return fail(flaw::byte, at);
    wrong = read_number(text + at, text + size, &n);
    word_end = n.end - text;
    if (wrong == flaw::sequence)
        return fail(wrong, at, word_end - at);
    if (wrong != flaw::none)
        return fail(wrong, word_end);
    if (n.kind == number::large)
        return large(n);
    return add(n.kind == number::integer ? enif_make_int64(made.env, n.value)
               : enif_make_double(made.env, n.real_value));
}

/* The ticks of `large` find everything spilled. */
bool decoder::large(const struct number &n)
{
    ERL_NIF_TERM term;

    made.spill();
    term = large_integer(t, n.digits, n.end - n.digits, n.negative);
    made.resume();
    document_term = fair_kept(t, source);
    if (!term) {
        failure = fair_raise(t, atoms.system_limit);
        return false;
    }
    return add(term);
}

/* -- strings -----------------------------------------------------------------*/

/* The last byte before `end` that is no blank is its closing quote. */
bool decoder::string(size_t at, size_t end)
{
    while (text[--end] != '"')
        ;
    return string_of(text + at + 1, text + end);
}

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

bool decoder::string_of(const byte *from, const byte *end)
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
    return add(term);
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
bool decoder::key(size_t at, size_t end)
{
    const byte *from = text + at + 1, *last = text + end;
    size_t n;

    while (*--last != '"')
        ;
    n = last - from;
    if (n == 0 || !is_short(from, last))
        return string_of(from, last);
    if (keys_since != fair_yields(t)) {
        std::memset(keys, 0, sizeof keys);
        keys_since = fair_yields(t);
    }
    struct known &known = keys[place_of(from, n)];

    if (known.size == n && std::memcmp(known.at, from, n) == 0)
        return add(known.term);
    if (!string_of(from, last))
        return false;
    if (keys_since == fair_yields(t))
        known = {from, n, made.last()};
    return true;
}

bool decoder::escaped(const byte *from, const byte *end)
{
    byte plain[SCRATCH], *last;
    ERL_NIF_TERM term;
    size_t n;

    if (end - from > static_cast<ptrdiff_t>(sizeof plain))
        return copied(from, end, end - from);
    last = unescape(&from, end, end, plain);
    if (!last)
        return bad_escape(from);
    n = last - plain;
    std::memcpy(enif_make_new_binary(made.env, n, &term), plain, n);
    return add(term);
}

/* `p` is at its backslash. */
bool decoder::bad_escape(const byte *p)
{
    size_t at = p - text;

    if (at + 1 < size && text[at + 1] != 'u')
        return fail(flaw::byte, at + 1);
    return at + 6 > size ? fail(flaw::end, size) : fail(flaw::sequence, at, 6);
}

/* Into a binary of `length` bytes, or less, in slices. */
bool decoder::copied(const byte *from, const byte *end, size_t length)
{
    const byte *stop;
    ERL_NIF_TERM term;
    fair_bin bin;
    byte *out;

    if (!fair_new_bin(t, length, &bin))
        return enomem();
    for (out = bin.data; from < end; tick(BLOCK / BYTES)) {
        stop = end - from > BLOCK ? from + BLOCK : end;
        out = unescape(&from, stop, end, out);
        if (!out)
            return bad_escape(from);
    }
    length = out - bin.data;
    if (length < bin.size && !fair_resize_bin(t, &bin, length))
        return enomem();
    term = fair_make_bin(t, &bin);
    fair_release_bin(t, &bin);
    return add(term);
}

/* One that does not end in the window that it begins. */
bool decoder::long_string()
{
    bool is_key = expected == next::key || expected == next::first_key;
    size_t from = start + 1, end = from, length;
    bool added;

    if (expected == next::colon || expected == next::comma
        || expected == next::nothing)
        return fail(flaw::byte, start);
    if (!measure(&end, &length))
        return false;
    start = end + 1;
    if (copy || length < end - from)
        added = copied(text + from, text + end, length);
    else
        added = add(enif_make_sub_binary(made.env, document_term, from,
                                         length));
    if (is_key)
        expected = next::colon;
    return added;
}

/* Looks for the end of the string that is at `*at`, and counts its bytes
 * without escapes. */
bool decoder::measure(size_t *at, size_t *length)
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
            return fail(flaw::byte, p - text + not_utf8(p, n));
        p += n;
        if (n == 0 && *p != '\\')
            return fail(flaw::byte, p - text);
        *length += n;
        if (n > 0)
            continue;
        next = p + 1;
        n = read_escape(&next, end, out);
        if (n == 0)
            return bad_escape(p);
        *length += n;
        p = next;
    }
    *at = p - text;
    return p < end || fail(flaw::end, size);
}

} // namespace

ERL_NIF_TERM decode(fair_task *t)
{
    fair_bin in;
    bool copy = enif_is_identical(fair_arg(t, 1), atoms.yes);

    if (!fair_get_iolist(t, fair_arg(t, 0), &in))
        return fair_badarg(t);
    return decoder(t, in.data, in.size, copy).run(&in);
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
    atoms.system_limit = enif_make_atom(env, "system_limit");
}
