/*
 * match.c - whether a pattern fits.
 *
 * A pattern can take time that grows exponentially with the subject, and within
 * LuaJIT's matcher no hook is called.  This one counts its steps, and ticks.
 *
 * A matcher answers where the match ends, or NULL.
 */
#include "match.h"

enum {
    MAX_NESTED = 200,               /* of items that may have to be tried again */
    STEPS = 512                     /* between two ticks */
};

static const char *match_here(struct match *m, const char *s, const char *p);

/* Counts bytes that were looked at. */
static void work(struct match *m, size_t bytes)
{
    m->steps += bytes;
    if (m->steps >= STEPS) {
        spend(m->L, m->steps / 4);
        m->steps = 0;
    }
}

void match_step(struct match *m)
{
    work(m, 1);
}

/* -- one character --------------------------------------------------------- */

static bool is_between(int c, int from, int to)
{
    return from <= c && c <= to;
}

static bool is_alpha(int c)
{
    return is_between(c | 0x20, 'a', 'z');
}

static bool is_digit(int c)
{
    return is_between(c, '0', '9');
}

/* %a and so on, of ASCII; an upper case letter is the opposite. */
static bool in_class(int c, int class)
{
    bool is;

    switch (class | 0x20) {
    case 'a': is = is_alpha(c); break;
    case 'c': is = c < 32 || c == 127; break;
    case 'd': is = is_digit(c); break;
    case 'g': is = is_between(c, 33, 126); break;
    case 'l': is = is_between(c, 'a', 'z'); break;
    case 'p': is = is_between(c, 33, 126) && !is_alpha(c) && !is_digit(c); break;
    case 's': is = c == ' ' || is_between(c, '\t', '\r'); break;
    case 'u': is = is_between(c, 'A', 'Z'); break;
    case 'w': is = is_alpha(c) || is_digit(c); break;
    case 'x': is = is_digit(c) || is_between(c | 0x20, 'a', 'f'); break;
    case 'z': is = c == 0; break;
    default: return c == class;     /* not a letter, or none of these */
    }
    return is_alpha(class) && is_between(class, 'A', 'Z') ? !is : is;
}

/* Of the set that begins at `p', behind its bracket and ^: its closing one. */
static const char *set_end(struct match *m, const char *p)
{
    const char *first = p;

    for (; p < m->pattern_end; p++) {
        if (*p == ']' && p > first) {
            work(m, (size_t)(p - first) / 2);
            return p;
        }
        if (*p == '%' && ++p == m->pattern_end)
            break;
    }
    luaL_error(m->L, "malformed pattern (missing ']')");
    return NULL;
}

/* Behind the item of one character that begins at `p'. */
static const char *item_end(struct match *m, const char *p)
{
    switch (*p++) {
    case '%':
        if (p == m->pattern_end)
            luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 1;
    case '[':
        if (p < m->pattern_end && *p == '^')
            p++;
        return set_end(m, p) + 1;
    default:
        return p;
    }
}

/* `end' is at the closing bracket. */
static bool in_set(int c, const char *p, const char *end)
{
    bool negated = *p == '^', found = false;

    for (p += negated; p < end && !found; p++) {
        if (*p == '%') {
            p++;
            found = in_class(c, (unsigned char)*p);
        } else if (p + 2 < end && p[1] == '-') {
            found = is_between(c, (unsigned char)p[0], (unsigned char)p[2]);
            p += 2;
        } else {
            found = c == (unsigned char)*p;
        }
    }
    return found != negated;
}

/* Whether the character at `s' is what the item from `p' to `end' asks for. */
static bool is_one(struct match *m, const char *s, const char *p,
                   const char *end)
{
    int c;

    if (s >= m->end)
        return false;
    c = (unsigned char)*s;
    switch (*p) {
    case '.': return true;
    case '%': return in_class(c, (unsigned char)p[1]);
    case '[':
        work(m, (size_t)(end - p) / 2);
        return in_set(c, p + 1, end - 1);
    default: return c == (unsigned char)*p;
    }
}

/* -- items ----------------------------------------------------------------- */

/* As many as there are, then fewer, until the rest of the pattern fits. */
static const char *match_most(struct match *m, const char *s, const char *p,
                              const char *end)
{
    const char *to = s, *found = NULL;

    while (is_one(m, to, p, end)) {
        to++;
        match_step(m);
    }
    for (;;) {
        found = match_here(m, to, end + 1);
        if (found || to == s)
            return found;
        to--;
        match_step(m);
    }
}

static const char *match_least(struct match *m, const char *s, const char *p,
                               const char *end)
{
    for (;;) {
        const char *found = match_here(m, s, end + 1);

        if (found || !is_one(m, s, p, end))
            return found;
        s++;
        match_step(m);
    }
}

static const char *match_open(struct match *m, const char *s, const char *p,
                              ptrdiff_t size)
{
    const char *found;

    if (m->count == MAX_CAPTURES)
        luaL_error(m->L, "too many captures");
    m->captures[m->count].from = s;
    m->captures[m->count].size = size;
    m->count++;
    found = match_here(m, s, p);
    if (!found)
        m->count--;
    return found;
}

