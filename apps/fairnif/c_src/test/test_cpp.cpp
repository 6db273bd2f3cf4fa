/*
 * test_cpp.cpp - fairnif.hpp on a VM that moves heaps after every slice and frees
 * the old ones: no codec keeps a term, a pointer or an environment across a
 * pause; and under the sanitizers.  What it does in the real one is in
 * test/fairnif_cpp_tests.erl.
 */
#include <fairnif.hpp>

#include <atomic>

#include <unistd.h>

extern "C" {
#include "check.h"
}

namespace {

long alive;                     /* objects of bodies */

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
    return any.get();
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
        t.call(FAIR_DIRTY_CPU, 1, [] {});
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

void interrupt(void *told)
{
    rings++;
    *static_cast<std::atomic<bool> *>(told) = true;
}

/* A library that is told to return. */
void told(fair::task &t)
{
    std::atomic<bool> told(false);
    fair::alarm alarm(t, interrupt, &told);
    counted here;

    if (!alarm.left_ns)
        throw fair::error("no_alarm");
    for (;;) {
        while (!told)
            usleep(1);
        told = false;
        t.tick();
    }
}

ErlNifPid server;               /* who serves, once it does */
std::atomic<bool> serves_now;

/* Keeps texts until it is told to stop, and has them sent and called about with
 * each. */
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

ErlNifFunc nifs[] = {
    FAIR_FN("deep", echo<deep>, FAIR_AUTO),
    FAIR_FN("deep_copied", copied<deep>, FAIR_AUTO),
    FAIR_FN("names", echo<names>, FAIR_AUTO),
    FAIR_FN("either", echo<either>, FAIR_AUTO),
    FAIR_FN("bytes", echo<fair::bytes>, FAIR_AUTO),
    FAIR_FN("doubled", doubled, FAIR_AUTO),
    FAIR_FN("rooted", rooted, FAIR_AUTO),
    FAIR_FN("throws", throws, FAIR_AUTO),
    FAIR_FN("endless", endless, FAIR_AUTO),
    FAIR_FN("told", told, FAIR_AUTO),
    FAIR_FN("serves", serves, FAIR_NORMAL | FAIR_AWAITED),
    FAIR_FN("serves_dirty", serves, FAIR_DIRTY_CPU | FAIR_AWAITED),
    FAIR_FN("serves_threaded", serves, FAIR_THREADED),
};

} /* namespace */

FAIR_NIF_INIT(test_cpp, nifs, fair::load<>, NULL, fair::upgrade<>, NULL)

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

TEST(cancelled, "destructors run when the caller of a body in C++ dies, also "
     "in a catch block")
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
TEST(told_to_return, "an alarm ends where its body in C++ is left")
{
    vm_proc *p = spawn_call("told", "");
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

TEST(messages, "a native process in C++ receives, sends and calls, with what it "
     "keeps in its own variables")
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

TEST(killed_receiving, "its destructors run when it is killed, wherever it is")
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
