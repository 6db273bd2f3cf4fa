/*
 * tree.hpp - the arrays and objects that are under construction.
 *
 * Between two ticks their elements stand in an array of this class, as terms
 * that the collector does not know.  Before a tick `spill` puts what is there
 * into the heap, where a root has it:
 *
 *     stack    [[Header | Parts], ...]   open arrays and objects, innermost
 *                                        first
 *     Header   how many elements its parts have, times two, and one more for
 *              an object
 *     Parts    [{E, E, ...}, ...]        tuples of elements, last one first;
 *                                        of an object: keys and values in turn
 *
 * So a spill costs nothing for what was spilled before, at any depth.  What
 * begins and ends between two ticks, as most small objects do, is made of the
 * array at once.
 */
#ifndef TREE_HPP
#define TREE_HPP

#include <cstddef>
#include <cstdint>

#include <fairnif.h>

class tree {
public:
    /* At most so many calls of `add` and of `open` between two spills. */
    static constexpr unsigned MOST = 128;

    void begin(fair_task *task);
    /* To be called before each tick. */
    void spill();
    /* And after it. */
    void resume() { env = fair_env(t); }

    bool empty() const { return depth == 0; }
    /* Whether the innermost one is an object. */
    bool in_object() { return top().object; }

    void open(bool object)
    {
        if (opened == 0 && depth > 0)
            reload();
        levels[opened++] = {object, count, 0};
        depth++;
    }

    void add(ERL_NIF_TERM term)
    {
        if (depth == 0) {
            fair_keep(t, whole, term);
        } else {
            if (opened == 0)
                reload();
            pending[count++] = term;
        }
    }

    /* What was added last, before the next spill. */
    ERL_NIF_TERM last() const { return pending[count - 1]; }
    /* The innermost one becomes an element of the one around it.  false when
     * memory is out.  May pause: what has many elements. */
    bool close();
    /* The document, once nothing is open. */
    ERL_NIF_TERM result() { return fair_kept(t, whole); }

    ErlNifEnv *env;

private:
    struct level {
        bool object;
        unsigned from;          /* where its elements begin in `pending` */
        uint64_t spilled;       /* how many are in its parts: only of the first
                                   level here */
    };

    level &top()
    {
        if (opened == 0)
            reload();
        return levels[opened - 1];
    }

    void reload();
    bool close_large();
    ERL_NIF_TERM list_of_parts();
    bool map_of_parts(uint64_t elements, ERL_NIF_TERM *map);

    fair_task *t;
    unsigned stack, whole;      /* roots */
    unsigned first;             /* root: what the stack had of the first level,
                                   or [] */
    uint64_t depth;                     /* of all that is open */
    unsigned opened, count;
    level levels[MOST + 1];
    ERL_NIF_TERM pending[MOST + 1];
};

#endif
