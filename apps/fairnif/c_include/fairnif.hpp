/*
 * fairnif.hpp - native functions that share the BEAM, in C++17.
 *
 * A NIF is an ordinary function of C++ values that now and then says how much
 * work it has done.  Arguments are decoded, the result is encoded, exceptions
 * become Erlang's, and destructors run whatever becomes of the caller.
 *
 *     #include <fairnif.hpp>
 *
 *     static std::vector<double> smooth(fair::task &t, fair::bytes in,
 *                                       double width)
 *     {
 *         std::vector<double> out;
 *
 *         if (width <= 0)
 *             throw fair::badarg(2, "a width over 0");
 *         out.reserve(in.size());
 *         for (unsigned char byte : in) {
 *             out.push_back(byte / width);
 *             t.tick();
 *         }
 *         return out;
 *     }
 *
 *     static ErlNifFunc nifs[] = {
 *         FAIR_FN("smooth", smooth, FAIR_AUTO),
 *     };
 *     FAIR_NIF_INIT(my_module, nifs, fair::load<>, NULL, fair::upgrade<>, NULL)
 *
 * The Erlang module is as for C (fairnif.h).  All of fairnif.h can be used
 * beside this: a fair::task is a fair_task.  The conversions are in
 * fairnif_codec.hpp.  The guide's chapter: docs/guide/12-cpp.md.
 *
 * -- What differs from C -----------------------------------------------------
 *
 *   - Every function is FAIR_UNWINDS: when the caller dies, or the runtime ends
 *     the call, the function that the body paused in throws fair::cancelled, on
 *     a thread that is no normal scheduler.  It is derived from nothing, so
 *     that `catch (std::exception &)` lets it pass.  Where `catch (...)`
 *     swallows it, the next tick throws it again.
 *   - It is not thrown while another exception unwinds the stack, so a
 *     destructor that runs then may pause.
 *   - A function that is noexcept, and so every destructor, must not call what
 *     throws it when no exception is under way: std::terminate ends the node.
 *     There, and in callbacks of C libraries, `try_tick` is for ticks.
 *   - What pauses (tick, move, call, wait, receive, apply, lock, the codecs) may
 *     be called in a catch block.  The fair_ functions that pause may not, nor where an
 *     exception unwinds the stack: C++ counts exceptions by thread, and the
 *     body may go on on another one.
 *   - A library is compiled with exceptions and RTTI.
 */
#ifndef FAIRNIF_HPP
#define FAIRNIF_HPP

#if defined(_MSVC_LANG) ? _MSVC_LANG < 201703L : __cplusplus < 201703L
#  error "fairnif.hpp needs C++17 or newer (-std=c++17)"
#endif

#include <cerrno>
#include <chrono>
#include <cxxabi.h>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "fairnif.h"

/* Two libraries of a node have nothing in common, in one process as they are. */
namespace fair __attribute__((visibility("hidden"))) {

/* Thrown where a cancelled body paused.  Let it pass, or throw it on. */
struct cancelled {};

class term;                     /* fairnif_codec.hpp */
struct call_message;            /* fairnif_messages.hpp */

namespace detail {

/* C++ keeps the exceptions that are caught and not done with, and the number of
 * those under way, for each thread.  A body takes its own along: away before it
 * may pause, and back on whichever thread it goes on. */
class exceptions {
    struct state {
        void *caught;
        unsigned uncaught;
#ifdef __ARM_EABI_UNWINDER__
        void *propagating;
#endif
    };

    /* __cxa_get_globals is declared as one whose answer never changes.  Read
     * from a volatile variable, it is a function of which nothing is known. */
    static state &of_this_thread()
    {
        static abi::__cxa_eh_globals *(*volatile const get)()
            = abi::__cxa_get_globals;

        return *reinterpret_cast<state *>(get());
    }

    state mine;

public:
    exceptions() noexcept : mine(of_this_thread())
    {
        of_this_thread() = state();
    }
    ~exceptions()
    {
        of_this_thread() = mine;
    }
    exceptions(const exceptions &) = delete;
    exceptions &operator=(const exceptions &) = delete;
};

} /* namespace detail */

/* -- The task ----------------------------------------------------------------
 *
 * The call under way.  It is the C interface's fair_task, with member functions
 * and nothing else: `fair_caller(&t, &pid)` works as `t.caller()`. */
struct task : fair_task {
    task() = delete;
    task(const task &) = delete;
    task &operator=(const task &) = delete;

    /* Says that `units` of work were done since the last tick (fair_tick).  May
     * pause.  Throws cancelled. */
    void tick(size_t units = 1)
    {
        if (__builtin_expect(units < budget, 1))
            budget -= units + 1;
        else
            slow_tick(units);
    }

