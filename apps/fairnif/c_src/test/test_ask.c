/*
 * test_ask.c - what bodies have their caller do: receive messages, send them,
 * call Erlang functions; in every mode, with whatever the body holds meanwhile,
 * and with a caller that dies at any point.
 */
#define FAIR_DEBUG              /* arguments are looked after, too */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "unwind.h"

/* -- what the bodies share ------------------------------------------------ */

static long deferred, undone;
static ErlNifPid known;         /* of who told us last */
static int is_known;
static fair_mutex mutex = FAIR_MUTEX_INIT;

static void undo(void *arg)
{
    free(arg);
    __atomic_add_fetch(&undone, 1, __ATOMIC_RELEASE);
}

static bool postpone(fair_task *t)
{
    void *arg = malloc(8);

    __atomic_add_fetch(&deferred, 1, __ATOMIC_RELAXED);
    return fair_defer(t, undo, arg);
}

static bool all_undone(void)
{
    return __atomic_load_n(&undone, __ATOMIC_ACQUIRE)
        == __atomic_load_n(&deferred, __ATOMIC_RELAXED);
}

static void publish(fair_task *t)
{
    fair_caller(t, &known);
    __atomic_store_n(&is_known, 1, __ATOMIC_RELEASE);
}

static ERL_NIF_TERM atom(fair_task *t, const char *name)
{
    return enif_make_atom(fair_env(t), name);
}

static bool is_atom(fair_task *t, ERL_NIF_TERM term, const char *name)
{
    return enif_is_identical(term, atom(t, name));
}

static ERL_NIF_TERM number(fair_task *t, long n)
{
    return enif_make_long(fair_env(t), n);
}

/* -- bodies ---------------------------------------------------------------- */

/* All of the bytes of what was received are its number. */
static bool is_intact(const fair_bin *bin)
{
    for (size_t i = 1; i < bin->size; i++)
        if (bin->data[i] != bin->data[0])
            return false;
    return true;
}

/* serves(Arg, Roots) -> {Arg, Messages, Bytes}: receives until it is `stop`.
 * Binaries are in no root, but kept as fair_bins. */
static ERL_NIF_TERM serves(fair_task *t)
{
    enum { BINS = 64 };
    unsigned char frame[300];
    fair_bin bins[BINS];
    unsigned count = 0, list, first;
    long roots, bytes = 0;
    ERL_NIF_TERM message;

    memset(frame, 0x5C, sizeof frame);
    if (!postpone(t) || !fair_get_long(t, fair_arg(t, 1), &roots))
        return fair_badarg(t);
    list = first = fair_root(t, enif_make_list(fair_env(t), 0));
    for (long i = 0; i < roots; i++)
        first = fair_root(t, enif_make_tuple2(fair_env(t), fair_arg(t, 0),
                                              number(t, i)));
    publish(t);
    while (fair_receive(t, -1, &message) && !is_atom(t, message, "stop")) {
        if (count < BINS && fair_get_bin(t, message, &bins[count]))
            count++;
        else
            fair_list_push(t, list, message);
        fair_tick(t, 1);
    }
    for (size_t i = 0; i < sizeof frame; i++)
        CHECK(frame[i] == 0x5C);
    for (unsigned i = 0; i < count; i++) {
        CHECK(is_intact(&bins[i]));
        bytes += (long)bins[i].size;
    }
    for (; first > list; first--)
        CHECK(enif_is_identical(
            fair_kept(t, first),
            enif_make_tuple2(fair_env(t), fair_arg(t, 0),
                             number(t, (long)(first - list - 1)))));
    CHECK(fair_list_reverse(t, list));
    return enif_make_tuple3(fair_env(t), fair_arg(t, 0), fair_kept(t, list),
                            number(t, bytes));
}

