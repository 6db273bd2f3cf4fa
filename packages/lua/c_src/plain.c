/*
 * plain.c - the same in a plain NIF, as people write it: a new state, all
 * libraries, LuaJIT as it comes, one call.
 */
#include "script.h"

static ERL_NIF_TERM answer(ErlNifEnv *env, lua_State *L, const char *kind)
{
    size_t size = 0;
    const char *text = lua_tolstring(L, -1, &size);
    ERL_NIF_TERM term;

    memcpy(enif_make_new_binary(env, size, &term), text ? text : "", size);
    return enif_make_tuple2(env, enif_make_atom(env, kind), term);
}

/* plain_eval(Text) -> {ok, What it returns, as text} | {error, Message} */
ERL_NIF_TERM plain_eval(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary text;
    lua_State *L;
    ERL_NIF_TERM term;
    int failed;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &text))
        return enif_make_badarg(env);
    L = luaL_newstate();
    if (!L)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    luaL_openlibs(L);
    failed = luaL_loadbuffer(L, (const char *)text.data, text.size, "=script")
        || lua_pcall(L, 0, 1, 0);
    term = answer(env, L, failed ? "error" : "ok");
    lua_close(L);
    return term;
}
