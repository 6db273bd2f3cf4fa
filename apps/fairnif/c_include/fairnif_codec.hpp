/*
 * fairnif_codec.hpp - Erlang terms as C++ values and back.  Part of fairnif.hpp,
 * which includes it.
 *
 *   C++                              Erlang
 *   integers of any width            integers in its range
 *   double, float                    floats, and integers up to 64 bits; an
 *                                    infinity or NaN is raised: badarith
 *   bool                             true, false
 *   fair::atom                       atoms
 *   std::string, std::string_view    binaries; a string is copied in slices
 *   fair::bytes                      binaries, without a copy
 *   fair::iodata                     iodata, in one piece (argument only)
 *   fair::binary                     a binary built in place (result only)
 *   std::vector                      proper lists
 *   std::tuple, std::pair            tuples
 *   std::optional                    undefined or nil for none, else the value;
 *                                    none is made as FAIR_NONE says
 *   std::map, std::unordered_map     maps
 *   std::variant                     the first alternative that fits
 *   fair::resource<T>                a resource object that holds a T
 *   fair::root                       any term, for the whole call (argument, by
 *                                    reference)
 *   fair::term                       any term, until the next pause
 *   void                             ok (result only)
 *
 * Lists, maps and long binaries are read and made in slices, with a tick for
 * each element or 64 bytes.  Where an argument is taken by reference (`const
 * std::vector<std::string> &`), it is also destroyed in slices; one taken by
 * value is the function's, and goes in one piece.
 *
 * The VM can neither go on with a map after a pause nor make one piece by piece.
 * So a map of over 256 keys is made into a list, and made of one, on a dirty CPU
 * scheduler, in one go; the keys and values themselves are read and made in
 * slices, where the body is.
 *
 * -- Types of one's own ------------------------------------------------------
 *
 *     template <> struct fair::codec<point> : fair::plain {
 *         static std::string name() { return "{X, Y}"; }
 *         static bool get(fair::task &t, ERL_NIF_TERM term,
 *                         std::optional<point> &value);
 *         static ERL_NIF_TERM make(fair::task &t, const point &p);
 *     };
 *
 * `get` is true when it has filled in the value; a codec may have only one of
 * the two.  `name` says what is expected.  With fair::plain neither may pause,
 * with fair::pausing they may: terms in C++ variables are then spoilt.
 */
#ifndef FAIRNIF_CODEC_HPP
#define FAIRNIF_CODEC_HPP

#ifndef FAIRNIF_HPP
#  error "include fairnif.hpp"
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <variant>
#include <vector>

/* The atom for an empty std::optional: "nil" in a library for Elixir.  Read are
 * both. */
#ifndef FAIR_NONE
#  define FAIR_NONE "undefined"
#endif

namespace fair __attribute__((visibility("hidden"))) {

/* Bases of codecs: whether get and make may pause. */
struct plain {
    static constexpr bool pauses = false;
};
struct pausing {
    static constexpr bool pauses = true;
};

template <class T, class = void> struct codec;

/* Whether a value of that type holds terms, which a pause would spoil. */
template <class T> inline constexpr bool holds_terms = false;

/* Whether destroying a value can take long; then fair::dispose does it in
 * slices. */
template <class T> inline constexpr bool disposable = false;

template <class T> void dispose(task &, T &) {}

/* -- Terms ------------------------------------------------------------------ */

/* Any term, valid until the next pause.  (An ERL_NIF_TERM is an integer, to
 * C++.) */
class term {
    ERL_NIF_TERM value;

public:
    term(ERL_NIF_TERM any) : value(any) {}
    operator ERL_NIF_TERM() const { return value; }
};

template <> inline constexpr bool holds_terms<term> = true;

template <> struct codec<term> : plain {
    static std::string name() { return "any term"; }
    static bool get(task &, ERL_NIF_TERM any, std::optional<term> &value)
    {
        value.emplace(any);
        return true;
    }
    static ERL_NIF_TERM make(task &, const term &any) { return any; }
};

template <> struct codec<root> : plain {
    static std::string name() { return "any term"; }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<root> &value)
    {
        value.emplace(t, any);
        return true;
    }
    static ERL_NIF_TERM make(task &, const root &kept) { return kept.get(); }
};

