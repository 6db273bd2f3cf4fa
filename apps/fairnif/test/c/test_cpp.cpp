/*
 * test_cpp.cpp - fairnif.hpp on a VM that moves heaps after every slice and frees
 * the old ones: no codec keeps a term, a pointer or an environment across a
 * pause; and under the sanitizers.  What it does in the real one is in
 * test/fairnif_cpp_tests.erl.
 */
#define FAIR_DEBUG              /* guards of static variables are reported */
#include <fairnif.hpp>

#include <atomic>

#include <unistd.h>

extern "C" {
#include "check.h"
}

namespace {

std::atomic<long> alive;        /* objects of bodies */

struct counted {
    counted() { alive++; }
    counted(const counted &) { alive++; }
    ~counted() { alive--; }
};

template <class T> T echo(fair::task &, T value)
{
    counted here;

    return value;
}

template <class T> T copied(fair::task &, const T &value)
{
    counted here;

    return value;
}

using deep = std::vector<std::tuple<std::string, std::vector<double>,
                                    std::optional<std::string>>>;
using names = std::map<std::string, std::vector<int>>;
using either = std::vector<std::variant<int64_t, std::string,
                                        std::vector<std::string>>>;

fair::binary doubled(fair::task &t, fair::iodata in)
{
    fair::binary out(t);

    for (unsigned char byte : in) {
        out.push_back(byte);
        t.tick();
        out.append(&byte, 1);
    }
    return out;
}

fair::term rooted(fair::task &t, fair::root &any, fair::root &list)
{
    ERL_NIF_TERM head;

    while (list.next(head)) {
        any.push(head);
        t.tick();
    }
    any.reverse();
    return fair::term(any.get());
}

/* Ends by an exception after a pause, with another one caught. */
void throws(fair::task &t, const std::string &what)
{
    counted here;

    try {
        throw std::runtime_error(what);
    } catch (const std::runtime_error &e) {
        counted inner;

        t.tick();
        t.offload(FAIR_DIRTY_CPU, 1, [] {});
        if (what != e.what())
            throw std::logic_error("another one's");
    }
    throw fair::error(std::make_tuple(fair::atom("thrown"), what));
}

void endless(fair::task &t)
{
    counted here;

    try {
        throw 1;
    } catch (int) {
        counted inner;

        for (;;)
            t.tick();
    }
}

std::atomic<int> rings;         /* of all alarms */

void interrupt(void *stopped)
{
    rings++;
    *static_cast<std::atomic<bool> *>(stopped) = true;
}

/* A library that is made to return. */
void stopped(fair::task &t)
{
    std::atomic<bool> stopped(false);
    fair::alarm alarm(t, interrupt, &stopped);
    counted here;

    if (!alarm.left_ns())
        throw fair::error("no_alarm");
    for (;;) {
        while (!stopped)
            usleep(1);
        stopped = false;
        t.tick();
    }
}

ErlNifPid server;               /* who serves, once it does */
std::atomic<bool> serves_now;

/* Keeps texts until it is asked to stop, and has them sent and called about
 * with each. */
std::vector<std::string> serves(fair::task &t)
{
    using tagged = std::pair<fair::atom, std::vector<std::string>>;
    using arguments = std::vector<std::variant<std::string,
                                               std::vector<std::string>>>;
    static const fair::atom tag("tag");
    counted here;
    std::vector<std::string> kept;

    fair_caller(&t, &server);
    serves_now = true;
    for (;;) {
        std::string text = t.decode<std::string>(t.receive().value());

        if (text == "stop")
            return kept;
        kept.push_back(text);
        t.send(t.self(), std::make_pair(tag, kept));
        kept = t.decode<tagged>(t.receive(tag).value()).second;
        if (t.receive(tag, 0))
            throw std::logic_error("it came twice");
        auto called = t.apply("m", "f", text, kept);
        auto args = t.decode<std::tuple<fair::atom, fair::atom, arguments>>(called);
        if (std::get<std::string>(std::get<2>(args)[0]) != text
            || std::get<1>(std::get<2>(args)[1]) != kept)
            throw std::logic_error("another's");
        try {
            t.apply("m", "raise", kept);
            throw std::logic_error("did not raise");
        } catch (const fair::raised &r) {
            counted inner;

            t.tick();
            if (!r.is("error")
                || t.decode<std::vector<std::vector<std::string>>>(r.reason(t))[0] != kept)
                throw std::logic_error("raised another");
        }
    }
}

/* An exception that counts.  What was sent goes out as it is raised. */
struct oops : std::runtime_error {
    counted here;

