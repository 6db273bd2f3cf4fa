/*
 * sandbox.c - what a script can reach.
 *
 * Libraries are opened into a state and then named one by one: what is not on
 * these lists is not there.  No io, package, debug, ffi, jit; no bytecode; of
 * os the time only.  LuaJIT has no finalizers of tables, and newproxy, which
 * makes userdata, is not on the list: nothing runs in the collector.
 *
 * Of LuaJIT's own functions none is left that calls a script's function or
 * metamethod from C: they would be below it when the hook comes.  What they did
 * is done by prelude.lua.
 */
#include <time.h>

#include "script.h"

const char call_token = 0;

/* The file, as it is. */
__asm__(".section .rodata\n"
        "prelude: .incbin \"prelude.lua\"\n"
        "prelude_end: .byte 0\n"
        ".previous\n");
extern const char prelude[] __attribute__((visibility("hidden")));
extern const char prelude_end[] __attribute__((visibility("hidden")));

static const char *const base[] = {
    "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall",
    "rawequal", "rawget", "rawset", "select", "setmetatable", "tonumber",
    "tostring", "type", "unpack", "_VERSION", NULL
};
static const char *const os[] = {"clock", "difftime", NULL};
static const char *const strings[] = {
    "byte", "char", "format", "len", "lower", "rep", "reverse", "sub", "upper",
    NULL
};
static const char *const tables[] = {"concat", "maxn", "remove", NULL};
static const char *const coroutines[] = {
    "create", "resume", "running", "status", "yield", NULL
};

/* -- functions of ours ------------------------------------------------------ */

/* The parser's work grows with what it has read: the only chance to tick. */
struct text {
    const char *data;
    size_t size;
};

static const char *next_piece(lua_State *L, void *arg, size_t *size)
{
    struct text *text = arg;
    const char *data = text->data;

    *size = text->size < 256 ? text->size : 256;
    text->data += *size;
    text->size -= *size;
    spend(L, *size);
    return data;
}

int load_text(lua_State *L, const char *text, size_t size, const char *name)
{
    struct text from = {text, size};

    return lua_loadx(L, next_piece, &from, name, "t");
}

/* load(Text [, Name [, Mode [, Environment]]]): text only, whatever Mode. */
static int load(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    const char *name = luaL_optstring(L, 2, "=(load)");

    lua_settop(L, 4);
    if (load_text(L, text, size, name) != 0) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    if (lua_istable(L, 4)) {
        lua_pushvalue(L, 4);
        lua_setfenv(L, -2);
    }
    return 1;
}

/* collectgarbage([What]): "count" in kB; "collect" and "step": before the next
 * instruction. */
static int collectgarbage(lua_State *L)
{
    const char *what = luaL_optstring(L, 1, "collect");

    if (strcmp(what, "collect") == 0 || strcmp(what, "step") == 0) {
        collect_soon(script_of(L), true);
        lua_pushinteger(L, 0);
    } else if (strcmp(what, "count") == 0) {
        lua_pushnumber(L, (lua_Number)script_of(L)->used / 1024);
    } else {
        return luaL_error(L, "collectgarbage: no such option");
    }
    return 1;
}

/* LuaJIT's own reads the fields of a table by metamethods. */
static int now(lua_State *L)
{
    if (!lua_isnoneornil(L, 1))
        return luaL_error(L, "os.time has no arguments here");
    lua_pushnumber(L, (lua_Number)time(NULL));
    return 1;
}

/* insert(Table, [Position,] Value) */
static int insert(lua_State *L)
{
    int last = lua_gettop(L), n, at;

    luaL_checktype(L, 1, LUA_TTABLE);
    n = (int)lua_objlen(L, 1) + 1;
    at = last == 2 ? n : luaL_checkint(L, 2);
    if (last < 2 || last > 3)
        return luaL_error(L, "wrong number of arguments to 'insert'");
    if (at < 1 || at > n)
        return luaL_error(L, "bad argument #2 to 'insert' (position out of "
                          "bounds)");
    for (int i = n; i > at; i--) {
        lua_rawgeti(L, 1, i - 1);
        lua_rawseti(L, 1, i);
        if (i % 256 == 0)
            spend(L, 256);
    }
    lua_rawseti(L, 1, at);
    return 0;
}

/* LuaJIT's own, quick for each element; where they are many, on a dirty
 * scheduler. */
