/*
 * charge.c - charges reductions to callers for the time that they used.
 */
#include "task/charge.h"

#include "base/config.h"
#include "task/learn.h"

/* Charges reductions for *debt_ns, and leaves there what is too little to be
 * charged or more than the process has left in this turn.  In steps, since
 * the VM does not say how much of a charge found reductions to take; but in
 * one go where the whole turn is the task's. */
void fair__charge(ErlNifEnv *env, double *debt_ns, bool whole_turn)
{
    double turn_ns = (double)GET(fair__config.turn_ns), percent_ns;

    if (*debt_ns * 100 < turn_ns)
        return;
    percent_ns = turn_ns / 100;
    if (whole_turn) {
        double percent = fair__min(*debt_ns / percent_ns, 100);

        *debt_ns -= (int)percent * percent_ns;
        enif_consume_timeslice(env, (int)percent);
        return;
    }
    while (*debt_ns >= percent_ns) {
        double percent = fair__min(*debt_ns / percent_ns, 10);

        *debt_ns -= (int)percent * percent_ns;
        if (enif_consume_timeslice(env, (int)percent))
            break;
    }
}

/* The same for who is charged for a whole turn at a time, by the clock: percent
 * of one. */
int fair__price(uint64_t ns)
{
    uint64_t percent = ns * 100 / GET(fair__config.turn_ns);

    return percent < 1 ? 1 : percent > 100 ? 100 : (int)percent;
}

/* -- what is left when a call is over --------------------------------------- */

/* sit_out(Result, DebtNs): pays turn by turn for what one turn could not, then
 * gives the result.  Needs no task: a caller that dies meanwhile leaves
 * nothing. */
static ERL_NIF_TERM sit_out(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned long ns;
    double debt;

    enif_get_ulong(env, argv[1], &ns);
    debt = (double)ns;
    fair__charge(env, &debt, true);
    if (debt * 100 < (double)GET(fair__config.turn_ns))
        return argv[0];
    return enif_schedule_nif(env, "sit_out", 0, sit_out, argc,
                             (ERL_NIF_TERM[]){
                                 argv[0],
                                 enif_make_ulong(env, (unsigned long)debt)});
}

/* Where a process's debt on this thread is written down.  The one that stood
 * there before is forgiven, but for the fraction of a percent that is too small
 * to charge at once: that is passed on, or very many callers of very short
 * calls would never pay. */
static struct fair__debt *debt_of(struct fair__thread *th, ERL_NIF_TERM pid,
                                  double turn)
{
    struct fair__debt *debt =
        &th->debts[((pid >> 4) * 0x9E3779B1u >> 8) % FAIR__DEBTORS];

    if (fair_unlikely(debt->pid != pid)) {
        debt->pid = pid;
        if (debt->ns * 100 >= turn)
            debt->ns = 0;
    }
    return debt;
}

/* The caller is charged.  What his turn could not pay he owes: he pays with his
 * next call, or, when it is more than a turn, he gets his result in a later
 * one. */
ERL_NIF_TERM fair__pay(struct fair__thread *th, ErlNifEnv *env,
                       const struct fair__nif *nif, ERL_NIF_TERM pid,
                       bool normal, double ns, ERL_NIF_TERM result)
{
    double turn = (double)GET(fair__config.turn_ns);

    if (fair_likely(normal)) {
        struct fair__debt *debt = debt_of(th, pid, turn);

        debt->ns += ns;
        if (fair_likely(debt->ns * 100 < turn))
            return result;
        fair__charge(env, &debt->ns, false);
        if (fair_likely(debt->ns < turn))
            return result;
        ns = debt->ns;
        debt->ns = 0;
    } else if (ns * 100 < turn) {
        return result;
    }
    if (!nif->yields
        || enif_has_pending_exception(env, NULL))
        return result;
    return enif_schedule_nif(env, nif->func->name, 0, sit_out, 2,
                             (ERL_NIF_TERM[]){
                                 result,
                                 enif_make_ulong(env, (unsigned long)ns)});
}
