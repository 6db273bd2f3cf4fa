/* Functions for dirty schedulers. (The unkillable ones are zoo_block and
 * zoo_sleep_nif, registered there.) */
#include "zoo.h"

#include <stdlib.h>
#include <unistd.h>

#define LOOK_US 100             /* how often they ask whether the caller lives */
#define STEP 16777216           /* bytes */
#define MOST (1ul << 31)

/* dirty_alive(Us): computes as long as its caller lives. */
ERL_NIF_TERM zoo_dirty_alive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned us;

    (void)argc;
    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    for (; us > 0 && enif_is_current_process_alive(env); us -= us < LOOK_US ? us : LOOK_US)
        zoo_work(us < LOOK_US ? us : LOOK_US);
    return zoo_ok(env);
}

/* dirty_slices(Us): 1 ms at a time, each a dirty call of its own, so that others
 * that wait for the dirty scheduler get their turn. */
ERL_NIF_TERM zoo_dirty_slices(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM left;
    unsigned us, now;

    (void)argc;
    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    now = us < 1000 ? us : 1000;
    zoo_work(now);
    if (us == now)
        return zoo_ok(env);
    left = enif_make_uint(env, us - now);
    return enif_schedule_nif(env, "dirty_slices", ERL_NIF_DIRTY_JOB_CPU_BOUND, zoo_dirty_slices, 1,
                             &left);
}

/* dirty_endless(_): sleeps and never returns, as long as its caller lives. */
ERL_NIF_TERM zoo_dirty_endless(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    while (enif_is_current_process_alive(env))
        zoo_sleep(LOOK_US);
    return zoo_ok(env);
}

/* Bytes that it may take without harm to other users of this machine. */
static size_t most(void)
{
    long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    size_t quarter = pages > 0 && size > 0 ? (size_t)pages / 4 * (size_t)size : 0;

    return quarter < MOST ? quarter : MOST;
}

/* eats_memory(_): takes memory until there is none left, or all that this machine
 * can spare; then it frees it and raises enomem. */
ERL_NIF_TERM zoo_eats_memory(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct piece { struct piece *next; } *pieces = NULL, *piece;
    size_t left = most();

    (void)argc, (void)argv;
    for (; left >= STEP && enif_is_current_process_alive(env); left -= STEP) {
        piece = malloc(STEP);
        if (piece == NULL)
            break;
        memset(piece, 1, STEP);
        piece->next = pieces;
        pieces = piece;
    }
    for (; pieces != NULL; pieces = piece) {
        piece = pieces->next;
        free(pieces);
    }
    return zoo_enomem(env);
}