namespace detail {

/* What came, in a few words; of a long term nothing is looked at but its
 * size. */
inline std::string described(task &t, ERL_NIF_TERM any)
{
    auto number = [](const char *what, unsigned long long n) {
        return what + std::to_string(n);
    };
    ErlNifSInt64 integer;
    ErlNifUInt64 positive;
    ErlNifBinary bin;
    const ERL_NIF_TERM *elements;
    double real;
    char chars[1024];
    size_t size;
    int count;

    switch (enif_term_type(t.env, any)) {
    case ERL_NIF_TERM_TYPE_ATOM:
        enif_snprintf(chars, sizeof chars, "%T", any);
        return chars;
    case ERL_NIF_TERM_TYPE_INTEGER:
        if (enif_get_int64(t.env, any, &integer))
            return std::to_string(integer);
        if (enif_get_uint64(t.env, any, &positive))
            return std::to_string(positive);
        return "an integer over 64 bits";
    case ERL_NIF_TERM_TYPE_FLOAT:
        enif_get_double(t.env, any, &real);
        snprintf(chars, sizeof chars, "%.17g", real);
        return std::string("the float ") + chars;
    case ERL_NIF_TERM_TYPE_BITSTRING:
        if (enif_inspect_binary(t.env, any, &bin))
            return number("a binary of bytes: ", bin.size);
        return "a bitstring that is no binary";
    case ERL_NIF_TERM_TYPE_LIST:
        return enif_is_empty_list(t.env, any) ? "an empty list" : "a list";
    case ERL_NIF_TERM_TYPE_MAP:
        enif_get_map_size(t.env, any, &size);
        return number("a map with keys: ", size);
    case ERL_NIF_TERM_TYPE_TUPLE:
        enif_get_tuple(t.env, any, &count, &elements);
        return number("a tuple with elements: ",
                      static_cast<unsigned long long>(count));
    case ERL_NIF_TERM_TYPE_FUN:
        return "a fun";
    case ERL_NIF_TERM_TYPE_PID:
        return "a pid";
    case ERL_NIF_TERM_TYPE_PORT:
        return "a port";
    case ERL_NIF_TERM_TYPE_REFERENCE:
        return "a reference or resource";
    default:
        return "another term";
    }
}

template <class T> std::string expected(task &t, ERL_NIF_TERM came)
{
    return "expected " + codec<T>::name() + ", got " + described(t, came);
}

inline bool is_atom(task &t, ERL_NIF_TERM any, const char *name)
{
    return enif_is_identical(any, atom(t, name)) != 0;
}

} /* namespace detail */

template <class T> ERL_NIF_TERM task::encode(const T &value)
{
    return codec<T>::make(*this, value);
}

template <class T> T task::decode(ERL_NIF_TERM any)
{
    std::optional<T> value;

    if (codec<T>::pauses) {
        root kept(*this, any);

        if (!codec<T>::get(*this, any, value))
            throw badarg(0, detail::expected<T>(*this, kept.get()));
    } else if (!codec<T>::get(*this, any, value)) {
        throw badarg(0, detail::expected<T>(*this, any));
    }
    return std::move(*value);
}

template <class T> ERL_NIF_TERM error::reason_of<T>::term(task &t) const
{
    static_assert(!holds_terms<T>, "a pause would spoil the term");
    return codec<T>::make(t, value);
}

/* -- Numbers, booleans, atoms ----------------------------------------------- */

template <class T>
struct codec<T, std::enable_if_t<std::is_integral_v<T>>> : plain {
    using limits = std::numeric_limits<T>;
    using widest = std::conditional_t<std::is_signed_v<T>, ErlNifSInt64,
                                      ErlNifUInt64>;
    static_assert(sizeof(T) <= sizeof(widest), "at most 64 bits");

    static std::string name()
    {
        return "an integer " + std::to_string(+limits::min()) + ".."
            + std::to_string(+limits::max());
    }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<T> &value)
    {
        widest wide;

        if constexpr (std::is_signed_v<T>) {
            if (!fair_get_int64(&t, any, &wide) || wide < limits::min())
                return false;
        } else if (!fair_get_uint64(&t, any, &wide)) {
            return false;
        }
        if (wide > limits::max())
            return false;
        value = static_cast<T>(wide);
        return true;
    }
    static ERL_NIF_TERM make(task &t, T value)
    {
        if constexpr (std::is_signed_v<T>)
            return enif_make_int64(fair_env(&t), value);
        else
            return enif_make_uint64(fair_env(&t), value);
    }
};

template <class T>
struct codec<T, std::enable_if_t<std::is_floating_point_v<T>>> : plain {
    static std::string name() { return "a number"; }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<T> &value)
    {
        double real;
        ErlNifSInt64 integer;
        ErlNifUInt64 positive;

        if (fair_get_double(&t, any, &real))
            value = static_cast<T>(real);
        else if (fair_get_int64(&t, any, &integer))
            value = static_cast<T>(integer);
        else if (fair_get_uint64(&t, any, &positive))
            value = static_cast<T>(positive);
        else
            return false;
        return std::isfinite(*value);
    }
    static ERL_NIF_TERM make(task &t, T value);
};

template <> struct codec<bool> : plain {
    static std::string name() { return "true or false"; }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<bool> &value)
    {
        value = detail::is_atom(t, any, "true");
        return *value || detail::is_atom(t, any, "false");
    }
    static ERL_NIF_TERM make(task &t, bool value)
    {
        return detail::atom(t, value ? "true" : "false");
    }
};

