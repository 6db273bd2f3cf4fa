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
 * each element or 64 bytes.  An argument taken by reference (`const
 * std::vector<std::string> &`) is also destroyed in slices; one taken by value
 * belongs to the function, and is destroyed in one go.
 *
 * The VM can neither continue reading a map after a pause nor make one step by
 * step.  So a map of over 256 keys is converted into a list, or from one, on a
 * dirty CPU scheduler, in one go.  Its keys and values are read and made in
 * slices, where the body runs.
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
 * `get` returns true if it has set the value; a codec may have only one of the
 * two.  `name` says what is expected.  With fair::plain neither may pause.
 * With fair::pausing they may: terms in C++ variables are then invalid.
 */
#ifndef FAIRNIF_CODEC_HPP
#define FAIRNIF_CODEC_HPP

#ifndef FAIRNIF_HPP
#  error "include fairnif.hpp"
#endif

#include <algorithm>
#include <cmath>
#include <limits>

/* The atom for an empty std::optional: "nil" in a library for Elixir.  Both are
 * accepted as arguments. */
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

/* Whether a value of that type holds terms, which a pause would invalidate. */
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
    explicit term(ERL_NIF_TERM any) : value(any) {}
    ERL_NIF_TERM get() const { return value; }
};

inline root::root(task &task, const term &any) : root(task, any.get()) {}

template <> inline constexpr bool holds_terms<term> = true;

template <> struct codec<term> : plain {
    static std::string name() { return "any term"; }
    static bool get(task &, ERL_NIF_TERM any, std::optional<term> &value)
    {
        value.emplace(any);
        return true;
    }
    static ERL_NIF_TERM make(task &, const term &any) { return any.get(); }
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

/* The term that came, in a few words; only the size of a long one is looked
 * at. */
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

    switch (enif_term_type(detail::env_of(t), any)) {
    case ERL_NIF_TERM_TYPE_ATOM:
        enif_snprintf(chars, sizeof chars, "%T", any);
        return chars;
    case ERL_NIF_TERM_TYPE_INTEGER:
        if (enif_get_int64(detail::env_of(t), any, &integer))
            return std::to_string(integer);
        if (enif_get_uint64(detail::env_of(t), any, &positive))
            return std::to_string(positive);
        return "an integer over 64 bits";
    case ERL_NIF_TERM_TYPE_FLOAT:
        enif_get_double(detail::env_of(t), any, &real);
        snprintf(chars, sizeof chars, "%.17g", real);
        return std::string("the float ") + chars;
    case ERL_NIF_TERM_TYPE_BITSTRING:
        if (enif_inspect_binary(detail::env_of(t), any, &bin))
            return number("a binary of bytes: ", bin.size);
        return "a bitstring that is no binary";
    case ERL_NIF_TERM_TYPE_LIST:
        return enif_is_empty_list(detail::env_of(t), any) ? "an empty list" : "a list";
    case ERL_NIF_TERM_TYPE_MAP:
        enif_get_map_size(detail::env_of(t), any, &size);
        return number("a map with keys: ", size);
    case ERL_NIF_TERM_TYPE_TUPLE:
        enif_get_tuple(detail::env_of(t), any, &count, &elements);
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

template <class T> std::optional<T> task::try_decode(ERL_NIF_TERM any)
{
    std::optional<T> value;

    if (!codec<T>::get(*this, any, value))
        value.reset();
    return value;
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

template <class T> std::optional<T> task::try_decode(const term &any)
{
    return try_decode<T>(any.get());
}

template <class T> T task::decode(const term &any)
{
    return decode<T>(any.get());
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

/* An atom.  If made of a name once (`static const fair::atom ok("ok");` in a
 * function), it costs nothing to compare and encode. */
class atom {
    ERL_NIF_TERM value;

    friend struct codec<atom>;
    atom(ERL_NIF_TERM value, int) : value(value) {}

    static ERL_NIF_TERM made(std::string_view name)
    {
        if (name.size() > 255)
            throw std::length_error("an atom of over 255 characters");
        /* The environment is only for an error that cannot happen here. */
        return enif_make_atom_len(nullptr, name.data(), name.size());
    }

public:
    /* Of a name in Latin-1.  std::length_error over 255 characters. */
    explicit atom(std::string_view name) : value(made(name)) {}

    /* Its name in Latin-1; empty if it has other characters. */
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
        if (!enif_is_atom(detail::env_of(t), any))
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

/* The bytes of a binary, in place.  They stay until the call ends, or
 * `release`, even if this object is destroyed; copies refer to the same
 * bytes. */
class bytes {
    fair_bytes got;

    friend struct codec<bytes>;

protected:
    explicit bytes(const fair_bytes &b) : got(b) {}

public:
    using value_type = unsigned char;

    /* Of a term.  Throws std::invalid_argument if it is no binary. */
    bytes(task &t, ERL_NIF_TERM any);

    const unsigned char *data() const { return got.data; }
    size_t size() const { return got.size; }
    bool empty() const { return !got.size; }
    const unsigned char *begin() const { return got.data; }
    const unsigned char *end() const { return got.data + got.size; }
    unsigned char operator[](size_t i) const { return got.data[i]; }
    std::string_view view() const
    {
        return {reinterpret_cast<const char *>(got.data), got.size};
    }
    operator std::string_view() const { return view(); }

    /* Releases the bytes early: for bodies that do not end. */
    void release(task &t)
    {
        fair_release_bytes(&t, &got);
        got = fair_bytes();
    }
};

template <> struct codec<bytes> : plain {
    static std::string name() { return "a binary"; }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<bytes> &value)
    {
        fair_bytes got;

        if (!fair_get_bytes(&t, any, &got)) {
            if (enif_is_binary(detail::env_of(t), any))
                throw std::bad_alloc();
            return false;
        }
        value = bytes(got);
        return true;
    }
    static ERL_NIF_TERM make(task &t, bytes b)
    {
        return fair_make_bytes(&t, &b.got);
    }
};

inline bytes::bytes(task &t, ERL_NIF_TERM any) : bytes(t.decode<bytes>(any)) {}

/* The bytes of iodata in one piece; those of a binary in place. */
class iodata : public bytes {
    friend struct codec<iodata>;
    using bytes::bytes;
};

template <> struct codec<iodata> : pausing {
    static std::string name() { return "iodata"; }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<iodata> &value)
    {
        fair_bytes got;
        int is_iodata = 0;

        t.pause([&] { is_iodata = fair_get_iolist(&t, any, &got); });
        if (is_iodata)
            value = iodata(got);
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
        fair_bytes got;

        if (!fair_get_bytes(&t, any, &got)) {
            if (enif_is_binary(detail::env_of(t), any))
                throw std::bad_alloc();
            return false;
        }
        value.emplace();
        value->reserve(got.size);
        detail::in_blocks(t, got.size, [&](size_t at, size_t n) {
            value->append(reinterpret_cast<const char *>(got.data) + at, n);
        });
        fair_release_bytes(&t, &got);
        return true;
    }
    static ERL_NIF_TERM make(task &t, const std::string &chars)
    {
        return codec<std::string_view>::make(t, chars);
    }
};

} /* namespace fair */

#include "fairnif_containers.hpp"
#include "fairnif_resource.hpp"

#endif /* FAIRNIF_CODEC_HPP */
