/*
 * fairnif_messages.hpp - native processes in C++: messages, and calls of Erlang
 * functions.  Part of fairnif.hpp, which includes it.
 *
 *     static fair::atom counter(fair::task &t, int64_t n)
 *     {
 *         while (auto message = t.receive()) {
 *             if (auto call = t.match_call(*message))
 *                 t.reply(call->from, n);
 *             else if (auto request = t.match_cast(*message))
 *                 n += t.try_decode<int64_t>(*request).value_or(0);
 *         }
 *         return fair::atom("normal");
 *     }
 *
 *     FAIR_FN("nif_counter", counter, FAIR_NORMAL | FAIR_MAY_WAIT)
 *
 * See section "Messages" of fairnif.h, and docs/guide/processes.md.
 */
#ifndef FAIRNIF_MESSAGES_HPP
#define FAIRNIF_MESSAGES_HPP

#ifndef FAIRNIF_HPP
#  error "include fairnif.hpp"
#endif

namespace fair __attribute__((visibility("hidden"))) {

namespace detail {

/* What Erlang code raised, in an environment of its own, since exceptions
 * outlive pauses. */
struct raised_term {
    std::shared_ptr<ErlNifEnv> env;
    ERL_NIF_TERM kind, reason;

    /* May pause. */
    raised_term(task &t, ERL_NIF_TERM k, ERL_NIF_TERM r)
        : env(enif_alloc_env(), enif_free_env), kind(k), reason(r)
    {
        t.pause([&] { reason = fair_copy(&t, env.get(), r); });
    }
};

} /* namespace detail */

template <> struct codec<detail::raised_term> : plain {
    static ERL_NIF_TERM make(task &t, const detail::raised_term &raised)
    {
        ERL_NIF_TERM reason = 0;

        t.pause([&] { reason = fair_copy(&t, nullptr, raised.reason); });
        return is_atom(t, raised.kind) ? reason
            : enif_make_tuple2(fair_env(&t), raised.kind, reason);
    }

private:
    static bool is_atom(task &t, ERL_NIF_TERM kind)
    {
        return detail::is_atom(t, kind, "error");
    }
};

/* Thrown by task::apply: what the function raised.  If it is not caught, it is
 * raised again; an exit or a throw as an error {Class, Reason}. */
class raised : public error {
    detail::raised_term what_was;

public:
    explicit raised(const detail::raised_term &r) : error(r), what_was(r) {}

    const char *what() const noexcept override { return "fair::raised"; }

    /* Whether it has this class: "error", "exit" or "throw". */
    bool is(const char *kind) const
    {
        char name[8];

        return enif_get_atom(what_was.env.get(), what_was.kind, name,
                             sizeof name, ERL_NIF_LATIN1)
            && !strcmp(name, kind);
    }
    /* Valid until the next pause.  Pauses if the term is large. */
    fair::term reason(task &t) const
    {
        ERL_NIF_TERM copy = 0;

        t.pause([&] { copy = fair_copy(&t, nullptr, what_was.reason); });
        return fair::term(copy);
    }
};

/* What gen_server:call sent. */
struct call_message {
    term from, request;
};

namespace detail {

/* The codec may move from an rvalue, and not from any other value. */
template <class T> using made_of = std::conditional_t<
    std::is_lvalue_reference_v<T>, const std::remove_reference_t<T>, T>;

/* Making the message may pause: the receiver is in a root meanwhile. */
template <class To, class M, class F>
void make_both(task &t, const To &to, M &&message, F &&fn)
{
    using codec = fair::codec<std::decay_t<M>>;
    constexpr bool pauses = codec::pauses;
    made_of<M> &value = message;

    static_assert(!std::is_integral_v<To>, "a fair::term, not an ERL_NIF_TERM");
    static_assert(!fair::codec<To>::pauses, "a pid, an atom, {Name, Node}");
    static_assert(!(pauses && holds_terms<std::decay_t<M>>),
                  "a pause would spoil the terms: use fair::root");
    if constexpr (pauses) {
        root kept(t, fair::codec<To>::make(t, to));
        ERL_NIF_TERM made = codec::make(t, value);

        t.pause([&] { fn(kept.get(), made); });
    } else {
        ERL_NIF_TERM target = fair::codec<To>::make(t, to);
        ERL_NIF_TERM made = codec::make(t, value);

        t.pause([&] { fn(target, made); });
    }
}

} /* namespace detail */

inline std::optional<term> task::receive(int timeout_ms)
{
    ERL_NIF_TERM message;
    int came = 0;

    pause([&] { came = fair_receive(this, timeout_ms, &message); });
    return came > 0 ? std::optional<term>(message) : std::nullopt;
}

template <class Tag, class>
std::optional<term> task::receive(const Tag &tag, int timeout_ms)
{
    ERL_NIF_TERM made = encode(tag), message;
    int came = 0;

    pause([&] {
        came = fair_receive_tagged(this, made, timeout_ms, &message);
    });
    return came > 0 ? std::optional<term>(message) : std::nullopt;
}

template <class... Args>
term task::apply(const char *module, const char *function, Args &&...args)
{
    using all = detail::members<std::tuple<std::decay_t<Args>...>,
                                std::decay_t<Args>...>;
    static_assert(!(all::pauses && (holds_terms<std::decay_t<Args>> || ...)),
                  "a pause would spoil the terms: use fair::root");
    std::tuple<detail::made_of<Args> &...> values(args...);
    ERL_NIF_TERM tuple = all::make(*this, values), result = tuple;
    const ERL_NIF_TERM *parts;
    int count, returned = 0;

    enif_get_tuple(env, tuple, &count, &parts);
    pause([&] {
        returned = fair_apply(
            this, module, function,
            enif_make_list_from_array(fair_env(this), parts,
                                      static_cast<unsigned>(count)), &result);
    });
    if (returned == 0 && enif_get_tuple(detail::env_of(*this), result, &count, &parts))
        throw raised(detail::raised_term(*this, parts[0], parts[1]));
    return term(result);        /* cancelled, or not of the task's: an atom */
}

inline term task::self()
{
    return term(fair_self(this));
}

template <class To, class M> void task::send(const To &to, M &&message)
{
    detail::make_both(*this, to, std::forward<M>(message),
                      [&](ERL_NIF_TERM target, ERL_NIF_TERM made) {
                          fair_send(this, target, made);
                      });
}

template <class From, class R> void task::reply(const From &from, R &&value)
{
    detail::make_both(*this, from, std::forward<R>(value),
                      [&](ERL_NIF_TERM caller, ERL_NIF_TERM made) {
                          fair_reply(this, caller, made);
                      });
}

template <class Who> term task::monitor(const Who &who)
{
    return apply("erlang", "monitor", atom("process"), who);
}

template <class Pid> void task::link(const Pid &pid)
{
    apply("erlang", "link", pid);
}

inline std::optional<call_message> task::match_call(const term &message)
{
    ERL_NIF_TERM from, request;

    if (!fair_match_call(this, message.get(), &from, &request))
        return std::nullopt;
    return call_message{term(from), term(request)};
}

inline std::optional<term> task::match_cast(const term &message)
{
    ERL_NIF_TERM request;

    if (!fair_match_cast(this, message.get(), &request))
        return std::nullopt;
    return term(request);
}

} /* namespace fair */

#endif /* FAIRNIF_MESSAGES_HPP */
