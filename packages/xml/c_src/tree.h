/*
 * tree.h - the elements that are under construction.
 *
 * Between two ticks their children stand in an array here, as terms that the
 * collector does not know.  Before a tick tree_spill puts what is there into
 * the heap, where a root has it:
 *
 *     stack    [{Name, Attributes, N, Parts}, ...]   open elements, innermost
 *                                                    first
 *     Parts    [{Child, Child, ...}, ...]            N children, last tuple
 *                                                    first
 *
 * So a spill costs nothing for what was spilled before, at any depth.  What
 * begins and ends between two ticks, as most elements do, is made of the array
 * at once.
 */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>

#include <fairnif.h>

enum { TREE_MOST = 128 };   /* calls of open and of add between two spills */

struct level {
    ERL_NIF_TERM name, attributes;
    ERL_NIF_TERM parts;         /* as above; of the first level here only */
    ErlNifUInt64 spilled;       /* how many children are in them */
    unsigned from;              /* where the others begin in `pending' */
};

struct tree {
    fair_task *t;
    ErlNifEnv *env;
    unsigned stack, whole;      /* roots; whole: [], or what was closed last */
    uint64_t since;             /* fair_yields: until then terms are valid */
    ERL_NIF_TERM rest;          /* the stack but for the levels here */
    ERL_NIF_TERM nil;
    size_t depth;               /* of all that is open */
    unsigned opened, count;
    struct level levels[TREE_MOST];
    ERL_NIF_TERM pending[TREE_MOST];
};

void tree_begin(struct tree *tree, fair_task *t);

/* To be called before each tick. */
void tree_spill(struct tree *tree);

/* And after it. */
void tree_resume(struct tree *tree);

/* Whether open and add may be called once more before the next spill. */
static inline bool tree_has_room(const struct tree *tree)
{
    return tree->opened < TREE_MOST - 1 && tree->count < TREE_MOST - 1;
}

void tree_open(struct tree *tree, ERL_NIF_TERM name, ERL_NIF_TERM attributes);

/* A child of the innermost element; with none open, the whole. */
void tree_add(struct tree *tree, ERL_NIF_TERM child);

/* The innermost element becomes a child of the one around it.  May pause: what
 * has many children; no term survives it. */
void tree_close(struct tree *tree);

#endif
