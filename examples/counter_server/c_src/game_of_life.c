/*
 * game_of_life.c - a native process that owns native memory, and works for long:
 * Conway's Game of Life on a torus.
 *
 * A request for a million generations yields; another caller waits for it.
 */
#include <fairnif.h>

struct world {
    size_t width, height, size;
    unsigned char *cells, *next;        /* a byte each; the next generation */
};

enum { MOST = 1 << 20 };        /* cells: copied in one go, in 0.1 ms */

static void evolve(fair_task *t, struct world *w)
{
    unsigned char *cells = w->cells;
    size_t width = w->width;

    for (size_t y = 0; y < w->height; y++) {
        const unsigned char *rows[] = {
            cells + (y + w->height - 1) % w->height * width,
            cells + y * width, cells + (y + 1) % w->height * width,
        };

        for (size_t x = 0; x < width; x++) {
            unsigned sum = 0;

            for (int i = 0; i < 3; i++)
                sum += rows[i][x ? x - 1 : width - 1] + rows[i][x]
                    + rows[i][x + 1 < width ? x + 1 : 0];
            w->next[y * width + x] = sum == 3 || (sum == 4 && rows[1][x]);
        }
        fair_tick(t, width);
    }
    w->cells = w->next;
    w->next = cells;
}

/* {evolve, N} -> ok, or cells -> binary() */
static ERL_NIF_TERM answer(fair_task *t, struct world *w, ERL_NIF_TERM request)
{
    ErlNifEnv *env = fair_env(t);
    const ERL_NIF_TERM *parts;
    ErlNifUInt64 n;
    fair_bin out;
    int arity;

    if (enif_is_identical(request, enif_make_atom(env, "cells"))) {
        if (!fair_new_bin(t, w->size, &out))
            return enif_make_atom(env, "enomem");
        memcpy(out.data, w->cells, w->size);
        return fair_make_bin(t, &out);
    }
    if (!enif_get_tuple(env, request, &arity, &parts) || arity != 2
        || !enif_is_identical(parts[0], enif_make_atom(env, "evolve"))
        || !fair_get_uint64(t, parts[1], &n))
        return enif_make_atom(env, "badarg");
    while (n-- > 0)
        evolve(t, w);
    return enif_make_atom(fair_env(t), "ok");
}

/* world(Width, Cells) */
static ERL_NIF_TERM world(fair_task *t)
{
    ERL_NIF_TERM message, from, request;
    struct world w;
    fair_bytes cells;
    unsigned width, root;

    if (!fair_get_uint(t, fair_arg(t, 0), &width)
        || !fair_get_bytes(t, fair_arg(t, 1), &cells) || !cells.size
        || cells.size > MOST || !width || cells.size % width)
        return fair_badarg(t);
    w = (struct world){width, cells.size / width, cells.size, NULL, NULL};
    w.cells = fair_alloc(t, w.size);    /* freed when the process ends */
    w.next = fair_alloc(t, w.size);
    if (!w.cells || !w.next)
        return fair_enomem(t);
    memcpy(w.cells, cells.data, w.size);
    for (;;) {
        fair_receive(t, -1, &message);
        if (!fair_match_call(t, message, &from, &request))
            continue;
        root = fair_root_new(t, from);      /* it survives the pauses of the work */
        request = answer(t, &w, request);
        fair_reply(t, fair_root_get(t, root), request);
        fair_root_drop(t, root);
    }
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_world", 2, world, FAIR_NORMAL | FAIR_MAY_WAIT),
};

FAIR_NIF_INIT(game_of_life, nifs, NULL, NULL, NULL)