/* An atom.  Made of a name once (`static const fair::atom ok("ok");` in a
 * function), it costs nothing to compare and encode. */
class atom {
    ERL_NIF_TERM value;

    friend struct codec<atom>;
    atom(ERL_NIF_TERM value, int) : value(value) {}

    static ERL_NIF_TERM made(std::string_view name)
    {
        if (name.size() > 255)
            throw std::length_error("an atom of over 255 characters");
        /* The environment is only for the error that this cannot be. */
        return enif_make_atom_len(nullptr, name.data(), name.size());
    }

public:
    /* Of a name in Latin-1.  std::length_error over 255 characters. */
    explicit atom(std::string_view name) : value(made(name)) {}

    /* Its name in Latin-1; empty when that cannot write it. */
    std::string name() const
    {
        char chars[256];
        int size = enif_get_atom(nullptr, value, chars, sizeof chars,
                                 ERL_NIF_LATIN1);

        return std::string(chars, size > 0 ? static_cast<size_t>(size) - 1 : 0);
    }
    bool operator==(const atom &other) const { return value == other.value; }
    bool operator!=(const atom &other) const { return value != other.value; }
    bool operator<(const atom &other) const { return value < other.value; }
};

template <> struct codec<atom> : plain {
    static std::string name() { return "an atom"; }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<atom> &value)
    {
        if (!enif_is_atom(t.env, any))
            return false;
        value = atom(any, 0);
        return true;
    }
    static ERL_NIF_TERM make(task &, const atom &a) { return a.value; }
};

template <class T>
ERL_NIF_TERM
codec<T, std::enable_if_t<std::is_floating_point_v<T>>>::make(task &t, T value)
{
    if (!std::isfinite(value))
        throw error(atom("badarith"));
    return enif_make_double(fair_env(&t), static_cast<double>(value));
}

/* -- Binaries --------------------------------------------------------------- */

/* The bytes of a binary where they are.  They stay until the call ends,
 * whatever becomes of this object; copies are of the same bytes. */
class bytes {
    fair_bin bin;

    friend struct codec<bytes>;

protected:
    explicit bytes(const fair_bin &b) : bin(b) {}

public:
    using value_type = unsigned char;

    /* Of a term.  std::invalid_argument when it is no binary. */
    bytes(task &t, ERL_NIF_TERM any);

    const unsigned char *data() const { return bin.data; }
    size_t size() const { return bin.size; }
    bool empty() const { return !bin.size; }
    const unsigned char *begin() const { return bin.data; }
    const unsigned char *end() const { return bin.data + bin.size; }
    unsigned char operator[](size_t i) const { return bin.data[i]; }
    std::string_view view() const
    {
        return {reinterpret_cast<const char *>(bin.data), bin.size};
    }
    operator std::string_view() const { return view(); }
};

template <> struct codec<bytes> : plain {
    static std::string name() { return "a binary"; }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<bytes> &value)
    {
        fair_bin bin;

        if (!fair_get_bin(&t, any, &bin)) {
            if (enif_is_binary(t.env, any))
                throw std::bad_alloc();
            return false;
        }
        value = bytes(bin);
        return true;
    }
    static ERL_NIF_TERM make(task &t, bytes b)
    {
        return fair_make_bin(&t, &b.bin);
    }
};

inline bytes::bytes(task &t, ERL_NIF_TERM any) : bytes(t.decode<bytes>(any)) {}

/* The bytes of iodata in one piece: a binary's where they are. */
class iodata : public bytes {
    friend struct codec<iodata>;
    using bytes::bytes;
};

template <> struct codec<iodata> : pausing {
    static std::string name() { return "iodata"; }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<iodata> &value)
    {
        fair_bin bin;
        int is_iodata = 0;

        t.pause([&] { is_iodata = fair_get_iolist(&t, any, &bin); });
        if (is_iodata)
            value = iodata(bin);
        return is_iodata != 0;
    }
};

/* A binary that is built in place and returned without a copy.  Throws
 * std::bad_alloc. */
class binary {
    task *t;
    fair_bin bin;
    size_t used;

    friend struct codec<binary>;

    void reserve(size_t size)
    {
        if (size > bin.size
            && !fair_resize_bin(t, &bin, std::max(size, bin.size * 2)))
            throw std::bad_alloc();
    }

public:
    /* Of `size` bytes, not zeroed. */
    explicit binary(task &task, size_t size = 0) : t(&task), used(size)
    {
        if (!fair_new_bin(t, size, &bin))
            throw std::bad_alloc();
    }
    binary(binary &&other) noexcept
        : t(std::exchange(other.t, nullptr)), bin(other.bin), used(other.used)
    {
    }
    binary &operator=(binary &&other) noexcept
    {
        std::swap(t, other.t);
        std::swap(bin, other.bin);
        std::swap(used, other.used);
        return *this;
    }
    ~binary()
    {
        if (t)
            fair_release_bin(t, &bin);
    }

