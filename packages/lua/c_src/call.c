/*
 * call.c - the library: what luajit.erl finds in it.
 *
 * A call is one coroutine of the state.  Where the script calls a function of
 * Erlang's, the coroutine yields, the NIF returns what is asked, and a second
 * call of the NIF continues with the answer.
 */
#include "script.h"

/* In the registry.  They are made with the state: outside of a protected call
 * nothing may allocate. */
enum { THREAD = 1, MESSAGE = 2 };

static fair_resource_type *scripts;
static unsigned long this_load;     /* states of another one have its addresses */

static ERL_NIF_TERM atom(fair_task *t, const char *name)
{
    return enif_make_atom(fair_env(t), name);
}

static ERL_NIF_TERM error(fair_task *t, const char *reason)
{
    return enif_make_tuple2(fair_env(t), atom(t, "error"), atom(t, reason));
}

/* -- new ------------------------------------------------------------------- */

static void clean_up(fair_task *t, void *obj)
{
    memory_free(t, obj);
}

/* A lua_CFunction: the names of Erlang's functions, one after the other. */
static int setup(lua_State *L)
{
    fair_bytes *names = lua_touserdata(L, 1);
    int n;

    lua_settop(L, 0);
    for (int slot = THREAD; slot <= MESSAGE; slot++) {
        lua_pushboolean(L, 0);
        lua_rawseti(L, LUA_REGISTRYINDEX, slot);
    }
    lua_newtable(L);
    n = read_values(L, names->data, names->size);
    for (int i = n; i >= 1; i--)
        lua_rawseti(L, 1, i);
    return open_sandbox(L);
}

