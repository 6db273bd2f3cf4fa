/*
 * event.c - what the watch thread tells the owner: `{fairnif_watch, Map}`, built
 * in the thread's own environment and sent at a bounded rate.
 *
 * Where the owner is dead or late nothing is lost but the message.
 */
#include "look/event.h"
#include "look/stacks.h"
#include "look/term.h"
#include "unwind/name.h"

/* At most events_per_s; false: this one is not sent. */
bool watch__admit(struct watch *w)
{
    double rate = w->config.events_per_s;

    w->tokens += rate * (double)watch__less(w->now, w->tokens_at) / NS_PER_S;
    w->tokens_at = w->now;
    if (w->tokens > rate)
        w->tokens = rate;
    if (w->tokens >= 1) {
        w->tokens -= 1;
        return true;
    }
    if (!w->suppressed++)
        w->suppressed_at = w->now;
    ADD(w->counters.suppressed, 1);
    return false;
}

static ERL_NIF_TERM event(struct watch *w, const char *name)
{
    ERL_NIF_TERM map = enif_make_new_map(w->env);

    put(w->env, &map, "event", atom(w->env, name));
    return map;
}

static void clear(struct watch *w)
{
    enif_clear_env(w->env);
    w->probe = enif_make_atom(w->env, "probe");
}

static void send_event(struct watch *w, ERL_NIF_TERM map)
{
    ERL_NIF_TERM message =
        enif_make_tuple2(w->env, atom(w->env, "fairnif_watch"), map);

    /* A copy: what was made on the way, ten times as much, stays here. */
    enif_send(NULL, &w->owner, NULL, message);
    clear(w);
    ADD(w->counters.events, 1);
}

static void put_thread(struct watch *w, const struct watch__thread *t,
                       ERL_NIF_TERM *map)
{
    put(w->env, map, "kind", atom(w->env, watch__kind_names[t->kind]));
    put_number(w->env, map, "number", t->number);
}

static void put_times(struct watch *w, ERL_NIF_TERM *map, uint64_t since,
                      uint64_t blocked, uint64_t used, uint64_t delay)
{
    put(w->env, map, "since", time_term(w->env, w, since));
    put_number(w->env, map, "blocked_ns", blocked);
    put_number(w->env, map, "cpu_ns", used);
    put_number(w->env, map, "delay_ns", delay);
}

static void put_block(struct watch *w, const struct watch__thread *t,
                     ERL_NIF_TERM *map)
{
    put_times(w, map, t->block.begin, t->block.blocked, t->block.used,
              t->block.delay);
}

static const char *state_name(const struct watch__thread *t)
{
    switch (t->run) {
    case RUN_RUNNING:
        return "running";
    case RUN_SLEEPS:
        return watch__in_disk_sleep(t->tid) ? "disk" : "sleeping";
    default:
        return "unknown";
    }
}

static ERL_NIF_TERM syscall_term(struct watch *w,
                                 const struct watch__thread *t)
{
    const char *name;

    if (t->run == RUN_RUNNING || t->run == RUN_UNKNOWN
        || t->place.syscall < 0)
        return atom(w->env, "none");
    name = watch__syscall_name(t->place.syscall);
    return enif_make_tuple2(w->env,
                            enif_make_int64(w->env, t->place.syscall),
                            atom(w->env, name ? name : "undefined"));
}

/* -- what it is at ------------------------------------------------------------ */

static const char *const in_names[] = {
    [IN_UNKNOWN] = "unknown", [IN_EMULATOR] = "emulator", [IN_JIT] = "jit",
    [IN_LIBC] = "libc", [IN_WATCH] = "watch", [IN_FAIRNIF] = "fairnif",
    [IN_LIBRARY] = "library"
};
static const char *const by_names[] = {
    [NAMED_NOT] = "none", [NAMED_NIF_TABLE] = "nif_table",
    [NAMED_SYMTAB] = "symtab", [NAMED_DYNSYM] = "dynsym"
};

