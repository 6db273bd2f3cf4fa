/*
 * encode.cpp - from terms to JSON, in slices.
 *
 * What is still to be written stands on a stack: the rest of an array, the
 * pairs of an object.  Between two ticks that is an array of terms that the
 * collector does not know; before a tick all of it goes into the heap, as a
 * list in a root, from which it is taken back one by one.  So terms may be
 * nested as deep as memory allows.
 */
#include "encode.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "away.hpp"
#include "large.hpp"
#include "output.hpp"
#include "text.hpp"
#include "window.hpp"

namespace {

using byte = unsigned char;

constexpr unsigned STRIDE = 128;            /* elements between two ticks */
/* Units are elements; this many bytes of a string count as one. */
constexpr size_t BYTES = 16;
constexpr size_t BLOCK = 4096;
/* Up to this many pairs go to the stack one by one; of a larger object a list
 * of them does, and of one that is too large for a slice that is made on a
 * dirty scheduler. */
constexpr size_t FEW_PAIRS = 32;
constexpr size_t MANY_PAIRS = 512;
constexpr unsigned STACK = 4 * FEW_PAIRS;

struct {
    ERL_NIF_TERM yes, no, null, error, invalid_byte, unsupported_type;
} atoms;

/* What is to be written: the elements of the list in `rest`; the pairs in it,
 * [[Key | Value], ...]; one pair; the value of a pair whose key is written; the
 * end of an object. */
enum class what : unsigned { elements, pairs, pair, value, end };

struct item {
    what is;
    ERL_NIF_TERM key, rest;     /* the key of a pair, and its value in `rest` */
};

/* A term that has no JSON: the reason, valid at once and not later. */
struct refused {
    ERL_NIF_TERM reason;
};

class encoder {
public:
    explicit encoder(fair::task &task)
        : t(task), env(t.environment()), stack(t, enif_make_list(env, 0)),
          out(t) {}

    ERL_NIF_TERM all(ERL_NIF_TERM term);

private:
    void step(const item &i);
    void elements(ERL_NIF_TERM list);
    void pairs(ERL_NIF_TERM list);
    void pair(ERL_NIF_TERM key, ERL_NIF_TERM value);
    void value(ERL_NIF_TERM term);
    bool written(ERL_NIF_TERM term);
    void other(ERL_NIF_TERM term);
    void key(ERL_NIF_TERM term);
    void atom(ERL_NIF_TERM term);
    void name(ERL_NIF_TERM term);
    void wide_name(ERL_NIF_TERM term);
    void integer(ErlNifSInt64 value);
    void large(ERL_NIF_TERM term);
    void real(ERL_NIF_TERM term);
    void object(ERL_NIF_TERM map);
    void few_pairs(ERL_NIF_TERM map);
    void many_pairs(ERL_NIF_TERM map, size_t size);
    void string(const byte *p, size_t n);
    void long_string(ERL_NIF_TERM term);
    void characters(const byte *p, size_t n);
    void comma();
    void push(what is, ERL_NIF_TERM rest, ERL_NIF_TERM key = 0);
    bool pop(item *i);
    void spend(size_t units) { left -= std::min<size_t>(left, units); }
    void spill();
    void tick(size_t units);
    [[noreturn]] void unsupported(ERL_NIF_TERM term) const;

