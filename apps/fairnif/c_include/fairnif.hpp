/*
 * fairnif.hpp - native functions that share the BEAM, in C++17.
 *
 * A NIF is an ordinary function of C++ values that now and then reports how
 * much work it has done.  Arguments are decoded, the result is encoded,
 * exceptions become Erlang's, and destructors run even if the caller dies.
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
 *     FAIR_NIF_INIT(my_module, nifs, fair::load<>, fair::upgrade<>, NULL)
 *
 * The Erlang module is as for C (fairnif.h).  All of fairnif.h can be used
 * beside this: a fair::task is a fair_task.  Conversions: fairnif_codec.hpp.
 * Guide: docs/guide/cpp.md.
 *
 * -- What differs from C -----------------------------------------------------
 *
 *   - Every function is FAIR_CLEANUP.  When the caller dies, or the runtime
 *     ends the call, the function in which the body paused throws
 *     fair::cancelled, on a thread that is no normal scheduler.  It has no base
 *     class, so `catch (std::exception &)` does not catch it.  If `catch (...)`
 *     swallows it, the next tick throws it again.
 *   - It is not thrown while another exception unwinds the stack, so a
 *     destructor that runs then may pause.
 *   - A noexcept function, and so every destructor, must not call what may
 *     throw it unless an exception is in flight: std::terminate would end the
 *     node.  There, and in callbacks of C libraries, tick with `try_tick`.
 *   - Members that pause (tick, move, offload, wait, receive, apply, lock, the
 *     codecs) may be called in a catch block.  The fair_ functions that pause
 *     may not, nor where an exception unwinds the stack: C++ counts exceptions
 *     by thread, and the body may continue on another one.
 *   - The compiler initialises a static variable of a function under a lock: if
 *     that may pause, use a fair::once instead.
 *   - Compile the library with exceptions and RTTI.
 */
#ifndef FAIRNIF_HPP
#define FAIRNIF_HPP

#if defined(_MSVC_LANG) ? _MSVC_LANG < 201703L : __cplusplus < 201703L
#  error "fairnif.hpp needs C++17 or newer (-std=c++17)"
#endif

#include <atomic>
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
#include <thread>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "fairnif.h"

/* Hidden: two libraries in one process must not share these symbols. */
namespace fair __attribute__((visibility("hidden"))) {

/* Thrown where a cancelled body paused.  Do not catch it, or rethrow it. */
struct cancelled {};

class term;                     /* fairnif_codec.hpp */
struct call_message;            /* fairnif_messages.hpp */

namespace detail {

/* C++ keeps, for each thread, the caught exceptions that are still handled and
 * the number of uncaught ones.  A body takes its own along: off the thread
 * before it may pause, and back on the thread where it continues. */
class exceptions {
    struct state {
        void *caught;
        unsigned uncaught;
#ifdef __ARM_EABI_UNWINDER__
        void *propagating;
#endif
    };

    /* The compiler assumes that __cxa_get_globals always returns the same.
     * Read from a volatile variable, it cannot assume anything. */
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
 * The call in progress: the fair_task of C with member functions.
 * `fair_caller(&t, &pid)` is the same as `t.caller()`. */
struct task : fair_task {
    task() = delete;
    task(const task &) = delete;
    task &operator=(const task &) = delete;

    /* Reports that `units` of work were done since the last tick (fair_tick).
     * May pause.  Throws cancelled. */
    void tick(size_t units = 1)
    {
        if (__builtin_expect(units < budget, 1))
            budget -= units + 1;
        else
            slow_tick(units);
    }

    /* The same where nothing may be thrown: in destructors and in callbacks of
     * a C library.  False if the call was cancelled: give up, return the
     * library's own error code, and tick after the library has returned. */
    [[nodiscard]] bool try_tick(size_t units = 1) noexcept
    {
        if (__builtin_expect(units < budget, 1)) {
            budget -= units + 1;
            return true;
        }
        int going = 1;

        paused([&] { going = fair_tick(this, units); });
        return going > 0;
    }

    /* Throws cancelled if the call was cancelled and no exception is in flight.
     * Call it after a fair_ function that may pause. */
    void check()
    {
        if (fair_cancelled(this) && !std::uncaught_exceptions())
            throw fair::cancelled();
    }

    /* Continues on another kind of scheduler (fair_move). */
    void move(fair_mode where)
    {
        pause([&] { fair_move(this, where); });
    }

    /* Runs `fn()`, code that cannot tick, elsewhere, and returns what it
     * returns, or throws what it throws (fair_offload).  The body's
     * exceptions are not visible in `fn`: `throw;` has nothing to rethrow. */
    template <class F>
    std::invoke_result_t<F &> offload(fair_mode where, size_t units, F &&fn);