    unsigned char *data() { return bin.data; }
    const unsigned char *data() const { return bin.data; }
    size_t size() const { return used; }
    unsigned char &operator[](size_t i) { return bin.data[i]; }
    unsigned char *begin() { return bin.data; }
    unsigned char *end() { return bin.data + used; }

    /* Memory grows by doubling; the VM may copy it in one go then. */
    void resize(size_t size)
    {
        reserve(size);
        used = size;
    }
    void append(const void *from, size_t size)
    {
        resize(used + size);
        memcpy(bin.data + used - size, from, size);
    }
    void append(std::string_view chars) { append(chars.data(), chars.size()); }
    void push_back(unsigned char byte) { append(&byte, 1); }
};

template <> struct codec<binary> : plain {
    static ERL_NIF_TERM make(task &t, binary &b)
    {
        if (b.used != b.bin.size && !fair_resize_bin(&t, &b.bin, b.used))
            throw std::bad_alloc();
        return fair_make_bin(&t, &b.bin);
    }
};

namespace detail {

/* Copies of bytes are made in slices. */
enum : size_t { COPY_BLOCK = 16384, COPY_UNIT = 64 };

template <class F> void in_blocks(task &t, size_t size, F &&copy)
{
    for (size_t at = 0, n; at < size; at += n) {
        n = std::min<size_t>(size - at, COPY_BLOCK);
        copy(at, n);
        t.tick(n / COPY_UNIT);
    }
}

} /* namespace detail */

template <> struct codec<std::string_view> : pausing {
    static std::string name() { return "a binary"; }
    static bool get(task &t, ERL_NIF_TERM any,
                    std::optional<std::string_view> &value)
    {
        std::optional<bytes> b;

        if (!codec<bytes>::get(t, any, b))
            return false;
        value = b->view();
        return true;
    }
    static ERL_NIF_TERM make(task &t, std::string_view chars)
    {
        fair_bin bin;

        if (!fair_new_bin(&t, chars.size(), &bin))
            throw std::bad_alloc();
        detail::in_blocks(t, chars.size(), [&](size_t at, size_t n) {
            memcpy(bin.data + at, chars.data() + at, n);
        });

        ERL_NIF_TERM made = fair_make_bin(&t, &bin);

        fair_release_bin(&t, &bin);
        return made;
    }
};

template <> struct codec<std::string> : pausing {
    static std::string name() { return "a binary"; }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<std::string> &value)
    {
        fair_bin bin;

        if (!fair_get_bin(&t, any, &bin)) {
            if (enif_is_binary(t.env, any))
                throw std::bad_alloc();
            return false;
        }
        value.emplace();
        value->reserve(bin.size);
        detail::in_blocks(t, bin.size, [&](size_t at, size_t n) {
            value->append(reinterpret_cast<char *>(bin.data) + at, n);
        });
        fair_release_bin(&t, &bin);
        return true;
    }
    static ERL_NIF_TERM make(task &t, const std::string &chars)
    {
        return codec<std::string_view>::make(t, chars);
    }
};

/* -- Lists ------------------------------------------------------------------ */

namespace detail {

enum : size_t { LIST_BLOCK = 64 };

/* Elements that cannot pause are read many at a time. */
template <class T>
bool get_block(task &t, root &left, std::vector<T> &values, bool &more)
{
    ERL_NIF_TERM list = left.get(), head;
    std::optional<T> value;
    size_t n = 0;

    while (n < LIST_BLOCK && enif_get_list_cell(t.env, list, &head, &list)) {
        if (!codec<T>::get(t, head, value))
            return false;
        values.push_back(std::move(*value));
        n++;
    }
    more = n == LIST_BLOCK;
    left.set(list);
    t.tick(n);
    return true;
}

template <class T>
bool get_one(task &t, root &left, std::vector<T> &values, bool &more)
{
    ERL_NIF_TERM head;
    std::optional<T> value;

    more = left.next(head);
    if (!more)
        return true;
    if (!codec<T>::get(t, head, value))
        return false;
    values.push_back(std::move(*value));
    t.tick(1);
    return true;
}

} /* namespace detail */

template <class T> inline constexpr bool holds_terms<std::vector<T>>
    = holds_terms<T>;
template <class T> inline constexpr bool disposable<std::vector<T>>
    = !std::is_trivially_destructible_v<T>;

