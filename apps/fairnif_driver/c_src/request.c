/*
 * request.c - fairnif_driver:control/3 and call/3: the waiting caller, and the
 * delivery of the answer.
 *
 * The caller registers a request with the port, in C, and then calls the port
 * as anybody does.  The port's control finds the request by its caller, so
 * that nothing is added to the data, and a call that is not put off is
 * answered as by erlang:port_control/3.
 *
 * A request is a resource object on its caller's heap: when the caller dies,
 * its destructor tells the job that it is unwanted.
 *
 * Must never be done here: send to a caller that has said that it does not
 * wait any more (it would find a stray message).
 */
#include "request.h"

static drv_u64 requests;
static ErlNifResourceType *request_type;

/* -- requests -------------------------------------------------------------- */

static void unlist(struct drv_port *p, struct drv_request *r)
{
    struct drv_request **at = &p->requests;

    if (!r->listed)
        return;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    r->listed = false;
}

struct drv_request *drv__claim(struct drv_port *p)
{
    ErlDrvTermData caller = p->driver->vm.caller(p->pub.port);
    struct drv_request *r = p->requests;

    while (r && r->caller.pid != caller)
        r = r->next;
    if (r)
        unlist(p, r);
    return r;
}

/* With the lock held: the job has no request any more, and the request no job;
 * what has not begun never will. */
static void part(struct drv_request *r)
{
    if (!r->job)
        return;
    r->job->request = NULL;
    r->job->unwanted = true;
    r->job = NULL;
}

static void request_dtor(ErlNifEnv *env, void *obj)
{
    struct drv_request *r = obj;
    struct drv_port *p = r->port;

    (void)env;
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    unlist(p, r);
    part(r);
    pthread_mutex_unlock(&p->lock);
    enif_free_env(r->tag_env);
    drv__port_unref(p);
    atomic_fetch_sub(&requests, 1);
}

static struct drv_request *request_of(ErlNifEnv *env, ERL_NIF_TERM term)
{
    void *obj;

    return enif_get_resource(env, term, request_type, &obj) ? obj : NULL;
}

/* known(Port) -> boolean() */
ERL_NIF_TERM drv__known(ErlNifEnv *env, int argc,
                        const ERL_NIF_TERM argv[])
{
    struct drv_port *p = drv__lookup(env, argv[0]);

    (void)argc;
    if (p)
        drv__port_unref(p);
    return enif_make_atom(env, p ? "true" : "false");
}

/* request(Port, Tag) -> Request | none */
ERL_NIF_TERM drv__request(ErlNifEnv *env, int argc,
                          const ERL_NIF_TERM argv[])
{
    struct drv_port *p = drv__lookup(env, argv[0]);
    struct drv_request *r;
    ERL_NIF_TERM term;

    (void)argc;
    if (!p)
        return enif_make_atom(env, "none");
    r = enif_alloc_resource(request_type, sizeof *r);
    if (r)
        memset(r, 0, sizeof *r);
    if (!r || !(r->tag_env = enif_alloc_env())) {
        if (r)
            enif_release_resource(r);
        drv__port_unref(p);
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    }
    r->tag = enif_make_copy(r->tag_env, argv[1]);
    enif_self(env, &r->caller);
    r->port = p;
    atomic_fetch_add(&requests, 1);
    pthread_mutex_lock(&p->lock);
    r->next = p->requests;
    p->requests = r;
    r->listed = true;
    pthread_mutex_unlock(&p->lock);
    term = enif_make_resource(env, r);
    enif_release_resource(r);
    return term;
}

/* deferred(Request) -> boolean(), after the call */
ERL_NIF_TERM drv__deferred(ErlNifEnv *env, int argc,
                           const ERL_NIF_TERM argv[])
{
    struct drv_request *r = request_of(env, argv[0]);
    bool deferred;

    (void)argc;
    if (!r)
        return enif_make_badarg(env);
    pthread_mutex_lock(&r->port->lock);
    deferred = r->deferred;
    pthread_mutex_unlock(&r->port->lock);
    return enif_make_atom(env, deferred ? "true" : "false");
}