/* collects(N) -> the next N messages */
static ERL_NIF_TERM collects(fair_task *t)
{
    unsigned list = fair_root(t, enif_make_list(fair_env(t), 0));
    ERL_NIF_TERM message;
    long n;

    if (!fair_get_long(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    publish(t);
    for (; n > 0 && fair_receive(t, 20000, &message); n--)
        fair_list_push(t, list, message);
    fair_list_reverse(t, list);
    return fair_kept(t, list);
}

/* waits(Ms) -> {Outcome, Term} */
static ERL_NIF_TERM waits(fair_task *t)
{
    ERL_NIF_TERM message;
    int ms, got;

    if (!postpone(t) || !fair_get_int(t, fair_arg(t, 0), &ms))
        return fair_badarg(t);
    got = fair_receive(t, ms, &message);
    CHECK(got == fair_receive_tagged(t, fair_arg(t, 0), ms, &message));
    return enif_make_tuple2(fair_env(t), number(t, got), message);
}

static void tell_self(fair_task *t, ERL_NIF_TERM message)
{
    fair_send(t, fair_self(t), message);
}

static void take(fair_task *t, unsigned list, const char *tag)
{
    ERL_NIF_TERM message;

    CHECK(tag ? fair_receive_tagged(t, atom(t, tag), 20000, &message)
          : fair_receive(t, 20000, &message));
    fair_list_push(t, list, message);
}

/* tagged(): messages with a tag first, then the others in their order */
static ERL_NIF_TERM tagged(fair_task *t)
{
    unsigned list = fair_root(t, enif_make_list(fair_env(t), 0));
    unsigned ref = fair_root(t, enif_make_ref(fair_env(t)));
    ERL_NIF_TERM message;

    tell_self(t, atom(t, "a"));
    tell_self(t, enif_make_tuple2(fair_env(t), atom(t, "x"), atom(t, "tag")));
    tell_self(t, enif_make_tuple2(fair_env(t), atom(t, "tag"), number(t, 1)));
    tell_self(t, atom(t, "b"));
    tell_self(t, enif_make_tuple3(fair_env(t), atom(t, "down"),
                                  fair_kept(t, ref), atom(t, "why")));
    tell_self(t, atom(t, "tag"));
    take(t, list, "tag");
    take(t, list, "tag");
    CHECK(!fair_receive_tagged(t, atom(t, "tag"), 0, &message));
    CHECK(is_atom(t, message, "timeout"));
    CHECK(fair_receive_tagged(t, fair_kept(t, ref), -1, &message));
    CHECK(enif_term_type(fair_env(t), message) == ERL_NIF_TERM_TYPE_TUPLE);
    for (int i = 0; i < 3; i++)
        take(t, list, NULL);
    fair_list_reverse(t, list);
    return fair_kept(t, list);
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
                     &result));
    root = fair_root(t, result);
    CHECK(!fair_apply(t, "erlang", "raise",
                      enif_make_list3(fair_env(t), atom(t, "error"),
                                      fair_arg(t, 0),
                                      enif_make_list(fair_env(t), 0)),
                      &error));
    return enif_make_tuple2(fair_env(t), fair_kept(t, root), error);
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
    root = fair_root(t, enif_make_list1(fair_env(t), fair_arg(t, 0)));
    fair_send(t, fair_arg(t, 0), atom(t, "first"));
    fair_send(t, fair_arg(t, 0),
              enif_make_list1(fair_env(t), fair_kept(t, root)));
    fair_reply(t, enif_make_tuple2(fair_env(t), fair_arg(t, 0), number(t, 7)),
               atom(t, "reply"));
    fair_send(t, atom(t, "nobody_has_this_name"), atom(t, "lost"));
    switch (at) {
    case AT_TICK:
        fair_tick(t, 1000000000);
        break;
    case AT_RECEIVE:
        CHECK(!fair_receive(t, 0, &answer));
        break;
    case AT_APPLY:
        CHECK(fair_apply(t, "erlang", "list_to_tuple",
                         enif_make_list1(fair_env(t),
                                         enif_make_list(fair_env(t), 0)),
                         &answer));
        break;
    case AT_SLEEP:
        CHECK(fair_wait(t, -1, 0, 1) == 0);
        break;
    case AT_LOCK:
        /* Who has the lock goes when what is sent is on its way. */
        fair_send(t, enif_make_pid(fair_env(t), &holder_pid), atom(t, "go"));
        fair_mutex_lock(t, &mutex);
        fair_mutex_unlock(t, &mutex);
        break;
    case AT_CALL:
        CHECK(enif_get_local_pid(fair_env(t), fair_arg(t, 0), &call_to));
        fair_call(t, FAIR_THREADED, 0, send_from_call, NULL);
        return atom(t, "done");
    case AT_MOVE:
        fair_move(t, fair_where(t) == FAIR_DIRTY_IO ? FAIR_DIRTY_CPU
                  : FAIR_DIRTY_IO);
        if (fair_where(t) == FAIR_THREADED)
            fair_tick(t, 1000000000);
        break;
    case AT_RETURN:
        return fair_kept(t, root);
    case AT_RAISE:
        return fair_raise(t, fair_kept(t, root));
    default:
        return fair_badarg(t);
    }
    CHECK(enif_is_list(fair_env(t), fair_kept(t, root)));
    send_now(t, fair_arg(t, 0), "then");
    return atom(t, "done");
}