/* nif_new(Memory, Names) */
static ERL_NIF_TERM new(fair_task *t)
{
    ErlNifUInt64 most;
    fair_bytes names;
    struct script *s;
    int failed;
    ERL_NIF_TERM term;
    unsigned root;

    if (!fair_get_uint64(t, fair_arg(t, 0), &most)
        || !fair_get_bytes(t, fair_arg(t, 1), &names))
        return fair_badarg(t);
    s = fair_resource_new(scripts, sizeof *s);
    if (!s)
        return fair_enomem(t);
    memory_init(s, most > SIZE_MAX ? SIZE_MAX : (size_t)most);
    term = fair_resource_term(fair_env(t), s);
    fair_resource_release(s);
    root = fair_root_new(t, term);
    s->load = this_load;
    s->fine = EVERY;
    s->lua = lua_newstate(memory_realloc, s);
    if (!s->lua)
        return error(t, "memory");
    luaJIT_setmode(s->lua, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    lua_gc(s->lua, LUA_GCSTOP, 0);
    lua_gc(s->lua, LUA_GCSETSTEPMUL, 500);
    begin_turn(s, t);
    failed = lua_cpcall(s->lua, setup, &names);
    lua_settop(s->lua, 0);
    s->task = NULL;
    if (failed)
        return error(t, "memory");
    return enif_make_tuple2(fair_env(t), atom(t, "ok"), fair_root_get(t, root));
}

/* -- run, resume ----------------------------------------------------------- */

struct call {
    struct script *script;
    fair_bytes text, args;          /* args: of Lua's or to Lua */
    bool by_name;                   /* text names a function */
    const char *failed;             /* the part that raises in case it does */
    int count;                      /* values on the coroutine's stack */
    fair_bin name, out;             /* what comes of it */
};

/* A lua_CFunction: a new coroutine with the function and its arguments. */
static int start(lua_State *L)
{
    struct call *c = lua_touserdata(L, 1);
    const char *text = (const char *)c->text.data;
    lua_State *thread = lua_newthread(L);
    int failed;

    lua_pushvalue(L, -1);
    lua_rawseti(L, LUA_REGISTRYINDEX, THREAD);
    c->script->thread = thread;
    c->failed = "syntax";
    if (c->by_name) {
        c->failed = "lua";
        lua_pushlstring(L, text, c->text.size);
        lua_rawget(L, LUA_GLOBALSINDEX);
        if (!lua_isfunction(L, -1))
            luaL_error(L, "there is no function '%s'",
                       (lua_pushlstring(L, text, c->text.size),
                        lua_tostring(L, -1)));
    } else if ((failed = load_text(L, text, c->text.size, "=script")) != 0) {
        if (failed == LUA_ERRMEM)
            stop(L, MEMORY);
        lua_error(L);
    }
    c->failed = "value";
    c->count = read_values(L, c->args.data, c->args.size);
    luaL_checkstack(thread, c->count + 1, "too many values");
    lua_xmove(L, thread, c->count + 1);
    return 0;
}

/* A lua_CFunction: true, and a table of the values that a function of Erlang's
 * answered.  The coroutine's stack has room for two. */
static int answered(lua_State *L)
{
    struct call *c = lua_touserdata(L, 1);
    lua_State *thread = c->script->thread;
    int n;

    c->failed = "value";
    lua_settop(L, 0);
    lua_pushboolean(L, c->by_name);
    n = read_values(L, c->args.data, c->args.size);
    lua_createtable(L, n, 1);
    lua_insert(L, 2);
    lua_pushinteger(L, n);
    lua_setfield(L, 2, "n");
    for (; n > 0; n--)
        lua_rawseti(L, 2, n);
    c->count = 2;
    lua_xmove(L, thread, c->count);
    return 0;
}

static void copy_text(lua_State *L, struct call *c, fair_bin *to, int index)
{
    size_t size;
    const char *text = lua_tolstring(L, index, &size);

    if (!fair_resize_bin(c->script->task, to, size))
        stop(L, MEMORY);
    memcpy(to->data, text, size);
}

/* A lua_CFunction: what the coroutine returned, asks, or failed with. */
static int finish(lua_State *L)
{
    struct call *c = lua_touserdata(L, 1);
    lua_State *thread = c->script->thread;
    bool failed = c->count != 0 && c->count != LUA_YIELD;
    int n = failed ? 1 : lua_gettop(thread);    /* the message is on top */

    luaL_checkstack(L, n + 4, "too many values");
    lua_settop(L, 0);
    lua_xmove(thread, L, n);
    c->failed = "lua";
    if (c->count == LUA_YIELD && !c->script->asks)
        luaL_error(L, "attempt to yield from outside a coroutine");
    c->failed = "value";
    if (c->count == LUA_YIELD) {
        copy_text(L, c, &c->name, 2);
        write_values(L, 3, &c->out);
    } else if (c->count == 0) {
        write_values(L, 1, &c->out);
    } else if (lua_isstring(L, n)) {
        copy_text(L, c, &c->out, n);
    } else {
        lua_pushfstring(L, "(an error that is a %s)", luaL_typename(L, n));
        copy_text(L, c, &c->out, -1);
    }
    return 0;
}

/* Of a cpcall: its message is on the stack. */
static int message(lua_State *L)
{
    struct call *c = lua_touserdata(L, 1);

    lua_rawgeti(L, LUA_REGISTRYINDEX, MESSAGE);
    copy_text(L, c, &c->out, -1);
    return 0;
}

static ERL_NIF_TERM error_with(fair_task *t, const char *kind, fair_bin *text)
{
    return enif_make_tuple2(fair_env(t), atom(t, "error"),
                            enif_make_tuple2(fair_env(t), atom(t, kind),
                                             fair_make_bin(t, text)));
}

/* What a part raised: its message, or that memory was out. */
static ERL_NIF_TERM raised(fair_task *t, struct call *c, int failed)
{
    struct script *s = c->script;

    if (failed != LUA_ERRMEM && s->stop == GOES_ON) {
        lua_rawseti(s->lua, LUA_REGISTRYINDEX, MESSAGE);
        failed = lua_cpcall(s->lua, message, c);
        if (!failed)
            return error_with(t, c->failed, &c->out);
    }
    if (s->stop == GOES_ON)
        s->stop = MEMORY;
    return error(t, stops[s->stop]);
}

/* Runs a part that may raise; 0 and what to answer where it did. */
static bool part(fair_task *t, struct call *c, lua_CFunction function,
                 ERL_NIF_TERM *answer)
{
    int failed = lua_cpcall(c->script->lua, function, c);

    if (failed)
        *answer = raised(t, c, failed);
    lua_settop(c->script->lua, 0);
    return !failed;
}

static bool is_callback(lua_State *thread)
{
    return lua_gettop(thread) >= 2
        && lua_touserdata(thread, 1) == (void *)&call_token;
}

/* Runs the coroutine to where it ends or asks. */
static ERL_NIF_TERM proceed(fair_task *t, struct call *c)
{
    struct script *s = c->script;
    ERL_NIF_TERM answer;

    c->count = take_turns(s, t, c->count);
    s->asks = c->count == LUA_YIELD && !s->stop && is_callback(s->thread);
    if (s->asks)
        fair_caller(t, &s->caller);
    if (s->stop)
        return error(t, stops[s->stop]);
    if (!part(t, c, finish, &answer)) {
        s->asks = false;
        return answer;
    }
    if (s->asks)
        return enif_make_tuple3(fair_env(t), atom(t, "call"),
                                fair_make_bin(t, &c->name),
                                fair_make_bin(t, &c->out));
    if (c->count == 0)
        return enif_make_tuple2(fair_env(t), atom(t, "return"),
                                fair_make_bin(t, &c->out));
    return error_with(t, "lua", &c->out);
}

/* The state, locked, for `c'; 0 and what to answer when it is not to be had. */
static bool enter(fair_task *t, struct call *c, ERL_NIF_TERM *answer)
{
    void *obj;

    if (!fair_resource_get(t, fair_arg(t, 0), scripts, &obj)
        || !fair_get_bytes(t, fair_arg(t, 2), &c->args)
        || !fair_new_bin(t, 128, &c->name)
        || !fair_new_bin(t, 256, &c->out)) {
        *answer = fair_badarg(t);
        return false;
    }
    c->script = obj;
    fair_mutex_lock(t, &c->script->lock);
    if (!c->script->lua || c->script->busy || c->script->stop == MEMORY
        || c->script->load != this_load) {
        fair_mutex_unlock(t, &c->script->lock);
        *answer = error(t, "spent");
        return false;
    }
    return true;
}

static ERL_NIF_TERM leave(fair_task *t, struct call *c, ERL_NIF_TERM answer)
{
    if (!c->script->asks) {
        lua_pushboolean(c->script->lua, 0);
        lua_rawseti(c->script->lua, LUA_REGISTRYINDEX, THREAD);
    }
    c->script->busy = false;
    c->script->task = NULL;
    fair_mutex_unlock(t, &c->script->lock);
    return answer;
}

/* nif_run(State, Text, Args, IsName, Instructions, Timeout): the last two
 * negative for none; Timeout in ns. */
static ERL_NIF_TERM run(fair_task *t)
{
    struct call c = {0};
    struct script *s;
    ErlNifSInt64 instructions, timeout;
    ERL_NIF_TERM answer;
    int by_name;

    if (!fair_get_bytes(t, fair_arg(t, 1), &c.text)
        || !fair_get_int(t, fair_arg(t, 3), &by_name)
        || !fair_get_int64(t, fair_arg(t, 4), &instructions)
        || !fair_get_int64(t, fair_arg(t, 5), &timeout))
        return fair_badarg(t);
    if (!enter(t, &c, &answer))
        return answer;
    s = c.script;
    if (s->asks && enif_is_process_alive(fair_env(t), &s->caller)) {
        fair_mutex_unlock(t, &s->lock);
        return error(t, "busy");
    }
    s->busy = true;
    s->asks = false;
    s->stop = GOES_ON;
    s->limited = instructions >= 0;
    s->left = instructions;
    s->depth = 0;
    begin_turn(s, t);
    s->deadline = timeout < 0 ? 0 : s->looked + timeout;
    c.by_name = by_name != 0;
    if (!collect_if_due(s))
        answer = error(t, stops[s->stop]);
    else if (part(t, &c, start, &answer))
        answer = proceed(t, &c);
    return leave(t, &c, answer);
}

/* nif_resume(State, ok | error, Values): of the process that was asked. */
static ERL_NIF_TERM resume(fair_task *t)
{
    char kind[8];
    struct call c = {0};
    ErlNifPid caller;
    ERL_NIF_TERM answer;

    if (!fair_get_atom(t, fair_arg(t, 1), kind, sizeof kind, FAIR_UTF8))
        return fair_badarg(t);
    if (!enter(t, &c, &answer))
        return answer;
    fair_caller(t, &caller);
    if (!c.script->asks || enif_compare_pids(&caller, &c.script->caller) != 0) {
        fair_mutex_unlock(t, &c.script->lock);
        return fair_badarg(t);
    }
    c.script->busy = true;
    c.script->asks = false;
    c.by_name = strcmp(kind, "ok") == 0;
    if (!continue_turn(c.script, t))
        answer = error(t, stops[c.script->stop]);
    else if (part(t, &c, answered, &answer))
        answer = proceed(t, &c);
    return leave(t, &c, answer);
}

/* nif_fail(State, N): for tests.  Of its allocations the Nth from now on fails.
 * Answers how many were to come before that of the call before. */
static ERL_NIF_TERM fail(fair_task *t)
{
    void *obj;
    struct script *s;
    unsigned long n, before;

    if (!fair_resource_get(t, fair_arg(t, 0), scripts, &obj)
        || !fair_get_ulong(t, fair_arg(t, 1), &n))
        return fair_badarg(t);
    s = obj;
    fair_mutex_lock(t, &s->lock);
    before = s->fails_in;
    s->fails_in = n;
    fair_mutex_unlock(t, &s->lock);
    return enif_make_ulong(fair_env(t), before);
}

/* -- the library ----------------------------------------------------------- */

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    const fair_resource_options options = {
        .name = "script", .cleanup = clean_up
    };
    fair_resource_type *opened = fair_resource_open(env, &options);

    (void)priv, (void)info;
    if (!opened)
        return FAIR_E_NOMEM;
    this_load = (unsigned long)enif_monotonic_time(ERL_NIF_NSEC);
    scripts = opened;
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

static const fair_options new_options = {.body = new, .stack_size = STACK};
static const fair_options run_options = {
    .body = run, .stack_size = STACK, .slice_us = TURN_US
};
static const fair_options resume_options = {
    .body = resume, .stack_size = STACK, .slice_us = TURN_US
};

/* Not FAIR_AUTO: a script moves itself where it has to. */
static ErlNifFunc nifs[] = {
    FAIR_NIF_OPTIONS("nif_new", 2, &new_options, FAIR_NORMAL),
    FAIR_NIF_OPTIONS("nif_run", 6, &run_options, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF_OPTIONS("nif_resume", 3, &resume_options,
                     FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF_OPTIONS("nif_run_threaded", 6, &run_options, FAIR_THREADED),
    FAIR_NIF_OPTIONS("nif_resume_threaded", 3, &resume_options, FAIR_THREADED),
    FAIR_NIF("nif_fail", 2, fail, FAIR_NORMAL | FAIR_MAY_WAIT),
    {"plain_eval", 1, plain_eval, 0},
    {"dirty_eval", 1, plain_eval, ERL_NIF_DIRTY_JOB_CPU_BOUND}
};

FAIR_NIF_INIT(luajit, nifs, load, upgrade, NULL)