    /* Waits until a descriptor is ready (fair_wait); returns FAIR_READ,
     * FAIR_WRITE, both or-ed, or 0 when the time is up.  Throws
     * std::system_error. */
    unsigned wait(int fd, unsigned events, int timeout_ms = -1);

    /* Sleeps; occupies no scheduler. */
    template <class Rep, class Period>
    void sleep(std::chrono::duration<Rep, Period> time)
    {
        using ms = std::chrono::milliseconds;

        wait(-1, 0, static_cast<int>(std::chrono::ceil<ms>(time).count()));
    }

    /* As the C functions of these names. */
    ErlNifEnv *environment() { return fair_env(this); }
    fair_mode where() const { return fair_where(this); }
    ErlNifPid caller()
    {
        ErlNifPid pid;

        fair_caller(this, &pid);
        return pid;
    }

    /* Makes a term, valid until the next pause, of a value; reads a value from
     * a term, or throws std::invalid_argument.  Both may pause
     * (fairnif_codec.hpp). */
    template <class T> ERL_NIF_TERM encode(const T &value);
    template <class T> T decode(ERL_NIF_TERM term);
    template <class T> T decode(const term &any);

    /* The same, but returns nothing if the term has another type. */
    template <class T> std::optional<T> try_decode(ERL_NIF_TERM term);
    template <class T> std::optional<T> try_decode(const term &any);

    /* -- Messages: those of fairnif.h, in functions that are FAIR_MAY_WAIT or
     * FAIR_THREADED.  Terms are valid until the next pause.
     *
     * The next message, or nothing if the time is up.  With a tag (an atom, or
     * a reference in a fair::term, but no number): the first one that has it. */
    std::optional<term> receive(int timeout_ms = -1);
    template <class Tag,
              class = std::enable_if_t<!std::is_arithmetic_v<Tag>>>
    std::optional<term> receive(const Tag &tag, int timeout_ms = -1);

    /* Calls Module:Function(Args...) in the caller.  Throws fair::raised if it
     * raises. */
    template <class... Args>
    term apply(const char *module, const char *function, Args &&...args);

    /* `to ! message`, and the reply to a call; they do not wait.  Encoding the
     * message may pause (fairnif_codec.hpp); `to` stays valid. */
    template <class To, class M> void send(const To &to, M &&message);
    template <class From, class R> void reply(const From &from, R &&value);

    /* The caller's pid; a new monitor's reference; link(Pid).  The latter two
     * throw fair::raised. */
    term self();
    template <class Who> term monitor(const Who &who);
    template <class Pid> void link(const Pid &pid);

    /* {from, request} of a gen_server:call's message, the request of a cast's;
     * nothing for other messages. */
    std::optional<call_message> match_call(const term &message);
    std::optional<term> match_cast(const term &message);

    /* Runs `fn()`, which may pause, and checks. */
    template <class F> void pause(F &&fn)
    {
        paused(fn);
        check();
    }

private:
    /* Not for authors. */
    using fair_task::argc;
    using fair_task::argv;
    using fair_task::budget;
    using fair_task::cancelled;
    using fair_task::env;
    using fair_task::env_used;
    using fair_task::ops;
    using fair_task::yields;

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

/* For reading terms; to create one, call fair_env. */
inline ErlNifEnv *env_of(const fair_task &t) { return t.env; }

/* A function that runs elsewhere: what it returned or threw. */
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
};

} /* namespace detail */

template <class F>
std::invoke_result_t<F &> task::offload(fair_mode where, size_t units, F &&fn)
{
    using result = std::invoke_result_t<F &>;
    using job = detail::job<F, result>;
    job j = {fn, {}, {}};
    int done = 0;

    static_assert(!std::is_reference_v<result>, "return a value");
    pause([&] { done = fair_offload(this, where, units, job::run, &j); });
    /* It was cancelled before it began, and an exception is under way: now it
     * runs at once. */
    if (done < 0)
        pause([&] { fair_offload(this, where, units, job::run, &j); });
    if (j.thrown)
        std::rethrow_exception(j.thrown);
    if constexpr (!std::is_void_v<result>)
        return std::move(*j.answer);
}

inline unsigned task::wait(int fd, unsigned events, int timeout_ms)
{
    int ready = 0;

    pause([&] { ready = fair_wait(this, fd, events, timeout_ms); });
    if (ready == -ETIMEDOUT || ready == -ECANCELED || (ready > 0 && !events))
        return 0;
    if (ready < 0)
        throw std::system_error(-ready, std::generic_category(), "fair_wait");
    return static_cast<unsigned>(ready);
}

/* A fair_alarm for the lifetime of this object; one at a time.  `ring` must not
 * throw. */
class alarm {
    task &t;
    uint64_t left;

public:
    alarm(task &task, void (*ring)(void *), void *arg) noexcept
        : t(task), left(fair_alarm(&task, ring, arg))
    {
    }
    /* Nanoseconds from its creation until the first `ring`; 0: there is
     * none. */
    uint64_t left_ns() const { return left; }
    ~alarm() { fair_alarm(&t, nullptr, nullptr); }
    alarm(const alarm &) = delete;
    alarm &operator=(const alarm &) = delete;
};

/* -- Roots ------------------------------------------------------------------
 *
 * A term that survives pauses, for the lifetime of the object.  Roots are
 * dropped in the reverse order in which they were made.  So they must be local
 * variables, members of such, or arguments by reference, and cannot be
 * moved. */
class root {
    task &t;
    unsigned number;

public:
    root(task &task, ERL_NIF_TERM term)
        : t(task), number(fair_root_new(&task, term))
    {
        t.check();
    }
    root(task &task, const term &any);
    ~root() { fair_root_drop(&t, number); }
    root(const root &) = delete;
    root &operator=(const root &) = delete;
    static void *operator new(size_t) = delete;
    static void *operator new(size_t, void *at) noexcept { return at; }