    /* The same where nothing may be thrown: in destructors and in callbacks of
     * a C library.  False when the call was cancelled: give up, answer the
     * library's own error, and tick after it has returned. */
    [[nodiscard]] bool try_tick(size_t units = 1) noexcept
    {
        if (__builtin_expect(units < budget, 1)) {
            budget -= units + 1;
            return true;
        }
        paused([&] { fair_tick(this, units); });
        return !fair_cancelled(this);
    }

    /* Throws cancelled if the call was cancelled, and no exception is under
     * way.  To be called after a fair_ function that may pause. */
    void check()
    {
        if (fair_cancelled(this) && !std::uncaught_exceptions())
            throw fair::cancelled();
    }

    /* Goes on, from this line, on another kind of scheduler (fair_move). */
    void move(fair_mode where)
    {
        pause([&] { fair_move(this, where); });
    }

    /* Runs `fn()`, code that cannot tick, elsewhere, and returns what it
     * returns, or throws what it throws (fair_call).  In `fn` no exception of
     * the body's is to be seen: `throw;` has nothing to throw on. */
    template <class F>
    std::invoke_result_t<F &> call(fair_mode where, size_t units, F &&fn);

    /* Waits until a descriptor is ready (fair_wait); answers FAIR_READ,
     * FAIR_WRITE, both or-ed, or 0 when the time is up.  Throws
     * std::system_error. */
    unsigned wait(int fd, unsigned events, int timeout_ms = -1);

    /* Holds nothing for that time. */
    template <class Rep, class Period>
    void sleep(std::chrono::duration<Rep, Period> time)
    {
        using ms = std::chrono::milliseconds;

        wait(-1, 0, static_cast<int>(std::chrono::ceil<ms>(time).count()));
    }

    /* What the C functions say. */
    ErlNifEnv *environment() { return fair_env(this); }
    fair_mode where() const { return fair_where(this); }
    ErlNifPid caller()
    {
        ErlNifPid pid;

        fair_caller(this, &pid);
        return pid;
    }

    /* A value as a term, valid until the next pause; a term as a value, or
     * std::invalid_argument.  Both may pause, by fairnif_codec.hpp. */
    template <class T> ERL_NIF_TERM encode(const T &value);
    template <class T> T decode(ERL_NIF_TERM term);

    /* The same, but nothing where the term is something else. */
    template <class T> std::optional<T> try_decode(ERL_NIF_TERM term);

    /* -- Messages: those of fairnif.h, in functions that are FAIR_AWAITED or
     * FAIR_THREADED.  Terms are valid until the next pause.
     *
     * The next message; nothing when the time is up.  Of a tag, which is no number
     * (an atom, or a reference in a fair::term): the first one with it. */
    std::optional<term> receive(int timeout_ms = -1);
    template <class Tag,
              class = std::enable_if_t<!std::is_arithmetic_v<Tag>>>
    std::optional<term> receive(const Tag &tag, int timeout_ms = -1);

    /* Module:Function(Args...) in the caller.  What it raises is thrown as
     * fair::raised. */
    template <class... Args>
    term apply(const char *module, const char *function, Args &&...args);

    /* `to ! message`, and the answer to a call; they do not wait.  Making the
     * message may pause, by fairnif_codec.hpp; `to` is kept. */
    template <class To, class M> void send(const To &to, M &&message);
    template <class From, class R> void reply(const From &from, R &&value);

    /* The caller's pid; a new monitor's reference; link(Pid).  The latter throw
     * fair::raised. */
    term self();
    template <class Who> term monitor(const Who &who);
    template <class Pid> void link(const Pid &pid);

    /* Of a message of gen_server:call's {from, request}, of a cast's its request;
     * nothing of others. */
    std::optional<call_message> get_call(ERL_NIF_TERM message);
    std::optional<term> get_cast(ERL_NIF_TERM message);

    /* Runs `fn()`, which may pause, and checks. */
    template <class F> void pause(F &&fn)
    {
        paused(fn);
        check();
    }

private:
    template <class F> void paused(F &&fn) noexcept
    {
        detail::exceptions taken_along;

        fn();
    }

