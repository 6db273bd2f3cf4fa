/*
 * event.c - what the watch thread tells the owner: `{fairnif_watch, Map}`, built
 * in the thread's own environment and sent at a bounded rate.
 *
 * Where the owner is dead or late nothing is lost but the message.
 */
#include <string.h>

#include "watch.h"

static ERL_NIF_TERM atom(struct watch *w, const char *name)
{
    return enif_make_atom(w->env, name);
}

static void put(struct watch *w, ERL_NIF_TERM *map, const char *key,
                ERL_NIF_TERM value)
{
    enif_make_map_put(w->env, *map, atom(w, key), value, map);
}

static void put_number(struct watch *w, ERL_NIF_TERM *map, const char *key,
                       uint64_t value)
{
    put(w, map, key, enif_make_uint64(w->env, value));
}

static ERL_NIF_TERM binary(struct watch *w, const char *text)
{
    ERL_NIF_TERM term;
    size_t size = strlen(text);

    memcpy(enif_make_new_binary(w->env, size, &term), text, size);
    return term;
}

/* CLOCK_MONOTONIC -> erlang:monotonic_time(nanosecond) */
static ERL_NIF_TERM time_term(struct watch *w, uint64_t at)
{
    return enif_make_int64(w->env, (int64_t)at + GET(w->offset));
}

/* At most events_per_s; false: this one is not sent. */
static bool admit(struct watch *w)
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

    put(w, &map, "event", atom(w, name));
    return map;
}

static void send(struct watch *w, ERL_NIF_TERM map)
{
    ERL_NIF_TERM message = enif_make_tuple2(w->env, atom(w, "fairnif_watch"),
                                            map);

    enif_send(NULL, &w->owner, w->env, message);
    enif_clear_env(w->env);
    w->poke = enif_make_atom(w->env, "poke");
    ADD(w->counters.events, 1);
}

static void put_thread(struct watch *w, const struct watch__thread *t,
                       ERL_NIF_TERM *map)
{
    put(w, map, "kind", atom(w, watch__kind_names[t->kind]));
    put_number(w, map, "number", t->number);
}

static void put_times(struct watch *w, const struct watch__thread *t,
                      ERL_NIF_TERM *map)
{
    put(w, map, "since", time_term(w, t->hold.begin));
    put_number(w, map, "held_ns", t->hold.held);
    put_number(w, map, "cpu_ns", t->hold.used);
    put_number(w, map, "delay_ns", t->hold.delay);
}

static const char *state_name(const struct watch__thread *t)
{
    switch (t->run) {
    case RUN_RUNNING:
        return "running";
    case RUN_SLEEPS:
        return watch__in_disk_sleep(t->tid) ? "disk" : "sleeping";
    case RUN_DISK:
        return "disk";
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
        return atom(w, "none");
    name = watch__syscall_name(t->place.syscall);
    return enif_make_tuple2(w->env,
                            enif_make_int64(w->env, t->place.syscall),
                            atom(w, name ? name : "undefined"));
}

/* What it does now, and the stack. */
static void put_stack(struct watch *w, struct watch__thread *t,
                      ERL_NIF_TERM *map)
{
    put(w, map, "state", atom(w, state_name(t)));
    put(w, map, "syscall", syscall_term(w, t));
    put(w, map, "fairnif", atom(w, "none"));
    put(w, map, "process", atom(w, "none"));
    put(w, map, "cause", atom(w, "unknown"));
    put(w, map, "stack", enif_make_list(w->env, 0));
    put(w, map, "stack_note", binary(w, "no stack was taken"));
}

void watch__send_held(struct watch *w, struct watch__thread *t)
{
    ERL_NIF_TERM map;

    if (!admit(w))
        return;
    map = event(w, "held");
    put_number(w, &map, "id", t->id);
    put_thread(w, t, &map);
    put_times(w, t, &map);
    put_stack(w, t, &map);
    send(w, map);
}

void watch__send_released(struct watch *w, struct watch__thread *t)
{
    ERL_NIF_TERM map;

    if (!admit(w))
        return;
    map = event(w, "released");
    put_number(w, &map, "id", t->id);
    put_thread(w, t, &map);
    put_times(w, t, &map);
    put_stack(w, t, &map);
    send(w, map);
}

void watch__send_starved(struct watch *w, struct watch__thread *t)
{
    ERL_NIF_TERM map;

    if (!admit(w))
        return;
    map = event(w, "starved");
    put_thread(w, t, &map);
    put_times(w, t, &map);
    put_number(w, &map, "throttled_ns",
               watch__less(w->throttled, t->throttled));
    put_number(w, &map, "stolen_ns", watch__less(w->stolen, t->stolen));
    send(w, map);
}

void watch__send_late(struct watch *w, uint64_t gap, uint64_t throttled,
                      uint64_t stolen)
{
    ERL_NIF_TERM map;

    if (!admit(w))
        return;
    map = event(w, "late");
    put_number(w, &map, "gap_ns", gap);
    put_number(w, &map, "throttled_ns", throttled);
    put_number(w, &map, "stolen_ns", stolen);
    send(w, map);
}

void watch__send_looked(struct watch *w, struct watch__thread *t,
                        ErlNifEnv *ref_env, ERL_NIF_TERM ref)
{
    ERL_NIF_TERM map = event(w, "looked");

    (void)ref_env;
    put(w, &map, "ref", enif_make_copy(w->env, ref));
    put_thread(w, t, &map);
    put_times(w, t, &map);
    put_stack(w, t, &map);
    send(w, map);
}

void watch__send_suppressed(struct watch *w)
{
    ERL_NIF_TERM map = event(w, "suppressed");

    put_number(w, &map, "count", w->suppressed);
    w->suppressed = 0;
    send(w, map);
}
