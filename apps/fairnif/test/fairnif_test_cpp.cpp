/*
 * fairnif_test_cpp.cpp - an author's library in C++: every codec both ways,
 * every error, objects that count, bodies that change threads with exceptions
 * in flight.  Its module is fairnif_test_cpp, its suite fairnif_cpp_tests.
 */
#include <atomic>
#include <cstdint>
#include <list>
#include <thread>

#include <fairnif.hpp>

namespace {

/* -- codecs --------------------------------------------------------------- */

template <class T> T echo(fair::task &, T value)
{
    return value;
}

/* By reference: destroyed in slices after the call. */
template <class T> size_t sized(fair::task &, const T &value)
{
    return value.size();
}

template <class T> T copied(fair::task &, const T &value)
{
    return value;
}

std::string joined(fair::task &, fair::iodata in)
{
    return std::string(in.view());
}

fair::binary doubled(fair::task &t, fair::bytes in)
{
    fair::binary out(t);

    for (unsigned char byte : in) {
        out.push_back(byte);
        out.append(&byte, 1);
        t.tick();
    }
    return out;
}

fair::term kept(fair::task &t, int pauses, fair::root &any)
{
    while (pauses--)
        t.move(fair_where(&t) == FAIR_NORMAL ? FAIR_DIRTY_CPU : FAIR_NORMAL);
    return fair::term(any.get());
}

std::pair<fair::term, fair::term> twice(fair::task &, fair::term any)
{
    return {any, any};
}

std::string atom_name(fair::task &, fair::atom a)
{
    return a.name();
}

bool is_ok(fair::task &, fair::atom a)
{
    static const fair::atom ok("ok");

    return a == ok;
}

std::tuple<> nothing(fair::task &)
{
    return {};
}

void returns_nothing(fair::task &) {}

/* A list's elements as decoded by hand, and back. */
int64_t by_hand(fair::task &t, fair::root &list)
{
    ERL_NIF_TERM head;
    int64_t sum = 0;

    while (list.next(head)) {
        sum += t.decode<int64_t>(head);
        t.tick();
    }
    return sum;
}

fair::term count_down(fair::task &t, unsigned n)
{
    fair::root list(t, t.encode(std::vector<int>()));

    for (unsigned i = 0; i < n; i++) {
        list.push(t.encode(i));
        t.tick();
    }
    list.reverse();
    list.reverse();
    return fair::term(list.get());
}

struct point {
    int x, y;
};

} /* namespace */

template <> struct fair::codec<point> : fair::plain {
    static std::string name() { return "{point, X, Y}"; }
    static bool get(fair::task &t, ERL_NIF_TERM any, std::optional<point> &p)
    {
        std::optional<std::tuple<fair::atom, int, int>> tuple;

        if (!codec<std::tuple<fair::atom, int, int>>::get(t, any, tuple)
            || std::get<0>(*tuple) != fair::atom("point"))
            return false;
        p = point{std::get<1>(*tuple), std::get<2>(*tuple)};
        return true;
    }
    static ERL_NIF_TERM make(fair::task &t, const point &p)
    {
        return t.encode(std::make_tuple(fair::atom("point"), p.x, p.y));
    }
};

