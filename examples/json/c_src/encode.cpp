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
#include <optional>

#include "away.hpp"
#include "large.hpp"
#include "output.hpp"
#include "text.hpp"
#include "window.hpp"

namespace {

using byte = unsigned char;

constexpr unsigned STRIDE = 128;            /* elements between two ticks */
/* Units are elements; so many bytes of a string count as one. */
constexpr size_t BYTES = 64;
constexpr size_t BLOCK = 4096;
/* So many pairs go to the stack one by one; of a larger object a list of them
 * does, and of one that is too large for a slice that is made on a dirty
 * scheduler. */
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

class encoder {
public:
    explicit encoder(fair_task *task) : t(task) {}

    ERL_NIF_TERM run(ERL_NIF_TERM term);

private:
    bool all();
    bool step(const item &i);
    bool elements(ERL_NIF_TERM list);
    bool pairs(ERL_NIF_TERM list);
    bool pair(ERL_NIF_TERM key, ERL_NIF_TERM value);
    bool value(ERL_NIF_TERM term);
    bool is_short(ERL_NIF_TERM term, bool *written);
    bool other(ERL_NIF_TERM term);
    bool key(ERL_NIF_TERM term);
    bool atom(ERL_NIF_TERM term);
    bool name(ERL_NIF_TERM term);
    bool wide_name(ERL_NIF_TERM term);
    bool integer(ErlNifSInt64 value);
    bool large(ERL_NIF_TERM term);
    bool real(ERL_NIF_TERM term);
    bool object(ERL_NIF_TERM map);
    bool few_pairs(ERL_NIF_TERM map);
    bool many_pairs(ERL_NIF_TERM map, size_t size);
    bool string(const byte *p, size_t n);
    bool long_string(ERL_NIF_TERM term);
    bool characters(const byte *p, size_t n);
    bool comma();
    void push(what is, ERL_NIF_TERM rest, ERL_NIF_TERM key = 0);
    bool pop(item *i);
    void spend(size_t units) { left -= std::min<size_t>(left, units); }
    void spill();
    void tick(size_t units);
    bool checked(bool written) { return written || enomem(); }
    bool enomem();
    bool unsupported(ERL_NIF_TERM term);

