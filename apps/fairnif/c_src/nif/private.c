/*
 * private.c - the function table for the runtime's own applications, as
 * declared in fairnif_private.h.
 */
#include "nif/private.h"

#include "base/config.h"
#include "base/os.h"
#include "base/type.h"
#include "life/strand.h"
#include "task/charge.h"
#include "task/slice.h"
#include "thread/low.h"
#include "thread/pool.h"

static const void *first(const void *mine)
{
    static const void *_Atomic is;
    const void *none = NULL;

    return atomic_compare_exchange_strong(&is, &none, mine) ? mine : none;
}

static bool pool_withdraw(struct fair__job *job)
{
    bool withdrawn;

    fair__wait_lock();
    withdrawn = fair__pool_withdraw(job);
    fair__wait_unlock();
    return withdrawn;
}

static void run_low(void (*fn)(void *), void *arg)
{
    struct fair__thread *th = fair__this_thread();
    struct fair__low *low = th && th->where == W_THREAD ? fair__low_get(th)
        : NULL;

    if (low)
        fair__low_run(low, fn, arg);
    else
        fn(arg);
}

static unsigned processors(void)
{
    return (unsigned)GET(fair__config.dirty_cpus);
}

const struct fair__private fair__private = {
    .size = sizeof fair__private,
    .abi_major = FAIR_PRIVATE_MAJOR,
    .abi_minor = FAIR_PRIVATE_MINOR,
    .first = first,
    .open_type = fair__open_type,
    .pool_start = fair__pool_give,
    .pool_withdraw = pool_withdraw,
    .processors = processors,
    .strand_new = fair__strand_new,
    .strand_run = fair__strand_run,
    .now = fair__now,
    .slice_is_up = fair__slice_is_up,
    .price = fair__price,
    .strand_name = fair__strand_name,
    .run_low = run_low,
    .at_par = fair__at_par,
};
