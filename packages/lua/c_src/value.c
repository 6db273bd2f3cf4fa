/*
 * value.c - values as Erlang's external term format, which Erlang itself makes
 * and reads without holding a scheduler.
 *
 *     nil, booleans      nil, true, false
 *     numbers            integers to 2^53 and floats; a whole number comes back
 *                        as an integer
 *     strings            binaries; any other atom becomes one too
 *     tables 1..n        lists; the empty table is []
 *     other tables       maps, unless a key is a table
 */
#include <math.h>

#include "script.h"

enum {
    VERSION = 131, SMALL_INTEGER = 97, INTEGER = 98, FLOAT = 70,
    ATOM = 100, ATOM_UTF8 = 118, SMALL_ATOM_UTF8 = 119, NIL = 106,
    STRING = 107, LIST = 108, BINARY = 109, SMALL_BIG = 110, MAP = 116,
    VALUES = 64                     /* between two ticks */
};

#define MOST_EXACT 9007199254740992.0   /* 2^53 */

/* -- reading --------------------------------------------------------------- */

struct in {
    lua_State *L;
    const unsigned char *at, *end;
    unsigned read;
};

static void read_value(struct in *in, int depth);

static const unsigned char *take(struct in *in, size_t size)
{
    const unsigned char *at = in->at;

    if ((size_t)(in->end - at) < size)
        luaL_error(in->L, "a value is cut off");
    in->at += size;
    return at;
}

static size_t take_size(struct in *in, int bytes)
{
    const unsigned char *at = take(in, (size_t)bytes);
    size_t size = 0;

    for (int i = 0; i < bytes; i++)
        size = size << 8 | at[i];
    return size;
}

static void push_atom(lua_State *L, const char *name, size_t size)
{
    if (size == 3 && memcmp(name, "nil", 3) == 0)
        lua_pushnil(L);
    else if (size == 4 && memcmp(name, "true", 4) == 0)
        lua_pushboolean(L, 1);
    else if (size == 5 && memcmp(name, "false", 5) == 0)
        lua_pushboolean(L, 0);
    else
        lua_pushlstring(L, name, size);
}

/* In Latin-1, as OTP 25 writes them. */
static void read_old_atom(struct in *in, size_t size)
{
    const unsigned char *name = take(in, size);
    char utf8[2 * 255];
    size_t n = 0;

    for (size_t i = 0; i < size && i < 255; i++) {
        if (name[i] < 128) {
            utf8[n++] = (char)name[i];
        } else {
            utf8[n++] = (char)(0xc0 | name[i] >> 6);
            utf8[n++] = (char)(0x80 | (name[i] & 0x3f));
        }
    }
    push_atom(in->L, utf8, n);
}

static void read_atom(struct in *in, size_t size)
{
    push_atom(in->L, (const char *)take(in, size), size);
}

static void read_big(struct in *in)
{
    size_t size = take_size(in, 1);
    bool negative = take_size(in, 1) != 0;
    const unsigned char *digits = take(in, size);
    lua_Number n = 0;

    while (size > 0)
        n = n * 256 + digits[--size];
    if (n > MOST_EXACT)
        luaL_error(in->L, "an integer over 2^53");
    lua_pushnumber(in->L, negative ? -n : n);
}

static void read_float(struct in *in)
{
    union {
        uint64_t bits;
        double value;
    } n = {take_size(in, 8)};

    lua_pushnumber(in->L, n.value);
}

/* A list of small integers. */
static void read_bytes(struct in *in)
{
    size_t n = take_size(in, 2);
    const unsigned char *bytes = take(in, n);

    lua_createtable(in->L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushinteger(in->L, bytes[i]);
        lua_rawseti(in->L, -2, (int)i + 1);
    }
    spend(in->L, n / 4);
}

/* As many as there can be: the size is the sender's word, each has a byte. */
static int room_for(struct in *in, size_t n)
{
    if (n > (size_t)(in->end - in->at) || n > INT32_MAX)
        luaL_error(in->L, "a value is cut off");
    return (int)n;
}

static void read_list(struct in *in, int depth)
{
    int n = room_for(in, take_size(in, 4));

    lua_createtable(in->L, n, 0);
    for (int i = 1; i <= n; i++) {
        read_value(in, depth);
        lua_rawseti(in->L, -2, i);
    }
    if (*take(in, 1) != NIL)
        luaL_error(in->L, "an improper list");
}

