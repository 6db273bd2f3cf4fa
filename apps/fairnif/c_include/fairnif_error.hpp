/*
 * fairnif_error.hpp - what a body throws, and what is raised.  Part of
 * fairnif.hpp, which includes it.
 */
#ifndef FAIRNIF_ERROR_HPP
#define FAIRNIF_ERROR_HPP

#ifndef FAIRNIF_HPP
#  error "include fairnif.hpp"
#endif

namespace fair __attribute__((visibility("hidden"))) {

/* -- Errors -----------------------------------------------------------------
 *
 * What a body throws is raised as an exception of class error:
 *
 *   std::bad_alloc          enomem
 *   fair::error(value)      the value
 *   fair::raised            what Erlang code raised (task::apply)
 *   fair::badarg(n, why)    {badarg, #{N => Why}}, for argument N, from 1
 *   std::invalid_argument   {badarg, #{general => What}}
 *   std::exception          {Type, What}: what() as a binary, and the type as
 *                           C++ writes it, an atom: {'std::out_of_range', _}
 *   anything else           {Type, <<>>}
 *
 * For a wrong argument a badarg is raised that says what was expected and what
 * came.  A NIF cannot put error_info into a stack trace, so the reason holds
 * the map: fairnif:with_error_info/2 in the Erlang function turns it into
 * error:badarg with that error_info. */

/* Any reason that fairnif_codec.hpp can encode, except a term. */
class error : public std::exception {
    struct reason {
        virtual ~reason() = default;
        virtual ERL_NIF_TERM term(task &t) const = 0;
    };
    template <class T> struct reason_of : reason {
        T value;

        template <class U> explicit reason_of(U &&given)
            : value(std::forward<U>(given)) {}
        ERL_NIF_TERM term(task &t) const override;
    };

    std::shared_ptr<const reason> why;

public:
    template <class T, class = std::enable_if_t<
        !std::is_same_v<std::decay_t<T>, error>>>
    explicit error(T &&value)
    {
        using kept = std::conditional_t<
            std::is_convertible_v<T, const char *>, std::string,
            std::decay_t<T>>;

        why = std::make_shared<const reason_of<kept>>(std::forward<T>(value));
    }

    const char *what() const noexcept override { return "fair::error"; }
    ERL_NIF_TERM term(task &t) const { return why->term(t); }
};

/* A wrong argument, counted from 1; or 0 for all of them. */
class badarg : public std::invalid_argument {
    unsigned which;

public:
    badarg(unsigned argument, const std::string &why)
        : std::invalid_argument(why), which(argument) {}
    unsigned argument() const { return which; }
};

namespace detail {

inline ERL_NIF_TERM atom(task &t, const char *name)
{
    return enif_make_atom_len(detail::env_of(t), name, std::min<size_t>(strlen(name), 255));
}

inline ERL_NIF_TERM text(task &t, const char *chars)
{
    ERL_NIF_TERM term;
    size_t size = strlen(chars);
    unsigned char *bytes = enif_make_new_binary(fair_env(&t), size, &term);

    if (!bytes)
        throw std::bad_alloc();
    memcpy(bytes, chars, size);
    return term;
}

/* {badarg, #{Which => Why}} */
inline ERL_NIF_TERM badarg_reason(task &t, unsigned argument, const char *why)
{
    ErlNifEnv *env = fair_env(&t);
    ERL_NIF_TERM which = argument ? enif_make_uint(env, argument)
        : atom(t, "general");
    ERL_NIF_TERM reason = text(t, why), map;

    if (!enif_make_map_from_arrays(env, &which, &reason, 1, &map))
        throw std::bad_alloc();
    return enif_make_tuple2(env, atom(t, "badarg"), map);
}

/* A type's name as in the source, with its namespaces; NULL when memory is out. */
inline std::unique_ptr<char, void (*)(void *)> demangled(
    const std::type_info &type)
{
    int status = 0;

    return {abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), free};
}

/* The type of the exception that is being handled. */
inline ERL_NIF_TERM type_name(task &t)
{
    const std::type_info *type = abi::__cxa_current_exception_type();
    std::unique_ptr<char, void (*)(void *)> name(nullptr, free);

    if (type)
        name = demangled(*type);
    return atom(t, name ? name.get() : type ? type->name() : "unknown");
}

/* The reason for the exception that is being handled. */
inline ERL_NIF_TERM reason(task &t)
{
    try {
        throw;
    } catch (const cancelled &) {
        return atom(t, "cancelled");
    } catch (const error &e) {
        return e.term(t);
    } catch (const std::bad_alloc &) {
        return atom(t, "enomem");
    } catch (const badarg &e) {
        return badarg_reason(t, e.argument(), e.what());
    } catch (const std::invalid_argument &e) {
        return badarg_reason(t, 0, e.what());
    } catch (const std::exception &e) {
        ERL_NIF_TERM type = type_name(t), what = text(t, e.what());

        return enif_make_tuple2(fair_env(&t), type, what);
    } catch (...) {
        ERL_NIF_TERM type = type_name(t);

        return enif_make_tuple2(fair_env(&t), type, text(t, ""));
    }
}

} /* namespace detail */

} /* namespace fair */

#endif /* FAIRNIF_ERROR_HPP */