/* Destroys the elements in slices, the last one first. */
template <class T> void dispose(task &t, std::vector<T> &values)
{
    if constexpr (disposable<std::vector<T>>) {
        while (!values.empty()) {
            dispose(t, values.back());
            values.pop_back();
            t.tick(1);
        }
    }
}

template <class T> struct codec<std::vector<T>> : pausing {
    static_assert(!holds_terms<T>, "a pause would spoil the terms");

    static std::string name() { return "a list of: " + codec<T>::name(); }

    /* Counted first if it is long: to let it grow would copy all in one go. */
    static bool get(task &t, ERL_NIF_TERM any,
                    std::optional<std::vector<T>> &value)
    {
        root left(t, any);
        bool more = enif_is_list(t.env, any) != 0;

        if (!more)
            return false;
        value.emplace();
        while (more) {
            if (value->size() == detail::LIST_BLOCK && !reserve(t, left, *value))
                return false;
            if constexpr (codec<T>::pauses) {
                if (!detail::get_one(t, left, *value, more))
                    return false;
            } else if (!detail::get_block(t, left, *value, more)) {
                return false;
            }
        }
        return enif_is_empty_list(t.env, left.get()) != 0;
    }

    static ERL_NIF_TERM make(task &t, const std::vector<T> &values)
    {
        return from(t, values, [](size_t) {});
    }

    /* Of a value that is not needed any more: it goes as the list is made. */
    static ERL_NIF_TERM make(task &t, std::vector<T> &values)
    {
        return from(t, values, [&](size_t left) {
            if constexpr (disposable<std::vector<T>>)
                values.erase(values.begin() + static_cast<long>(left),
                             values.end());
        });
    }

private:
    static bool reserve(task &t, root &left, std::vector<T> &values)
    {
        size_t length = 0;
        int proper = 0;

        t.pause([&] {
            proper = fair_get_list_length(&t, left.get(), &length);
        });
        if (proper)
            values.reserve(values.size() + length);
        return proper != 0;
    }

    /* From the last element to the first. */
    template <class V, class Done>
    static ERL_NIF_TERM from(task &t, V &values, Done &&done)
    {
        root list(t, enif_make_list(fair_env(&t), 0));
        size_t left = values.size();

        while (left) {
            if constexpr (codec<T>::pauses) {
                list.push(codec<T>::make(t, values[--left]));
                done(left);
                t.tick(1);
            } else {
                size_t n = std::min<size_t>(left, detail::LIST_BLOCK);
                ERL_NIF_TERM cells = list.get();

                for (size_t i = 0; i < n; i++)
                    cells = enif_make_list_cell(
                        fair_env(&t), codec<T>::make(t, values[--left]), cells);
                list.set(cells);
                done(left);
                t.tick(n);
            }
        }
        return list.get();
    }
};

/* -- Tuples ----------------------------------------------------------------- */

namespace detail {

/* For std::tuple, std::pair and what else has std::get. */
template <class Tuple, class... T> struct members {
    static constexpr size_t count = sizeof...(T);
    static constexpr bool pauses = (codec<T>::pauses || ...);
    using indices = std::index_sequence_for<T...>;
    using decoded = std::tuple<std::optional<T>...>;
    using terms = std::array<ERL_NIF_TERM, count + 1>;

    static std::string name()
    {
        std::string names, comma;

        ((names += comma + codec<T>::name(), comma = ", "), ...);
        return "{" + names + "}";
    }

    static bool get(task &t, ERL_NIF_TERM any, std::optional<Tuple> &value)
    {
        const ERL_NIF_TERM *elements;
        int size;

        if (!enif_get_tuple(t.env, any, &size, &elements)
            || static_cast<size_t>(size) != count)
            return false;
        if constexpr (pauses) {
            root kept(t, any);

            return get_each(t, [&](size_t i) {
                enif_get_tuple(t.env, kept.get(), &size, &elements);
                return elements[i];
            }, value, indices());
        } else {
            return get_each(t, [&](size_t i) { return elements[i]; }, value,
                            indices());
        }
    }

    template <class Q> static ERL_NIF_TERM make(task &t, Q &values)
    {
        return make_each(t, values, indices());
    }

private:
    template <class Element, size_t... I>
    static bool get_each(task &t, Element &&element,
                         std::optional<Tuple> &value,
                         std::index_sequence<I...>)
    {
        decoded each;

        (void)element;
        if (!(codec<T>::get(t, element(I), std::get<I>(each)) && ...))
            return false;
        value.emplace(std::move(*std::get<I>(each))...);
        return true;
    }

    /* First those that may pause, each into a root, then the others. */
    template <class Q, size_t... I>
    static ERL_NIF_TERM make_each(task &t, Q &values, std::index_sequence<I...>)
    {
        std::array<std::optional<root>, count + 1> kept;
        terms made = {};

        auto keep = [&](size_t i, ERL_NIF_TERM any) {
            kept[i].emplace(t, any);
        };
        (void)keep;
        ([&] {
            if constexpr (codec<T>::pauses)
                keep(I, codec<T>::make(t, std::get<I>(values)));
        }(), ...);
        ([&] {
            if constexpr (codec<T>::pauses)
                made[I] = kept[I]->get();
            else
                made[I] = codec<T>::make(t, std::get<I>(values));
        }(), ...);
        return enif_make_tuple_from_array(fair_env(&t), made.data(), count);
    }
};

} /* namespace detail */