static void read_map(struct in *in, int depth)
{
    int n = room_for(in, take_size(in, 4));

    lua_createtable(in->L, 0, n);
    for (int i = 0; i < n; i++) {
        read_value(in, depth);
        if (lua_isnil(in->L, -1))
            luaL_error(in->L, "a map with the key nil");
        read_value(in, depth);
        lua_rawset(in->L, -3);
    }
}

static void read_value(struct in *in, int depth)
{
    int tag;

    if (depth == 0)
        luaL_error(in->L, "nested more than %d deep", MAX_DEPTH);
    luaL_checkstack(in->L, 4, "too many values");
    if (++in->read % VALUES == 0)
        spend(in->L, VALUES);
    tag = *take(in, 1);
    switch (tag) {
    case SMALL_INTEGER: lua_pushinteger(in->L, *take(in, 1)); break;
    case INTEGER: lua_pushinteger(in->L, (int32_t)take_size(in, 4)); break;
    case SMALL_BIG: read_big(in); break;
    case FLOAT: read_float(in); break;
    case ATOM: read_old_atom(in, take_size(in, 2)); break;
    case ATOM_UTF8: read_atom(in, take_size(in, 2)); break;
    case SMALL_ATOM_UTF8: read_atom(in, take_size(in, 1)); break;
    case NIL: lua_newtable(in->L); break;
    case STRING: read_bytes(in); break;
    case LIST: read_list(in, depth - 1); break;
    case MAP: read_map(in, depth - 1); break;
    case BINARY: {
        size_t size = take_size(in, 4);

        lua_pushlstring(in->L, (const char *)take(in, size), size);
        break;
    }
    default:
        luaL_error(in->L, "only nil, booleans, numbers to 2^53, atoms, "
                   "binaries, proper lists and maps are values");
    }
}

/* A list of values, each to the stack; answers how many. */
int read_values(lua_State *L, const unsigned char *data, size_t size)
{
    struct in in = {L, data, data + size, 0};
    int n = 0;

    if (*take(&in, 1) != VERSION)
        luaL_error(L, "not a term");
    switch (*take(&in, 1)) {
    case NIL:
        break;
    case STRING: {
        const unsigned char *bytes;

        n = (int)take_size(&in, 2);
        bytes = take(&in, (size_t)n);
        luaL_checkstack(L, n, "too many values");
        for (int i = 0; i < n; i++)
            lua_pushinteger(L, bytes[i]);
        break;
    }
    case LIST:
        n = room_for(&in, take_size(&in, 4));
        luaL_checkstack(L, n, "too many values");
        for (int i = 0; i < n; i++)
            read_value(&in, MAX_DEPTH);
        if (*take(&in, 1) != NIL)
            luaL_error(L, "an improper list");
        break;
    default:
        luaL_error(L, "not a list of values");
    }
    return n;
}

/* -- writing --------------------------------------------------------------- */

struct out {
    lua_State *L;
    struct script *script;
    fair_bin *bin;
    size_t size;
    unsigned written;
};

static void write_value(struct out *out, int index, int depth);

static unsigned char *room(struct out *out, size_t size)
{
    size_t needed = out->size + size;
    size_t twice = out->bin->size * 2;
    unsigned char *at;

    if (needed > out->bin->size) {
        if (needed > LARGE)
            go_dirty(out->script);  /* it is copied in one go */
        /* A value takes 16 bytes and more of Erlang's heap. */
        if (needed + 16 * (size_t)out->written > out->script->most
            || !fair_resize_bin(out->script->task, out->bin,
                                needed > twice ? needed : twice))
            stop(out->L, MEMORY);
    }
    at = out->bin->data + out->size;
    out->size = needed;
    return at;
}

static void put(struct out *out, int tag, uint64_t value, int bytes)
{
    unsigned char *at = room(out, 1 + (size_t)bytes);

    *at++ = (unsigned char)tag;
    while (bytes > 0)
        *at++ = (unsigned char)(value >> (8 * --bytes));
}

static void put_bytes(struct out *out, const char *bytes, size_t size)
{
    memcpy(room(out, size), bytes, size);
}

