/*
 * What the files of the zoo share.
 *
 * The zoo's functions have known manners, good and bad, so that the checker's
 * verdicts can be proved. Each is bad in its named way and in no other: all
 * memory that is taken is freed and all failures are handled, except where the
 * manner is not to. Never load it into a node that is to live.
 */
#ifndef ZOO_H
#define ZOO_H

#define _GNU_SOURCE
#include <erl_nif.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define ZOO_MAX_US 60000000u    /* a minute of anything is enough */
#define ZOO_FAIR_US 25          /* of one turn of ordinary Erlang code */
#define ZOO_KEPT 1048576        /* bytes that the leaking functions lose at once */

typedef ERL_NIF_TERM zoo_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

/* zoo_time.c: how time is spent */
void zoo_work(unsigned us);     /* computes for that much CPU time of this thread */
void zoo_sleep(unsigned us);
int zoo_us(ErlNifEnv *env, ERL_NIF_TERM term, unsigned *us);
ERL_NIF_TERM zoo_ok(ErlNifEnv *env);
ERL_NIF_TERM zoo_enomem(ErlNifEnv *env);
ERL_NIF_TERM zoo_failed(ErlNifEnv *env, int error);

/* Each file opens its resource types when the library is loaded; 0 is good. */
int zoo_slices_load(ErlNifEnv *env);
int zoo_threads_load(ErlNifEnv *env);
int zoo_waits_load(ErlNifEnv *env);
int zoo_garbage_load(ErlNifEnv *env);

/* zoo_blocks.c: on the caller's scheduler to the end */
zoo_nif zoo_block, zoo_block_charged, zoo_ignores_timeslice, zoo_block_sometimes,
    zoo_block_above, zoo_block_first, zoo_sleep_nif, zoo_pipe, zoo_lock, zoo_free_lock,
    zoo_huge_list;
/* zoo_slices.c: yield, each in its way */
zoo_nif zoo_slices_fair, zoo_slices_tiny, zoo_slices_700us, zoo_slices_5ms,
    zoo_slices_100ms, zoo_slices_uncharged, zoo_slices_endless, zoo_slices_then_5ms,
    zoo_keeps_in_resource, zoo_leaks_malloc, zoo_leaks_enif, zoo_leaks_always, zoo_fills_cache;
/* zoo_garbage.c: short, and their results are long in being collected */
zoo_nif zoo_statement;
/* zoo_dirty.c: on dirty schedulers */
zoo_nif zoo_dirty_alive, zoo_dirty_slices, zoo_dirty_endless, zoo_eats_memory;
/* zoo_threads.c, zoo_waits.c: what the caller waits for in a receive */
zoo_nif zoo_thread_goes_on, zoo_thread_stops, zoo_wait, zoo_wait_done;
/* zoo_ends.c: do not return as they should */
zoo_nif zoo_segv, zoo_ill, zoo_deep, zoo_abort, zoo_exit, zoo_endless, zoo_badarg,
    zoo_raise_sometimes, zoo_error_tuple, zoo_short;

#endif