    using runtime_error::runtime_error;
};

void sends_and_throws(fair::task &t, const std::string &text)
{
    t.send(t.self(), text);
    throw oops(text);
}

/* Does this thread think that it handles an exception? */
bool handles(fair::task &)
{
    return std::current_exception() != nullptr;
}

/* What is made once; the makers that began, and the first that may end. */
fair::once<std::string> text_of_all;
std::atomic<int> makers, maker_may_end;

std::string shares(fair::task &t)
{
    counted here;

    return text_of_all.get(t, [&] {
        counted maker;
        int mine = ++makers;

        while (mine < maker_may_end)
            t.tick();
        t.tick();
        if (mine == maker_may_end)
            throw oops("not yet");
        return "made by " + std::to_string(mine);
    });
}

int asks_itself(fair::task &t)
{
    static fair::once<int> own;

    return own.get(t, [&] {
        return own.get(t, [] { return 1; });
    });
}

/* Pauses in the initialiser of a static variable: wrong. */
uint64_t initialises(fair::task &t)
{
    static const uint64_t wrong = [&] {
        for (int i = 0; i < 3; i++)
            t.tick();
        return fair_yields(&t);
    }();

    for (int i = 0; i < 3; i++)
        t.tick();
    return wrong + 10 * fair_yields(&t);
}

uint64_t initialises_elsewhere(fair::task &t)
{
    static int thrown, wrong = [&] {
        t.move(FAIR_DIRTY_CPU);
        t.move(FAIR_NORMAL);
        if (!thrown++)
            throw std::runtime_error("not initialised");
        return 1;
    }();

    t.move(FAIR_DIRTY_CPU);
    return fair_yields(&t) + wrong;
}

ErlNifFunc nifs[] = {
    FAIR_FN("sends_and_throws", sends_and_throws, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_FN("sends_and_throws_dirty", sends_and_throws, FAIR_DIRTY_CPU | FAIR_MAY_WAIT),
    FAIR_FN("sends_and_throws_threaded", sends_and_throws, FAIR_THREADED),
    FAIR_FN("handles", handles, FAIR_NORMAL),
    FAIR_FN("shares", shares, FAIR_NORMAL),
    FAIR_FN("asks_itself", asks_itself, FAIR_AUTO),
    FAIR_FN("initialises", initialises, FAIR_NORMAL),
    FAIR_FN("initialises_elsewhere", initialises_elsewhere, FAIR_NORMAL),
    FAIR_FN("deep", echo<deep>, FAIR_AUTO),
    FAIR_FN("deep_copied", copied<deep>, FAIR_AUTO),
    FAIR_FN("names", echo<names>, FAIR_AUTO),
    FAIR_FN("either", echo<either>, FAIR_AUTO),
    FAIR_FN("bytes", echo<fair::bytes>, FAIR_AUTO),
    FAIR_FN("doubled", doubled, FAIR_AUTO),
    FAIR_FN("rooted", rooted, FAIR_AUTO),
    FAIR_FN("throws", throws, FAIR_AUTO),
    FAIR_FN("endless", endless, FAIR_AUTO),
    FAIR_FN("stopped", stopped, FAIR_AUTO),
    FAIR_FN("serves", serves, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_FN("serves_dirty", serves, FAIR_DIRTY_CPU | FAIR_MAY_WAIT),
    FAIR_FN("serves_threaded", serves, FAIR_THREADED),
};

} /* namespace */

FAIR_NIF_INIT(test_cpp, nifs, fair::load<>, fair::upgrade<>, NULL)

static void everything()
{
    CHECK_CALL("deep", "[{<<1,2>>,[1.5,2.5],undefined},{<<>>,[],<<3>>}]",
               "[{<<1,2>>,[1.5,2.5],undefined},{<<>>,[],<<3>>}]");
    CHECK_CALL("deep_copied", "[{<<1,2>>,[1.5,2.5],undefined}]",
               "[{<<1,2>>,[1.5,2.5],undefined}]");
    CHECK_CALL("names", "#{<<1>>=>[1,2],<<2>>=>[]}",
               "#{<<2>>=>[],<<1>>=>[1,2]}");    /* in no order */
    CHECK_CALL("either", "[1,<<2>>,[<<3>>,<<4>>]]", "[1,<<2>>,[<<3>>,<<4>>]]");
    CHECK_CALL("bytes", "<<1,2,3>>", "<<1,2,3>>");
    CHECK_CALL("doubled", "[1,<<2>>|<<3>>]", "<<1,1,2,2,3,3>>");
    CHECK_CALL("rooted", "[], [a,{b},\"c\"]", "[a,{b},[99]]");
    CHECK_CALL("throws", "<<7>>", "error:{thrown,<<7>>}");
    CHECK_NUMBERS(alive, ==, 0);
}

TEST(codecs, "what C++ reads and makes is right with a pause at every tick")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        everything();
    }
}