static void write_atom(struct out *out, const char *name)
{
    put(out, SMALL_ATOM_UTF8, strlen(name), 1);
    put_bytes(out, name, strlen(name));
}

static void write_number(struct out *out, lua_Number n)
{
    union {
        double value;
        uint64_t bits;
    } bits = {n};
    bool whole = n == floor(n) && fabs(n) <= MOST_EXACT;
    uint64_t most;

    if (isnan(n) || isinf(n))
        luaL_error(out->L, "infinite, or not a number");
    if (whole && n >= 0 && n < 256) {
        put(out, SMALL_INTEGER, (uint64_t)n, 1);
    } else if (whole && fabs(n) < 0x7fffffff) {
        put(out, INTEGER, (uint32_t)(int32_t)n, 4);
    } else if (whole) {
        most = (uint64_t)fabs(n);
        put(out, SMALL_BIG, 8 << 8 | (n < 0), 2);
        for (int i = 0; i < 8; i++)
            *room(out, 1) = (unsigned char)(most >> (8 * i));
    } else {
        put(out, FLOAT, bits.bits, 8);
    }
}

static void count_value(struct out *out)
{
    if (++out->written % VALUES == 0)
        spend(out->L, VALUES);
}

/* How many keys it has; and whether they are 1 to that number. */
static size_t count_keys(struct out *out, int table, bool *is_list)
{
    size_t length = lua_objlen(out->L, table), n = 0;

    *is_list = true;
    for (lua_pushnil(out->L); lua_next(out->L, table); lua_pop(out->L, 1)) {
        lua_Number key;

        n++;
        count_value(out);
        if (!*is_list)
            continue;
        key = lua_type(out->L, -2) == LUA_TNUMBER ? lua_tonumber(out->L, -2) : 0;
        *is_list = key == floor(key) && key >= 1 && key <= (lua_Number)length;
    }
    *is_list = *is_list && n == length;
    return n;
}

static void write_table(struct out *out, int table, int depth)
{
    lua_State *L = out->L;
    bool is_list;
    size_t n = count_keys(out, table, &is_list);

    if (is_list && n > 0) {
        put(out, LIST, n, 4);
        for (size_t i = 1; i <= n; i++) {
            lua_rawgeti(L, table, (int)i);
            write_value(out, lua_gettop(L), depth);
            lua_pop(L, 1);
        }
    }
    if (is_list) {
        put(out, NIL, 0, 0);
        return;
    }
    put(out, MAP, n, 4);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (lua_istable(L, -2))     /* two may be equal to Erlang */
            luaL_error(L, "a table is no key for Erlang");
        write_value(out, lua_gettop(L) - 1, depth);
        write_value(out, lua_gettop(L), depth);
    }
}

static void write_value(struct out *out, int index, int depth)
{
    lua_State *L = out->L;
    const char *text;
    size_t size;

    if (depth == 0)
        luaL_error(L, "nested more than %d deep", MAX_DEPTH);
    luaL_checkstack(L, 4, "nested too deeply");
    count_value(out);
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        write_atom(out, "nil");
        break;
    case LUA_TBOOLEAN:
        write_atom(out, lua_toboolean(L, index) ? "true" : "false");
        break;
    case LUA_TNUMBER:
        write_number(out, lua_tonumber(L, index));
        break;
    case LUA_TSTRING:
        text = lua_tolstring(L, index, &size);
        put(out, BINARY, size, 4);
        put_bytes(out, text, size);
        break;
    case LUA_TTABLE:
        write_table(out, index, depth - 1);
        break;
    default:
        luaL_error(L, "a %s is no value for Erlang", luaL_typename(L, index));
    }
}

/* The stack from `first' on, as a list. */
void write_values(lua_State *L, int first, fair_bin *bin)
{
    struct out out = {L, script_of(L), bin, 0, 0};
    int last = lua_gettop(L);

    *room(&out, 1) = VERSION;
    if (first <= last)
        put(&out, LIST, (uint64_t)(last - first + 1), 4);
    for (int i = first; i <= last; i++)
        write_value(&out, i, MAX_DEPTH);
    put(&out, NIL, 0, 0);
    fair_resize_bin(out.script->task, bin, out.size);
}