/* abandon(Request) -> abandoned: no answer comes any more; ended: it has
 * been sent, if one was; sending: now is */
ERL_NIF_TERM drv__abandon(ErlNifEnv *env, int argc,
                          const ERL_NIF_TERM argv[])
{
    struct drv_request *r = request_of(env, argv[0]);
    const char *state = "ended";

    (void)argc;
    if (!r)
        return enif_make_badarg(env);
    pthread_mutex_lock(&r->port->lock);
    unlist(r->port, r);
    if (r->job && r->job->sending) {
        state = "sending";
    } else if (r->job) {
        part(r);
        state = "abandoned";
    }
    pthread_mutex_unlock(&r->port->lock);
    return enif_make_atom(env, state);
}

/* -- the answer ------------------------------------------------------------ */

static ERL_NIF_TERM binary(ErlNifEnv *env, const char *bytes, size_t size)
{
    ERL_NIF_TERM term;
    unsigned char *data = enif_make_new_binary(env, size, &term);

    if (size > 0)
        memcpy(data, bytes, size);
    return term;
}

/* What control left, as the VM would read it. */
static ERL_NIF_TERM control_result(struct drv_job *job, ErlNifEnv *env)
{
    size_t size = (size_t)job->result;

    if (!job->rbuf)
        return enif_make_list(env, 0);
    if (!(job->port->control_flags & PORT_CONTROL_FLAG_BINARY))
        return enif_make_string_len(env, job->rbuf, size, ERL_NIF_LATIN1);
    if (job->rbuf == job->small)
        return binary(env, job->small, size);
    return binary(env, ((ErlDrvBinary *)job->rbuf)->orig_bytes,
                  (size_t)((ErlDrvBinary *)job->rbuf)->orig_size);
}

static bool result_of(struct drv_job *job, ErlNifEnv *env, ERL_NIF_TERM *result)
{
    if (job->result < 0)
        return false;
    if (job->kind == K_CONTROL) {
        *result = control_result(job, env);
        return true;
    }
    return job->rbuf && job->result > 0
        && enif_binary_to_term(env, (unsigned char *)job->rbuf,
                               (size_t)job->result, result, 0) > 0;
}

static void free_result(struct drv_job *job)
{
    const struct fair__drv_vm *vm = &job->port->driver->vm;

    if (job->result < 0 || !job->rbuf || job->rbuf == job->small)
        return;
    if (job->kind == K_CALL) {
        if (!(job->call_flags & DRIVER_CALL_KEEP_BUFFER))
            vm->free(job->rbuf);
    } else if (job->port->control_flags & PORT_CONTROL_FLAG_BINARY) {
        vm->free_bin((ErlDrvBinary *)job->rbuf);
    } else {
        vm->free(job->rbuf);
    }
}

/* {Tag, {ok, Result}} or {Tag, error} to the process that waits; without a
 * lock, since a large result takes time to copy. */
void drv__answer(struct drv_job *job)
{
    struct drv_port *p = job->port;
    ErlNifEnv *env = job->tag_env;
    ERL_NIF_TERM result;

    pthread_mutex_lock(&p->lock);
    job->sending = job->request != NULL && !p->closed;
    pthread_mutex_unlock(&p->lock);
    if (job->sending) {
        if (result_of(job, env, &result))
            result = enif_make_tuple2(env, enif_make_atom(env, "ok"), result);
        else
            result = enif_make_atom(env, "error");
        enif_send(NULL, &job->caller, env,
                  enif_make_tuple2(env, job->tag, result));
    }
    free_result(job);
}

/* -- of the module --------------------------------------------------------- */

uint64_t drv__requests(void)
{
    return GET(requests);
}

bool drv__requests_open(ErlNifEnv *env)
{
    ErlNifResourceTypeInit init = {.dtor = request_dtor};
    ErlNifResourceType *type =
        drv__runtime->open_type(env, "fairnif_driver_request", init);

    if (type)
        request_type = type;
    return type != NULL;
}
