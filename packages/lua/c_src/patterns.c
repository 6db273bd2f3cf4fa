/*
 * patterns.c - string.find, match, gmatch and gsub.
 */
#define _GNU_SOURCE        /* memmem */
#include <string.h>

#include "match.h"

static void begin(struct match *m, lua_State *L, int subject, int pattern)
{
    size_t size;

    m->L = L;
    m->subject = luaL_checklstring(L, subject, &size);
    m->end = m->subject + size;
    m->pattern = luaL_checklstring(L, pattern, &size);
    m->pattern_end = m->pattern + size;
    m->anchored = false;
    m->steps = 0;
}

/* That a pattern begins with ^, which to gmatch is a character. */
static void anchor(struct match *m)
{
    m->anchored = m->pattern < m->pattern_end && *m->pattern == '^';
    m->pattern += m->anchored;
}

/* -- captures -------------------------------------------------------------- */

/* Capture `i', or where there are none the whole match. */
static void push_capture(struct match *m, int i, const char *s, const char *e)
{
    lua_State *L = m->L;

    if (i >= m->count) {
        if (i > 0)
            luaL_error(L, "invalid capture index");
        lua_pushlstring(L, s, (size_t)(e - s));
    } else if (m->captures[i].size == POSITION) {
        lua_pushinteger(L, m->captures[i].from - m->subject + 1);
    } else if (m->captures[i].size == OPEN) {
        luaL_error(L, "unfinished capture");
    } else {
        lua_pushlstring(L, m->captures[i].from, (size_t)m->captures[i].size);
    }
}

/* All captures; `s' NULL: without them not the whole match either. */
static int push_captures(struct match *m, const char *s, const char *e)
{
    int n = m->count == 0 && s ? 1 : m->count;

    luaL_checkstack(m->L, n, "too many captures");
    for (int i = 0; i < n; i++)
        push_capture(m, i, s, e);
    return n;
}

/* -- find and match -------------------------------------------------------- */

/* Where they begin; from 0. */
static size_t start_of(lua_State *L, size_t size)
{
    lua_Integer init = luaL_optinteger(L, 3, 1);

    if (init < 0)
        init += (lua_Integer)size + 1;
    if (init < 1)
        init = 1;
    return (size_t)init - 1 < size ? (size_t)init - 1 : size;
}

static int find_plain(lua_State *L, const char *s, size_t size, size_t at)
{
    size_t wanted;
    const char *what = luaL_checklstring(L, 2, &wanted);
    const char *found = memmem(s + at, size - at, what, wanted);

    spend(L, size / 64);
    if (!found) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - s + 1);
    lua_pushinteger(L, found - s + (lua_Integer)wanted);
    return 2;
}

static bool is_plain(const char *pattern, const char *end)
{
    while (pattern < end && !(*pattern && strchr("^$*+?.([%-", *pattern)))
        pattern++;
    return pattern == end;
}

static int find_or_match(lua_State *L, bool find)
{
    struct match m;
    const char *s, *e;
    size_t size, at;

    begin(&m, L, 1, 2);
    size = (size_t)(m.end - m.subject);
    at = start_of(L, size);
    if (find && (lua_toboolean(L, 4) || is_plain(m.pattern, m.pattern_end)))
        return find_plain(L, m.subject, size, at);
    anchor(&m);
    s = m.subject + at;
    e = match_from(&m, &s);
    if (e && !find)
        return push_captures(&m, s, e);
    if (!e) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, s - m.subject + 1);
    lua_pushinteger(L, e - m.subject);
    return 2 + push_captures(&m, NULL, NULL);
}

static int find(lua_State *L)
{
    return find_or_match(L, true);
}

static int match(lua_State *L)
{
    return find_or_match(L, false);
}

/* -- gmatch ---------------------------------------------------------------- */

/* Upvalues: the subject, the pattern, where to continue. */
static int gmatch_next(lua_State *L)
{
    struct match m;
    const char *s, *e;

    begin(&m, L, lua_upvalueindex(1), lua_upvalueindex(2));
    s = m.subject + lua_tointeger(L, lua_upvalueindex(3));
    e = match_from(&m, &s);
    if (!e)
        return 0;
    lua_pushinteger(L, e - m.subject + (e == s));
    lua_replace(L, lua_upvalueindex(3));
    return push_captures(&m, s, e);
}

static int gmatch(lua_State *L)
{
    luaL_checkstring(L, 1);
    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, gmatch_next, 3);
    return 1;
}

/* -- gsub ------------------------------------------------------------------ */

/* The string that replaces a match: %0 to %9 are captures. */
static void add_text(struct match *m, luaL_Buffer *b, const char *s,
                     const char *e)
{
    size_t size;
    const char *text = lua_tolstring(m->L, 3, &size);

    for (const char *end = text + size; text < end; text++) {
        match_step(m);
        if (*text != '%') {
            luaL_addchar(b, *text);
        } else if (++text < end && *text >= '0' && *text <= '9') {
            if (*text == '0') {
                luaL_addlstring(b, s, (size_t)(e - s));
            } else {
                push_capture(m, *text - '1', s, e);
                luaL_addvalue(b);
            }
        } else if (text < end) {
            luaL_addchar(b, *text);
        }
    }
}

/* gsub with a text; of tables and functions the prelude knows. */
static int gsub_text(lua_State *L)
{
    struct match m;
    const char *s, *e;
    int type = lua_type(L, 3), done = 0, most;
    luaL_Buffer b;

    begin(&m, L, 1, 2);
    if (type != LUA_TNUMBER && type != LUA_TSTRING)
        luaL_typerror(L, 3, "string/function/table");
    most = lua_isnoneornil(L, 4) ? INT32_MAX : luaL_checkint(L, 4);
    anchor(&m);
    luaL_buffinit(L, &b);
    for (s = m.subject; done < most; ) {
        match_step(&m);
        e = match_at(&m, s);
        if (e) {
            done++;
            add_text(&m, &b, s, e);
        }
        if (e && e > s)
            s = e;
        else if (s < m.end)
            luaL_addchar(&b, *s++);
        else
            break;
        if (m.anchored)
            break;
    }
    luaL_addlstring(&b, s, (size_t)(m.end - s));
    luaL_pushresult(&b);
    lua_pushinteger(L, done);
    return 2;
}

/* scan(Text, Pattern, At, First): where the next match begins and ends, and its
 * captures (the first one), or itself.  Nothing where there is none. */
static int scan(lua_State *L)
{
    struct match m;
    const char *s, *e;

    begin(&m, L, 1, 2);
    anchor(&m);
    s = m.subject + start_of(L, (size_t)(m.end - m.subject));
    e = match_from(&m, &s);
    if (!e)
        return 0;
    lua_pushinteger(L, s - m.subject + 1);
    lua_pushinteger(L, e - m.subject);
    if (!lua_toboolean(L, 4))
        return 2 + push_captures(&m, s, e);
    push_capture(&m, 0, s, e);
    return 3;
}

const luaL_Reg match_functions[] = {
    {"find", find}, {"match", match}, {"gmatch", gmatch}, {NULL, NULL}
};

const luaL_Reg own_match_functions[] = {
    {"gsub_text", gsub_text}, {"scan", scan}, {NULL, NULL}
};
