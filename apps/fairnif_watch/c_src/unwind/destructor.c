/*
 * destructor.c - the resource type whose destructor a native function is.  No
 * table in a library says so: the VM's own list of resource types does.
 *
 * A destructor runs when the last reference is gone, on a normal scheduler,
 * between two processes: nobody called it whom a stack could show.  The list is
 * a ring, which our own type is part of.  How its links lie in a type differs
 * by release: that is learned from ours, whose destructor, module and name we
 * know.  The list changes under our eyes, so nothing is followed but by
 * watch__read, and a type counts only if its neighbours say that it is theirs.
 */
#include <string.h>

#include "unwind/destructor.h"
#include "read/mem.h"

enum { WORDS = 16, TYPES_MOST = 4096, NEXT = 0, PREVIOUS = 1 };

/* How many of the words are readable: a small type may end before a page that
 * is not there. */
static unsigned read_type(uint64_t at, uint64_t words[WORDS])
{
    if (at == 0 || at % sizeof *words)
        return 0;
    return (unsigned)(watch__read(words, at, WORDS * sizeof *words)
                      / sizeof *words);
}

static bool is_linked(uint64_t at, const uint64_t words[WORDS])
{
    uint64_t next, previous;

    return watch__read_all(&previous, words[NEXT] + PREVIOUS * sizeof previous,
                           sizeof previous)
        && watch__read_all(&next, words[PREVIOUS] + NEXT * sizeof next,
                           sizeof next)
        && previous == at && next == at;
}

static unsigned find_word(const uint64_t *words, unsigned n, uint64_t word)
{
    unsigned at = PREVIOUS + 1;

    while (at < n && words[at] != word)
        at++;
    return at < n ? at : 0;
}

/* Not in the library's load callback, where it is in no list yet. */
void watch__types_learn(struct watch__types *types, const void *own,
                        uint64_t destructor, ERL_NIF_TERM module,
                        ERL_NIF_TERM name)
{
    uint64_t words[WORDS], at = (uintptr_t)own;
    unsigned n = read_type(at, words);

    memset(types, 0, sizeof *types);
    if (n <= PREVIOUS || !is_linked(at, words))
        return;
    types->destructor = find_word(words, n, destructor);
    types->module = find_word(words, n, module);
    types->name = find_word(words, n, name);
    if (types->destructor && types->module && types->name)
        types->own = at;
}

/* The name is 0 where it is the destructor of two types: whose is not known. */
bool watch__type_of(const struct watch__types *types, uint64_t function,
                    ERL_NIF_TERM *module, ERL_NIF_TERM *name)
{
    uint64_t at = types->own, words[WORDS], found = 0;
    unsigned last = types->destructor > types->module ? types->destructor
                                                      : types->module;

    last = last > types->name ? last : types->name;
    if (!at || !function)
        return false;
    for (unsigned i = 0; i < TYPES_MOST; i++) {
        unsigned n = read_type(at, words);

        if (n <= PREVIOUS)
            break;
        if (last < n && words[types->destructor] == function
            && is_linked(at, words)) {
            if (found && found != at) {
                *name = 0;
                return true;
            }
            found = at;
            *module = (ERL_NIF_TERM)words[types->module];
            *name = (ERL_NIF_TERM)words[types->name];
        }
        at = words[NEXT];
        if (at == types->own)
            break;
    }
    return found != 0;
}
