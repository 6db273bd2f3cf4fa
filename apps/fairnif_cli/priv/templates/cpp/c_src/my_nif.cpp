/* my_nif.cpp - counts bytes, and yields between blocks of them. */
#include <algorithm>

#include <fairnif.hpp>

/* Bytes between two ticks: 1 to 2 us. A tick at least every 5 us keeps the slices fair. */
static constexpr size_t BLOCK = 16 * 1024;

/* The arguments are decoded, the result is encoded, and the arity is known. The body may pause at
 * each tick and continue later, on another thread; when its caller dies meanwhile, the tick throws
 * fair::cancelled, and destructors run. */
static size_t count(fair::task &t, fair::bytes in, uint8_t byte)
{
    size_t found = 0;

    for (size_t at = 0, n; at < in.size(); at += n) {
        n = std::min(in.size() - at, BLOCK);
        found += std::count(in.begin() + at, in.begin() + at + n, byte);
        t.tick(n);
    }
    return found;
}

/* A function that waits (t.wait, fair::lock, t.offload in FAIR_THREADED) is FAIR_AUTO | FAIR_MAY_WAIT,
 * or FAIR_THREADED; its wrapper hands what it answers to fairnif:await/1 (Fairnif.await/1). */
static ErlNifFunc nifs[] = {
    FAIR_FN("nif_count", count, FAIR_AUTO),
};

FAIR_NIF_INIT({{module}}, nifs, fair::load<>, fair::upgrade<>, NULL)
