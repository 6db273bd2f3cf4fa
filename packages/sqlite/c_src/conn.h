/*
 * conn.h - a connection, and who may touch it.
 *
 * SQLite is opened with SQLITE_OPEN_NOMUTEX: it holds no lock of its own
 * while a statement runs, so a task may pause in its middle.  In return the
 * connection belongs to one user at a time:
 *
 *   - tasks take `lock`, in the order of coming, and hold it over their pauses;
 *   - then they set `use` from IDLE to TASK, and from then on `db`, its
 *     statements, and what they point to are theirs;
 *   - who is no task (a plain NIF) must not wait: it sets `use` from IDLE to
 *     OTHER, or leaves the connection alone.
 *
 * A statement that no term refers to any more is put on `dropped`, which needs
 * no lock; the task that is done with the connection finalizes what is there.
 *
 * A call of SQLite's that may read or write a file pauses (vfs.c): terms are made
 * after it.
 */
#ifndef CONN_H
#define CONN_H

#include <stdatomic.h>
#include <stdbool.h>

#include <sqlite3.h>

#include <fairnif.h>

enum use { IDLE, TASK, OTHER };

/* How many opcodes of SQLite's machine lie between two ticks (README.md: how
 * they were chosen). */
enum { OPCODES = 50 };

enum { SHAPES = 128 };           /* of statements that are remembered */

/* A prepared statement.  It is the connection's, and outlives the term if need
 * be. */
struct core {
    sqlite3_stmt *stmt;         /* NULL: released, or the connection is closed */
    struct core *next, *prev;   /* of the connection's statements */
    struct core *next_dropped;
    ErlNifEnv **kept;           /* by parameter: whose binary is bound, or NULL */
    int kept_count;
    size_t kept_bytes;
    bool may_sort;              /* the sort itself cannot tick */
};

struct conn {
    sqlite3 *db;                /* NULL: its files are closed */
    bool closed;                /* by close/1; kept statements still work */
    fair_mutex lock;
    _Atomic int use;            /* enum use */
    _Atomic(struct core *) dropped;
    struct core *first;         /* its statements: the user's */
    ErlNifMutex *closing;       /* interrupt/1 against close/1, briefly */
    fair_task *task;            /* who pauses in callbacks; NULL: none may */
    _Atomic int cancelled;      /* by cancel/1: this call is to end */
    bool rollback;              /* when a caller dies */
    bool on_disk;
    bool busy_replaced;         /* PRAGMA busy_timeout did that */
    bool sees_view;             /* of the statement that is prepared */
    bool may_sort;              /* of the statement that runs */
    bool moved;                 /* its task, to a dirty scheduler */
    uint64_t short_shapes[SHAPES];  /* of SQL that is compiled in place */
    int busy_ms;
    unsigned ops;               /* since the last row, by OPCODES */
    unsigned char denied[64];   /* by action of the authorizer */
    bool has_hook;
    ErlNifPid hook;
};

/* The resource of a statement's term. */
struct stmt {
    struct conn *conn;          /* kept */
    struct core *core;
};

/* Deep expressions and patterns make SQLite recur (README.md). */
enum { STACK = 1024 * 1024 };

extern fair_resource_type *conn_type, *stmt_type;

int conn_types(ErlNifEnv *env);

/* The connection of argument `i` becomes the task's.  Answers NULL when it
 * cannot be: the body then returns `*answer`.  Open ones only. */
struct conn *conn_enter(fair_task *t, unsigned i, ERL_NIF_TERM *answer);

/* The same with the connection at hand, also when it is closed. */
bool conn_take(fair_task *t, struct conn *conn, ERL_NIF_TERM *answer);

/* Gives it to the next.  `stmt`, where it is not NULL, ran: when the task was
 * cancelled it is reset, and the transaction is rolled back if that is wanted.
 * May pause; what it answers is `answer`, as it is then. */
ERL_NIF_TERM conn_leave(fair_task *t, struct conn *conn, sqlite3_stmt *stmt,
                        ERL_NIF_TERM answer);

/* Finalizes what was dropped, unless a task is at work: then it does. */
void conn_drain(fair_task *t, struct conn *conn);

/* For who is no task: false when anybody is at work. */
bool conn_try(struct conn *conn);
void conn_untry(struct conn *conn);

/* `fn(arg)` on another stack, where nothing of this connection pauses.  It has
 * run when this returns, also when the task was cancelled. */
void conn_call(fair_task *t, struct conn *conn, enum fair_mode where,
               size_t units, void (*fn)(void *), void *arg);

/* Compiles the first statement of `sql`; `*tail` is what follows it.  Pauses:
 * compile.c. */
int conn_prepare(struct conn *conn, const char *sql, size_t size,
                 sqlite3_stmt **stmt, const char **tail);

/* Whether what it was compiled to has a sorter.  Pauses. */
bool may_sort(struct conn *conn, const char *sql, size_t size);

/* What is open is rolled back, and the files are closed: when `keeps`, not before
 * the last statement is released.  Answers SQLite's code.  For the connection's
 * user.  Pauses. */
int conn_end(fair_task *t, struct conn *conn, bool keeps);

/* A step of a statement.  Pauses. */
int conn_step(struct conn *conn, sqlite3_stmt *stmt, bool may_sort,
              size_t bound);

void core_release(struct conn *conn, struct core *core);
void core_link(struct conn *conn, struct core *core);
void core_drop(fair_task *t, struct conn *conn, struct core *core);

/* Handlers: handlers.c. */
void install_handlers(struct conn *conn);
int busy(void *conn, int count);
void install_busy(struct conn *conn);
void install_hook(struct conn *conn);

/* The task continues on a dirty CPU scheduler: what comes cannot tick.  And
 * comes back, if it has left. */
void to_dirty(struct conn *conn);
void to_normal(struct conn *conn);

ERL_NIF_TERM conn_open(fair_task *t);
ERL_NIF_TERM conn_close(fair_task *t);

#endif