/* holds(): the lock, until it is told to go */
static ERL_NIF_TERM holds(fair_task *t)
{
    ERL_NIF_TERM message;

    fair_mutex_lock(t, &mutex);
    publish(t);
    CHECK(fair_receive(t, -1, &message));
    fair_mutex_unlock(t, &mutex);
    return atom(t, "held");
}

/* talks(Term, Binary): a little of everything, with its own process */
static ERL_NIF_TERM talks(fair_task *t)
{
    unsigned list = fair_root(t, enif_make_list(fair_env(t), 0));
    fair_bin arg, bin;
    ERL_NIF_TERM message;

    if (!postpone(t) || !fair_get_bin(t, fair_arg(t, 1), &arg))
        return fair_badarg(t);
    for (int i = 0; i < 3; i++) {
        tell_self(t, fair_arg(t, 1));
        tell_self(t, fair_arg(t, 0));
        CHECK(fair_receive(t, -1, &message));
        if (!fair_get_bin(t, message, &bin))
            return fair_badarg(t);
        CHECK(bin.size == arg.size && !memcmp(bin.data, arg.data, arg.size));
        CHECK(fair_receive_tagged(t, fair_arg(t, 0), -1, &message));
        fair_list_push(t, list, message);
        for (int k = 0; i == 1 && k < 14; k++)
            fair_root(t, message);
        fair_tick(t, 1);
    }
    CHECK(fair_apply(t, "erlang", "list_to_tuple",
                     enif_make_list1(fair_env(t), fair_kept(t, list)),
                     &message));
    CHECK(!fair_receive(t, 0, &message));
    CHECK(bin.size == arg.size && !memcmp(bin.data, arg.data, arg.size));
    tell_self(t, atom(t, "bye"));
    return fair_kept(t, list);
}

