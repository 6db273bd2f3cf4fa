/*
 * block_cpp.cc - a plain NIF in C++ that works for some rounds: in templates
 * and lambdas, behind a std::function, and an exception comes out of it.
 */
#include <functional>
#include <stdexcept>
#include <vector>

#include <erl_nif.h>

namespace {

template <typename Number> struct worker {
    std::vector<Number> numbers = std::vector<Number>(512, 1);

    Number work(Number sum)
    {
        for (auto &n : numbers)
            n = sum = sum * 31 + n;
        return sum;
    }
};

template <typename Number> Number spin_for(unsigned long rounds)
{
    worker<Number> w;
    Number sum = 0;
    std::function<void()> once = [&] { sum = w.work(sum); };

    while (rounds-- > 0)
        once();
    throw std::runtime_error("done");
}

ERL_NIF_TERM spin(ErlNifEnv *env, int, const ERL_NIF_TERM argv[])
{
    unsigned long rounds;

    if (!enif_get_ulong(env, argv[0], &rounds))
        return enif_make_badarg(env);
    try {
        spin_for<unsigned>(rounds);
    } catch (const std::runtime_error &e) {
        return enif_make_atom(env, e.what());
    }
    return enif_make_atom(env, "never");
}

ErlNifFunc nifs[] = {{"spin", 1, spin, 0}};

}

ERL_NIF_INIT(fairnif_watch_block_cpp, nifs, nullptr, nullptr, nullptr, nullptr)