TASKS_TEST(cancelled, "destructors run when the caller of a body in C++ dies, "
     "also in a catch block")
{
    vm_proc *p = spawn_call("endless", "");

    node_set("pause_every_tick", 1);
    vm_run(p, 5);
    CHECK_NUMBERS(alive, ==, 2);
    vm_kill(p);
    EVENTUALLY(node_stacks() == 0);
    CHECK_NUMBERS(alive, ==, 0);
    vm_free(p);
}

#ifndef FAIR_NO_TASKS           /* where a body is not left before it ends */
TEST(alarm_ends, "an alarm ends where its body in C++ is left")
{
    vm_proc *p = spawn_call("stopped", "");
    int before;

    for (int i = 0; i < 20000 && rings < 3; i++)
        vm_run(p, 1);
    CHECK_NUMBERS(rings, >=, 3);
    vm_kill(p);
    EVENTUALLY(node_stacks() == 0);
    CHECK_NUMBERS(alive, ==, 0);
    before = rings;
    usleep(20000);
    CHECK_NUMBERS(rings, ==, before);
    vm_free(p);
}
#endif

static const char *const servers[] = {"serves", "serves_dirty", "serves_threaded"};

static vm_proc *begins(const char *name)
{
    vm_proc *p;

    serves_now = false;
    p = spawn_await(name, "");
    for (int i = 0; i < 20000 && !serves_now; i++)
        vm_run(p, 1);
    CHECK(serves_now);
    return p;
}

static void tell(const char *bytes)
{
    ErlNifEnv *env = enif_alloc_env();
    ErlNifPid to = server;

    enif_send(NULL, &to, env, vm_parse(env, bytes));
    enif_free_env(env);
}

static const char stop[] = "<<115,116,111,112>>";

TASKS_TEST(messages, "a native process in C++ receives, sends and calls, with "
     "what it keeps in its own variables")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (const char *name : servers) {
            vm_proc *p = begins(name);

            tell("<<1>>");
            tell("<<2,3>>");
            tell("<<>>");
            tell(stop);
            CHECK_TEXT(finished(p), "[<<1>>,<<2,3>>,<<>>]");
            CHECK_NUMBERS(alive, ==, 0);
        }
    }
    EVENTUALLY(node_stacks() == 0);
}

TASKS_TEST(killed_receiving, "its destructors run when it is killed, wherever "
     "it is")
{
    for (const char *name : servers)
        for (int steps = 1; steps < 60; steps += 3) {
            vm_proc *p = begins(name);

            node_set("pause_every_tick", 1);
            for (int i = 0; i < 5; i++)
                tell("<<1,2>>");
            vm_run(p, steps);
            vm_kill(p);
            EVENTUALLY(node_stacks() == 0);
            CHECK_NUMBERS(alive, ==, 0);
            vm_free(p);
        }
}