/* counts(N): so many messages, one by one */
static ERL_NIF_TERM counts(fair_task *t)
{
    ERL_NIF_TERM message;
    long n, sum = 0, value;

    if (!fair_get_long(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (long i = 0; i < n; i++) {
        tell_self(t, enif_make_list1(fair_env(t), number(t, i)));
        CHECK(fair_receive(t, -1, &message));
        CHECK(enif_get_list_cell(fair_env(t), message, &message, &(
                                     ERL_NIF_TERM){0}));
        CHECK(fair_get_long(t, message, &value));
        sum += value;
        fair_tick(t, 1);
    }
    return number(t, sum);
}

/* unwinds(Any): frees what it has itself, wherever it is left */
static ERL_NIF_TERM unwinds(fair_task *t)
{
    char *own = malloc(100);
    ERL_NIF_TERM message;

    __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    fair_root(t, atom(t, "root"));
    tell_self(t, atom(t, "hello"));
    fair_tick(t, 1);
    if (!fair_cancelled(t) && fair_receive(t, -1, &message))
        CHECK(is_atom(t, message, "hello"));
    if (fair_cancelled(t)) {
        tell_self(t, atom(t, "lost"));
        CHECK(!fair_receive(t, -1, &message));
        CHECK(!fair_apply(t, "erlang", "self",
                          enif_make_list(t->env, 0), &message));
    }
    tell_self(t, atom(t, "bye"));
    free(own);
    note("cleaned");
    return atom(t, "ok");
}

/* -- where nobody is there ------------------------------------------------- */

static void uses(void *arg)
{
    fair_task *t = arg;
    ERL_NIF_TERM message = 0;

    if (t->env) {               /* there is none on a thread of the pool */
        CHECK(!fair_receive(t, 0, &message) && message);
        CHECK(!fair_receive_tagged(t, message, 0, &message) && message);
        CHECK(!fair_apply(t, "erlang", "self", message, &message) && message);
    } else {
        for (unsigned i = 1; i <= 3; i++)
            CHECK(!t->ops->ask(t, (ERL_NIF_TERM[3]){0}, i, &message)
                  && message);
    }
    fair_send(t, message, message);
    fair_reply(t, message, message);
}

/* away(): in a function given to fair_call, in every way */
static ERL_NIF_TERM away(fair_task *t)
{
    fair_call(t, FAIR_NORMAL, 0, uses, t);
    fair_call(t, FAIR_DIRTY_CPU, 0, uses, t);
    fair_call(t, FAIR_THREADED, 0, uses, t);
    return atom(t, "ok");
}

/* late(Term): walks a long list with something to be sent */
static ERL_NIF_TERM late(fair_task *t)
{
    fair_bin bin;
    size_t length;
    char *chars;

    tell_self(t, atom(t, "a"));
    if (!fair_get_iolist(t, fair_arg(t, 0), &bin))
        return fair_badarg(t);
    tell_self(t, atom(t, "b"));
    if (!fair_get_string(t, fair_arg(t, 0), &chars, &length))
        return fair_badarg(t);
    note("walked");
    CHECK(bin.size == length && !memcmp(bin.data, chars, length));
    fair_tick(t, 1);
    take(t, fair_root(t, enif_make_list(fair_env(t), 0)), "a");
    take(t, fair_root(t, enif_make_list(fair_env(t), 0)), "b");
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
    unsigned list = fair_root(t, enif_make_list(fair_env(t), 0));

    for (int i = 0; i < 50000; i++)
        fair_list_push(t, list, enif_make_tuple1(fair_env(t), number(t, i)));
    tell_self(t, fair_kept(t, list));
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
    AWAITED_MODES("talks", 2, talks),
    AWAITED_MODES("counts", 1, counts),
    AWAITED_MODES("away", 0, away),
    AWAITED_MODES("late", 1, late),
    AWAITED_MODES("gives_back", 1, gives_back),
    AWAITED_MODES("sends_much", 0, sends_much),
    UNWINDING("unwinds", unwinds, FAIR_AWAITED),
    FAIR_NIF("not_awaited", 1, waits, FAIR_AUTO),
    FAIR_NIF("not_awaited_sends", 1, gives_back, FAIR_DIRTY_CPU),
};

FAIR_NIF_INIT(test_ask, nifs, NULL, NULL, NULL, NULL)

/* -- calls ----------------------------------------------------------------- */

/* A call that has told who it is, and gets messages from now on. */
static vm_proc *listener(const char *name, const char *args)
{
    vm_proc *p;

    is_known = 0;
    p = spawn_await(name, args);
    for (int i = 0; i < 20000
         && !__atomic_load_n(&is_known, __ATOMIC_ACQUIRE); i++)
        vm_run(p, 1);
    CHECK(is_known);
    return p;
}

static void say(ErlNifPid to, const char *text)
{
    ErlNifEnv *env = enif_alloc_env();

    enif_send(NULL, &to, env, vm_parse(env, text));
    enif_free_env(env);
}

/* A binary of so many bytes, all the same. */
static void say_bytes(ErlNifPid to, size_t size, int byte)
{
    ErlNifEnv *env = enif_alloc_env();
    unsigned char bytes[500];

    memset(bytes, byte, sizeof bytes);
    enif_send(NULL, &to, env, vm_binary(env, bytes, size));
    enif_free_env(env);
}

static vm_proc *spawn_talks(const char *name, size_t size)
{
    vm_proc *p = vm_spawn();
    unsigned char bytes[300] = {0};
    vm_term args[2];

    bytes[size - 1] = 77;
    args[0] = vm_parse(vm_env(p), "{a,[1]}");
    args[1] = vm_binary(vm_env(p), bytes, size);
    node_await(p, name, 2, args);
    return p;
}
#define TALKED "[{a,[1]},{a,[1]},{a,[1]}]"

static void after_all(void)
{
    EVENTUALLY(all_undone());
    EVENTUALLY(node_stacks() == 0);
}

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

TEST(all_modes, "a body receives messages in every mode, with all that it has")
{
    for (int ticks = 0; ticks < 2; ticks++) {
        node_set("pause_every_tick", (uint64_t)ticks);
        for (int i = 0; i < MODES && !check_failures(); i++) {
            serve(in_nth_mode("serves", i), 0, true);
            serve(in_nth_mode("serves", i), 5, false);
            serve(in_nth_mode("serves", i), 9, true);
            serve(in_nth_mode("serves", i), 10, true);
            serve(in_nth_mode("serves", i), 30, true);
        }
    }
    after_all();
}

TEST(checked, "no term that was received, and none that was sent, is taken for one "
     "that was kept across a pause")
{
    node_set("check_terms", 1);
    for (int i = 0; i < MODES; i++) {
        serve(in_nth_mode("serves", i), 12, false);
        CHECK_TEXT(finished(spawn_await(in_nth_mode("tagged", i), "")),
                   "[{tag,1},tag,a,{x,tag},b]");
        CHECK_TEXT(finished(spawn_await(in_nth_mode("gives_back", i),
                                        "{x,[1]}")), "{x,[1]}");
        CHECK_NUMBERS(node_counter(in_nth_mode("serves", i), "misuses"), ==, 0);
        CHECK_NUMBERS(node_counter(in_nth_mode("tagged", i), "misuses"), ==, 0);
        CHECK_NUMBERS(node_counter(in_nth_mode("gives_back", i), "misuses"),
                      ==, 0);
    }
    node_set("check_terms", 0);
    after_all();
}

#ifndef VM_REAL
/* The heap does not move: the term is where it was before what was sent. */
TEST(checked_unmoved, "a result that was an argument is none that was kept, though "
     "the body paused to send")
{
    node_set("check_terms", 1);
    vm_options.gc_every = 0;
    for (int i = 0; i < MODES; i++) {
        CHECK_TEXT(finished(spawn_await(in_nth_mode("gives_back", i),
                                        "{x,[1]}")), "{x,[1]}");
        CHECK_NUMBERS(node_counter(in_nth_mode("gives_back", i), "misuses"),
                      ==, 0);
    }
    after_all();
}
#endif

TEST(in_time, "a receive's time ends it, not before")
{
    for (int i = 0; i < MODES; i++) {
        uint64_t begin = vm_now();

        CHECK_TEXT(finished(spawn_await(in_nth_mode("waits", i), "20")),
                   "{0,timeout}");
        CHECK_NUMBERS(vm_now() - begin, >=, 40 * 1000000);
        CHECK_TEXT(finished(spawn_await(in_nth_mode("waits", i), "0")),
                   "{0,timeout}");
    }
    after_all();
}

TEST(with_tag, "a message with a tag comes first, and the others stay in order")
{
    for (int ticks = 0; ticks < 2; ticks++) {
        node_set("pause_every_tick", (uint64_t)ticks);
        for (int i = 0; i < MODES; i++)
            CHECK_TEXT(finished(spawn_await(in_nth_mode("tagged", i), "")),
                       "[{tag,1},tag,a,{x,tag},b]");
    }
    after_all();
}

TEST(applied, "what a body calls in its caller returns, or fails")
{
    for (int i = 0; i < MODES; i++)
#ifdef VM_REAL
        CHECK_TEXT(finished(spawn_await(in_nth_mode("applies", i), "{x}")),
                   "{{{x}},{error,{x}}}");
#else
        CHECK_TEXT(finished(spawn_await(in_nth_mode("applies", i), "{x}")),
                   "{{erlang,list_to_tuple,[[{x}]]},{error,[error,{x},[]]}}");
#endif
    after_all();
}

TEST(talking, "a body receives, sends and calls in turn, with binaries of all sizes")
{
    for (int ticks = 0; ticks < 2; ticks++) {
        node_set("pause_every_tick", (uint64_t)ticks);
        for (int i = 0; i < MODES; i++) {
            CHECK_TEXT(finished(spawn_talks(in_nth_mode("talks", i), 20)),
                       TALKED);
            CHECK_TEXT(finished(spawn_talks(in_nth_mode("talks", i), 200)),
                       TALKED);
        }
    }
    after_all();
}

TEST(many, "a body that receives very many messages leaves nothing of them")
{
    static const struct {
        int mode;
        const char *n, *sum;
    } runs[] = {
        {0, "3000", "4498500"}, {1, "100000", "4999950000"},
        {2, "3000", "4498500"}, {5, "3000", "4498500"},
        {6, "100000", "4999950000"},
    };

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        vm_proc *p = spawn_await(in_nth_mode("counts", runs[i].mode),
                                 runs[i].n);

        vm_finish(p);
        CHECK_TEXT(outcome(p), runs[i].sum);
        vm_free(p);
    }
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
static bool begins(vm_proc *p, const char *text)
{
    return !strncmp(outcome(p), text, strlen(text));
}

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
        vm_options.dead_heaps_on = kind;
        vm_free(answered_much());
        EVENTUALLY(strcmp(node_leftovers(), "") == 0);
    }
    after_all();
}