    fair_task *t;
    ErlNifEnv *env;
    output out;
    unsigned stack, kept;       /* roots */
    unsigned count = 0, left = STRIDE;          /* until the next tick */
    bool second = false;        /* a comma belongs before the next element */
    item items[STACK];
    std::optional<ERL_NIF_TERM> failure;
};

/* -- the stack ---------------------------------------------------------------*/

void encoder::spill()
{
    ERL_NIF_TERM all = fair_kept(t, stack), entry;

    for (unsigned i = 0; i < count; i++) {
        entry = enif_make_tuple3(
            env, enif_make_uint(env, static_cast<unsigned>(items[i].is)),
            items[i].rest, items[i].key);
        all = enif_make_list_cell(env, entry, all);
    }
    fair_keep(t, stack, all);
    count = 0;
}

void encoder::tick(size_t units)
{
    spill();
    fair_tick(t, units);
    env = fair_env(t);
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
    if (!fair_list_next(t, stack, &head))
        return false;
    enif_get_tuple(env, head, &arity, &entry);
    enif_get_uint(env, entry[0], &is);
    *i = {static_cast<what>(is), entry[2], entry[1]};
    return true;
}

/* -- what is to be written ---------------------------------------------------*/

bool encoder::enomem()
{
    failure = fair_enomem(t);
    return false;
}

bool encoder::unsupported(ERL_NIF_TERM term)
{
    failure = enif_make_tuple2(
        env, atoms.error, enif_make_tuple2(env, atoms.unsupported_type, term));
    return false;
}

ERL_NIF_TERM encoder::run(ERL_NIF_TERM term)
{
    ERL_NIF_TERM nil;

    env = fair_env(t);
    nil = enif_make_list(env, 0);
    kept = fair_root(t, nil);
    stack = fair_root(t, nil);
    if (!out.begin(t))
        return fair_enomem(t);
    if (!value(term) || !all())
        return *failure;
    return out.done(kept) ? fair_kept(t, kept) : fair_enomem(t);
}

bool encoder::all()
{
    item i;

    while (pop(&i)) {
        if (!step(i))
            return false;
        if (left == 0) {
            tick(STRIDE);
            left = STRIDE;
        }
    }
    return true;
}

bool encoder::step(const item &i)
{
    switch (i.is) {
    case what::elements:
        return elements(i.rest);
    case what::pairs:
        return pairs(i.rest);
    case what::pair:
        return pair(i.key, i.rest);
    case what::value:
        return checked(out.put(':')) && value(i.rest);
    case what::end:
        break;
    }
    second = true;
    return checked(out.put('}'));
}

bool encoder::comma()
{
    bool before = second;

    second = true;
    spend(1);
    return !before || checked(out.put(','));
}

/* Up to the next one that is not short, or the next tick. */
bool encoder::elements(ERL_NIF_TERM list)
{
    ERL_NIF_TERM head, tail;
    bool written;

    while (enif_get_list_cell(env, list, &head, &tail)) {
        if (left == 0) {
            push(what::elements, list);
            return true;
        }
        if (!comma())
            return false;
        if (!is_short(head, &written)) {
            push(what::elements, tail);
            return other(head);
        }
        if (!written)
            return false;
        list = tail;
    }
    second = true;
    return enif_is_empty_list(env, list) ? checked(out.put(']'))
        : unsupported(list);
}

bool encoder::pairs(ERL_NIF_TERM list)
{
    ERL_NIF_TERM head, tail, from, to;

    if (!enif_get_list_cell(env, list, &head, &tail)) {
        second = true;
        return checked(out.put('}'));
    }
    push(what::pairs, tail);
    enif_get_list_cell(env, head, &from, &to);
    return pair(from, to);
}

bool encoder::pair(ERL_NIF_TERM from, ERL_NIF_TERM to)
{
    ErlNifBinary bin;

    if (!comma())
        return false;
    if (enif_inspect_binary(env, from, &bin) && bin.size > BLOCK) {
        push(what::value, to);
        return long_string(from);
    }
    return key(from) && checked(out.put(':')) && value(to);
}

bool encoder::key(ERL_NIF_TERM term)
{
    ErlNifSInt64 number;
    ErlNifBinary bin;

    if (enif_inspect_binary(env, term, &bin))
        return string(bin.data, bin.size);
    if (enif_is_atom(env, term))
        return name(term);
    if (enif_get_int64(env, term, &number))
        return checked(out.put('"')) && integer(number)
            && checked(out.put('"'));
    return unsupported(term);
}

/* -- values ------------------------------------------------------------------*/

bool encoder::value(ERL_NIF_TERM term)
{
    bool written;

    return is_short(term, &written) ? written : other(term);
}

/* What is written without a pause; `written` is then whether it could be. */
bool encoder::is_short(ERL_NIF_TERM term, bool *written)
{
    ErlNifSInt64 number;
    ErlNifBinary bin;

    switch (enif_term_type(env, term)) {
    case ERL_NIF_TERM_TYPE_ATOM:
        *written = atom(term);
        return true;
    case ERL_NIF_TERM_TYPE_FLOAT:
        *written = real(term);
        return true;
    case ERL_NIF_TERM_TYPE_INTEGER:
        if (!enif_get_int64(env, term, &number))
            return false;
        *written = integer(number);
        return true;
    case ERL_NIF_TERM_TYPE_BITSTRING:
        if (!enif_inspect_binary(env, term, &bin) || bin.size > BLOCK)
            return false;
        *written = string(bin.data, bin.size);
        return true;
    default:
        return false;
    }
}

bool encoder::other(ERL_NIF_TERM term)
{
    switch (enif_term_type(env, term)) {
    case ERL_NIF_TERM_TYPE_LIST:
        second = false;
        push(what::elements, term);
        return checked(out.put('['));
    case ERL_NIF_TERM_TYPE_MAP:
        second = false;
        return object(term);
    case ERL_NIF_TERM_TYPE_INTEGER:
        return large(term);
    case ERL_NIF_TERM_TYPE_BITSTRING:
        return enif_is_binary(env, term) ? long_string(term)
            : unsupported(term);
    default:
        return unsupported(term);
    }
}

bool encoder::atom(ERL_NIF_TERM term)
{
    if (enif_is_identical(term, atoms.yes))
        return checked(out.put("true", 4));
    if (enif_is_identical(term, atoms.no))
        return checked(out.put("false", 5));
    if (enif_is_identical(term, atoms.null))
        return checked(out.put("null", 4));
    return name(term);
}

bool encoder::name(ERL_NIF_TERM term)
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
    return string(utf8, n);
}

/* One with other characters the external format has in UTF-8, after the
 * version, a tag and a length of one byte or two. */
bool encoder::wide_name(ERL_NIF_TERM term)
{
    constexpr byte LONG_NAME = 118;
    ErlNifBinary bin;
    size_t header;
    bool written;

    if (!enif_term_to_binary(env, term, &bin))
        return enomem();
    header = bin.data[1] == LONG_NAME ? 4 : 3;
    written = string(bin.data + header, bin.size - header);
    enif_release_binary(&bin);
    return written;
}

bool encoder::integer(ErlNifSInt64 value)
{
    char *to = out.room(20);

    if (!to)
        return enomem();
    out.take(std::to_chars(to, to + 20, value).ptr - to);
    return true;
}