    __attribute__((noinline, cold)) void slow_tick(size_t units)
    {
        pause([&] { fair_tick(this, units); });
    }
};
static_assert(sizeof(task) == sizeof(fair_task), "the same object");

namespace detail {

/* A call of a function elsewhere: what it returned or threw. */
template <class F, class R> struct job {
    using kept = std::conditional_t<std::is_void_v<R>, std::tuple<>, R>;

    F &fn;
    std::optional<kept> answer;
    std::exception_ptr thrown;

    static void run(void *arg) noexcept
    {
        auto &j = *static_cast<job *>(arg);

        try {
            if constexpr (std::is_void_v<R>) {
                j.fn();
                j.answer.emplace();
            } else {
                j.answer.emplace(j.fn());
            }
        } catch (...) {
            j.thrown = std::current_exception();
        }
    }

    bool done() const { return answer || thrown; }
};

} /* namespace detail */

template <class F>
std::invoke_result_t<F &> task::call(fair_mode where, size_t units, F &&fn)
{
    using result = std::invoke_result_t<F &>;
    using job = detail::job<F, result>;
    job j = {fn, {}, {}};

    static_assert(!std::is_reference_v<result>, "return a value");
    pause([&] { fair_call(this, where, units, job::run, &j); });
    /* Cancelled before it began, where an exception is under way already: now
     * it runs at once. */
    if (!j.done())
        pause([&] { fair_call(this, where, units, job::run, &j); });
    if (j.thrown)
        std::rethrow_exception(j.thrown);
    if constexpr (!std::is_void_v<result>)
        return std::move(*j.answer);
}

inline unsigned task::wait(int fd, unsigned events, int timeout_ms)
{
    int ready = 0;

    pause([&] { ready = fair_wait(this, fd, events, timeout_ms); });
    if (fair_cancelled(this))
        return 0;
    if (ready < 0)
        throw std::system_error(-ready, std::generic_category(), "fair_wait");
    return static_cast<unsigned>(ready);
}

/* fair_alarm, for as long as it lives; one at a time.  `ring` must not throw. */
class alarm {
    task &t;

public:
    const uint64_t left_ns;     /* until it rings first; 0: it never does */

    alarm(task &task, void (*ring)(void *), void *arg) noexcept
        : t(task), left_ns(fair_alarm(&task, ring, arg))
    {
    }
    ~alarm() { fair_alarm(&t, nullptr, nullptr); }
    alarm(const alarm &) = delete;
    alarm &operator=(const alarm &) = delete;
};

/* -- Roots ------------------------------------------------------------------
 *
 * A term that survives pauses, for as long as the object lives.  Roots are let
 * go of in the reverse order in which they were made: so they are local
 * variables, members of such, or arguments by reference, and do not move. */
class root {
    task &t;
    unsigned number;

public:
    root(task &task, ERL_NIF_TERM term)
        : t(task), number(fair_root(&task, term))
    {
        t.check();
    }
    ~root() { fair_unroot(&t, number); }
    root(const root &) = delete;
    root &operator=(const root &) = delete;
    static void *operator new(size_t) = delete;
    static void *operator new(size_t, void *at) noexcept { return at; }

    /* The term, valid until the next pause. */
    ERL_NIF_TERM get() const { return fair_kept(&t, number); }
    void set(ERL_NIF_TERM term) { fair_keep(&t, number, term); }

    /* The functions of lists (fair_list_next, ..._push, ..._reverse). */
    bool next(ERL_NIF_TERM &head)
    {
        return fair_list_next(&t, number, &head) != 0;
    }
    void push(ERL_NIF_TERM head) { fair_list_push(&t, number, head); }
    bool reverse()
    {
        int proper = 0;

        t.pause([&] { proper = fair_list_reverse(&t, number); });
        return proper != 0;
    }
};

/* -- Locks ------------------------------------------------------------------
 *
 * Lies where all its users find it, and must not move (fair_mutex). */
class mutex {
    fair_mutex m = FAIR_MUTEX_INIT;
    friend class lock;

public:
    mutex() = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
};

/* Holds a mutex for as long as it lives; across pauses, too. */
class lock {
    task &t;
    mutex &held;

public:
    lock(task &task, mutex &m) : t(task), held(m)
    {
        int got = 0;

        try {
            t.pause([&] { got = t.ops->lock(&t, &m.m, 1); });
        } catch (...) {
            if (got)            /* cancelled before */
                fair_mutex_unlock(&t, &m.m);
            throw;
        }
        /* Cancelled before it came, where an exception is under way already:
         * now the thread waits for it. */
        if (!got)
            t.pause([&] { fair_mutex_lock(&t, &m.m); });
    }
    ~lock() { fair_mutex_unlock(&t, &held.m); }
    lock(const lock &) = delete;
    lock &operator=(const lock &) = delete;
};

} /* namespace fair */

#include "fairnif_error.hpp"
#include "fairnif_codec.hpp"
#include "fairnif_messages.hpp"

