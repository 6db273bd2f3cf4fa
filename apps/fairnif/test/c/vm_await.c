/*
 * vm_await.c - fairnif:await/1, as fairnif.erl has it.
 *
 * What stands between the calls of NIFs is run by the thread that ran the last
 * one, or found the message: the process is VM_RUNNING then, and its heap moves
 * before any thread looks again.
 */
#include <string.h>

#include "vm_int.h"

static bool is_value(vm_term t, size_t arity, const char *mark)
{
    return vm__is(t, T_TUPLE) && HSIZE(PTR(t)[0]) >= arity
        && PTR(t)[1] == vm__atom(mark, strlen(mark));
}

void vm__await_forget(vm_proc *p)
{
    for (int i = 0; i < AWAIT_REGS; i++)
        p->await.regs[i] = VM_NIL;
}

static enum vm_state finish(vm_proc *p, enum vm_state state, vm_term result)
{
    p->result = result;
    vm__await_forget(p);
    p->await.runtime = NULL;
    return state;
}

/* Calls name with `arity` of the registers. */
static enum vm_state call(vm_proc *p, enum vm_await_at at, const char *name,
                          int arity)
{
    p->await.at = at;
    vm__call(p, p->await.runtime, name, arity, p->await.regs);
    return VM_READY;
}

static enum vm_state wait(vm_proc *p, enum vm_await_at at,
                          uint64_t deadline)
{
    p->await.at = at;
    p->await.deadline = deadline;
    p->result = VM_NIL;
    p->lib = p->await.runtime;
    SET_KIND(p, VM_NORMAL);
    return VM_WAITING;
}

static enum vm_state await(vm_proc *p, vm_term value)
{
    p->await.regs[0] = value;
    if (is_value(value, 3, "fairnif_asks")) {
        p->await.regs[1] = vm__atom("caller", 6);
        return call(p, A_REQUEST, "nif_asked", 2);
    }
    if (!is_value(value, 2, "fairnif_pending"))
        return finish(p, VM_DONE, value);
    p->await.regs[1] = enif_make_ref(p->env);
    return call(p, A_ASK, "nif_await", 2);
}

/* {Ref, Timeout}, or a value. */
static enum vm_state asked(vm_proc *p, vm_term answer)
{
    uint64_t deadline = UINT64_MAX;
    __int128 ms;

    if (!vm__is(answer, T_TUPLE) || HSIZE(PTR(answer)[0]) != 2
        || !vm__same(PTR(answer)[1], p->await.regs[1]))
        return await(p, answer);
    answer = PTR(answer)[2];
    if (vm__integer(answer, &ms) && ms >= 0 && ms <= UINT32_MAX)
        deadline = vm__real_now() + (uint64_t)ms * 1000000;
    else if (answer != vm__atom("infinity", 8))
        vm_misuse("nif_await: a time-out that receive does not take");
    return wait(p, A_RECEIVE, deadline);
}

static enum vm_state flush(vm_proc *p)
{
    return p->await.flush > 0 ? wait(p, A_FLUSH, UINT64_MAX)
        : await(p, p->await.regs[0]);
}

static enum vm_state expired(vm_proc *p, vm_term answer)
{
    __int128 n;

    if (!vm__integer(answer, &n) || n < 0)
        vm_misuse("nif_expire: no number of messages");
    p->await.flush = (long)n;
    return flush(p);
}

/* -- what a body asks for ---------------------------------------------- */

static enum vm_state give(vm_proc *p, int outcome, vm_term answer)
{
    p->await.regs[1] = SMALL(outcome);
    p->await.regs[2] = answer;
    return call(p, A_ANSWER, "nif_answer", 3);
}

/* A body's receive; -1 ms: for ever. */
static enum vm_state receive(vm_proc *p, enum vm_await_at at, vm_term timeout)
{
    __int128 ms;

    if (!vm__integer(timeout, &ms) || ms < -1 || ms > INT32_MAX)
        vm_misuse("a time-out that receive does not take");
    return wait(p, at, ms < 0 ? UINT64_MAX
                : vm__real_now() + (uint64_t)ms * 1000000);
}

/* What the stand-in calls is not there: it answers with the call itself. */
static enum vm_state apply(vm_proc *p, const vm_term *call)
{
    if (call[2] == vm__atom("raise", 5))
        return give(p, 0, enif_make_tuple2(p->env, vm__atom("error", 5),
                                           call[3]));
    return give(p, 1, enif_make_tuple3(p->env, call[1], call[2], call[3]));
}

static void send(vm_term to, vm_term message)
{
    ErlNifPid pid = {to};

    if (IS_PID(to) || (IS_ATOM(to) && enif_whereis_pid(NULL, to, &pid)))
        vm__deliver(pid.pid, vm__message(message));
}

/* {To, Message}, or [From | Reply]. */
static void send_item(vm_proc *p, vm_term item)
{
    if (vm__is(item, T_TUPLE) && HSIZE(PTR(item)[0]) == 2)
        send(PTR(item)[1], PTR(item)[2]);
    else if (TAG(item) != TAG_CONS)
        vm_misuse("what is sent is neither message nor reply");
    else if (vm__is(PTR(item)[0], T_TUPLE)
             && HSIZE(PTR(PTR(item)[0])[0]) == 2)
        send(PTR(PTR(item)[0])[1],
             enif_make_tuple2(p->env, PTR(PTR(item)[0])[2], PTR(item)[1]));
}

