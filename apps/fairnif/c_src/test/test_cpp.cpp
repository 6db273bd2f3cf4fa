/*
 * test_cpp.cpp - fairnif.hpp on a VM that moves heaps after every slice and frees
 * the old ones: no codec keeps a term, a pointer or an environment across a
 * pause; and under the sanitizers.  What it does in the real one is in
 * test/fairnif_cpp_tests.erl.
 */
#include <fairnif.hpp>

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
