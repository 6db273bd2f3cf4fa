/*
 * output.cpp - an iolist that grows, see output.hpp.
 */
#include "output.hpp"

#include <algorithm>

static constexpr size_t FIRST = 256;

output::output(fair::task &task)
    : t(task), bin(std::in_place, t, FIRST),
      parts(t, enif_make_list(t.environment(), 0))
{
}

ERL_NIF_TERM output::written()
{
    bin->resize(used);
    return fair::codec<fair::binary>::make(t, *bin);
}

void output::more(size_t n)
{
    if (used + n <= CHUNK) {
        bin->resize(std::min(CHUNK, std::max(2 * bin->size(), used + n)));
        return;
    }
    several = true;
    parts.push(written());
    bin.emplace(t, CHUNK);
    used = 0;
}

ERL_NIF_TERM output::done()
{
    if (!several)
        return written();
    parts.push(written());
    parts.reverse();
    return parts.get();
}
