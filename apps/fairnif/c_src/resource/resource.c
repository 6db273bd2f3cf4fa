/*
 * resource.c - resource objects whose callbacks are tasks: fair resources.
 *
 * The VM calls a destructor, a `down` or a `stop` on any thread, mostly inside
 * its garbage collector, and waits for it.  Here such a callback is noted, and
 * runs as a task of no process: at once, in the VM's call, while it is learned
 * to be short; else on a thread of the pool.
 *
 *     called --> due, at its object --> begins, a turn of its type's --.
 *        |                                  ^                          v
 *        |                                  '-- pool: no stack    task: runs
 *        '--> in place: runs --> pauses --> pool --> runs ...        |
 *                |                                                   v
 *                '-------------------------------------------> ended: the next
 *
 * Who owns what: a callback owns its task, its object (`cleanup`) or a
 * reference to it (`down`, `stop`), and so a hold on the author's library: the
 * VM keeps it mapped while there are objects of its types.  The VM's object
 * goes when the destructor returns; another one of the type takes its place, a
 * mere pin.  A load that takes the type over takes it off the library before:
 * whose callbacks are still under way then gets a pin of its task type, which
 * is never taken over.  What is due is under the waiting lock.
 *
 * The VM's object holds only the address of the author's, which so outlives it.
 * Its callbacks are functions of the runtime, which is never unmapped.
 *
 * Nothing here may be lost for want of memory.  There is a thread of the pool
 * from the first object on; a callback that gets no stack stays in the queue.
 */
#include "resource/resource.h"

#include "base/config.h"
#include "base/os.h"
#include "life/end.h"
#include "life/life.h"
#include "wait/park.h"
#include "life/run.h"
#include "resource/type.h"
#include "task/debug.h"
#include "task/env.h"
#include "task/slice.h"
#include "thread/low.h"
#include "task/stack.h"
#include "wait/wake.h"

enum { WINDOW_NS = 1000000 };   /* in which a thread's callbacks in place use up
                                   a slice at most */

struct fair__callback {
    enum kind kind;
    struct fair__object *object;
    struct fair__version *version;
    void *pin;                      /* CLEANUP: one of the VM's objects */
    void *priv;                     /* his */
    struct fair__job job;           /* until it has a stack */
    uint64_t ns;                    /* used so far */
    struct fair__callback *next;    /* of the object's that are due */
    ErlNifPid pid;                  /* DOWN */
    ErlNifMonitor monitor;
    ErlNifEvent event;              /* STOP */
    int is_direct_call;
};

struct fair__object {
    void *block;                    /* of the VM's memory that it lies in */
    struct fair__callback end;      /* CLEANUP: it must not lack memory */
    /* under the waiting lock */
    struct fair__callback *first, *last;    /* due */
    bool has_turn;                  /* or waits for one */
    struct fair__object *next;
    _Alignas(16) struct fair__object_head head;
    char data[];
};

_Static_assert(offsetof(struct fair__object, data) % 16 == 0
               && offsetof(struct fair__object, head)
                  + sizeof(struct fair__object_head)
                  == offsetof(struct fair__object, data),
               "where the inline functions look for it");

/* NULL: it is a pin. */
static struct fair__object *object_of(void *vm)
{
    char *data = *(char **)vm;

    return data ? (void *)(data - offsetof(struct fair__object, data)) : NULL;
}

static struct fair__type *type_of(const struct fair__object *o)
{
    return ((struct fair__view *)o->head.type)->type;   /* its first member */
}

static void free_object(struct fair__object *o)
{
    atomic_fetch_sub(&type_of(o)->objects, 1);
    enif_free(o->block);
}

/* -- a callback's task ------------------------------------------------------ */