/* -- the caller dies ------------------------------------------------------- */

/* So many slices, each when it can come. */
static bool steps(vm_proc *p, int n)
{
    for (int i = 0; i < n; i++) {
        enum vm_state state = vm_state(p);

        if (state != VM_READY && state != VM_WAITING)
            return false;
        for (int k = 0; k < 20 && vm_step(p) == VM_WAITING
             && state == VM_WAITING; k++)
            usleep(50);
    }
    return true;
}

static void kill_each(const char *name, vm_proc *(*start)(const char *),
                      int threaded)
{
    bool alive = true;

    for (int n = 0; alive && n < 200 && !check_failures(); n++) {
        vm_proc *p = start(name);

        alive = steps(p, n);
        if (threaded && n % 3 == 0)
            usleep(200);
        vm_kill(p);
        vm_free(p);
        EVENTUALLY(all_undone());
        EVENTUALLY(node_stacks() == 0);
        EVENTUALLY(strcmp(node_leftovers(), "") == 0);
        check_that(!check_failures(), __FILE__, __LINE__, "%s, killed after %d "
                   "slices", name, n);
    }
    CHECK(!alive);
}

static vm_proc *start_talks(const char *name)
{
    return spawn_talks(name, 200);
}

TEST(killed, "a caller that dies at any point of asking leaves nothing")
{
    for (int kind = 1; kind <= 3; kind++) {
        vm_options.dead_heaps_on = kind;
        node_set("pause_every_tick", kind == 2);
        for (int i = 0; i < MODES; i++)
            kill_each(in_nth_mode("talks", i), start_talks, i == 6);
    }
}

