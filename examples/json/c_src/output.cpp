/*
 * output.cpp - an iolist that grows, see output.hpp.
 */
#include "output.hpp"

#include <algorithm>

static constexpr size_t FIRST = 256;

bool output::begin(fair_task *task)
{
    t = task;
    used = 0;
    several = false;
    parts = fair_root(t, enif_make_list(fair_env(t), 0));
    return fair_new_bin(t, FIRST, &bin);
}

/* Puts what is written before the parts. */
bool output::push()
{
    if (used < bin.size && !fair_resize_bin(t, &bin, used))
        return false;
    fair_list_push(t, parts, fair_make_bin(t, &bin));
    fair_release_bin(t, &bin);
    return true;
}

bool output::more(size_t n)
{
    if (used + n <= CHUNK)
        return fair_resize_bin(t, &bin,
                               std::min(CHUNK, std::max(2 * bin.size,
                                                        used + n)));
    several = true;
    if (!push())
        return false;
    used = 0;
    return fair_new_bin(t, CHUNK, &bin);
}

bool output::done(unsigned root)
{
    ERL_NIF_TERM last;

    if (!several) {
        if (!fair_resize_bin(t, &bin, used))
            return false;
        last = fair_make_bin(t, &bin);
        fair_keep(t, root, last);
        return true;
    }
    if (!push())
        return false;
    fair_list_reverse(t, parts);
    fair_keep(t, root, fair_kept(t, parts));
    return true;
}