static ERL_NIF_TERM text_or_none(struct watch *w, const char *text)
{
    return text && text[0] ? binary(w->env, text) : atom(w->env, "none");
}

static ERL_NIF_TERM nif_term(struct watch *w, const struct watch__frame *f)
{
    if (f->function[0])
        return mfa(w->env, f->module, f->function, f->arity);
    if (f->module[0])
        return enif_make_tuple1(w->env, atom(w->env, f->module));
    return atom(w->env, "none");
}

/* {Module, Type}: only of what the emulator called is it certain that it runs
 * as a destructor. */
static ERL_NIF_TERM destructor_term(struct watch *w,
                                    const struct watch__frame *f)
{
    ERL_NIF_TERM module, name;

    return f == watch__called(w->stack) && !f->function[0]
        && watch__type_of(&w->types, f->start, &module, &name)
        ? enif_make_tuple2(w->env, module, name ? name
                           : atom(w->env, "several types"))
        : atom(w->env, "none");
}

static ERL_NIF_TERM frame_term(struct watch *w, struct watch__frame *f)
{
    ERL_NIF_TERM map = enif_make_new_map(w->env);

    watch__name(w->maps, f);
    put(w->env, &map, "destructor", destructor_term(w, f));
    put_number(w->env, &map, "address", f->pc);
    put(w->env, &map, "library", text_or_none(w, f->library));
    put_number(w->env, &map, "offset", f->offset);
    put(w->env, &map, "function_offset", f->start && f->pc >= f->start
        ? enif_make_uint64(w->env, f->pc - f->start) : atom(w->env, "none"));
    put(w->env, &map, "symbol", text_or_none(w, f->symbol));
    put_number(w->env, &map, "symbol_offset", f->symbol_offset);
    put(w->env, &map, "in", atom(w->env, in_names[f->in]));
    put(w->env, &map, "nif", nif_term(w, f));
    put(w->env, &map, "driver", text_or_none(w, f->driver));
    put(w->env, &map, "callback",
        atom(w->env, f->callback ? f->callback : "none"));
    put(w->env, &map, "by", atom(w->env, by_names[f->named]));
    return map;
}

/* The emulator ends a process: one that is dead to all others. */
static bool ends_process(const struct watch__stack *s)
{
    for (unsigned i = 0; i < s->count; i++)
        if (!strcmp(s->frames[i].symbol, "erts_continue_exit_process")
            || !strcmp(s->frames[i].symbol, "erts_do_exit_process"))
            return true;
    return false;
}

static const char *cause_of(const struct watch *w,
                            const struct watch__thread *t)
{
    if (t->fair || watch__culprit(w->stack))
        return "native";
    for (unsigned i = 0; i < w->stack->count; i++)
        if (w->stack->frames[i].in == IN_EMULATOR
            || w->stack->frames[i].in == IN_JIT)
            return "emulator";
    return "unknown";
}

/* What it does now, and the stack: of w->stack. */
static void put_stack(struct watch *w, struct watch__thread *t,
                      ERL_NIF_TERM *map)
{
    struct watch__stack *s = w->stack;
    ERL_NIF_TERM list = enif_make_list(w->env, 0);
    ErlNifPid pid;

    for (unsigned i = s->count; i-- > 0; )
        list = enif_make_list_cell(w->env, frame_term(w, &s->frames[i]), list);
    put(w->env, map, "state", atom(w->env, state_name(t)));
    put(w->env, map, "syscall", syscall_term(w, t));
    put(w->env, map, "fairnif", fairnif_term(w->env, w, t->fair));
    put(w->env, map, "process", watch__process(s, &pid)
        || (pid.pid && ends_process(s))     /* the frames have names by now */
        ? enif_make_pid(w->env, &pid) : atom(w->env, "none"));
    put(w->env, map, "cause", atom(w->env, cause_of(w, t)));
    put(w->env, map, "stack", list);
    put(w->env, map, "stack_note", binary(w->env, watch__stack_note(s)));
}