static ERL_NIF_TERM body(fair_task *t)
{
    struct fair__callback *c = fair__of(t)->callback;
    const fair_resource_options *o = &c->version->options;
    void *data = c->object->data;

    switch (c->kind) {
    case CLEANUP:
        o->cleanup(t, data);
        break;
    case DOWN:
        o->down(t, data, &c->pid, &c->monitor);
        break;
    default:
        o->stop(t, data, c->event, c->is_direct_call);
    }
    return fair__atoms.ok;
}

static const struct fair__kind of_resource;

/* NULL: no memory.  `vm_env` is that of the VM's call, or NULL. */
static struct fair__task *new_task(struct fair__callback *c,
                                   struct fair__thread *th, ErlNifEnv *vm_env)
{
    struct fair__nif *nif = &c->version->nifs[c->kind];
    struct fair__fstat *st = fair__stat(th, nif->func);
    const char *error;
    struct fair__task *t = st ? fair__stack_take(th, nif->stack_class, &error)
        : NULL;
    ErlNifEnv *env = t ? enif_alloc_env() : NULL;

    if (t && !env)
        fair__stack_give(th, t);
    if (!env)
        return NULL;
    fair__task_init(t, nif, th, st, env, 0, NULL);
    SET(t->since_ns, fair__now());      /* fairnif:tasks/0 knows it by that */
    t->counted = false;
    t->callback = c;
    t->kind = &of_resource;
    t->vm_env = vm_env;
    t->wait.job.run = fair__run_job;
    t->wait.job.func = t->func;
    t->wait.job.waits = false;
    enif_set_pid_undefined(&t->owner);
    t->own.env = env;
    t->own.argv = t->inline_argv;
    t->priv = c->priv;
    ADD(st->calls, 1);
    return t;
}

static void next_turn(struct fair__callback *over);

/* A cost above the estimate counts at once, one below it by and by: a callback
 * that takes long in place blocks a scheduler. */
static void learn_cost(struct fair__callback *c)
{
    fair__u64 *cost = &type_of(c->object)->cost_ns[c->kind];
    uint64_t old = GET(*cost);

    SET(*cost, c->ns >= old ? c->ns : old - (old - c->ns) / 8);
}

/* On the pool others may have had the processor for most of the time. */
static void count_cost(struct fair__task *t)
{
    t->callback->ns += t->where == W_THREAD ? t->slice.own_ns
        : fair__slice_took(t);
}

static ERL_NIF_TERM end(struct fair__task *t, struct fair__thread *th)
{
    struct fair__callback *c = t->callback;

    if (t->exit == X_RAISE || enif_has_pending_exception(t->own.env, NULL))
        fair__misuse(t, RULE_NO_CALLER);
    t->slice.now = fair__now();
    count_cost(t);
    learn_cost(c);
    fair__task_end(t, th);
    next_turn(c);
    return 0;
}

static ERL_NIF_TERM left_callback(struct fair__task *t, struct fair__thread *th)
{
    count_cost(t);
    return fair__put_by(t, th);
}

/* -- on a thread of the pool ------------------------------------------------ */

/* It is the turn of others first. */
static void put_callback_back(struct fair__job *job)
{
    fair__nap();
    fair__put_job_back(job);
}

static void lacks_memory(struct fair__task *t, struct fair__thread *th)
{
    (void)th;
    put_callback_back(&t->wait.job);
}

static const struct fair__kind of_resource = {
    .left = {
        [X_DONE] = end, [X_PAUSE] = left_callback, [X_WAIT] = left_callback,
        [X_RAISE] = end, [X_DROP] = end
    },
    .poor = lacks_memory,
    .apart = true
};

static void begin_on_thread(struct fair__job *job)
{
    struct fair__callback *c =
        (void *)((char *)job - offsetof(struct fair__callback, job));
    struct fair__thread *th = fair__self();
    struct fair__task *t = th ? new_task(c, th, NULL) : NULL;

    if (t)
        fair__run_apart(t, th);
    else
        put_callback_back(job);
}

/* -- turns ------------------------------------------------------------------ */