static const char *match_close(struct match *m, const char *s, const char *p)
{
    int i = m->count - 1;
    const char *found;

    while (i >= 0 && m->captures[i].size != OPEN)
        i--;
    if (i < 0)
        luaL_error(m->L, "invalid pattern capture");
    m->captures[i].size = s - m->captures[i].from;
    found = match_here(m, s, p);
    if (!found)
        m->captures[i].size = OPEN;
    return found;
}

/* %1: the same bytes again; of a position never. */
static const char *match_again(struct match *m, const char *s, int digit)
{
    int i = digit - '1';
    size_t size;

    if (i < 0 || i >= m->count || m->captures[i].size == OPEN)
        luaL_error(m->L, "invalid capture index");
    if (m->captures[i].size == POSITION)
        return NULL;
    size = (size_t)m->captures[i].size;
    work(m, size / 16);
    if ((size_t)(m->end - s) < size
        || memcmp(s, m->captures[i].from, size) != 0)
        return NULL;
    return s + size;
}

/* %bxy: balanced. */
static const char *match_balanced(struct match *m, const char *s, const char *p)
{
    size_t open = 1;

    if (m->pattern_end - p < 2)
        luaL_error(m->L, "unbalanced pattern");
    if (s >= m->end || *s != p[0])
        return NULL;
    for (s++; s < m->end; s++) {
        if (*s == p[0] && *s != p[1])
            open++;
        if (*s == p[1] && --open == 0)
            return s + 1;
        match_step(m);
    }
    return NULL;
}

/* %f[set]: between a character outside and one inside. */
static bool is_frontier(struct match *m, const char *s, const char *p,
                        const char *end)
{
    int before = s == m->subject ? 0 : (unsigned char)s[-1];
    int after = s == m->end ? 0 : (unsigned char)*s;

    work(m, (size_t)(end - p));
    return !in_set(before, p + 1, end - 1) && in_set(after, p + 1, end - 1);
}

/* Continues behind the item, or answers through `*found' and NULL. */
static const char *match_item(struct match *m, const char **at, const char *p,
                              const char **found)
{
    const char *end = item_end(m, p), *s = *at;
    int more = end < m->pattern_end ? *end : 0;

    switch (more) {
    case '*':
        *found = match_most(m, s, p, end);
        return NULL;
    case '+':
        *found = is_one(m, s, p, end) ? match_most(m, s + 1, p, end) : NULL;
        return NULL;
    case '-':
        *found = match_least(m, s, p, end);
        return NULL;
    case '?':
        if (is_one(m, s, p, end)
            && (*found = match_here(m, s + 1, end + 1)) != NULL)
            return NULL;
        return end + 1;
    default:
        if (!is_one(m, s, p, end)) {
            *found = NULL;
            return NULL;
        }
        *at = s + 1;
        return end;
    }
}

/* Those that begin with %. */
static const char *match_special(struct match *m, const char **at,
                                 const char *p, const char **found)
{
    const char *end;

    *found = NULL;
    switch (p + 1 < m->pattern_end ? p[1] : 0) {
    case 'b':
        *at = match_balanced(m, *at, p + 2);
        return *at ? p + 4 : NULL;
    case 'f':
        if (p + 2 >= m->pattern_end || p[2] != '[')
            luaL_error(m->L, "missing '[' after '%%f' in pattern");
        end = item_end(m, p + 2);
        return is_frontier(m, *at, p + 2, end) ? end : NULL;
    case '0': case '1': case '2': case '3': case '4':
    case '5': case '6': case '7': case '8': case '9':
        *at = match_again(m, *at, p[1]);
        return *at ? p + 2 : NULL;
    default:
        return match_item(m, at, p, found);
    }
}

static const char *match_items(struct match *m, const char *s, const char *p)
{
    const char *found = NULL;

    while (p && p < m->pattern_end) {
        match_step(m);
        switch (*p) {
        case '(':
            if (p + 1 < m->pattern_end && p[1] == ')')
                return match_open(m, s, p + 2, POSITION);
            return match_open(m, s, p + 1, OPEN);
        case ')':
            return match_close(m, s, p + 1);
        case '$':
            if (p + 1 == m->pattern_end)
                return s == m->end ? s : NULL;
            p = match_item(m, &s, p, &found);
            break;
        case '%':
            p = match_special(m, &s, p, &found);
            break;
        default:
            p = match_item(m, &s, p, &found);
        }
    }
    return p ? s : found;
}

static const char *match_here(struct match *m, const char *s, const char *p)
{
    const char *found;

    if (++m->nested > MAX_NESTED)
        luaL_error(m->L, "pattern too complex");
    found = match_items(m, s, p);
    m->nested--;
    return found;
}

const char *match_at(struct match *m, const char *s)
{
    m->count = 0;
    m->nested = 0;
    return match_here(m, s, m->pattern);
}

const char *match_from(struct match *m, const char **start)
{
    for (const char *s = *start; s <= m->end; s++) {
        const char *e = match_at(m, s);

        if (e) {
            *start = s;
            return e;
        }
        if (m->anchored)
            break;
    }
    return NULL;
}
