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

#include <fairnif.hpp>

class tree {
public:
    /* Up to this many calls of `add` and of `open` between two spills. */
    static constexpr unsigned MOST = 128;

    explicit tree(fair::task &task);

    /* To be called before each tick. */
    void spill();
    /* And after it: whether it was a pause. */
    bool resume()
    {
        if (since == fair_yields(&t))
            return false;
        again();
        return true;
    }

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
            whole.set(term);
        } else {
            if (opened == 0)
                reload();
            pending[count++] = term;
        }
    }

    /* What was added last, before the next spill. */
    ERL_NIF_TERM last() const { return pending[count - 1]; }
    /* The innermost one becomes an element of the one around it.  May pause:
     * what has many elements. */
    void close();
    /* The document, once nothing is open. */
    ERL_NIF_TERM result() const { return whole.get(); }

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
    void again();
    void close_large();
    ERL_NIF_TERM list_of(fair::root &parts);
    ERL_NIF_TERM map_of(fair::root &parts, uint64_t elements);

    fair::task &t;
    fair::root stack, whole;
    uint64_t since;             /* fair_yields: until then are valid */
    ERL_NIF_TERM rest;          /* the stack but for the levels here, and */
    ERL_NIF_TERM own;           /* the parts of the first level here */
    uint64_t depth = 0;         /* of all that is open */
    unsigned opened = 0, count = 0;
    level levels[MOST + 1];
    ERL_NIF_TERM pending[MOST + 1];
};

#endif
