/*
 * ask.c - what a task has its caller do: receive, send, call Erlang functions.
 *
 * No NIF can receive, link, or send to an alias or to another node.  The caller
 * can, which waits in fairnif:await/1: the task gives it a request and
 * continues with what came of it, as after any other wait.
 *
 *     fair_receive --> T_WAIT_CALLER --> {fairnif_asks, Object, Request, ...}
 *         ^                              receive ... end in await/1
 *         '------ answer, in a root <------ nif_answer <--'
 *
 * Request is Wanted, or [Outbox | Wanted] where something was sent.  Wanted is
 *
 *     Timeout                          fair_receive, ms, -1 for ever
 *     {Tag, Timeout}                   fair_receive_tagged
 *     {Module, Function, Arguments}    fair_apply
 *     sent                             nothing more
 *
 * What is sent does not pause the body.  It is in the outbox, the last first,
 * until the body asks, or its slice ends otherwise: fair__hand_out, in
 * task/slice.c.  So the outbox never outlives a slice.
 */
#include "wait/ask.h"

#include "task/debug.h"
#include "task/env.h"
#include "task/switch.h"
#include "term/hold.h"

enum { APPLY = 3 };             /* parts */

/* Does not return where the task has no caller to do it. */
static void must_have_caller(struct fair__task *t)
{
    if (fair_unlikely(!FAIR__TASKS || !t->kind->has_caller))
        fair__fail(t, "no_caller");
    fair__may_wait(t);
}

/* {To, Message}, or [From | Reply]. */
void fair__post(fair_task *pub, ERL_NIF_TERM to, ERL_NIF_TERM message,
                int reply)
{
    struct fair__task *t = fair__of(pub);
    ERL_NIF_TERM item;

    if (fair_unlikely(fair__used_away(t)))
        return;
    must_have_caller(t);
    fair__term_in(t, to);
    fair__term_in(t, message);
    item = reply ? enif_make_list_cell(pub->env, to, message)
        : enif_make_tuple2(pub->env, to, message);
    t->ask.outbox = enif_make_list_cell(pub->env, item,
                                        t->ask.outbox ? t->ask.outbox
                                        : enif_make_list(pub->env, 0));
}

int fair__ask(fair_task *pub, const ERL_NIF_TERM *request, unsigned parts,
              ERL_NIF_TERM *answer)
{
    struct fair__task *t = fair__of(pub);
    ERL_NIF_TERM wanted;
    unsigned root;

    if (fair_unlikely(fair__used_away(t))) {
        *answer = fair__atoms.undefined;     /* there may be no environment */
        return -EDEADLK;
    }
    must_have_caller(t);
    for (unsigned i = 0; i < parts; i++)
        fair__term_in(t, request[i]);
    wanted = parts == 1 ? request[0]
        : enif_make_tuple_from_array(pub->env, request, parts);
    root = fair__own_root(t, enif_make_list(pub->env, 0));
    t->ask.request = !t->ask.outbox ? wanted
        : enif_make_list_cell(pub->env, t->ask.outbox, wanted);
    t->ask.outbox = 0;
    t->ask.root = root;
    fair__wait_for(t, T_WAIT_CALLER);
    *answer = fair__term_out(t, t->hold.roots[root]);
    t->hold.roots_used = root;
    return !t->wait.timed_out ? 1 : parts == APPLY ? 0 : -ETIMEDOUT;
}