static vm_proc *start_unwinds(const char *name)
{
    return spawn_await(name, "[]");
}

TEST(unwound, "a body that cleans up does so once wherever its caller dies, also "
     "after it has returned, when what it sent last is not yet sent")
{
    for (int kind = 1; kind <= 3; kind++) {
        vm_options.dead_heaps_on = kind;
        node_set("pause_every_tick", kind == 2);
        for (int i = 0; i < UNWINDING_MODES; i++) {
            long before = rounds;
            size_t cleaned = 0;

            clear_notes();
            kill_each(named("unwinds", i), start_unwinds, i == THREADED);
            for (const char *at = notes(); (at = strstr(at, "cleaned")); at++)
                cleaned++;
            CHECK_NUMBERS(cleaned, ==, rounds - before);
        }
    }
}

TEST(killed_waiting, "a caller that dies while its body waits for a message leaves "
     "nothing, however much the body had received")
{
    for (int i = 0; i < MODES; i++) {
        for (int n = 0; n < 3; n++) {
            vm_proc *p = listener(in_nth_mode("serves", i), "{a}, 15");

            for (int k = 0; k < n; k++)
                say_bytes(known, 200, k);
            vm_run(p, 2);
            vm_free(p);
            EVENTUALLY(all_undone());
            EVENTUALLY(strcmp(node_leftovers(), "") == 0);
        }
    }
    after_all();
}

/* -- memory ---------------------------------------------------------------- */

/* The nth allocation fails, and with `on` those after it; true when there
 * were so many. */
static bool without(const char *name, vm_proc *(*start)(const char *),
                    const char *should, long n, bool on)
{
    vm_proc *p = start(name);
    const char *is;
    bool failed;

    vm_fail(VM_F_MEMORY | VM_F_THREAD, n, on);
    vm_run(p, 20000);
    failed = vm_failed();
    vm_fail(0, 0, false);
    is = outcome(p);
    check_that(!strcmp(is, should) || !strcmp(is, "error:enomem")
               || strstr(is, "error:{fairnif,{enomem,") == is,
               __FILE__, __LINE__, "%s when call %ld%s for memory fails: %s",
               name, n, on ? " and all after it" : "", is);
    vm_free(p);
    EVENTUALLY(all_undone());
    EVENTUALLY(strcmp(node_leftovers(), "") == 0);
    return failed;
}

