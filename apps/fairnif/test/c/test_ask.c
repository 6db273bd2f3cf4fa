/*
 * test_ask.c - what bodies have their caller do: receive messages, send them,
 * call Erlang functions; in every mode, with whatever the body holds meanwhile.
 * A caller that dies, and requests that are changed, are in test_answer.c.
 */
#define FAIR_DEBUG              /* arguments are looked after, too */
#include "asks.h"

static fair_mutex mutex = FAIR_MUTEX_INIT;

/* -- bodies ---------------------------------------------------------------- */

/* collects(N) -> the next N messages */
static ERL_NIF_TERM collects(fair_task *t)
{
    unsigned list = fair_root_new(t, enif_make_list(fair_env(t), 0));
    ERL_NIF_TERM message;
    long n;

    if (!fair_get_long(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    publish(t);
    for (; n > 0 && fair_receive(t, 20000, &message) > 0; n--)
        fair_list_push(t, list, message);
    fair_list_reverse(t, list);
    return fair_root_get(t, list);
}

static void take(fair_task *t, unsigned list, const char *tag)
{
    ERL_NIF_TERM message;

    CHECK_NUMBERS(tag ? fair_receive_tagged(t, atom(t, tag), 20000, &message)
                  : fair_receive(t, 20000, &message), ==, 1);
    fair_list_push(t, list, message);
}

/* tagged(): messages with a tag first, then the others in their order */
static ERL_NIF_TERM tagged(fair_task *t)
{
    unsigned list = fair_root_new(t, enif_make_list(fair_env(t), 0));
    unsigned ref = fair_root_new(t, enif_make_ref(fair_env(t)));
    ERL_NIF_TERM message;

    tell_self(t, atom(t, "a"));
    tell_self(t, enif_make_tuple2(fair_env(t), atom(t, "x"), atom(t, "tag")));
    tell_self(t, enif_make_tuple2(fair_env(t), atom(t, "tag"), number(t, 1)));
    tell_self(t, atom(t, "b"));
    tell_self(t, enif_make_tuple3(fair_env(t), atom(t, "down"),
                                  fair_root_get(t, ref), atom(t, "why")));
    tell_self(t, atom(t, "tag"));
    take(t, list, "tag");
    take(t, list, "tag");
    CHECK_NUMBERS(fair_receive_tagged(t, atom(t, "tag"), 0, &message), ==,
                  -ETIMEDOUT);
    CHECK(is_atom(t, message, "timeout"));
    CHECK_NUMBERS(fair_receive_tagged(t, fair_root_get(t, ref), -1, &message), ==,
                  1);
    CHECK(enif_term_type(fair_env(t), message) == ERL_NIF_TERM_TYPE_TUPLE);
    for (int i = 0; i < 3; i++)
        take(t, list, NULL);
    fair_list_reverse(t, list);
    return fair_root_get(t, list);
}

/* applies(Arg): a call that returns, and one that raises */
static ERL_NIF_TERM applies(fair_task *t)
{
    ERL_NIF_TERM result, error;
    unsigned root;

    if (!postpone(t))
        return fair_enomem(t);
    CHECK(fair_apply(t, "erlang", "list_to_tuple",
                     enif_make_list1(fair_env(t),
                                     enif_make_list1(fair_env(t),
                                                     fair_arg(t, 0))),
                     &result) == 1);
    root = fair_root_new(t, result);
    CHECK(0 == fair_apply(t, "erlang", "raise",
                      enif_make_list3(fair_env(t), atom(t, "error"),
                                      fair_arg(t, 0),
                                      enif_make_list(fair_env(t), 0)),
                      &error));
    return enif_make_tuple2(fair_env(t), fair_root_get(t, root), error);
}

/* -- what is sent, and when ------------------------------------------------ */

enum point {
    AT_TICK, AT_RECEIVE, AT_APPLY, AT_SLEEP, AT_LOCK, AT_CALL, AT_MOVE, AT_RETURN,
    AT_RAISE, POINTS
};
static const char *const point_names[] = {
    "a tick", "a receive", "an apply", "a sleep", "a lock", "a call", "a move",
    "the return", "the raise"
};

static void send_now(fair_task *t, ERL_NIF_TERM to, const char *what)
{
    ErlNifEnv *env = enif_alloc_env();
    ErlNifPid pid;

    CHECK(enif_get_local_pid(fair_env(t), to, &pid));
    enif_send(fair_where(t) == FAIR_THREADED ? NULL : fair_env(t), &pid, env,
              enif_make_atom(env, what));
    enif_free_env(env);
}

static ErlNifPid call_to, holder_pid;

/* On a thread of the pool. */
static void send_from_call(void *unused)
{
    ErlNifEnv *env = enif_alloc_env();

    (void)unused;
    enif_send(NULL, &call_to, env, enif_make_atom(env, "then"));
    enif_free_env(env);
}

/* sends(To, Point): two messages and a reply, which are on their way once it has
 * passed the point, where it sends one itself. */
static ERL_NIF_TERM sends(fair_task *t)
{
    ERL_NIF_TERM answer;
    unsigned root;
    int at;

    if (!postpone(t) || !fair_get_int(t, fair_arg(t, 1), &at))
        return fair_badarg(t);
    root = fair_root_new(t, enif_make_list1(fair_env(t), fair_arg(t, 0)));
    fair_send(t, fair_arg(t, 0), atom(t, "first"));
    fair_send(t, fair_arg(t, 0),
              enif_make_list1(fair_env(t), fair_root_get(t, root)));
    fair_reply(t, enif_make_tuple2(fair_env(t), fair_arg(t, 0), number(t, 7)),
               atom(t, "reply"));
    fair_send(t, atom(t, "nobody_has_this_name"), atom(t, "lost"));
    switch (at) {
    case AT_TICK:
        fair_tick(t, 1000000000);
        break;
    case AT_RECEIVE:
        CHECK_NUMBERS(fair_receive(t, 0, &answer), ==, -ETIMEDOUT);
        break;
    case AT_APPLY:
        CHECK(fair_apply(t, "erlang", "list_to_tuple",
                         enif_make_list1(fair_env(t),
                                         enif_make_list(fair_env(t), 0)),
                         &answer) == 1);
        break;
    case AT_SLEEP:
        CHECK_NUMBERS(fair_sleep(t, 1), ==, 1);
        break;
    case AT_LOCK:
        /* The owner of the lock goes when what is sent is on its way. */
        fair_send(t, enif_make_pid(fair_env(t), &holder_pid), atom(t, "go"));
        fair_mutex_lock(t, &mutex);
        fair_mutex_unlock(t, &mutex);
        break;
    case AT_CALL:
        CHECK(enif_get_local_pid(fair_env(t), fair_arg(t, 0), &call_to));
        fair_offload(t, FAIR_THREADED, 0, send_from_call, NULL);
        return atom(t, "done");
    case AT_MOVE:
        fair_move(t, fair_where(t) == FAIR_DIRTY_IO ? FAIR_DIRTY_CPU
                  : FAIR_DIRTY_IO);
        if (fair_where(t) == FAIR_THREADED)
            fair_tick(t, 1000000000);
        break;
    case AT_RETURN:
        return fair_root_get(t, root);
    case AT_RAISE:
        return fair_raise(t, fair_root_get(t, root));
    default:
        return fair_badarg(t);
    }
    CHECK(enif_is_list(fair_env(t), fair_root_get(t, root)));
    send_now(t, fair_arg(t, 0), "then");
    return atom(t, "done");
}

/* holds(): the lock, until it gets a message */
static ERL_NIF_TERM holds(fair_task *t)
{
    ERL_NIF_TERM message;

    fair_mutex_lock(t, &mutex);
    publish(t);
    CHECK_NUMBERS(fair_receive(t, -1, &message), ==, 1);
    fair_mutex_unlock(t, &mutex);
    return atom(t, "held");
}

/* counts(N): N messages, one by one */
static ERL_NIF_TERM counts(fair_task *t)
{
    ERL_NIF_TERM message;
    long n, sum = 0, value;

    if (!fair_get_long(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (long i = 0; i < n; i++) {
        tell_self(t, enif_make_list1(fair_env(t), number(t, i)));
        CHECK_NUMBERS(fair_receive(t, -1, &message), ==, 1);
        CHECK(enif_get_list_cell(fair_env(t), message, &message, &(
                                     ERL_NIF_TERM){0}));
        CHECK(fair_get_long(t, message, &value));
        sum += value;
        fair_tick(t, 1);
    }
    return number(t, sum);
}

/* -- without a caller ------------------------------------------------------ */

static void uses(void *arg)
{
    fair_task *t = arg;
    ERL_NIF_TERM message = 0;

    if (t->env) {               /* there is none on a thread of the pool */
        CHECK(fair_receive(t, 0, &message) == -EDEADLK && message);
        CHECK(fair_receive_tagged(t, message, 0, &message) == -EDEADLK
              && message);
        CHECK(fair_apply(t, "erlang", "self", message, &message) == -EDEADLK
              && message);
    } else {
        for (unsigned i = 1; i <= 3; i++)
            CHECK(t->ops->ask(t, (ERL_NIF_TERM[3]){0}, i, &message)
                  == -EDEADLK && message);
    }
    fair_send(t, message, message);
    fair_reply(t, message, message);
}

/* away(): in a function given to fair_offload, in every way */
static ERL_NIF_TERM away(fair_task *t)
{
    fair_offload(t, FAIR_NORMAL, 0, uses, t);
    fair_offload(t, FAIR_DIRTY_CPU, 0, uses, t);
    fair_offload(t, FAIR_THREADED, 0, uses, t);
    return atom(t, "ok");
}

/* late(Term): walks a long list with something to be sent */
static ERL_NIF_TERM late(fair_task *t)
{
    fair_bytes bin;
    size_t length;
    char *chars;

    tell_self(t, atom(t, "a"));
    if (!fair_get_iolist(t, fair_arg(t, 0), &bin))
        return fair_badarg(t);
    tell_self(t, atom(t, "b"));
    if (!fair_get_string(t, fair_arg(t, 0), &chars, &length, FAIR_LATIN1))
        return fair_badarg(t);
    note("walked");
    CHECK(bin.size == length && !memcmp(bin.data, chars, length));
    fair_tick(t, 1);
    take(t, fair_root_new(t, enif_make_list(fair_env(t), 0)), "a");
    take(t, fair_root_new(t, enif_make_list(fair_env(t), 0)), "b");
    return number(t, (long)length);
}

/* gives_back(Term): its argument, when that was sent */
static ERL_NIF_TERM gives_back(fair_task *t)
{
    tell_self(t, fair_arg(t, 0));
    return fair_arg(t, 0);
}

/* sends_much(): a long list, at the end */
static ERL_NIF_TERM sends_much(fair_task *t)
{
    unsigned list = fair_root_new(t, enif_make_list(fair_env(t), 0));

    for (int i = 0; i < 50000; i++)
        fair_list_push(t, list, enif_make_tuple1(fair_env(t), number(t, i)));
    tell_self(t, fair_root_get(t, list));
    return atom(t, "ok");
}

static ErlNifFunc nifs[] = {
    AWAITED_MODES("serves", 2, serves),
    AWAITED_MODES("collects", 1, collects),
    AWAITED_MODES("waits", 1, waits),
    AWAITED_MODES("tagged", 0, tagged),
    AWAITED_MODES("applies", 1, applies),
    AWAITED_MODES("sends", 2, sends),
    AWAITED_MODES("holds", 0, holds),
    AWAITED_MODES("counts", 1, counts),
    AWAITED_MODES("away", 0, away),
    AWAITED_MODES("late", 1, late),
    AWAITED_MODES("gives_back", 1, gives_back),
    AWAITED_MODES("sends_much", 0, sends_much),
    FAIR_NIF("not_awaited", 1, waits, FAIR_AUTO),
    FAIR_NIF("not_awaited_sends", 1, gives_back, FAIR_DIRTY_CPU),
};

FAIR_NIF_INIT(test_ask, nifs, NULL, NULL, NULL)

/* -- messages -------------------------------------------------------------- */

/* Between any two of them the process may run, or not. */
static void serve(const char *name, int roots, bool runs)
{
    char args[64];
    vm_proc *p;
    ErlNifPid pid;

    snprintf(args, sizeof args, "{arg,[1,<<2>>]}, %d", roots);
    p = listener(name, args);
    pid = known;
    for (int i = 0; i < 24; i++) {
        static const size_t sizes[] = {1, 64, 65, 300};

        say_bytes(pid, sizes[i % 4], i);
        if (runs)
            vm_run(p, 2);
    }
    say(pid, "{b,\"c\"}");
    say(pid, "[]");
    say(pid, "stop");
    CHECK_TEXT(finished(p), "{{arg,[1,<<2>>]},[{b,[99]},[]],2580}");
}

#define TAGGED "[{tag,1},tag,a,{x,tag},b]"

/* Without pauses, with them, and while terms are looked after. */
TEST(all_modes, "a body receives messages in every mode, with all that it has; one "
     "with a tag comes first, the others in order, and none is taken for a term "
     "that was kept across a pause")
{
    static const int roots[] = {0, 5, 9, 10, 30};
    static const char *const names[] = {"serves", "tagged", "gives_back"};

    for (int round = 0; round < 3; round++) {
        node_set("pause_every_tick", round > 0);
        node_set("check_terms", round > 1);
        for (int i = 0; i < MODES && !check_failures(); i++) {
            for (int k = 0; k < 5; k++)
                serve(in_nth_mode("serves", i), roots[k], k != 1);
            CHECK_AWAIT(in_nth_mode("tagged", i), "", TAGGED);
            CHECK_AWAIT(in_nth_mode("gives_back", i), "{x,[1]}", "{x,[1]}");
        }
    }
    for (int i = 0; i < 3 * MODES; i++)
        CHECK_MISUSES(in_nth_mode(names[i % 3], i / 3), 0);
    after_all();
}

#ifndef VM_REAL
/* The heap does not move: the term is where it was before what was sent. */
TEST(checked_unmoved, "a result that was an argument is none that was kept, though "
     "the body paused to send")
{
    node_set("check_terms", 1);
    VM_WORSE(gc_every, 0);
    for (int i = 0; i < MODES; i++) {
        CHECK_AWAIT(in_nth_mode("gives_back", i), "{x,[1]}", "{x,[1]}");
        CHECK_MISUSES(in_nth_mode("gives_back", i), 0);
    }
    after_all();
}
#endif

TEST(in_time, "a receive's time ends it, not before")
{
    for (int i = 0; i < MODES; i++) {
        uint64_t begin = vm_now();

        CHECK_AWAIT(in_nth_mode("waits", i), "20", "{0,timeout}");
        CHECK_NUMBERS(vm_now() - begin, >=, 40 * 1000000);
        CHECK_AWAIT(in_nth_mode("waits", i), "0", "{0,timeout}");
    }
    after_all();
}

#ifdef VM_REAL
#define APPLIED "{{{x}},{error,{x}}}"
#else
#define APPLIED "{{erlang,list_to_tuple,[[{x}]]},{error,[error,{x},[]]}}"
#endif

TEST(applied, "what a body calls in its caller returns, or fails")
{
    for (int i = 0; i < MODES; i++)
        CHECK_AWAIT(in_nth_mode("applies", i), "{x}", APPLIED);
    after_all();
}

TEST(many, "a body that receives very many messages leaves nothing of them")
{
    static const struct {
        int mode;
        const char *n, *sum;
    } runs[] = {
        {0, "3000", "4498500"}, {1, "10000", "49995000"},
        {2, "3000", "4498500"}, {5, "3000", "4498500"},
        {6, "10000", "49995000"},
    };

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        CHECK_AWAIT(in_nth_mode("counts", runs[i].mode), runs[i].n, runs[i].sum);
    after_all();
}

/* -- what is sent ---------------------------------------------------------- */

static void send_at(int mode, enum point at, const char *should)
{
    vm_proc *to = listener("collects_auto", at == AT_RETURN || at == AT_RAISE
                           ? "3" : "4"), *p = vm_spawn(), *holder = NULL;
    ErlNifPid pid = known;
    vm_term args[2];
    const char *is;

    if (at == AT_LOCK) {
        holder = listener("holds_yielding", "");
        holder_pid = known;
    }
    args[0] = enif_make_pid(vm_env(p), &pid);
    args[1] = enif_make_int(vm_env(p), at);
    node_await(p, in_nth_mode("sends", mode), 2, args);
    for (int i = 0; holder && i < 20000 && vm_run(holder, 1) != VM_DONE; i++)
        vm_run(p, 1);
    if (holder)
        CHECK_TEXT(finished(holder), "held");
    vm_finish(p);
    is = outcome(p);
    check_that(at == AT_RAISE ? strstr(is, "error:[") == is
               : at == AT_RETURN ? is[0] == '[' : !strcmp(is, "done"),
               __FILE__, __LINE__, "%s, at %s: %s",
               in_nth_mode("sends", mode), point_names[at], is);
    vm_free(p);
    is = finished(to);
    /* The list has a pid. */
    check_that(strstr(is, "[first,[") == is && strstr(is, should)
               && !strcmp(strstr(is, should), should), __FILE__, __LINE__,
               "%s, at %s: there came %s", in_nth_mode("sends", mode),
               point_names[at], is);
}

TEST(sent, "what is sent comes in its order, before anything that may take long")
{
    node_set("pause_every_tick", 1);
    for (int i = 0; i < MODES; i++)
        for (int at = 0; at < POINTS && !check_failures(); at++)
            send_at(i, (enum point)at, at == AT_RETURN || at == AT_RAISE
                    ? "],{7,reply}]" : "],{7,reply},then]");
    after_all();
}

#ifndef VM_REAL
/* Until the call has a value that asks for something. */
static bool asks_first(vm_proc *p)
{
    while (vm_state(p) == VM_READY)
        vm_step(p);
    return begins(p, "{fairnif_asks,");
}

TEST(not_shown, "what the runtime has of a list while it walks it is in no value "
     "that its caller could change")
{
    node_set("pause_every_tick", 1);
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = vm_spawn();
        vm_term list = vm_byte_list(vm_env(p), 2000, VM_NIL);

        clear_notes();
        if (i < MODES - 1) {
            vm_call_array(p, lib, in_nth_mode("late", i), 1, &list);
            CHECK(asks_first(p));
            CHECK(is_noted("walked"));
            node_await_term(p, vm_result(p));
        } else {
            node_await(p, in_nth_mode("late", i), 1, &list);
        }
        CHECK_TEXT(finished(p), "2000");
    }
    after_all();
}

TEST(much, "what a threaded body sends is copied on no normal scheduler where "
     "it is much")
{
    vm_proc *p = spawn_await("sends_much_threaded", "");

    vm_finish(p);
    CHECK_TEXT(outcome(p), "ok");
    CHECK(strchr(vm_kinds(p), 'c') != NULL);
    CHECK_NUMBERS(vm_messages(p), ==, 1);
    vm_free(p);
    after_all();
}

static void say_much(ErlNifPid to)
{
    ErlNifEnv *env = enif_alloc_env();

    enif_send(NULL, &to, env, vm_byte_list(env, 10000, VM_NIL));
    enif_free_env(env);
}

/* To where its caller's answer is queued for a dirty scheduler. */
static vm_proc *answered_much(void)
{
    vm_proc *p = listener("serves_threaded", "{a}, 2");

    say_much(known);
    while (vm_state(p) == VM_WAITING || vm_next_kind(p) == VM_NORMAL)
        vm_step(p);
    return p;
}

TEST(much_answered, "a threaded body gets a long message, copied on a dirty "
     "scheduler, or its caller dies before")
{
    vm_proc *p = answered_much();

    say(pid_of(p), "stop");
    vm_finish(p);
    CHECK(vm_state(p) == VM_DONE);
    vm_free(p);
    for (int kind = 1; kind <= 3; kind++) {
        VM_WORSE(dead_heaps_on, kind);
        vm_free(answered_much());
        ALL_OVER();
    }
    after_all();
}

#endif

TEST(killed_at_work, "a caller that dies while its body receives and sends all the "
     "time leaves nothing")
{
    for (int i = 0; i < MODES; i++)
        for (int ms = 0; ms < 6; ms++) {
            vm_proc *p = spawn_await(in_nth_mode("counts", i), "100000000");

            vm_run(p, ms);
            vm_free(p);
            p = spawn_await(in_nth_mode("sends_much", i), "");
            vm_run(p, ms);
            vm_free(p);
        }
    after_all();
}

/* -- where it cannot be ---------------------------------------------------- */

TEST(plain, "a function that is not awaited can neither receive nor send")
{
    CHECK_AWAIT("not_awaited", "0",
                "error:{fairnif,{not_awaited,{test_ask,not_awaited,1}}}");
    CHECK_AWAIT("not_awaited_sends", "0",
                "error:{fairnif,{not_awaited,{test_ask,not_awaited_sends,1}}}");
    after_all();
}

TEST(used_away, "what fair_offload was given gets no messages, and sends none")
{
    for (int i = 0; i < MODES; i++) {
        const char *name = in_nth_mode("away", i);

        CHECK_AWAIT(name, "", "ok");
        CHECK_MISUSES(name, 15);
    }
    after_all();
}