bool encoder::large(ERL_NIF_TERM term)
{
    unsigned number = fair_root(t, term);
    char *digits;
    size_t n;

    spill();
    digits = large_digits(t, fair_kept(t, number), &n);
    fair_unroot(t, number);
    for (size_t i = 0, part; digits && i < n; i += part) {
        part = std::min(n - i, BLOCK);
        if (!out.put(digits + i, part))
            return enomem();
        fair_tick(t, part / BYTES);
    }
    env = fair_env(t);
    fair_free(t, digits);
    return checked(digits);
}

bool encoder::real(ERL_NIF_TERM term)
{
    char *to = out.room(32);
    double value;

    if (!to)
        return enomem();
    enif_get_double(env, term, &value);
    out.take(write_real(value, to));
    return true;
}

/* -- objects -----------------------------------------------------------------*/

bool encoder::object(ERL_NIF_TERM map)
{
    size_t size;

    enif_get_map_size(env, map, &size);
    return checked(out.put('{'))
        && (size <= FEW_PAIRS ? few_pairs(map) : many_pairs(map, size));
}

/* The last one is pushed first. */
bool encoder::few_pairs(ERL_NIF_TERM map)
{
    ErlNifMapIterator i;
    ERL_NIF_TERM from, to;

    push(what::end, map);
    enif_map_iterator_create(env, map, &i, ERL_NIF_MAP_ITERATOR_LAST);
    for (; enif_map_iterator_get_pair(env, &i, &from, &to);
         enif_map_iterator_prev(env, &i))
        push(what::pair, to, from);
    enif_map_iterator_destroy(env, &i);
    return true;
}

/* A list that is to be made of a map. */
struct job {
    ErlNifEnv *env;
    ERL_NIF_TERM map, list;
};

void list_of_pairs(void *arg)
{
    struct job *j = static_cast<struct job *>(arg);
    ERL_NIF_TERM from, to;
    ErlNifMapIterator i;

    j->list = enif_make_list(j->env, 0);
    enif_map_iterator_create(j->env, j->map, &i, ERL_NIF_MAP_ITERATOR_LAST);
    for (; enif_map_iterator_get_pair(j->env, &i, &from, &to);
         enif_map_iterator_prev(j->env, &i))
        j->list = enif_make_list_cell(
            j->env, enif_make_list_cell(j->env, from, to), j->list);
    enif_map_iterator_destroy(j->env, &i);
}

/* An iterator does not survive a pause, a list does. */
bool encoder::many_pairs(ERL_NIF_TERM map, size_t size)
{
    enum fair_mode where = fair_where(t);
    unsigned list = fair_root(t, map);
    struct job j;

    spill();
    if (size > MANY_PAIRS && where == FAIR_NORMAL)
        fair_move(t, FAIR_DIRTY_CPU);
    j.env = fair_env(t);
    j.map = fair_kept(t, list);
    in_one_go(t, list_of_pairs, &j);
    fair_keep(t, list, j.list);
    if (fair_where(t) != where)
        fair_move(t, where);
    env = fair_env(t);
    push(what::pairs, fair_kept(t, list));
    fair_unroot(t, list);
    return true;
}

/* -- strings -----------------------------------------------------------------*/

bool encoder::string(const byte *p, size_t n)
{
    return checked(out.put('"')) && characters(p, n) && checked(out.put('"'));
}

/* At most BLOCK of them, whole ones. */
bool encoder::characters(const byte *p, size_t n)
{
    bool beyond = false;
    char *to;
    size_t run;

    spend(n / BYTES);
    for (size_t i = 0; i < n; i += run + 1) {
        run = plain(p + i, n - i, &beyond);
        to = out.room(run + 6);
        if (!to)
            return enomem();
        memcpy(to, p + i, run);
        out.take(run);
        if (i + run < n)
            out.take(write_escape(p[i + run], to + run));
    }
    if (!beyond || is_utf8(p, n))
        return true;
    failure = enif_make_tuple2(
        env, atoms.error,
        enif_make_tuple2(env, atoms.invalid_byte,
                         enif_make_uint(env, p[not_utf8(p, n)])));
    return false;
}

bool encoder::long_string(ERL_NIF_TERM term)
{
    fair_bin bin;
    size_t n;

    if (!fair_get_bin(t, term, &bin) || !out.put('"'))
        return enomem();
    for (size_t i = 0; i < bin.size; i += n) {
        n = std::min(bin.size - i, BLOCK);
        if (n < bin.size - i)
            n = whole_characters(bin.data + i, n);
        if (!characters(bin.data + i, n))
            return false;
        tick(n / BYTES);
    }
    fair_release_bin(t, &bin);
    return checked(out.put('"'));
}

} // namespace

ERL_NIF_TERM encode(fair_task *t)
{
    return encoder(t).run(fair_arg(t, 0));
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
