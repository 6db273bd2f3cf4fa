/*
 * compile.c - SQL is compiled: in place where that is known to be short.
 *
 * SQLite calls no callback meanwhile, and the length of a text says little
 * about how long it takes: "SELECT * FROM v" takes as long as the view is large,
 * a natural join of sixteen tables takes 18 ms.  So it is measured.  The first
 * statement of a shape is compiled on a dirty scheduler; so is one that took
 * long the last time, or that is LONG_SQL bytes long.
 *
 * The shape of a statement is its text without its numbers and strings.
 */
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "stmt.h"

enum {
    LONG_SQL = 2048,            /* bytes: no shape is kept of that */
    SHORT_NS = 60000,           /* twice a slice */
    PREPARE_COST = 300,         /* in opcodes, and one for four bytes */
    ROW_COST = 5
};

/* -- what is known --------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_in_word(char c)
{
    return is_digit(c) || c == '_' || (unsigned char)c >= 0x80
        || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static size_t end_of_word(const char *sql, size_t size, size_t i)
{
    while (i < size && (is_in_word(sql[i]) || sql[i] == '.'))
        i++;
    return i;
}

/* Of what is quoted, with the quote. */
static size_t end_of_quoted(const char *sql, size_t size, size_t i)
{
    const char *end = memchr(sql + i + 1, sql[i], size - i - 1);

    return end ? (size_t)(end - sql) + 1 : size;
}

static uint64_t mixed(uint64_t hash, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return hash;
}

/* Of the first statement; 0 when that is long. */
static uint64_t shape_of(const char *sql, size_t size)
{
    size_t most = size < LONG_SQL ? size : LONG_SQL, end;
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < most; i = end) {
        char c = sql[i];
        bool quoted = c == '\'' || c == '"' || c == '`';

        if (c == ';')
            return hash | 1;
        end = quoted ? end_of_quoted(sql, most, i)
            : is_in_word(c) ? end_of_word(sql, most, i) : i + 1;
        hash = mixed(hash, sql + i, c == '\'' || is_digit(c) ? 1 : end - i);
    }
    return most < size ? 0 : hash | 1;
}

static uint64_t *place_of(struct conn *conn, uint64_t shape)
{
    return &conn->short_shapes[(shape >> 32) % SHAPES];
}

static bool is_short(struct conn *conn, uint64_t shape)
{
    return shape != 0 && *place_of(conn, shape) == shape;
}

static void learn(struct conn *conn, uint64_t shape, uint64_t ns)
{
    uint64_t *place = place_of(conn, shape);

    if (ns <= SHORT_NS)
        *place = shape;
    else if (*place == shape)
        *place = 0;
}

/* -- compiling ------------------------------------------------------------- */

struct preparing {
    struct conn *conn;
    const char *sql, *tail;
    size_t size;
    sqlite3_stmt *stmt;
    int rc;
    uint64_t ns;
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void prepare_now(void *arg)
{
    struct preparing *p = arg;
    uint64_t since = now_ns();

    p->conn->sees_view = false;
    p->rc = sqlite3_prepare_v3(p->conn->db, p->sql, (int)p->size, 0, &p->stmt,
                               &p->tail);
    if (p->conn->busy_replaced)
        install_busy(p->conn);
    /* What PRAGMA threads has just set: a sort would wait, on its scheduler,
     * for threads that are no tasks. */
    sqlite3_limit(p->conn->db, SQLITE_LIMIT_WORKER_THREADS, 0);
    p->ns = now_ns() - since;
}

/* On the task's own stack, wherever it is: deep expressions need more than a
 * dirty scheduler has.  And what is read of the schema pauses. */
static void prepare(fair_task *t, struct preparing *p)
{
    uint64_t shape = shape_of(p->sql, p->size), yields;

    if (!is_short(p->conn, shape))
        to_dirty(p->conn);
    yields = fair_yields(t);
    prepare_now(p);
    if (fair_yields(t) == yields)
        learn(p->conn, shape, p->ns);
    fair_tick(t, PREPARE_COST + (size_t)(p->tail - p->sql) / 4);
    to_normal(p->conn);
}

int conn_prepare(struct conn *conn, const char *sql, size_t size,
                 sqlite3_stmt **stmt, const char **tail)
{
    struct preparing p = {conn, sql, sql, size, NULL, SQLITE_OK, 0};

    if (size > INT32_MAX)
        return SQLITE_TOOBIG;
    if (conn->task)
        prepare(conn->task, &p);
    else
        prepare_now(&p);
    *stmt = p.stmt;
    if (tail)
        *tail = p.tail;
    return p.rc;
}

/* Whether there is a word in it that may make it sort. */
static bool is_suspect(const char *sql, size_t size)
{
    static const char *const words[] = {"order", "group", "index", "over"};

    for (size_t i = 0; i + 4 <= size; i++)
        for (unsigned w = 0; w < sizeof words / sizeof *words; w++)
            if (i + strlen(words[w]) <= size
                && strncasecmp(sql + i, words[w], strlen(words[w])) == 0)
                return true;
    return false;
}

/* Whether the program has a sorter: the sort is one opcode, however much there
 * is to sort.  A view hides its words, and the library says only that there is
 * one (or a subquery). */
bool may_sort(struct conn *conn, const char *sql, size_t size)
{
    sqlite3_stmt *program = NULL;
    bool found = false;
    char *explain;

    if (!conn->sees_view && !is_suspect(sql, size))
        return false;
    if (!(explain = malloc(size + 9)))
        return true;
    memcpy(explain, "EXPLAIN ", 8);
    memcpy(explain + 8, sql, size);
    explain[size + 8] = '\0';
    if (conn_prepare(conn, explain, size + 8, &program, NULL) == SQLITE_OK)
        while (!found && sqlite3_step(program) == SQLITE_ROW) {
            const char *name = (char *)sqlite3_column_text(program, 1);

            found = name && strcmp(name, "SorterOpen") == 0;
            fair_tick(conn->task, ROW_COST);
        }
    sqlite3_finalize(program);
    free(explain);
    return found;
}
