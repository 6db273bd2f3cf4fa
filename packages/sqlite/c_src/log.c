/*
 * log.c - what SQLite writes to its error log goes to one process.
 *
 * The log is the whole library's: what others in the node do with the same
 * library is in it too.  Older versions of SQLite take a log only before they
 * are first used, so it is set as this library is loaded.
 *
 * SQLite calls back on any thread, in the middle of anything, and maybe with
 * locks of its own held: what is called sends a message, and never pauses.
 */
#include "answer.h"

static ErlNifMutex *lock;       /* over the next two; it stays */
static ErlNifPid listener;
static bool is_heard;
static bool is_set;             /* in SQLite */

static bool get_listener(ErlNifPid *pid)
{
    bool heard;

    enif_mutex_lock(lock);
    *pid = listener;
    heard = is_heard;
    enif_mutex_unlock(lock);
    return heard;
}

static void forget(const ErlNifPid *dead)
{
    enif_mutex_lock(lock);
    if (enif_compare_pids(&listener, dead) == 0)
        is_heard = false;
    enif_mutex_unlock(lock);
}

static void logged(void *arg, int code, const char *message)
{
    fair_task *t = fair_current();
    ErlNifPid pid;
    ErlNifEnv *env;

    (void)arg;
    if (!get_listener(&pid) || !(env = enif_alloc_env()))
        return;
    if (!enif_send(t ? fair_env(t) : NULL, &pid, env,
                   enif_make_tuple3(env, enif_make_atom(env, "log"),
                                    enif_make_int(env, code),
                                    text(env, message))))
        forget(&pid);
    enif_free_env(env);
}

bool log_open(void)
{
    if (!lock && !(lock = enif_mutex_create("sqlite.log")))
        return false;
    if (!is_set)
        is_set = sqlite3_config(SQLITE_CONFIG_LOG, logged, NULL) == SQLITE_OK;
    return true;
}

/* set_log_hook(Pid | nil | undefined) -> ok | {error, library_in_use} */
ERL_NIF_TERM log_set(fair_task *t)
{
    ErlNifPid pid;
    bool heard = enif_get_local_pid(fair_env(t), fair_arg(t, 0), &pid);

    if (!heard && !is_nil(fair_env(t), fair_arg(t, 0)))
        return fair_badarg(t);
    enif_mutex_lock(lock);
    log_open();
    if (heard)
        listener = pid;
    is_heard = heard;
    heard = is_set;
    enif_mutex_unlock(lock);
    return heard ? atom(t, "ok") : error_with(t, "library_in_use");
}
