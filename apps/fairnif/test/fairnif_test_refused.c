/*
 * fairnif_test_refused.c - libraries that must not load, one for each CASE_,
 * and CASE_good that must.
 */
#include <fairnif.h>

static __attribute__((unused)) ERL_NIF_TERM body(fair_task *t)
{
    return enif_make_atom(fair_env(t), "ok");
}

#if defined(CASE_bad_mode)
#  define ENTRY FAIR_NIF("f", 0, body, 77)
#elif defined(CASE_big_stack)
static const fair_options options = {.body = body, .stack_size = 1ul << 40};
#elif defined(CASE_small_stack)
static const fair_options options = {.body = body, .stack_size = 100};
#elif defined(CASE_long_slice)
static const fair_options options = {.body = body, .slice_us = 1000001};
#elif defined(CASE_no_body)
static const fair_options options = {.max_tasks = 1};
#elif defined(CASE_good)
static const fair_options options = {.body = body};
#endif
#ifndef ENTRY
#  define ENTRY FAIR_NIF_OPTIONS("f", 0, &options, FAIR_AUTO)
#endif

static ErlNifFunc nifs[] = {ENTRY};

static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    (void)env, (void)priv, (void)old, (void)info;
    return 0;
}

FAIR_NIF_INIT(fairnif_test_refused, nifs, NULL, upgrade, NULL)
