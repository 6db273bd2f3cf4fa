/* The table of the zoo's library; what the functions are is in the other files. */
#include "zoo.h"

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv, (void)info;
    return zoo_slices_load(env) || zoo_threads_load(env) || zoo_waits_load(env)
        || zoo_garbage_load(env);
}

#define CPU ERL_NIF_DIRTY_JOB_CPU_BOUND
#define IO ERL_NIF_DIRTY_JOB_IO_BOUND

static ErlNifFunc nifs[] = {
    {"block", 1, zoo_block, 0},
    {"block_charged", 1, zoo_block_charged, 0},
    {"ignores_timeslice", 1, zoo_ignores_timeslice, 0},
    {"block_sometimes", 1, zoo_block_sometimes, 0},
    {"block_above", 1, zoo_block_above, 0},
    {"block_first", 1, zoo_block_first, 0},
    {"sleep", 1, zoo_sleep_nif, 0},
    {"pipe", 1, zoo_pipe, 0},
    {"lock", 1, zoo_lock, 0},
    {"free_lock", 1, zoo_free_lock, 0},
    {"huge_list", 1, zoo_huge_list, 0},

    {"slices_fair", 1, zoo_slices_fair, 0},
    {"slices_tiny", 1, zoo_slices_tiny, 0},
    {"slices_700us", 1, zoo_slices_700us, 0},
    {"slices_5ms", 1, zoo_slices_5ms, 0},
    {"slices_100ms", 1, zoo_slices_100ms, 0},
    {"slices_uncharged", 1, zoo_slices_uncharged, 0},
    {"slices_endless", 1, zoo_slices_endless, 0},
    {"slices_then_5ms", 1, zoo_slices_then_5ms, 0},
    {"keeps_in_resource", 1, zoo_keeps_in_resource, 0},
    {"leaks_malloc", 1, zoo_leaks_malloc, 0},
    {"leaks_enif", 1, zoo_leaks_enif, 0},
    {"leaks_always", 1, zoo_leaks_always, 0},
    {"fills_cache", 1, zoo_fills_cache, 0},

    {"statement", 1, zoo_statement, 0},

    {"dirty_cpu", 1, zoo_block, CPU},
    {"dirty_io", 1, zoo_sleep_nif, IO},
    {"dirty_alive", 1, zoo_dirty_alive, CPU},
    {"dirty_slices", 1, zoo_dirty_slices, CPU},
    {"dirty_endless", 1, zoo_dirty_endless, IO},
    {"eats_memory", 1, zoo_eats_memory, CPU},

    {"start_thread_goes_on", 1, zoo_thread_goes_on, 0},
    {"start_thread_stops", 1, zoo_thread_stops, 0},
    {"start_wait", 1, zoo_wait, 0},
    {"wait_done", 1, zoo_wait_done, 0},

    {"segv", 1, zoo_segv, 0},
    {"ill", 1, zoo_ill, 0},
    {"deep", 1, zoo_deep, 0},
    {"dirty_deep", 1, zoo_deep, CPU},
    {"abort", 1, zoo_abort, 0},
    {"exit", 1, zoo_exit, 0},
    {"endless", 1, zoo_endless, 0},
    {"badarg", 1, zoo_badarg, 0},
    {"raise_sometimes", 1, zoo_raise_sometimes, 0},
    {"error_tuple", 1, zoo_error_tuple, 0},
    {"short", 1, zoo_short, 0},
};

ERL_NIF_INIT(fairnif_zoo, nifs, load, NULL, NULL, NULL)