template <class... T> inline constexpr bool holds_terms<std::tuple<T...>>
    = (holds_terms<T> || ...);
template <class A, class B> inline constexpr bool holds_terms<std::pair<A, B>>
    = holds_terms<A> || holds_terms<B>;
template <class... T> inline constexpr bool disposable<std::tuple<T...>>
    = (disposable<T> || ...);
template <class A, class B> inline constexpr bool disposable<std::pair<A, B>>
    = disposable<A> || disposable<B>;

template <class... T> void dispose(task &t, std::tuple<T...> &values)
{
    std::apply([&](auto &...each) { (dispose(t, each), ...); }, values);
}
template <class A, class B> void dispose(task &t, std::pair<A, B> &values)
{
    dispose(t, values.first);
    dispose(t, values.second);
}

template <class... T> struct codec<std::tuple<T...>>
    : detail::members<std::tuple<T...>, T...> {};
template <class A, class B> struct codec<std::pair<A, B>>
    : detail::members<std::pair<A, B>, A, B> {};

/* -- Alternatives ----------------------------------------------------------- */

template <class T> inline constexpr bool holds_terms<std::optional<T>>
    = holds_terms<T>;
template <class T> inline constexpr bool disposable<std::optional<T>>
    = disposable<T>;

template <class T> void dispose(task &t, std::optional<T> &value)
{
    if (value)
        dispose(t, *value);
}

template <class T> struct codec<std::optional<T>> {
    static constexpr bool pauses = codec<T>::pauses;

    static std::string name()
    {
        return codec<T>::name() + " or undefined or nil";
    }
    static bool get(task &t, ERL_NIF_TERM any,
                    std::optional<std::optional<T>> &value)
    {
        value.emplace();
        return detail::is_atom(t, any, "undefined")
            || detail::is_atom(t, any, "nil")
            || codec<T>::get(t, any, *value);
    }
    template <class Q> static ERL_NIF_TERM make(task &t, Q &value)
    {
        return value ? codec<T>::make(t, *value) : detail::atom(t, FAIR_NONE);
    }
};

template <class... T> inline constexpr bool holds_terms<std::variant<T...>>
    = (holds_terms<T> || ...);
template <class... T> inline constexpr bool disposable<std::variant<T...>>
    = (disposable<T> || ...);

template <class... T> void dispose(task &t, std::variant<T...> &value)
{
    std::visit([&](auto &held) { dispose(t, held); }, value);
}

template <class... T> struct codec<std::variant<T...>> {
    static constexpr bool pauses = (codec<T>::pauses || ...);

    static std::string name()
    {
        std::string names, between;

        ((names += between + codec<T>::name(), between = " or "), ...);
        return names;
    }
    static bool get(task &t, ERL_NIF_TERM any,
                    std::optional<std::variant<T...>> &value)
    {
        if constexpr (pauses) {
            root kept(t, any);

            return (get_one<T>(t, kept.get(), value) || ...);
        } else {
            return (get_one<T>(t, any, value) || ...);
        }
    }
    template <class Q> static ERL_NIF_TERM make(task &t, Q &value)
    {
        return std::visit([&](auto &held) {
            using type = std::remove_cv_t<std::remove_reference_t<
                decltype(held)>>;

            return codec<type>::make(t, held);
        }, value);
    }

private:
    template <class One>
    static bool get_one(task &t, ERL_NIF_TERM any,
                        std::optional<std::variant<T...>> &value)
    {
        std::optional<One> one;

        if (!codec<One>::get(t, any, one))
            return false;
        value.emplace(std::move(*one));
        return true;
    }
};

/* -- Maps ------------------------------------------------------------------- */