static void append_callback(struct fair__object *o, struct fair__callback *c)
{
    c->next = NULL;
    *(o->first ? &o->last->next : &o->first) = c;
    o->last = c;
    type_of(o)->due++;
}

static void wait_for_turn(struct fair__type *type, struct fair__object *o)
{
    o->next = NULL;
    *(type->first ? &type->last->next : &type->first) = o;
    type->last = o;
}

static struct fair__callback *take_callback(struct fair__object *o)
{
    struct fair__callback *c = o->first;

    o->first = c->next;
    type_of(o)->due--;
    return c;
}

/* The next one that begins, if one may; it has a turn then.  Locked. */
static struct fair__callback *take_turn(struct fair__type *type)
{
    struct fair__object *o = type->first;

    if (!o || type->under_way >= fair__type_max_concurrent(type))
        return NULL;
    type->first = o->next;
    type->under_way++;
    return take_callback(o);
}

/* Any thread that comes next runs it. */
static void give_callback(struct fair__callback *c)
{
    if (enif_thread_type() != ERL_NIF_THR_UNDEFINED)
        fair__env_note_time();      /* for the pool's threads */
    c->job = (struct fair__job){
        .run = begin_on_thread, .func = c->version->nifs[c->kind].func
    };
    /* It frees memory: no call delays it.  A thread is there:
     * fair__resource_new. */
    fair__pool_give_first(&c->job);
}

/* The task has ended, and with it the use of the author's code. */
static void next_turn(struct fair__callback *over)
{
    struct fair__object *o = over->object;
    struct fair__type *type = type_of(o);
    void *held = over->kind == CLEANUP ? over->pin : o->head.vm;
    struct fair__callback *next, *more;
    void *pin = fair__version_unuse(over->version);

    fair__wait_lock();
    type->under_way--;
    if (o->first)
        wait_for_turn(type, o);
    else
        o->has_turn = false;
    next = take_turn(type);
    more = take_turn(type);     /* none, but `max_concurrent` was raised */
    fair__wait_unlock();
    if (next)
        give_callback(next);
    if (more)
        give_callback(more);
    if (over->kind == CLEANUP)
        free_object(o);
    else
        enif_free(over);
    if (pin)
        enif_release_resource(pin);
    enif_release_resource(held);        /* may call destroyed() */
}

/* -- called by the VM ------------------------------------------------------- */

/* Where its time counts as nothing: learned to be short, on a scheduler that no
 * task has, and not one after the other for long. */
static bool may_be_in_place(const struct fair__callback *c,
                            struct fair__thread *th)
{
    uint64_t cost = GET(type_of(c->object)->cost_ns[c->kind]);
    uint64_t slice = GET(fair__config.slice_ns), now;

    if (!th || th->current || th->in_place || th->where > W_DIRTY_IO
        || th->locks > 0        /* of its caller, which has to release them */
        || cost == 0 || cost > slice / 2)
        return false;
    now = fair__now();
    if (now - th->in_place_since >= WINDOW_NS) {
        th->in_place_since = now;
        th->in_place_ns = 0;
    }
    if (th->in_place_ns + cost > slice)
        return false;
    th->in_place_ns += cost;
    return true;
}

/* In the VM's call, and in no other one: what is released there may be the last
 * reference to another object. */
static bool begin_in_place(struct fair__callback *c, ErlNifEnv *env)
{
    struct fair__thread *th;
    struct fair__task *t;

    /* Without tasks none could leave the VM's call.  A thread of the author's
     * would get a record, which is never freed. */
    if (!FAIR__TASKS || enif_thread_type() == ERL_NIF_THR_UNDEFINED)
        return false;
    th = fair__self();
    if (!may_be_in_place(c, th))
        return false;
    t = new_task(c, th, env);
    if (!t)
        return false;
    th->in_place = true;
    fair__run_apart(t, th);
    th->in_place = false;
    return true;
}