namespace fair __attribute__((visibility("hidden"))) {

/* -- Registering ------------------------------------------------------------ */

namespace detail {

/* Decoded arguments, made in their order and destroyed in the reverse one. */
template <class... T> struct arguments {
    template <class F> decltype(auto) apply(F &&fn) { return fn(); }
    void decode(task &, unsigned, bool) {}
    void dispose(task &) {}
};
template <class T, class... Rest> struct arguments<T, Rest...> {
    using value_type = std::remove_cv_t<std::remove_reference_t<T>>;

    std::optional<value_type> value;
    arguments<Rest...> rest;

    /* Those that hold terms come last: a pause would spoil them. */
    void decode(task &t, unsigned i, bool terms)
    {
        using codec = fair::codec<value_type>;

        static_assert(!(codec::pauses && holds_terms<value_type>),
                      "a pause would spoil the terms: use fair::root");
        if (holds_terms<value_type> == terms
            && !codec::get(t, fair_arg(&t, i), value))
            throw badarg(i + 1, expected<value_type>(t, fair_arg(&t, i)));
        rest.decode(t, i + 1, terms);
    }

    template <class F> decltype(auto) apply(F &&fn)
    {
        return rest.apply([&](auto &&...args) -> decltype(auto) {
            return fn(static_cast<pass>(*value),
                      std::forward<decltype(args)>(args)...);
        });
    }

    void dispose(task &t)
    {
        rest.dispose(t);
        if constexpr (std::is_lvalue_reference_v<T>)
            fair::dispose(t, *value);
    }

private:
    /* By reference what is taken by reference, else moved. */
    using pass = std::conditional_t<std::is_lvalue_reference_v<T>,
                                    value_type &, value_type &&>;
};

/* Whether an argument of that type is there to be destroyed after the call. */
template <class T> inline constexpr bool remains
    = std::is_lvalue_reference_v<T> && disposable<std::decay_t<T>>;

template <auto Fn, class F = decltype(Fn)> struct function {
    static_assert(!std::is_same_v<F, F>,
                  "a function of (fair::task &, ...) that may throw");
};
template <auto Fn, class R, class... Args>
struct function<Fn, R (*)(task &, Args...)> {
    static constexpr unsigned arity = sizeof...(Args);

    static ERL_NIF_TERM call(task &t)
    {
        arguments<Args...> args;

        args.decode(t, 0, false);
        args.decode(t, 0, true);
        auto body = [&](auto &&...arg) -> R {
            return Fn(t, std::forward<decltype(arg)>(arg)...);
        };
        if constexpr (std::is_void_v<R>) {
            args.apply(body);
            args.dispose(t);
            return atom(t, "ok");
        } else {
            auto result = args.apply(body);

            if constexpr ((remains<Args> || ...)) {
                root answer(t, codec<decltype(result)>::make(t, result));

                args.dispose(t);
                return answer.get();
            } else {
                return codec<decltype(result)>::make(t, result);
            }
        }
    }
};

} /* namespace detail */

/* How many arguments the Erlang function has. */
template <auto Fn>
inline constexpr unsigned arity = detail::function<Fn>::arity;

/* The fair_body of a function: for FAIR_NIF_OPTIONS and the like. */
template <auto Fn> ERL_NIF_TERM body(fair_task *task)
{
    auto &t = static_cast<fair::task &>(*task);

    try {
        try {
            return detail::function<Fn>::call(t);
        } catch (...) {
            return fair_raise(&t, detail::reason(t));
        }
    } catch (...) {
        return fair_enomem(&t);
    }
}

/* Options of a function; see fair_options. */
template <auto Fn, size_t StackSize = 0, unsigned SliceUs = 0,
          unsigned MaxTasks = 0>
inline const fair_options options = {body<Fn>, StackSize, SliceUs, MaxTasks};

/* An entry of the ErlNifFunc table: NAME in Erlang, and the function.  Arity and
 * types come from the function. */
#define FAIR_FN(NAME, FN, MODE)                                             \
    FAIR_NIF(NAME, fair::arity<&FN>, fair::body<&FN>, (MODE) | FAIR_UNWINDS)

/* The same with options, in their order: stack size in bytes, slice in us, most
 * tasks at once; 0, or none, for the default. */
#define FAIR_FN_OPTIONS(NAME, FN, MODE, ...)                                \
    FAIR_NIF_OPTIONS(NAME, fair::arity<&FN>,                                \
                     (&fair::options<&FN, __VA_ARGS__>),                    \
                     (MODE) | FAIR_UNWINDS)

/* For FAIR_NIF_INIT: open the library's resource types, then call the author's
 * function, if there is one: `fair::load<my_load>`. */
template <fair__load_fn Authors = nullptr>
int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    if (!detail::open_resources(env))
        return FAIR_E_NOMEM;
    if constexpr (Authors != nullptr)
        return Authors(env, priv, info);
    return 0;
}
template <fair__upgrade_fn Authors = nullptr>
int upgrade(ErlNifEnv *env, void **priv, void **old_priv, ERL_NIF_TERM info)
{
    if (!detail::open_resources(env))
        return FAIR_E_NOMEM;
    if constexpr (Authors != nullptr)
        return Authors(env, priv, old_priv, info);
    *priv = *old_priv;
    return 0;
}

} /* namespace fair */

#endif /* FAIRNIF_HPP */