TEST(memory, "a body that receives and sends when memory or threads run out ends "
     "with what it should or with enomem")
{
    for (int on = 0; on < 2; on++) {
        for (int i = 0; i < MODES; i++)
            for (long n = 1; n < 500 && !check_failures()
                 && without(in_nth_mode("talks", i), start_talks, TALKED, n,
                            on); n++)
                ;
        for (int i = 0; i < UNWINDING_MODES; i++)
            for (long n = 1; n < 500 && !check_failures()
                 && without(named("unwinds", i), start_unwinds, "ok", n, on);
                 n++)
                ;
    }
    after_all();
}

/* -- the value that asks --------------------------------------------------- */

static const char *call_runtime(vm_proc *p, const char *name, int argc,
                                const vm_term argv[])
{
    node_call(p, name, argc, argv);
    vm_finish(p);
    return outcome(p);
}

static bool has_one_that_asks(void)
{
    char text[1024];

    return strstr(node_tasks(text, sizeof text), "caller") != NULL;
}

/* A threaded call's value is pending until then. */
static bool until_asks(vm_proc *p)
{
    ErlNifEnv *kept = enif_alloc_env();
    vm_term pending = enif_make_copy(kept, vm_result(p)), argv[2];

    if (begins(p, "{fairnif_pending,")) {
        EVENTUALLY(has_one_that_asks());
        argv[0] = enif_make_copy(vm_env(p), pending);
        argv[1] = enif_make_ref(vm_env(p));
        call_runtime(p, "nif_await", 2, argv);
    }
    enif_free_env(kept);
    return begins(p, "{fairnif_asks,");
}

static vm_proc *that_asks(const char *name, const char *args)
{
    vm_proc *p = spawn_call(name, args);

    vm_finish(p);
    CHECK(until_asks(p));
    return p;
}

/* nif_answer(Asks, 1, Answer) */
static const char *answer(vm_proc *p, vm_term asks, const char *text)
{
    vm_term argv[3];

    argv[0] = enif_make_copy(vm_env(p), asks);
    argv[1] = enif_make_int(vm_env(p), 1);
    argv[2] = vm_parse(vm_env(p), text);
    return call_runtime(p, "nif_answer", 3, argv);
}

static const char *asked(vm_proc *p, vm_term asks)
{
    vm_term argv[2];

    argv[0] = enif_make_copy(vm_env(p), asks);
    argv[1] = enif_make_atom(vm_env(p), "caller");
    return call_runtime(p, "nif_asked", 2, argv);
}

#define BEFORE "error:{fairnif,awaited_before}"
#define NOT_PENDING "error:{fairnif,not_pending}"
#define NOT_OWNER "error:{fairnif,not_owner}"

TEST(stale, "a request is answered once, and then the next one is")
{
    for (int i = 0; i < MODES; i++) {
        ErlNifEnv *kept = enif_alloc_env();
        vm_proc *p = that_asks(in_nth_mode("serves", i), "{a}, 3");
        vm_term first, second;

        first = enif_make_copy(kept, vm_result(p));
        CHECK_TEXT(asked(p, first), "-1");
        answer(p, first, "{one}");
        vm_gc(p);
        CHECK(until_asks(p));
        second = enif_make_copy(kept, vm_result(p));
        CHECK_TEXT(answer(p, first, "{lost}"), BEFORE);
        CHECK_TEXT(asked(p, first), BEFORE);
        CHECK_TEXT(asked(p, second), "-1");
        node_await_term(p, enif_make_copy(vm_env(p), second));
        say(pid_of(p), "stop");
        vm_finish(p);
        CHECK_TEXT(outcome(p), "{{a},[{one}],0}");
        CHECK_TEXT(answer(p, second, "{lost}"), BEFORE);
        vm_free(p);
        enif_free_env(kept);
    }
    after_all();
}