namespace {

point turned(fair::task &, point p)
{
    return {p.y, p.x};
}

/* -- errors --------------------------------------------------------------- */

double infinite(fair::task &)
{
    return std::numeric_limits<double>::infinity();
}

namespace shop {
template <class T> struct closed {};
}

void throws(fair::task &t, const std::string &what)
{
    if (what == "invalid_argument")
        throw std::invalid_argument("no such shop");
    if (what == "badarg")
        throw fair::badarg(1, "no such shop");
    if (what == "bad_alloc")
        throw std::bad_alloc();
    if (what == "out_of_range")
        throw std::out_of_range("far away");
    if (what == "length_error")
        std::vector<int>().reserve(SIZE_MAX);
    if (what == "atom")
        throw fair::error(fair::atom("not_found"));
    if (what == "chars")
        throw fair::error("not found");
    if (what == "tuple")
        throw fair::error(std::make_tuple(fair::atom("line"), 17,
                                          std::vector<int>(1000, 1)));
    if (what == "int")
        throw 42;
    if (what == "struct")
        throw shop::closed<int>();
    if (what == "cancelled")
        throw fair::cancelled();
    if (what == "system_error")
        t.wait(-2, FAIR_READ, 0);
}

/* -- objects that count --------------------------------------------------- */

std::atomic<long> made, gone, gone_on_normal, swallowed;

struct counted {
    counted() { made++; }
    counted(const counted &) { made++; }
    ~counted()
    {
        gone++;
        if (enif_thread_type() == ERL_NIF_THR_NORMAL_SCHEDULER)
            gone_on_normal++;
    }
};

std::tuple<long, long, long, long> counts(fair::task &)
{
    return {made, gone, gone_on_normal, swallowed};
}

void reset(fair::task &)
{
    made = gone = gone_on_normal = swallowed = 0;
}

/* Three on the stack, in three frames. */
void forever(fair::task &t)
{
    counted here;

    for (;;)
        t.tick(1000);
}

void swallowing(fair::task &t)
{
    counted here;

    for (int i = 0; i < 5; i++) {
        try {
            forever(t);
        } catch (const std::exception &) {
            std::terminate();           /* cancelled is none */
        } catch (...) {
            swallowed++;
        }
    }
    t.tick();
    std::terminate();                   /* thrown once more */
}

/* A destructor that ticks while its frame is unwound. */
struct slow {
    fair::task &t;

    ~slow()
    {
        for (int i = 0; i < 1000; i++)
            t.tick(100000);
    }
};

fair::mutex shared;

void endless(fair::task &t, const std::string &how)
{
    counted here;
    std::list<counted> more(1);

    if (how == "tick")
        forever(t);
    if (how == "swallow")
        swallowing(t);
    if (how == "unwind") {
        slow last{t};

        forever(t);
    }
    if (how == "catch") {
        try {
            throw counted();
        } catch (const counted &) {
            forever(t);
        }
    }
    if (how == "sleep")
        t.sleep(std::chrono::hours(24));
    if (how == "receive")
        t.receive();
    if (how == "tagged")
        t.receive(fair::atom("never"), 86400000);
    if (how == "apply")
        t.apply("timer", "sleep", fair::atom("infinity"));
    if (how == "hold") {
        fair::lock held(t, shared);

        forever(t);
    }
    if (how == "call") {
        for (;;)
            t.offload(FAIR_THREADED, 1, [] {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            });
    }
    if (how == "dirty") {
        t.move(FAIR_DIRTY_CPU);
        forever(t);
    }
    if (how == "try") {
        while (t.try_tick(1000))
            ;
        t.tick();
    }
}

/* Whether a guard has the lock that it stands for, as seen by a destructor
 * further in. */
std::atomic<int> guarded;

struct guard_seen {
    fair::task &t;

    ~guard_seen()
    {
        auto *m = reinterpret_cast<fair_mutex *>(&shared);

        guarded = fair_mutex_unlock(&t, m);
        if (guarded)
            fair_mutex_trylock(&t, m);
    }
};

void twice_locked(fair::task &t)
{
    counted here;
    fair::lock held(t, shared);
    guard_seen last{t};
    fair::lock again(t, shared);
}

/* Waits for the lock in a destructor, while an exception is under way. */
struct locks_late {
    fair::task &t;