static int concat(lua_State *L)
{
    size_t n = lua_istable(L, 1) ? lua_objlen(L, 1) : 0;

    if (n > 100)
        spend(L, n);
    if (n > 2000)
        go_dirty(script_of(L));
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

/* Of nothing LuaJIT's own would count to n. */
static int rep(lua_State *L)
{
    luaL_checkstring(L, 1);
    if (lua_objlen(L, 1) == 0 && lua_isnoneornil(L, 3)) {
        lua_pushliteral(L, "");
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

/* -- for the prelude -------------------------------------------------------- */

/* A coroutine is about to be resumed, and was left: by the hook? */
static int enter(lua_State *L)
{
    struct script *s = script_of(L);

    luaL_checktype(L, 1, LUA_TTHREAD);
    if (s->depth >= MAX_NESTED_COROUTINES)
        return luaL_error(L, "coroutines are nested too deeply");
    s->depth++;
    return 0;
}

static int leave(lua_State *L)
{
    struct script *s = script_of(L);

    s->depth--;
    if (!lua_toboolean(L, 1))
        look_again(L);
    lua_pushboolean(L, s->hooked);
    return 1;
}

static int caught(lua_State *L)
{
    look_again(L);
    return 0;
}

static int has_object(lua_State *L)
{
    int n = lua_gettop(L), i = 1;

    while (i <= n && !lua_istable(L, i))
        i++;
    lua_pushboolean(L, i <= n);
    return 1;
}

static int check_table(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushinteger(L, (lua_Integer)lua_objlen(L, 1));
    return 1;
}

static int check_text(lua_State *L)
{
    size_t size;

    luaL_checklstring(L, 1, &size);
    luaL_checkstring(L, 2);
    luaL_optinteger(L, 3, 0);
    lua_pushinteger(L, (lua_Integer)size);
    return 1;
}

static const luaL_Reg own_functions[] = {
    {"enter", enter}, {"leave", leave}, {"caught", caught}, {"has_object", has_object},
    {"check_table", check_table}, {"check_text", check_text}, {NULL, NULL}
};

/* -- opening ---------------------------------------------------------------- */

/* Opens a library elsewhere and copies from it: `from' is its global name. */
static void take(lua_State *L, lua_CFunction open, const char *from,
                 const char *const *names, int to)
{
    if (open) {
        lua_pushcfunction(L, open);
        lua_pushstring(L, from);
        lua_call(L, 1, 0);
    }
    lua_getglobal(L, *from ? from : "_G");
    for (; *names; names++) {
        lua_getfield(L, -1, *names);
        lua_setfield(L, to, *names);
    }
    lua_pop(L, 1);
}

static void put(lua_State *L, int table, const luaL_Reg *functions)
{
    for (; functions->name; functions++) {
        lua_pushcfunction(L, functions->func);
        lua_setfield(L, table, functions->name);
    }
}

static void wrap(lua_State *L, int table, const char *name, lua_CFunction fn)
{
    lua_getfield(L, table, name);
    lua_pushcclosure(L, fn, 1);
    lua_setfield(L, table, name);
}

static void whole(lua_State *L, lua_CFunction open, const char *name, int to)
{
    lua_pushcfunction(L, open);
    lua_pushstring(L, name);
    lua_call(L, 1, 0);
    lua_getglobal(L, name);
    lua_setfield(L, to, name);
}

/* Methods of strings are found in the library, which cannot be exchanged. */
static void open_strings(lua_State *L, int to)
{
    int library;

    lua_newtable(L);
    library = lua_gettop(L);
    take(L, luaopen_string, LUA_STRLIBNAME, strings, library);
    put(L, library, match_functions);
    wrap(L, library, "rep", rep);
    lua_pushliteral(L, "");
    lua_newtable(L);
    lua_pushvalue(L, library);
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "string");
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    lua_setfield(L, to, "string");
}

static void open_tables(lua_State *L, int to)
{
    lua_newtable(L);
    take(L, luaopen_table, LUA_TABLIBNAME, tables, lua_gettop(L));
    wrap(L, lua_gettop(L), "concat", concat);
    lua_pushcfunction(L, insert);
    lua_setfield(L, -2, "insert");
    lua_setfield(L, to, "table");
}

static void open_time(lua_State *L, int to)
{
    lua_newtable(L);
    take(L, luaopen_os, LUA_OSLIBNAME, os, lua_gettop(L));
    lua_pushcfunction(L, now);
    lua_setfield(L, -2, "time");
    lua_setfield(L, to, "os");
}

static void run_prelude(lua_State *L, int to, int names)
{
    int own;

    lua_newtable(L);
    own = lua_gettop(L);
    take(L, NULL, "coroutine", coroutines, own);
    put(L, own, own_functions);
    put(L, own, own_match_functions);
    if (load_text(L, prelude, (size_t)(prelude_end - prelude), "=sandbox") != 0)
        lua_error(L);
    lua_pushlightuserdata(L, (void *)&call_token);
    lua_pushvalue(L, names);
    lua_pushvalue(L, to);
    lua_pushvalue(L, own);
    lua_call(L, 4, 0);
    lua_pop(L, 1);
}

/* LuaJIT's resume makes them after it overwrote which function it is: that must
 * not fail.  Here they are for ever. */
static void keep_messages(lua_State *L)
{
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "cannot resume dead coroutine");
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "cannot resume running coroutine");
}

/* The stack has a table of names to be called back; leaves nothing. */
int open_sandbox(lua_State *L)
{
    int names = 1, to = 2;

    lua_settop(L, 1);
    lua_newtable(L);
    take(L, luaopen_base, "", base, to);
    open_strings(L, to);
    open_tables(L, to);
    open_time(L, to);
    whole(L, luaopen_math, LUA_MATHLIBNAME, to);
    whole(L, luaopen_bit, LUA_BITLIBNAME, to);
    lua_pushcfunction(L, load);
    lua_setfield(L, to, "load");
    lua_pushcfunction(L, collectgarbage);
    lua_setfield(L, to, "collectgarbage");
    lua_pushvalue(L, to);
    lua_setfield(L, to, "_G");
    run_prelude(L, to, names);
    keep_messages(L);
    lua_pushvalue(L, to);
    lua_replace(L, LUA_GLOBALSINDEX);
    /* The libraries' own tables must not be found in the registry's. */
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, "_LOADED");
    return 0;
}