namespace detail {

/* What is done in place takes some us. */
enum : size_t { MAP_IN_PLACE = 256 };

/* Calls `fn()`, which works on terms and does not pause, where it may take
 * long. */
template <class F> void on_dirty_if(task &t, bool is_long, F &&fn)
{
    fair_mode here = t.where();

    if (!is_long) {
        fn();
        return;
    }
    t.move(FAIR_DIRTY_CPU);
    fn();
    t.move(here == FAIR_THREADED ? FAIR_DIRTY_CPU : here);
}

/* The map in the root becomes the list [K1, V1, K2, V2, ...]. */
inline void map_to_list(task &t, root &map, size_t size)
{
    on_dirty_if(t, size > MAP_IN_PLACE, [&] {
        ErlNifEnv *env = fair_env(&t);
        ERL_NIF_TERM list = enif_make_list(env, 0), key, value;
        ErlNifMapIterator it;

        if (!enif_map_iterator_create(env, map.get(), &it,
                                      ERL_NIF_MAP_ITERATOR_FIRST))
            throw std::bad_alloc();
        while (enif_map_iterator_get_pair(env, &it, &key, &value)) {
            list = enif_make_list_cell(env, value, list);
            list = enif_make_list_cell(env, key, list);
            enif_map_iterator_next(env, &it);
        }
        enif_map_iterator_destroy(env, &it);
        map.set(list);
    });
}

/* The list [V1, K1, V2, K2, ...] in the root becomes a map. */
inline void list_to_map(task &t, root &list, size_t size)
{
    std::vector<ERL_NIF_TERM> keys, values;

    on_dirty_if(t, size > MAP_IN_PLACE, [&] {
        ErlNifEnv *env = fair_env(&t);
        ERL_NIF_TERM left = list.get(), key, value, map;

        keys.reserve(size);
        values.reserve(size);
        while (enif_get_list_cell(env, left, &value, &left)
               && enif_get_list_cell(env, left, &key, &left)) {
            keys.push_back(key);
            values.push_back(value);
        }
        if (!enif_make_map_from_arrays(env, keys.data(), values.data(),
                                       keys.size(), &map))
            throw badarg(0, "two keys of a map that are the same term");
        list.set(map);
    });
}

/* Nodes with room for all before they come: to make room later moves all. */
template <class K, class V, class... X>
void make_room(task &t, std::unordered_map<K, V, X...> &map, size_t size)
{
    if (size > MAP_IN_PLACE)
        t.call(FAIR_AUTO, size, [&] { map.reserve(size); });
}
template <class K, class V, class... X>
void make_room(task &, std::map<K, V, X...> &, size_t) {}

template <class Map> struct map_codec : pausing {
    using key_type = typename Map::key_type;
    using mapped_type = typename Map::mapped_type;
    static_assert(!holds_terms<key_type> && !holds_terms<mapped_type>,
                  "a pause would spoil the terms");

    static std::string name()
    {
        return "a map of: " + codec<key_type>::name() + " => "
            + codec<mapped_type>::name();
    }

    static bool get(task &t, ERL_NIF_TERM any, std::optional<Map> &value)
    {
        size_t size;

        if (!enif_get_map_size(t.env, any, &size))
            return false;

        root list(t, any);

        value.emplace();
        map_to_list(t, list, size);
        make_room(t, *value, size);
        while (size--) {
            if (!get_pair(t, list, *value))
                return false;
            t.tick(1);
        }
        return true;
    }

    static ERL_NIF_TERM make(task &t, const Map &map)
    {
        root list(t, enif_make_list(fair_env(&t), 0));

        for (auto &pair : map) {
            list.push(codec<key_type>::make(t, pair.first));
            list.push(codec<mapped_type>::make(t, pair.second));
            t.tick(1);
        }
        list_to_map(t, list, map.size());
        return list.get();
    }

    /* Of a value that is not needed any more. */
    static ERL_NIF_TERM make(task &t, Map &map)
    {
        root made(t, make(t, std::as_const(map)));

        dispose(t, map);
        return made.get();
    }

private:
    static bool get_pair(task &t, root &list, Map &map)
    {
        std::optional<key_type> key;
        std::optional<mapped_type> value;
        ERL_NIF_TERM next;

        if (!list.next(next) || !codec<key_type>::get(t, next, key)
            || !list.next(next) || !codec<mapped_type>::get(t, next, value))
            return false;
        map.emplace(std::move(*key), std::move(*value));
        return true;
    }
};

/* A node's key is constant: what it has is destroyed in one go. */
template <class Map> void dispose_map(task &t, Map &map)
{
    while (!map.empty()) {
        dispose(t, map.begin()->second);
        map.erase(map.begin());
        t.tick(1);
    }
}

} /* namespace detail */

template <class K, class V, class... X>
inline constexpr bool disposable<std::map<K, V, X...>> = true;
template <class K, class V, class... X>
inline constexpr bool disposable<std::unordered_map<K, V, X...>> = true;

template <class K, class V, class... X>
void dispose(task &t, std::map<K, V, X...> &map)
{
    detail::dispose_map(t, map);
}
template <class K, class V, class... X>
void dispose(task &t, std::unordered_map<K, V, X...> &map)
{
    detail::dispose_map(t, map);
}

template <class K, class V, class... X> struct codec<std::map<K, V, X...>>
    : detail::map_codec<std::map<K, V, X...>> {};
