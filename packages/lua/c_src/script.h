/*
 * script.h - a sandbox: one state of LuaJIT, its memory and its limits.
 *
 * All that a state owns is memory of its own arena (memory.c).  So a state whose
 * call was dropped in the middle is freed as a whole, and nothing of it is
 * ever run again: there is no lua_close.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdbool.h>

#include <lua.h>
#include <lauxlib.h>
#include <lualib.h>
#include <luajit.h>

#include <fairnif.h>

enum {
    CLASSES = 16,                   /* of small blocks */
    LARGE = 64 * 1024,              /* work on such a block may be long */
    EVERY = 1000,                   /* instructions between two ticks, where
                                       they are counted */
    TURN_US = 300,                  /* a script runs so long at a time */
    STACK = 256 * 1024,
    MAX_NESTED_COROUTINES = 100,    /* each takes 80 bytes of it */
    MAX_DEPTH = 64                  /* of values that come and go */
};

struct ring {
    struct ring *next, *prev;
};

/* What ended a script against its will.  After MEMORY LuaJIT is not asked to do
 * anything more. */
enum stop { GOES_ON, INSTRUCTIONS, TIMEOUT, MEMORY };

struct script {
    fair_mutex lock;                /* of all below */
    fair_task *task;                /* that holds it */
    unsigned long load;             /* of the library that made it */
    bool busy;                      /* and no task: a call was dropped */

    struct ring slabs[CLASSES];     /* with room */
    struct ring full, blocks;
    size_t held, most;              /* bytes got of the VM, and their limit */
    size_t used, large;             /* bytes lent to Lua; in large blocks */
    size_t collect_at;              /* when this much is used: a collection */
    bool shrinks;                   /* a block, just now */
    unsigned long fails_in;         /* for tests: allocations until one fails */

    lua_State *lua;
    lua_State *thread;              /* of the call under way, or NULL */
    ErlNifPid caller;               /* who has to answer a callback of it */
    bool asks;                      /* it waits for that answer */
    bool running;                   /* the script itself */
    bool hooked;                    /* it is to be left: coroutines yield */
    int depth;                      /* coroutines that are in others */

    enum stop stop;
    bool limited;
    int every, fine;                /* the hook as armed, and as learned; 0: free */
    volatile bool free;             /* there is no hook, but for the alarm's */
    volatile ErlNifTime rang;       /* when; 0: has not */
    bool alarm;                     /* is set */
    int early;                      /* slices in a row that began with it */
    ErlNifSInt64 left;              /* instructions */
    bool collects;                  /* for long */
    ErlNifTime deadline;            /* ns; 0: none */
    ErlNifTime turn, looked;        /* when it was last ticked; the time asked */
};

static inline struct script *script_of(lua_State *L)
{
    void *s;

    lua_getallocf(L, &s);
    return s;
}

/* memory.c */
void memory_init(struct script *s, size_t most);
void *memory_realloc(void *script, void *ptr, size_t before, size_t size);
void memory_free(fair_task *t, struct script *s);

/* run.c */
/* What every C function with a loop calls.  May pause; may raise. */
void spend(lua_State *L, size_t units);
/* Where an error was caught. */
void look_again(lua_State *L);
void begin_turn(struct script *s, fair_task *t);
int take_turns(struct script *s, fair_task *t, int values);
void arm(struct script *s, int every);
void go_dirty(struct script *s);
void collect_soon(struct script *s, bool asked);
bool collect_if_due(struct script *s);      /* false: MEMORY */
bool continue_turn(struct script *s, fair_task *t);
void stop(lua_State *L, enum stop why);     /* ends the call; raises */
extern const char *const stops[];           /* as Erlang calls them */

/* sandbox.c */
int open_sandbox(lua_State *L);     /* a lua_CFunction: names on the stack */
int load_text(lua_State *L, const char *text, size_t size, const char *name);
extern const char call_token;       /* its address is what a callback yields */

/* patterns.c */
extern const luaL_Reg match_functions[], own_match_functions[];

/* value.c: values as Erlang's external term format.  On the stack of `L', from
 * `first' on.  Both raise what is wrong. */
int read_values(lua_State *L, const unsigned char *data, size_t size);
void write_values(lua_State *L, int first, fair_bin *bin);

/* plain.c */
ERL_NIF_TERM plain_eval(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