static void call(struct fair__callback *c, ErlNifEnv *env)
{
    struct fair__object *o = c->object;
    struct fair__type *type = type_of(o);
    struct fair__callback *next = NULL;

    fair__wait_lock();
    append_callback(o, c);
    if (!o->has_turn) {
        o->has_turn = true;
        wait_for_turn(type, o);
        next = take_turn(type);
    }
    fair__wait_unlock();
    /* It may be another one, whose type has not been called for a turn. */
    if (next && (next != c || !begin_in_place(next, env)))
        give_callback(next);
}

static void destroy_object(ErlNifEnv *env, void *vm)
{
    struct fair__object *o = object_of(vm);
    struct fair__callback *c;

    if (!o)
        return;                     /* it was a pin */
    c = &o->end;
    c->version = fair__version_use(type_of(o), CLEANUP, o->head.size);
    if (!c->version) {
        free_object(o);
        return;
    }
    c->pin = fair__new_pin(o->head.type->vm, sizeof(void *));
    c->priv = enif_priv_data(env);
    call(c, env);
}

static void destroyed(ErlNifEnv *env, void *vm)
{
    fair__dtor_at_par(destroy_object, env, vm);
}

/* Of an object that stays until it has returned. */
static void called(ErlNifEnv *env, void *vm, struct fair__callback with)
{
    struct fair__object *o = object_of(vm);
    struct fair__callback *c;

    with.version = fair__version_use(type_of(o), with.kind, o->head.size);
    if (!with.version)
        return;
    while (!(c = enif_alloc(sizeof *c)))
        fair__nap();
    *c = with;
    c->object = o;
    c->priv = enif_priv_data(env);
    enif_keep_resource(vm);
    call(c, env);
}

static void went_down(ErlNifEnv *env, void *vm, ErlNifPid *pid,
                      ErlNifMonitor *monitor)
{
    called(env, vm, (struct fair__callback){
        .kind = DOWN, .pid = *pid, .monitor = *monitor
    });
}

struct stopped {
    ErlNifEnv *env;
    void *vm;
    ErlNifEvent event;
    int is_direct_call;
};

static void call_stop(void *arg)
{
    struct stopped *s = arg;

    called(s->env, s->vm, (struct fair__callback){
        .kind = STOP, .event = s->event, .is_direct_call = s->is_direct_call
    });
}

/* Also in an author's enif_select, on his thread. */
static void vm_stopped(ErlNifEnv *env, void *vm, ErlNifEvent event,
                       int is_direct_call)
{
    struct stopped s = {env, vm, event, is_direct_call};

    fair__at_par(call_stop, &s);
}

fair_resource_type *fair__resource_open(ErlNifEnv *env,
                                        const fair_resource_options *options,
                                        size_t size)
{
    const ErlNifResourceTypeInit calls = {
        .dtor = destroyed, .down = went_down, .stop = vm_stopped
    };

    return fair__type_open(env, options, size, calls, body);
}

/* -- objects ---------------------------------------------------------------- */

void *fair__resource_new(fair_resource_type *pub, size_t size)
{
    enum { ALIGNMENT = _Alignof(struct fair__object) };
    struct fair__type *type = ((struct fair__view *)pub)->type;
    struct fair__object *o;
    char *block = NULL;
    void *vm;

    if (size <= SIZE_MAX - sizeof *o - ALIGNMENT && fair__pool_start())
        block = enif_alloc(sizeof *o + size + ALIGNMENT);
    if (!block)
        return NULL;
    vm = enif_alloc_resource(pub->vm, sizeof(void *));
    if (!vm) {
        enif_free(block);
        return NULL;
    }
    o = (void *)(((uintptr_t)block + ALIGNMENT - 1) & -(uintptr_t)ALIGNMENT);
    memset(o, 0, sizeof *o + size);
    o->block = block;
    o->head = (struct fair__object_head){.size = size, .type = pub, .vm = vm};
    o->end.kind = CLEANUP;
    o->end.object = o;
    *(void **)vm = o->data;
    atomic_fetch_add(&type->objects, 1);
    return o->data;
}