    fair::task &t;
    ErlNifEnv *env;
    fair::root stack;
    output out;
    unsigned count = 0, left = STRIDE;          /* until the next tick */
    bool second = false;        /* a comma belongs before the next element */
    item items[STACK];
};

/* -- the stack --------------------------------------------------------------*/

void encoder::spill()
{
    ERL_NIF_TERM all = stack.get(), entry;

    for (unsigned i = 0; i < count; i++) {
        entry = enif_make_tuple3(
            env, enif_make_uint(env, static_cast<unsigned>(items[i].is)),
            items[i].rest, items[i].key);
        all = enif_make_list_cell(env, entry, all);
    }
    stack.set(all);
    count = 0;
}

void encoder::tick(size_t units)
{
    spill();
    t.tick(units);
    env = t.environment();
}

void encoder::push(what is, ERL_NIF_TERM rest, ERL_NIF_TERM key)
{
    if (count == STACK)
        spill();
    items[count++] = {is, key ? key : rest, rest};
}

bool encoder::pop(item *i)
{
    const ERL_NIF_TERM *entry;
    ERL_NIF_TERM head;
    unsigned is;
    int arity;

    if (count > 0) {
        *i = items[--count];
        return true;
    }
    if (!stack.next(head))
        return false;
    enif_get_tuple(env, head, &arity, &entry);
    enif_get_uint(env, entry[0], &is);
    *i = {static_cast<what>(is), entry[2], entry[1]};
    return true;
}

/* -- what is to be written --------------------------------------------------*/

void encoder::unsupported(ERL_NIF_TERM term) const
{
    throw refused{enif_make_tuple2(env, atoms.unsupported_type, term)};
}

ERL_NIF_TERM encoder::all(ERL_NIF_TERM term)
{
    item i;

    value(term);
    while (pop(&i)) {
        step(i);
        if (left == 0) {
            tick(STRIDE);
            left = STRIDE;
        }
    }
    return out.done();
}

void encoder::step(const item &i)
{
    switch (i.is) {
    case what::elements:
        return elements(i.rest);
    case what::pairs:
        return pairs(i.rest);
    case what::pair:
        return pair(i.key, i.rest);
    case what::value:
        out.put(':');
        return value(i.rest);
    case what::end:
        out.put('}');
        second = true;
    }
}

void encoder::comma()
{
    if (second)
        out.put(',');
    second = true;
    spend(1);
}

/* Up to the next one that is not short, or the next tick. */
void encoder::elements(ERL_NIF_TERM list)
{
    ERL_NIF_TERM head, tail;

    for (; enif_get_list_cell(env, list, &head, &tail); list = tail) {
        if (left == 0)
            return push(what::elements, list);
        comma();
        if (!written(head)) {
            push(what::elements, tail);
            return other(head);
        }
    }
    if (!enif_is_empty_list(env, list))
        unsupported(list);
    out.put(']');
    second = true;
}

void encoder::pairs(ERL_NIF_TERM list)
{
    ERL_NIF_TERM head, tail, from, to;

    if (!enif_get_list_cell(env, list, &head, &tail)) {
        out.put('}');
        second = true;
        return;
    }
    push(what::pairs, tail);
    enif_get_list_cell(env, head, &from, &to);
    pair(from, to);
}

void encoder::pair(ERL_NIF_TERM from, ERL_NIF_TERM to)
{
    ErlNifBinary bin;

    comma();
    if (enif_inspect_binary(env, from, &bin) && bin.size > BLOCK) {
        push(what::value, to);
        return long_string(from);
    }
    key(from);
    out.put(':');
    value(to);
}

void encoder::key(ERL_NIF_TERM term)
{
    ErlNifSInt64 number;
    ErlNifBinary bin;

    if (enif_inspect_binary(env, term, &bin))
        return string(bin.data, bin.size);
    if (enif_is_atom(env, term))
        return name(term);
    if (!enif_get_int64(env, term, &number))
        unsupported(term);
    out.put('"');
    integer(number);
    out.put('"');
}

/* -- values -----------------------------------------------------------------*/

void encoder::value(ERL_NIF_TERM term)
{
    if (!written(term))
        other(term);
}

/* Writes what takes no pause; false, and nothing written, of what does. */
bool encoder::written(ERL_NIF_TERM term)
{
    ErlNifSInt64 number;
    ErlNifBinary bin;

    switch (enif_term_type(env, term)) {
    case ERL_NIF_TERM_TYPE_ATOM:
        atom(term);
        return true;
    case ERL_NIF_TERM_TYPE_FLOAT:
        real(term);
        return true;
    case ERL_NIF_TERM_TYPE_INTEGER:
        if (!enif_get_int64(env, term, &number))
            return false;
        integer(number);
        return true;
    case ERL_NIF_TERM_TYPE_BITSTRING:
        if (!enif_inspect_binary(env, term, &bin) || bin.size > BLOCK)
            return false;
        string(bin.data, bin.size);
        return true;
    default:
        return false;
    }
}

void encoder::other(ERL_NIF_TERM term)
{
    switch (enif_term_type(env, term)) {
    case ERL_NIF_TERM_TYPE_LIST:
        second = false;
        out.put('[');
        return push(what::elements, term);
    case ERL_NIF_TERM_TYPE_MAP:
        second = false;
        out.put('{');
        return object(term);
    case ERL_NIF_TERM_TYPE_INTEGER:
        return large(term);
    case ERL_NIF_TERM_TYPE_BITSTRING:
        if (enif_is_binary(env, term))
            return long_string(term);
        [[fallthrough]];
    default:
        unsupported(term);
    }
}

void encoder::atom(ERL_NIF_TERM term)
{
    if (enif_is_identical(term, atoms.yes))
        out.put("true", 4);
    else if (enif_is_identical(term, atoms.no))
        out.put("false", 5);
    else if (enif_is_identical(term, atoms.null))
        out.put("null", 4);
    else
        name(term);
}

void encoder::name(ERL_NIF_TERM term)
{
    constexpr size_t MOST = 256;
    char latin1[MOST];
    byte utf8[2 * MOST];
    size_t n = 0;
    int length = enif_get_atom(env, term, latin1, MOST, ERL_NIF_LATIN1);

    if (length == 0)
        return wide_name(term);
    for (const char *p = latin1; p < latin1 + length - 1; p++)
        n += write_utf8(static_cast<byte>(*p), utf8 + n);
    string(utf8, n);
}

/* One with other characters the external format has in UTF-8, after the
 * version, a tag and a length of one byte or two. */
void encoder::wide_name(ERL_NIF_TERM term)
{
    constexpr byte LONG_NAME = 118;
    ErlNifBinary bin;
    size_t header;

    if (!enif_term_to_binary(env, term, &bin))
        throw std::bad_alloc();
    std::string copy(reinterpret_cast<const char *>(bin.data), bin.size);
    enif_release_binary(&bin);
    header = static_cast<byte>(copy[1]) == LONG_NAME ? 4 : 3;
    string(reinterpret_cast<const byte *>(copy.data()) + header,
           copy.size() - header);
}

void encoder::integer(ErlNifSInt64 value)
{
    char *to = out.room(20);

    out.take(std::to_chars(to, to + 20, value).ptr - to);
}

void encoder::large(ERL_NIF_TERM term)
{
    fair::root number(t, term);

    spill();
    std::string digits = large_digits(t, number.get());
    for (size_t i = 0, n; i < digits.size(); i += n) {
        n = std::min(digits.size() - i, BLOCK);
        out.put(digits.data() + i, n);
        t.tick(n / BYTES);
    }
    env = t.environment();
}

void encoder::real(ERL_NIF_TERM term)
{
    char *to = out.room(32);
    double value;

    enif_get_double(env, term, &value);
    out.take(write_real(value, to));
}

/* -- objects ----------------------------------------------------------------*/

void encoder::object(ERL_NIF_TERM map)
{
    size_t size;

    enif_get_map_size(env, map, &size);
    if (size <= FEW_PAIRS)
        few_pairs(map);
    else
        many_pairs(map, size);
}

/* From the last pair to the first. */
template <class F>
static void each_pair(ErlNifEnv *env, ERL_NIF_TERM map, F &&fn)
{
    ERL_NIF_TERM from, to;
    ErlNifMapIterator i;

    enif_map_iterator_create(env, map, &i, ERL_NIF_MAP_ITERATOR_LAST);
    for (; enif_map_iterator_get_pair(env, &i, &from, &to);
         enif_map_iterator_prev(env, &i))
        fn(from, to);
    enif_map_iterator_destroy(env, &i);
}

void encoder::few_pairs(ERL_NIF_TERM map)
{
    push(what::end, map);
    each_pair(env, map, [&](ERL_NIF_TERM from, ERL_NIF_TERM to) {
        push(what::pair, to, from);
    });
}

/* An iterator does not survive a pause, a list does. */
void encoder::many_pairs(ERL_NIF_TERM map, size_t size)
{
    enum fair_mode where = t.where();
    fair::root list(t, map);
    ERL_NIF_TERM made;

    spill();
    if (size > MANY_PAIRS && where == FAIR_NORMAL)
        t.move(FAIR_DIRTY_CPU);
    env = t.environment();
    map = list.get();
    made = enif_make_list(env, 0);
    in_one_go(t, [&] {
        each_pair(env, map, [&](ERL_NIF_TERM from, ERL_NIF_TERM to) {
            made = enif_make_list_cell(
                env, enif_make_list_cell(env, from, to), made);
        });
    });
    list.set(made);
    if (t.where() != where)
        t.move(where);
    env = t.environment();
    push(what::pairs, list.get());
}

/* -- strings ----------------------------------------------------------------*/

void encoder::string(const byte *p, size_t n)
{
    out.put('"');
    characters(p, n);
    out.put('"');
}

/* At most BLOCK of them, whole ones. */
void encoder::characters(const byte *p, size_t n)
{
    bool beyond = false;
    char *to;
    size_t run;

    spend(n / BYTES);
    for (size_t i = 0; i < n; i += run + 1) {
        run = plain(p + i, n - i, &beyond);
        to = out.room(run + 6);
        memcpy(to, p + i, run);
        out.take(run);
        if (i + run < n)
            out.take(write_escape(p[i + run], to + run));
    }
    if (beyond && !is_utf8(p, n))
        throw refused{enif_make_tuple2(
            env, atoms.invalid_byte,
            enif_make_uint(env, p[not_utf8(p, n)]))};
}

void encoder::long_string(ERL_NIF_TERM term)
{
    fair::bytes bytes(t, term);
    const byte *p = bytes.begin();
    size_t n;

    out.put('"');
    for (; p < bytes.end(); p += n) {
        n = bytes.end() - p;
        if (n > BLOCK)
            n = whole_characters(p, BLOCK);
        characters(p, n);
        tick(n / BYTES);
    }
    out.put('"');
}

} // namespace

fair::term encode(fair::task &t, fair::root &term)
{
    try {
        return fair::term(encoder(t).all(term.get()));
    } catch (const refused &r) {
        return fair::term(enif_make_tuple2(t.environment(), atoms.error,
                                           r.reason));
    }
}

void encode_load(ErlNifEnv *env)
{
    atoms.yes = enif_make_atom(env, "true");
    atoms.no = enif_make_atom(env, "false");
    atoms.null = enif_make_atom(env, "null");
    atoms.error = enif_make_atom(env, "error");
    atoms.invalid_byte = enif_make_atom(env, "invalid_byte");
    atoms.unsupported_type = enif_make_atom(env, "unsupported_type");
}