    ~locks_late()
    {
        made++;
        fair::lock held(t, shared);
        guard_seen last{t};
    }
};

void unwinds_to_lock(fair::task &t)
{
    locks_late last{t};

    throw std::runtime_error("under way");
}

int was_guarded(fair::task &)
{
    return guarded.exchange(-1);
}

/* Returns, or throws, after it has paused. */
int ends(fair::task &t, bool thrown)
{
    counted here;
    std::list<counted> more(2);

    for (int i = 0; i < 100; i++)
        t.tick(100000);
    if (thrown)
        throw std::runtime_error("ended");
    return 1;
}

/* -- exceptions in flight ------------------------------------------------- */

/* Elsewhere, and certainly on another thread. */
void other_thread(fair::task &t)
{
    t.move(t.where() == FAIR_NORMAL ? FAIR_DIRTY_CPU : FAIR_NORMAL);
}

/* Pauses in catch blocks, nested; each sees its own exception afterwards.
 * Answers how many did not. */
int catches(fair::task &t, const std::string &id, int rounds)
{
    int wrong = 0;

    for (int i = 0; i < rounds; i++) {
        std::string outer = id + std::to_string(i), inner = outer + "'";

        try {
            throw std::runtime_error(outer);
        } catch (const std::runtime_error &) {
            other_thread(t);
            try {
                throw std::out_of_range(inner);
            } catch (const std::out_of_range &) {
                other_thread(t);
                t.tick(1000000);
                try {
                    throw;
                } catch (const std::out_of_range &again) {
                    wrong += again.what() != inner;
                }
            }
            t.tick(1000000);
            try {
                throw;
            } catch (const std::runtime_error &again) {
                wrong += again.what() != outer;
            }
        }
        wrong += std::current_exception() != nullptr;
        wrong += std::uncaught_exceptions() != 0;
    }
    return wrong;
}

/* Pauses while its frame is unwound; there an exception of its own comes and
 * goes. */
struct roams {
    fair::task &t;
    int &wrong;

    ~roams()
    {
        int before = std::uncaught_exceptions();

        other_thread(t);
        wrong += std::uncaught_exceptions() != before;
        try {
            throw 1;
        } catch (int) {
            other_thread(t);
            wrong += std::uncaught_exceptions() != before;
        }
        t.tick(1000000);
        wrong += std::uncaught_exceptions() != before;
    }
};

int unwinds(fair::task &t, int rounds)
{
    int wrong = 0;

    for (int i = 0; i < rounds; i++) {
        try {
            roams first{t, wrong};
            roams second{t, wrong};

            throw std::runtime_error(std::to_string(i));
        } catch (const std::runtime_error &e) {
            wrong += e.what() != std::to_string(i);
        }
    }
    return wrong;
}

/* What a function run elsewhere throws arrives here. */
std::vector<std::string> calls(fair::task &t)
{
    std::vector<std::string> seen;

    for (fair_mode where : {FAIR_NORMAL, FAIR_DIRTY_CPU, FAIR_DIRTY_IO,
                            FAIR_THREADED, FAIR_AUTO}) {
        std::string given = "given";

        seen.push_back(t.offload(where, 1, [&] { return given + " back"; }));
        t.offload(where, 1, [&] { given = "changed"; });
        seen.push_back(given);
        try {
            t.offload(where, 1, [&]() -> int { throw std::out_of_range("far"); });
        } catch (const std::out_of_range &e) {
            seen.push_back(e.what());
        }
    }
    return seen;
}

/* -- resources ------------------------------------------------------------ */

struct alignas(64) cell : counted {
    std::atomic<int64_t> value;

