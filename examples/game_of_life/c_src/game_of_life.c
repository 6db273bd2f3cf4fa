/*
 * game_of_life.c - Conway's Game of Life on a torus, as a native process.
 *
 * The grid is in native memory, two bytes a cell: this generation and the next
 * one.  A request for a million generations yields after each slice, as all
 * fair functions; whoever asks meanwhile is answered after it, as with any
 * process that is at work.
 */
#include <fairnif.h>

struct world {
    unsigned width, height;
    unsigned char *cells, *next;
    uint64_t generation;
};

enum { MOST = 65536 };          /* columns, rows */

static ERL_NIF_TERM atom(fair_task *t, const char *name)
{
    return enif_make_atom(fair_env(t), name);
}

static ERL_NIF_TERM badarg(fair_task *t)
{
    return enif_make_tuple2(fair_env(t), atom(t, "error"), atom(t, "badarg"));
}

/* The sum of three cells, of which the middle one is column x. */
static unsigned three(const struct world *w, const unsigned char *row, unsigned x)
{
    return row[x ? x - 1 : w->width - 1] + row[x]
        + row[x + 1 < w->width ? x + 1 : 0];
}

static void evolve_row(struct world *w, unsigned y)
{
    size_t width = w->width;
    const unsigned char *here = w->cells + y * width;
    const unsigned char *above = w->cells
        + (y ? y - 1 : w->height - 1) * width;
    const unsigned char *below = w->cells
        + (y + 1 < w->height ? y + 1 : 0) * width;
    unsigned char *next = w->next + y * width;

    for (unsigned x = 0; x < w->width; x++) {
        unsigned around = three(w, above, x) + three(w, here, x)
            + three(w, below, x) - here[x];

        next[x] = around == 3 || (around == 2 && here[x]);
    }
}

static void evolve(fair_task *t, struct world *w)
{
    unsigned char *cells = w->cells;

    for (unsigned y = 0; y < w->height; y++) {
        evolve_row(w, y);
        fair_tick(t, w->width);
    }
    w->cells = w->next;
    w->next = cells;
    w->generation++;
}

static ERL_NIF_TERM population(fair_task *t, const struct world *w)
{
    unsigned long alive = 0;

    for (unsigned y = 0; y < w->height; y++) {
        for (unsigned x = 0; x < w->width; x++)
            alive += w->cells[(size_t)y * w->width + x];
        fair_tick(t, w->width);
    }
    return enif_make_ulong(fair_env(t), alive);
}

/* A byte for each cell, row by row. */
static ERL_NIF_TERM cells(fair_task *t, const struct world *w)
{
    fair_bin bin;

    if (!fair_new_bin(t, (size_t)w->width * w->height, &bin))
        return atom(t, "enomem");
    for (unsigned y = 0; y < w->height; y++) {
        memcpy(bin.data + (size_t)y * w->width, w->cells + (size_t)y * w->width,
               w->width);
        fair_tick(t, w->width / 8);
    }
    return fair_make_bin(t, &bin);
}

/* {X, Y}, which may lie beyond the edges. */
static int get_cell(fair_task *t, const struct world *w, ERL_NIF_TERM term,
                    size_t *index)
{
    const ERL_NIF_TERM *at;
    long x, y;
    int arity;

    if (!enif_get_tuple(fair_env(t), term, &arity, &at) || arity != 2
        || !fair_get_long(t, at[0], &x) || !fair_get_long(t, at[1], &y))
        return 0;
    x = (x % (long)w->width + (long)w->width) % (long)w->width;
    y = (y % (long)w->height + (long)w->height) % (long)w->height;
    *index = (size_t)y * w->width + (size_t)x;
    return 1;
}

/* All of them or none: what is no cell is found before any is set. */
static ERL_NIF_TERM set(fair_task *t, struct world *w, ERL_NIF_TERM list)
{
    unsigned all = fair_root(t, list), rest = fair_root(t, list);
    ERL_NIF_TERM head, answer = 0;
    size_t index;

    while (!answer && fair_list_next(t, rest, &head)) {
        if (!get_cell(t, w, head, &index))
            answer = badarg(t);
        else
            fair_tick(t, 1);
    }
    if (!answer && !enif_is_empty_list(fair_env(t), fair_kept(t, rest)))
        answer = badarg(t);
    while (!answer && fair_list_next(t, all, &head)) {
        get_cell(t, w, head, &index);
        w->cells[index] = 1;
        fair_tick(t, 1);
    }
    fair_unroot(t, all);
    return answer ? answer : atom(t, "ok");
}

/* {evolve, N}, {set, Cells}, population, cells, generation */
static ERL_NIF_TERM answer(fair_task *t, struct world *w, ERL_NIF_TERM request)
{
    const ERL_NIF_TERM *parts;
    ErlNifUInt64 n;
    char what[16];
    int arity;

    if (fair_get_atom(t, request, what, sizeof what)) {
        if (strcmp(what, "population") == 0)
            return population(t, w);
        if (strcmp(what, "cells") == 0)
            return cells(t, w);
        if (strcmp(what, "generation") == 0)
            return enif_make_uint64(fair_env(t), w->generation);
    } else if (enif_get_tuple(fair_env(t), request, &arity, &parts)
               && arity == 2 && fair_get_atom(t, parts[0], what, sizeof what)) {
        if (strcmp(what, "set") == 0)
            return set(t, w, parts[1]);
        if (strcmp(what, "evolve") == 0 && fair_get_uint64(t, parts[1], &n)) {
            while (n-- > 0)
                evolve(t, w);
            return enif_make_uint64(fair_env(t), w->generation);
        }
    }
    return badarg(t);
}

/* world(Width, Height) */
static ERL_NIF_TERM world(fair_task *t)
{
    struct world w = {0};
    size_t size;

    if (!fair_get_uint(t, fair_arg(t, 0), &w.width) || !w.width
        || !fair_get_uint(t, fair_arg(t, 1), &w.height) || !w.height
        || w.width > MOST || w.height > MOST)
        return fair_badarg(t);
    size = (size_t)w.width * w.height;
    w.cells = fair_alloc(t, size);
    w.next = fair_alloc(t, size);
    if (!w.cells || !w.next)
        return fair_enomem(t);
    for (unsigned y = 0; y < w.height; y++) {
        memset(w.cells + (size_t)y * w.width, 0, w.width);
        fair_tick(t, w.width / 8);
    }
    for (;;) {
        ERL_NIF_TERM message, from, request;
        unsigned root;

        fair_receive(t, -1, &message);
        if (!fair_get_call(t, message, &from, &request))
            continue;
        root = fair_root(t, from);      /* it survives the pauses of the work */
        request = answer(t, &w, request);
        fair_reply(t, fair_kept(t, root), request);
        fair_unroot(t, root);
    }
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_world", 2, world, FAIR_NORMAL | FAIR_AWAITED),
};

FAIR_NIF_INIT(game_of_life, nifs, NULL, NULL, NULL, NULL)