/* The last comes first. */
static void send_all(vm_proc *p, vm_term outbox)
{
    vm_term *items = NULL;
    size_t count = 0;

    for (; TAG(outbox) == TAG_CONS; outbox = PTR(outbox)[1]) {
        if ((count & (count - 1)) == 0)
            items = vm__realloc(items, (count ? 2 * count : 1)
                                * sizeof *items);
        items[count++] = PTR(outbox)[0];
    }
    while (count > 0)
        send_item(p, items[--count]);
    vm__free(items);
}

/* [Outbox | Wanted], or Wanted. */
static enum vm_state requested(vm_proc *p, vm_term request)
{
    const vm_term *elems;

    if (TAG(request) == TAG_CONS) {
        send_all(p, PTR(request)[0]);
        request = PTR(request)[1];
    }
    if (request == vm__atom("sent", 4))
        return give(p, 1, request);
    if (!vm__is(request, T_TUPLE))
        return receive(p, A_ANY, request);
    elems = PTR(request);
    if (HSIZE(elems[0]) == 3)
        return apply(p, elems);
    if (HSIZE(elems[0]) != 2)
        vm_misuse("a request that await/1 has no clause for");
    p->await.regs[1] = elems[1];
    return receive(p, A_TAGGED, elems[2]);
}

/* The next request, of the object that was answered. */
static bool follows(vm_term before, vm_term value)
{
    return is_value(value, 4, "fairnif_asks")
        && vm__same(PTR(value)[2], PTR(before)[2])
        && PTR(value)[4] == SMALL(SMALL_VALUE(PTR(before)[4]) + 1);
}

/* A NIF has come back with p->result, or raised that. */
enum vm_state vm__await_answered(vm_proc *p, enum vm_state state)
{
    if (state == VM_RAISED)
        return finish(p, state, p->result);
    if (state != VM_DONE)
        return state;
    switch (p->await.at) {
    case A_CALL:
        return await(p, p->result);
    case A_ANSWER:
        if (!follows(p->await.regs[0], p->result))
            return await(p, p->result);
        p->await.regs[0] = p->result;
        return requested(p, PTR(p->result)[3]);
    case A_ASK:
        return asked(p, p->result);
    case A_EXPIRE:
        return expired(p, p->result);
    case A_REQUEST:
        return requested(p, p->result);
    case A_RECEIVE:
    case A_FLUSH:
    case A_ANY:
    case A_TAGGED:
        break;
    }
    vm_misuse("a NIF that nobody called");
}

/* What a body receives; NULL: nothing came in time. */
static enum vm_state got(vm_proc *p, struct vm_message *m)
{
    vm_term answer;

    if (!m)
        return give(p, 0, vm__atom("timeout", 7));
    answer = vm__copy(&p->heap, m->term);
    vm__message_free(m);
    return give(p, 1, answer);
}

/* The receive has its message, or NULL when its time is up. */
enum vm_state vm__await_received(vm_proc *p, struct vm_message *m)
{
    const vm_term *message;
    vm_term what;
    size_t size;

    if (p->await.at == A_ANY || p->await.at == A_TAGGED)
        return got(p, m);
    if (!m)
        return call(p, A_EXPIRE, "nif_expire", 1);
    if (p->await.at == A_FLUSH) {
        vm__message_free(m);
        p->await.flush--;
        return flush(p);
    }
    message = PTR(vm__copy(&p->heap, m->term));
    vm__message_free(m);
    size = HSIZE(message[0]);
    what = size > 1 ? message[2] : VM_NIL;
    if (size == 2 && what == vm__atom("go", 2))
        return await(p, p->await.regs[0]);
    if (size == 2 && what == vm__atom("settle", 6))
        return call(p, A_EXPIRE, "nif_settle", 1);
    if (size == 3 && what == vm__atom("value", 5))
        return finish(p, VM_DONE, message[3]);
    if (size == 3 && what == vm__atom("raise", 5))
        return finish(p, VM_RAISED, message[3]);
    vm_misuse("a message that await/1 has no clause for");
}

bool vm__await_due(const vm_proc *p)
{
    return vm__has_message(p)
        || vm__real_now() >= p->await.deadline;
}

void vm_await_array(vm_proc *p, vm_lib *lib, const char *name, int argc,
                    const vm_term argv[], vm_lib *runtime)
{
    vm_call_array(p, lib, name, argc, argv);
    p->await.runtime = runtime;
    p->await.at = A_CALL;
}

void vm_await(vm_proc *p, vm_lib *lib, const char *name, const char *args,
              vm_lib *runtime)
{
    vm_term argv[32];
    int argc = vm_parse_args(p->env, args, argv, 32);

    vm_await_array(p, lib, name, argc, argv, runtime);
}

void vm_await_term(vm_proc *p, vm_term term, vm_lib *runtime)
{
    enum vm_state state = vm_state(p);

    if (state == VM_READY || state == VM_RUNNING || state == VM_WAITING)
        vm_misuse("vm_await_term: the process is in a call");
    p->await.runtime = runtime;
    state = await(p, term);
    p->slices = 0;
    vm__begin(p, state);
}