    explicit cell(int64_t v) : value(v)
    {
        if (v < 0)
            throw std::invalid_argument("a negative cell");
    }
};
FAIR_RESOURCE(cell);

/* Another type, so that one can be given for the other. */
struct other {};
FAIR_RESOURCE(other);

fair::resource<cell> new_cell(fair::task &, int64_t value)
{
    return fair::make_resource<cell>(value);
}

fair::resource<other> new_other(fair::task &)
{
    return fair::make_resource<other>();
}

int64_t add(fair::task &t, fair::resource<cell> c, int64_t n)
{
    fair::resource<cell> copy(c);

    other_thread(t);
    return copy->value += n;
}

bool aligned(fair::task &, const fair::resource<cell> &c)
{
    return reinterpret_cast<uintptr_t>(c.get()) % alignof(cell) == 0;
}

/* One whose destructor has time. */
struct alignas(64) tended : cell {
    using cell::cell;
    ~tended()
    {
        for (int i = 0; i < 100; i++)
            fair_tick(fair_current(), 1);
        if (value != 5)
            std::abort();
    }
};
FAIR_RESOURCE_IN_TASK(tended);

fair::resource<tended> new_tended(fair::task &, int64_t value)
{
    return fair::make_resource<tended>(value);
}

bool tended_aligned(fair::task &t, const fair::resource<tended> &c)
{
    other_thread(t);
    return reinterpret_cast<uintptr_t>(c.get()) % alignof(tended) == 0
        && c->value == 5;
}

/* -- messages ------------------------------------------------------------- */

/* A server of a list of binaries. */
fair::atom keeper(fair::task &t, std::vector<std::string> kept)
{
    using add = std::pair<fair::atom, std::string>;
    static const fair::atom all("all"), size("size"), stop("stop"), ok("ok");
    counted here;

    while (auto message = t.receive()) {
        if (auto request = t.match_cast(*message)) {
            if (auto added = t.try_decode<add>(*request))
                kept.push_back(std::move(added->second));
            continue;
        }
        auto call = t.match_call(*message);
        if (!call)
            continue;
        auto what = t.try_decode<fair::atom>(call->request);
        if (what == all) {
            t.reply(call->from, kept);
        } else if (what == size) {
            t.reply(call->from, kept.size());
        } else if (what == stop) {
            t.reply(call->from, std::make_pair(ok, std::move(kept)));
            return fair::atom("normal");
        } else {
            fair::root from(t, call->from);

            t.reply(from, t.decode<std::string>(call->request));
        }
    }
    std::terminate();
}

/* How Erlang's functions end, and what becomes of it. */
fair::term applies(fair::task &t, const std::string &how, fair::root &arg)
{
    if (how == "sum")
        return t.apply("lists", "sum", std::vector<int>{1, 2, 3});
    if (how == "none")
        return t.apply("erlang", "self");
    if (how == "mixed")
        return t.apply("lists", "keyfind", std::string("b"), 1, arg);
    if (how == "monitor") {
        auto down = t.receive(t.monitor(arg)).value();

        return down;
    }
    if (how == "link") {
        t.link(arg);
        return fair::term(arg.get());
    }
    if (how == "caught") {
        try {
            t.apply("erlang", "exit", arg);
        } catch (const fair::raised &r) {
            other_thread(t);
            if (r.is("exit") && !r.is("error"))
                return r.reason(t);
        }
    }
    counted here;
    return t.apply("erlang", how == "error" ? "error" : "throw", arg);
}

/* Receives while an exception is under way: nothing comes once it is cancelled. */
struct receives_late {
    fair::task &t;

