/*
 * fairnif_fine.hpp - fair functions in a library that uses fine
 * (elixir-nx/fine), one at a time.  Needs fine.hpp and fairnif.hpp.
 *
 *     static int64_t plain(ErlNifEnv *env, int64_t x) { ... }
 *     FINE_NIF(plain, 0);                         // unchanged
 *
 *     static int64_t long_one(fair::task &t, int64_t x) { ... t.tick(n); ... }
 *     FAIR_FINE_NIF(long_one, FAIR_AUTO);
 *
 *     FAIR_FINE_LOAD("Elixir.My.Module");
 *     FINE_INIT("Elixir.My.Module");
 *
 * and in the Elixir module
 *
 *     :fairnif.loaded(:erlang.load_nif(path, :fairnif.load_info()))
 *
 * FAIR_FINE_LOAD registers fine's load and unload callbacks.  A library that has
 * callbacks of its own calls fair::fine_load in the one and fair::fine_unload in
 * the other.
 *
 * Arguments and results of fair functions may be fine::Term (valid until the
 * next pause), fine::Atom, fine::ResourcePtr, fine::Ok, fine::Error and structs
 * with `module` and `fields`. fine reads and makes them, in one go.  Errors are
 * raised as in fairnif.hpp, not as by fine.
 */
#ifndef FAIRNIF_FINE_HPP
#define FAIRNIF_FINE_HPP

#include "fairnif.hpp"

#include <fine.hpp>

namespace fair __attribute__((visibility("hidden"))) {

namespace detail {

/* A codec of fine's. */
template <class T> struct fine_codec : plain {
    static std::string name() { return "what fine takes for its type"; }
    static bool get(task &t, ERL_NIF_TERM any, std::optional<T> &value)
    {
        try {
            value.emplace(::fine::decode<T>(detail::env_of(t), any));
            return true;
        } catch (const std::invalid_argument &) {
            return false;
        }
    }
    static ERL_NIF_TERM make(task &t, const T &value)
    {
        return ::fine::encode(fair_env(&t), value);
    }
};

/* The fair functions of the library, and its instances.  Entries that fine
 * registers cannot say to which instance they belong: fine supports no upgrade,
 * so it is the one loaded last. */
struct fine_library {
    using functions = std::vector<fair__nif>;

    inline static functions declared;
    inline static functions of[FAIR__INSTANCES];
    inline static fair__lib instances[FAIR__INSTANCES];
    inline static int current;

    static ERL_NIF_TERM enter(size_t i, ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
    {
        return instances[current].ops->enter(&of[current][i], env, argc, argv);
    }
};

template <auto Fn> struct fine_function {
    inline static size_t number;

    static ERL_NIF_TERM enter(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
    {
        return fine_library::enter(number, env, argc, argv);
    }

    static ::fine::Registration declare(const char *name, unsigned mode)
    {
        fair__nif nif = {};

        nif.body = body<Fn>;
        nif.name = name;
        nif.arity = arity<Fn>;
        nif.mode = mode | FAIR_CLEANUP;
        number = fine_library::declared.size();
        fine_library::declared.push_back(nif);
        return ::fine::Registration::register_nif(
            {name, arity<Fn>, enter, 0});
    }
};

} /* namespace detail */

template <> inline constexpr bool holds_terms<::fine::Term> = true;
template <> struct codec<::fine::Term> : detail::fine_codec<::fine::Term> {};
template <> struct codec<::fine::Atom> : detail::fine_codec<::fine::Atom> {};
template <class T> struct codec<::fine::ResourcePtr<T>>
    : detail::fine_codec<::fine::ResourcePtr<T>> {};
template <class... T> struct codec<::fine::Ok<T...>>
    : detail::fine_codec<::fine::Ok<T...>> {};
template <class... T> struct codec<::fine::Error<T...>>
    : detail::fine_codec<::fine::Error<T...>> {};
template <class T>
struct codec<T, std::void_t<decltype(T::module), decltype(T::fields)>>
    : detail::fine_codec<T> {};

/* Binds the library to the runtime.  Call it in fine's load callback, with its
 * arguments; pass the result to fine_unload.  Throws std::runtime_error. */
inline fair__lib *fine_load(ErlNifEnv *env, ERL_NIF_TERM load_info,
                            const char *module)
{
    using library = detail::fine_library;
    int i = fair__claim(library::instances);
    fair__handshake hs;
    ERL_NIF_TERM authors;
    int error;

    if (i < 0)
        throw std::runtime_error("fairnif: loaded too often");

    fair__lib *lib = &library::instances[i];

    library::of[i] = library::declared;
    for (auto &nif : library::of[i])
        nif.lib = lib;
    error = fair__bind(env, load_info, module, library::of[i].data(),
                       static_cast<unsigned>(library::of[i].size()), &hs,
                       &authors);
    if (!error)
        error = detail::resource_type::open_all(env);
    if (fair__loaded(lib, &hs, error))
        throw std::runtime_error("fairnif: error " + std::to_string(error));
    library::current = i;
    return lib;
}

inline void fine_unload(fair__lib *lib)
{
    lib->state = FAIR__FREE;
}

/* Instead of FINE_NIF: a fair function, under its own name. */
#define FAIR_FINE_NIF(NAME, MODE)                                           \
    static auto fair__registered_##NAME                                     \
        = fair::detail::fine_function<&NAME>::declare(#NAME, (MODE));       \
    static_assert(true, "a semicolon")

#define FAIR_FINE_LOAD(MODULE)                                              \
    static auto fair__registered_load = fine::Registration::register_load(  \
        [](ErlNifEnv *env, void **priv, fine::Term info) {                  \
            *priv = fair::fine_load(env, info, MODULE);                     \
        });                                                                 \
    static auto fair__registered_unload                                     \
        = fine::Registration::register_unload([](ErlNifEnv *, void *priv) { \
            fair::fine_unload(static_cast<fair__lib *>(priv));              \
        });                                                                 \
    static_assert(true, "a semicolon")

} /* namespace fair */

#endif /* FAIRNIF_FINE_HPP */