/* As the VM writes it. */
static std::string bytes(const std::string &text)
{
    std::string all;

    for (unsigned char byte : text)
        all += (all.empty() ? "<<" : ",") + std::to_string(byte);
    return all + ">>";
}

static const char oops_name[] = "(anonymous namespace)::oops";

static std::string error(const char *type, const char *what)
{
    return std::string("error:{") + type + "," + bytes(what) + "}";
}

/* Two at a time on the same threads: each one's is its own. */
TASKS_TEST(thrown, "what was thrown is destroyed when the call has raised it, "
     "and what was sent before arrives")
{
    static const char *const names[] = {
        "sends_and_throws", "sends_and_throws_dirty", "sends_and_throws_threaded"
    };

    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (const char *name : names) {
            vm_proc *p[] = {spawn_await(name, "<<97>>"), spawn_await(name, "<<98>>")};

            for (int i = 0; i < 100; i++) {
                CHECK_CALL("handles", "", "false");
                for (vm_proc *each : p)
                    if (vm_state(each) == VM_READY || vm_state(each) == VM_WAITING)
                        vm_step(each);
            }
            for (vm_proc *each : p) {
                vm_finish(each);
                CHECK_NUMBERS(vm_messages(each), ==, 1);
            }
            CHECK_TEXT(finished(p[0]), error(oops_name, "a").c_str());
            CHECK_TEXT(finished(p[1]), error(oops_name, "b").c_str());
            CHECK_NUMBERS(alive, ==, 0);
        }
    }
}

static void until_makers(int n, vm_proc *p)
{
    for (int i = 0; i < 20000 && makers < n; i++)
        vm_step(p);
    CHECK_NUMBERS(makers, ==, n);
}

TASKS_TEST(once, "what is made once is, though its makers fail and are "
     "killed, and others ask meanwhile")
{
    vm_proc *p[8];

    node_set("pause_every_tick", 1);
    maker_may_end = 3;
    for (vm_proc *&each : p)
        each = spawn_call("shares", "");
    until_makers(1, p[0]);
    for (vm_proc *each : p)
        vm_step(each);
    CHECK_NUMBERS(makers, ==, 1);
    vm_kill(p[0]);
    EVENTUALLY(alive == 7);
    until_makers(2, p[1]);
    vm_kill(p[1]);
    EVENTUALLY(alive == 6);
    CHECK_TEXT(finished(p[2]), error(oops_name, "not yet").c_str());
    for (int i = 3; i < 8; i++)
        CHECK_TEXT(finished(p[i]), bytes("made by 4").c_str());
    CHECK_CALL("shares", "", bytes("made by 4").c_str());
    CHECK_NUMBERS(makers, ==, 4);
    vm_free(p[0]);
    vm_free(p[1]);
    CHECK_NUMBERS(alive, ==, 0);
    CHECK_CALL("asks_itself", "", error("std::logic_error",
               "fair::once: its maker asks for it").c_str());
}

TASKS_TEST(guards, "a tick in the initialiser of a static variable is "
     "reported, and does not pause; other pauses are reported")
{
    node_set("pause_every_tick", 1);
    CHECK_CALL("initialises", "", "30");
    CHECK_NUMBERS(node_counter("initialises", "rule_violations"), ==, 3);
    CHECK_CALL("initialises", "", "30");
    CHECK_NUMBERS(node_counter("initialises", "rule_violations"), ==, 3);
    CHECK_CALL("initialises_elsewhere", "",
               error("std::runtime_error", "not initialised").c_str());
    CHECK_CALL("initialises_elsewhere", "", "4");
    CHECK_CALL("initialises_elsewhere", "", "2");
    CHECK_NUMBERS(node_counter("initialises_elsewhere", "rule_violations"), ==, 4);
    CHECK_CALL("initialises", "", "30");        /* no lock is left */
    CHECK_NUMBERS(node_counter("initialises", "rule_violations"), ==, 3);
}