    ~receives_late()
    {
        made++;
        if (!t.receive())
            gone++;
    }
};

void unwinds_to_receive(fair::task &t)
{
    receives_late last{t};

    throw std::runtime_error("under way");
}

/* -- options -------------------------------------------------------------- */

int deep(fair::task &t, int frames)
{
    volatile char frame[4096];

    frame[0] = 1;
    t.tick();
    return frames ? deep(t, frames - 1) + frame[0] : 0;
}

using text_map = std::map<std::string, std::vector<int>>;
using number_map = std::unordered_map<int64_t, int64_t>;

ErlNifFunc nifs[] = {
    FAIR_FN("int8", echo<int8_t>, FAIR_AUTO),
    FAIR_FN("uint8", echo<uint8_t>, FAIR_AUTO),
    FAIR_FN("int16", echo<int16_t>, FAIR_AUTO),
    FAIR_FN("uint16", echo<uint16_t>, FAIR_AUTO),
    FAIR_FN("int32", echo<int32_t>, FAIR_AUTO),
    FAIR_FN("uint32", echo<uint32_t>, FAIR_AUTO),
    FAIR_FN("int64", echo<int64_t>, FAIR_AUTO),
    FAIR_FN("uint64", echo<uint64_t>, FAIR_AUTO),
    FAIR_FN("long_long", echo<long long>, FAIR_AUTO),
    FAIR_FN("double", echo<double>, FAIR_AUTO),
    FAIR_FN("float", echo<float>, FAIR_AUTO),
    FAIR_FN("bool", echo<bool>, FAIR_AUTO),
    FAIR_FN("atom", echo<fair::atom>, FAIR_AUTO),
    FAIR_FN("string", echo<std::string>, FAIR_AUTO),
    FAIR_FN("view", echo<std::string_view>, FAIR_AUTO),
    FAIR_FN("bytes", echo<fair::bytes>, FAIR_AUTO),
    FAIR_FN("iodata", joined, FAIR_AUTO),
    FAIR_FN("doubled", doubled, FAIR_AUTO),
    FAIR_FN("ints", echo<std::vector<int64_t>>, FAIR_AUTO),
    FAIR_FN("bools", echo<std::vector<bool>>, FAIR_AUTO),
    FAIR_FN("strings", echo<std::vector<std::string>>, FAIR_AUTO),
    FAIR_FN("nested", echo<std::vector<std::vector<std::string>>>, FAIR_AUTO),
    FAIR_FN("tuple", (echo<std::tuple<int, std::string, double>>), FAIR_AUTO),
    FAIR_FN("pair", (echo<std::pair<std::vector<int>, fair::atom>>), FAIR_AUTO),
    FAIR_FN("optional", echo<std::optional<int>>, FAIR_AUTO),
    FAIR_FN("variant",
            (echo<std::variant<int, bool, std::string, std::vector<int>>>),
            FAIR_AUTO),
    FAIR_FN("map", echo<text_map>, FAIR_AUTO),
    FAIR_FN("unordered_map", echo<number_map>, FAIR_AUTO),
    FAIR_FN("copied_strings", copied<std::vector<std::string>>, FAIR_AUTO),
    FAIR_FN("sized_strings", sized<std::vector<std::string>>, FAIR_AUTO),
    FAIR_FN("sized_map", sized<number_map>, FAIR_AUTO),
    FAIR_FN("kept", kept, FAIR_AUTO),
    FAIR_FN("twice", twice, FAIR_AUTO),
    FAIR_FN("atom_name", atom_name, FAIR_AUTO),
    FAIR_FN("is_ok", is_ok, FAIR_NORMAL),
    FAIR_FN("nothing", nothing, FAIR_NORMAL),
    FAIR_FN("returns_nothing", returns_nothing, FAIR_NORMAL),
    FAIR_FN("by_hand", by_hand, FAIR_AUTO),
    FAIR_FN("count_down", count_down, FAIR_AUTO),
    FAIR_FN("turned", turned, FAIR_AUTO),
    FAIR_FN("infinite", infinite, FAIR_AUTO),
    FAIR_FN("throws", throws, FAIR_AUTO),
    FAIR_FN("counts", counts, FAIR_NORMAL),
    FAIR_FN("reset", reset, FAIR_NORMAL),
    FAIR_FN("endless_normal", endless, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_FN("endless_dirty", endless, FAIR_DIRTY_CPU | FAIR_MAY_WAIT),
    FAIR_FN("endless_threaded", endless, FAIR_THREADED),
    FAIR_FN("twice_locked", twice_locked, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_FN("unwinds_to_lock", unwinds_to_lock, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_FN("keeper", keeper, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_FN("keeper_threaded", keeper, FAIR_THREADED),
    FAIR_FN("applies", applies, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_FN("unwinds_to_receive", unwinds_to_receive, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_FN("was_guarded", was_guarded, FAIR_NORMAL),
    FAIR_FN("ends", ends, FAIR_AUTO),
    FAIR_FN("catches", catches, FAIR_NORMAL),
    FAIR_FN("unwinds", unwinds, FAIR_NORMAL),
    FAIR_FN("calls", calls, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_FN("new_cell", new_cell, FAIR_NORMAL),
    FAIR_FN("new_other", new_other, FAIR_NORMAL),
    FAIR_FN("new_tended", new_tended, FAIR_NORMAL),
    FAIR_FN("tended_aligned", tended_aligned, FAIR_NORMAL),
    FAIR_FN("add", add, FAIR_NORMAL),
    FAIR_FN("aligned", aligned, FAIR_NORMAL),
    FAIR_FN_OPTIONS("deep", deep, FAIR_AUTO, .stack_size = 8 << 20),
};

} /* namespace */

FAIR_NIF_INIT(fairnif_test_cpp, nifs, fair::load<>, fair::upgrade<>, NULL)