    /* The term, valid until the next pause. */
    ERL_NIF_TERM get() const { return fair_root_get(&t, number); }
    void set(ERL_NIF_TERM term) { fair_root_set(&t, number, term); }

    /* The list functions (fair_list_next, ..._push, ..._reverse). */
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

} /* namespace fair */

#include "fairnif_lock.hpp"
#include "fairnif_error.hpp"
#include "fairnif_codec.hpp"
#include "fairnif_messages.hpp"

namespace fair __attribute__((visibility("hidden"))) {

/* -- Registering ------------------------------------------------------------ */

namespace detail {

/* Decoded arguments, made in order and destroyed in reverse order. */
template <class... T> struct arguments {
    template <class F> decltype(auto) apply(F &&fn) { return fn(); }
    void decode(task &, unsigned, bool) {}
    void dispose(task &) {}
};
template <class T, class... Rest> struct arguments<T, Rest...> {
    using value_type = std::remove_cv_t<std::remove_reference_t<T>>;

    std::optional<value_type> value;
    arguments<Rest...> rest;

    /* Those that hold terms come last: a pause would invalidate them. */
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
    /* Parameters that are references get a reference; others are moved. */
    using pass = std::conditional_t<std::is_lvalue_reference_v<T>,
                                    value_type &, value_type &&>;
};

/* Whether an argument of that type has to be destroyed after the call. */
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

/* The number of arguments of the Erlang function. */
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

/* An entry of the ErlNifFunc table: NAME in Erlang, and the function.  Arity
 * and types come from the function. */
#define FAIR_FN(NAME, FN, MODE)                                             \
    FAIR_NIF(NAME, fair::arity<&FN>, fair::body<&FN>, (MODE) | FAIR_CLEANUP)

/* The settings of one function, see fair_options; zero means the default. */
struct options {
    size_t stack_size = 0;
    unsigned slice_us = 0;
    unsigned max_tasks = 0;
};

/* The same with options, by their names and in this order:
 * FAIR_FN_OPTIONS("deep", deep, FAIR_AUTO, .stack_size = 8 << 20) */
#define FAIR_FN_OPTIONS(NAME, FN, MODE, ...)                                \
    FAIR_NIF_OPTIONS(NAME, fair::arity<&FN>,                                \
                     ([]() -> const fair_options * {                        \
                         constexpr auto o                                   \
                             = __extension__ fair::options{__VA_ARGS__};    \
                         static constexpr fair_options options              \
                             = {fair::body<&FN>, o.stack_size, o.slice_us,  \
                                o.max_tasks};                               \
                         return &options;                                   \
                     }()),                                                  \
                     (MODE) | FAIR_CLEANUP)

/* For FAIR_NIF_INIT: open the library's resource types, then call the author's
 * function, if there is one: `fair::load<my_load>`. */
template <fair__load_fn Authors = nullptr>
int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    if (int error = detail::resource_type::open_all(env))
        return error;
    if constexpr (Authors != nullptr)
        return Authors(env, priv, info);
    return 0;
}
template <fair__upgrade_fn Authors = nullptr>
int upgrade(ErlNifEnv *env, void **priv, void **old_priv, ERL_NIF_TERM info)
{
    if (int error = detail::resource_type::open_all(env))
        return error;
    if constexpr (Authors != nullptr)
        return Authors(env, priv, old_priv, info);
    *priv = *old_priv;
    return 0;
}

} /* namespace fair */

#endif /* FAIRNIF_HPP */