template <class K, class V, class... X>
struct codec<std::unordered_map<K, V, X...>>
    : detail::map_codec<std::unordered_map<K, V, X...>> {};

/* -- Resources --------------------------------------------------------------
 *
 *     struct counter { std::atomic<long> n; };
 *     FAIR_RESOURCE(counter);
 *
 *     static fair::resource<counter> new_counter(fair::task &)
 *     {
 *         return fair::make_resource<counter>();
 *     }
 *
 * A T that lives as long as a term or a fair::resource refers to it.  Its
 * destructor is run by the VM, on any thread, and should be quick.  An upgraded
 * library takes over the objects of its predecessor: a type whose layout has
 * changed needs another name. */
template <class T> class resource;

namespace detail {

/* Where the T is in an object of the VM's, which is aligned to 8 bytes only.
 * The first byte says whether it has been made. */
template <class T> struct object {
    inline static ErlNifResourceType *type = nullptr;

    static constexpr size_t size = 1 + alignof(T) - 1 + sizeof(T);

    static T *in(void *obj)
    {
        auto after = reinterpret_cast<uintptr_t>(obj) + 1;

        return reinterpret_cast<T *>((after + alignof(T) - 1)
                                     / alignof(T) * alignof(T));
    }
    static bool &made(void *obj) { return *static_cast<bool *>(obj); }

    static void destroy(ErlNifEnv *, void *obj) noexcept
    {
        if (made(obj))
            in(obj)->~T();
    }
};

/* The types that this library opens at load. */
struct resource_type {
    const char *name;
    ErlNifResourceType **type;
    void (*destroy)(ErlNifEnv *, void *);
    resource_type *next;

    inline static resource_type *first = nullptr;

    resource_type(const char *name, ErlNifResourceType **type,
                  void (*destroy)(ErlNifEnv *, void *))
        : name(name), type(type), destroy(destroy), next(first)
    {
        first = this;
    }
};

inline bool open_resources(ErlNifEnv *env)
{
    auto flags = static_cast<ErlNifResourceFlags>(ERL_NIF_RT_CREATE
                                                  | ERL_NIF_RT_TAKEOVER);

    for (auto *r = resource_type::first; r; r = r->next) {
        ErlNifResourceType *type = enif_open_resource_type(
            env, nullptr, r->name, r->destroy, flags, nullptr);

        if (!type)
            return false;
        *r->type = type;
    }
    return true;
}

} /* namespace detail */

/* A reference to an object; always to one. */
template <class T> class resource {
    void *obj;

    friend struct codec<resource<T>>;
    template <class U, class... Args>
    friend resource<U> make_resource(Args &&...args);

    explicit resource(void *counted) : obj(counted) {}

public:
    resource(const resource &other) : obj(other.obj)
    {
        enif_keep_resource(obj);
    }
    resource &operator=(const resource &other)
    {
        resource copy(other);

        std::swap(obj, copy.obj);
        return *this;
    }
    ~resource() { enif_release_resource(obj); }

    T *get() const { return detail::object<T>::in(obj); }
    T &operator*() const { return *get(); }
    T *operator->() const { return get(); }
};

/* A new object, made with the constructor's arguments. */
template <class T, class... Args> resource<T> make_resource(Args &&...args)
{
    using object = detail::object<T>;
    void *obj;

    if (!object::type)
        throw std::logic_error("no FAIR_RESOURCE of this type, or no load");
    obj = enif_alloc_resource(object::type, object::size);
    if (!obj)
        throw std::bad_alloc();
    object::made(obj) = false;

    resource<T> made(obj);

    new (object::in(obj)) T(std::forward<Args>(args)...);
    object::made(obj) = true;
    return made;
}

template <class T> struct codec<resource<T>> : plain {
    using object = detail::object<T>;

    static std::string name() { return "a resource of its type"; }
    static bool get(task &t, ERL_NIF_TERM any,
                    std::optional<resource<T>> &value)
    {
        void *obj;

        if (!object::type || !enif_get_resource(t.env, any, object::type, &obj)
            || !object::made(obj))
            return false;
        enif_keep_resource(obj);
        value.emplace(resource<T>(obj));
        return true;
    }
    static ERL_NIF_TERM make(task &t, const resource<T> &r)
    {
        return enif_make_resource(fair_env(&t), r.obj);
    }
};

#define FAIR__JOIN_(A, B) A##B
#define FAIR__JOIN(A, B) FAIR__JOIN_(A, B)

/* Has load and upgrade open the type; at namespace scope, once. */
#define FAIR_RESOURCE(T)                                                    \
    static fair::detail::resource_type FAIR__JOIN(fair__resource_, __LINE__)\
        (#T, &fair::detail::object<T>::type, fair::detail::object<T>::destroy)

} /* namespace fair */

#endif /* FAIRNIF_CODEC_HPP */