/* With `count` of its elements, the last one replaced. */
static vm_term changed(vm_proc *p, vm_term asks, int count, const char *last)
{
    const vm_term *elems;
    vm_term terms[64];
    int arity;

    enif_get_tuple(vm_env(p), asks, &arity, &elems);
    for (int i = 0; i < arity + count; i++)
        terms[i] = i < arity ? enif_make_copy(vm_env(p), elems[i]) : VM_NIL;
    if (last)
        terms[arity + count - 1] = vm_parse(vm_env(p), last);
    return enif_make_tuple_from_array(vm_env(p), terms,
                                      (unsigned)(arity + count));
}

TEST(forged, "a request that was changed is refused, and stays good itself")
{
    for (int i = 0; i < MODES; i++) {
        static const char *const others[] = {"none", "{}", "{1}"};
        ErlNifEnv *kept = enif_alloc_env();
        vm_proc *p = that_asks(in_nth_mode("serves", i), "{a}, 30");
        vm_proc *q = vm_spawn();
        vm_term asks;

        asks = enif_make_copy(kept, vm_result(p));
        CHECK_TEXT(answer(q, asks, "x"), NOT_OWNER);
        CHECK_TEXT(asked(q, asks), NOT_OWNER);
        for (int k = 0; k < 3 && i < MODES - 1; k++)
            CHECK_TEXT(answer(p, changed(p, asks, 0, others[k]), "x"),
                       NOT_PENDING);
        CHECK_TEXT(answer(p, changed(p, asks, 1, NULL), "x"), NOT_PENDING);
        CHECK_TEXT(answer(p, changed(p, asks, -1, NULL), "x"), NOT_PENDING);
        CHECK_TEXT(answer(p, vm_parse(vm_env(p), "{fairnif_asks,#Ref,1}"),
                          "x"), NOT_PENDING);
        CHECK_TEXT(answer(p, vm_parse(vm_env(p), "{fairnif_asks}"), "x"),
                   NOT_PENDING);
        node_await_term(p, enif_make_copy(vm_env(p), asks));
        say(pid_of(p), "{x}");
        say(pid_of(p), "stop");
        CHECK_TEXT(finished(p), "{{a},[{x}],0}");
        vm_free(q);
        enif_free_env(kept);
    }
    after_all();
}

TEST(abandoned, "a request that is not answered goes with its task when it is "
     "garbage")
{
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = that_asks(in_nth_mode("serves", i), "{a}, 30");

        vm_call(p, lib, "waits_auto", "0");
        vm_finish(p);
        vm_call(p, lib, "waits_auto", "none");
        vm_finish(p);
        vm_gc(p);
        EVENTUALLY(node_stacks() == 0);
        vm_free(p);
    }
    after_all();
}

/* -- upgrades -------------------------------------------------------------- */

TEST(upgraded, "bodies wait for messages while their library is upgraded and "
     "purged, which is unmapped after the last")
{
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = listener(in_nth_mode("serves", i), "{a}, 3");
        ErlNifPid pid = known;
        vm_proc *q = listener(in_nth_mode("serves", i), "{b}, 12");
        vm_lib *old;

        say(pid, "{x}");
        vm_run(p, 2);
        old = node_upgrade(nif_init);
        CHECK(!vm_unmapped(old));
        vm_free(q);
        CHECK(!vm_unmapped(old));
        say(pid, "{y}");
        vm_run(p, 2);
        CHECK(!vm_unmapped(old));
        say(pid, "stop");
        CHECK_TEXT(finished(p), "{{a},[{x},{y}],0}");
        EVENTUALLY(all_undone());
        EVENTUALLY(vm_unmapped(old));
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
    CHECK_TEXT(finished(spawn_await("not_awaited", "0")),
               "error:{fairnif,{not_awaited,{test_ask,not_awaited,1}}}");
    CHECK_TEXT(finished(spawn_await("not_awaited_sends", "0")),
               "error:{fairnif,{not_awaited,{test_ask,not_awaited_sends,1}}}");
    after_all();
}

TEST(used_away, "what fair_call was given gets no messages, and sends none")
{
    for (int i = 0; i < MODES; i++) {
        const char *name = in_nth_mode("away", i);

        CHECK_TEXT(finished(spawn_await(name, "")), "ok");
        CHECK_NUMBERS(node_counter(name, "misuses"), ==, 15);
    }
    after_all();
}