/* The end of a block tells what was seen last while it lasted. */
static void keep_event(struct watch__thread *t, ERL_NIF_TERM map)
{
    if (!t->last_env)
        t->last_env = enif_alloc_env();
    if (!t->last_env)
        return;
    enif_clear_env(t->last_env);
    t->last = enif_make_copy(t->last_env, map);
}

/* -- the events ----------------------------------------------------------------- */

void watch__send_blocked(struct watch *w, struct watch__thread *t, bool now)
{
    ERL_NIF_TERM map, before;

    if (w->stack->taken != TAKEN && t->has_stack) {
        map = enif_make_copy(w->env, t->last);
        put(w->env, &map, "stack_note",
            binary(w->env, "an earlier stack: a newer one could not be had"));
    } else {
        map = event(w, "blocked");
        put_number(w->env, &map, "id", t->id);
        put_thread(w, t, &map);
        put_stack(w, t, &map);
        /* The stack is of before it was given back; what runs now is not. */
        if (!t->block.probed && t->last_env
            && enif_get_map_value(t->last_env, t->last,
                                  enif_make_atom(t->last_env, "fairnif"),
                                  &before))
            put(w->env, &map, "fairnif", enif_make_copy(w->env, before));
    }
    put_block(w, t, &map);
    keep_event(t, map);
    t->has_stack = t->has_stack || w->stack->taken == TAKEN;
    if (now)
        send_event(w, map);
    else
        clear(w);
}

void watch__send_unblocked(struct watch *w, struct watch__thread *t)
{
    ERL_NIF_TERM map;

    if (!t->last_env)
        return;
    map = enif_make_copy(w->env, t->last);
    put(w->env, &map, "event", atom(w->env, "unblocked"));
    put_block(w, t, &map);
    send_event(w, map);
    enif_clear_env(t->last_env);
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

void watch__send_starved(struct watch *w, struct watch__thread *t)
{
    ERL_NIF_TERM map = event(w, "no_cpu_time");

    put_thread(w, t, &map);
    put_block(w, t, &map);
    put_number(w->env, &map, "earlier_ns", t->block.untold_delay);
    t->block.untold_delay = 0;
    /* Both are of all processors, and of up to a second before. */
    put_number(w->env, &map, "throttled_ns",
               at_most(watch__less(w->throttled, t->throttled),
                       t->block.delay));
    put_number(w->env, &map, "stolen_ns",
               at_most(watch__less(w->stolen, t->stolen), t->block.delay));
    send_event(w, map);
}

void watch__send_late(struct watch *w, uint64_t gap, uint64_t throttled,
                      uint64_t stolen)
{
    ERL_NIF_TERM map = event(w, "late");

    put_number(w->env, &map, "gap_ns", gap);
    put_number(w->env, &map, "throttled_ns", throttled);
    put_number(w->env, &map, "stolen_ns", stolen);
    send_event(w, map);
}

/* `ref` is in an environment of its own. */
void watch__send_looked(struct watch *w, struct watch__thread *t,
                        ERL_NIF_TERM ref)
{
    ERL_NIF_TERM map = event(w, "looked");
    uint64_t now = watch__now();

    put(w->env, &map, "ref", enif_make_copy(w->env, ref));
    put_thread(w, t, &map);
    put_stack(w, t, &map);
    if (t->block.probed)
        put_block(w, t, &map);
    else
        put_times(w, &map, t->busy_since ? t->busy_since : now,
                  t->busy_since ? watch__less(now, t->busy_since) : 0, 0, 0);
    send_event(w, map);
}

void watch__send_suppressed(struct watch *w)
{
    ERL_NIF_TERM map = event(w, "suppressed");

    put_number(w->env, &map, "count", w->suppressed);
    w->suppressed = 0;
    send_event(w, map);
}
