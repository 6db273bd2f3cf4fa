/*
 * vm_select.c - enif_select: descriptors, and the thread that polls them.
 *
 * A descriptor belongs to the object it was first selected with until
 * ERL_NIF_SELECT_STOP, and that object is kept as long.  A selection is good
 * for one message, which the caller makes (ERL_NIF_SELECT_CUSTOM_MSG): the
 * runtime asks for no other.  It is on its way, and can't be taken back, from the
 * moment the poll saw the event, which is before the process has it.
 *
 * Closing a descriptor before its stop callback runs ends the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "vm_int.h"

enum { EVENTS = 2 };

static const struct {
    int flag, cancelled;
    short asks;
} events[EVENTS] = {
    {ERL_NIF_SELECT_READ, ERL_NIF_SELECT_READ_CANCELLED, POLLIN},
    {ERL_NIF_SELECT_WRITE, ERL_NIF_SELECT_WRITE_CANCELLED, POLLOUT},
};

struct armed {
    struct vm_message *message;     /* NULL: not selected for it */
    vm_term pid;
};

struct selected {
    int fd;
    struct vm_resource *r;
    struct armed armed[EVENTS];
    bool stopping;                  /* the stop callback is to be called */
    struct selected *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct selected *all;
static pthread_t poller;
static bool polls, ends;
static bool at_work;            /* with what is out of the table */
static int wake = -1;

/* -- the table; with the lock held --------------------------------------- */

static struct selected **find(int fd)
{
    struct selected **at = &all;

    while (*at && (*at)->fd != fd)
        at = &(*at)->next;
    return at;
}

long vm_armed(void)
{
    long count = 0;

    pthread_mutex_lock(&lock);
    for (struct selected *s = all; s; s = s->next)
        for (int i = 0; i < EVENTS; i++)
            if (s->armed[i].message) {
                count++;
                break;
            }
    pthread_mutex_unlock(&lock);
    return count;
}

bool vm_selects_at_work(void)
{
    bool is;

    pthread_mutex_lock(&lock);
    is = at_work;
    pthread_mutex_unlock(&lock);
    return is;
}

/* The message and its process, taken from the table. */
static struct armed disarm(struct armed *a)
{
    struct armed was = *a;

    a->message = NULL;
    return was;
}

static void take_out(struct selected *s)
{
    *find(s->fd) = s->next;
    COUNT(selects, -1);
}

static void wake_poller(void)
{
    uint64_t one = 1;

    if (write(wake, &one, sizeof one) < 0 && errno != EAGAIN)
        vm_misuse("write to an eventfd");
}

/* -- the thread ---------------------------------------------------------- */

/* s is out of the table. */
static void stop(struct selected *s, int direct)
{
    ErlNifEnv *env = vm__env_new(ENV_DTOR, NULL, vm__resource_owner(s->r));

    vm__resource_calls(s->r)->stop(env, s->r->data, s->fd, direct);
    vm__env_free(env);
    vm__resource_drop(s->r);
    vm__free(s);
}

static bool stop_one(void)
{
    struct selected *s = all;

    while (s && !s->stopping)
        s = s->next;
    if (!s)
        return false;
    take_out(s);
    at_work = true;
    pthread_mutex_unlock(&lock);
    stop(s, 0);
    pthread_mutex_lock(&lock);
    at_work = false;
    return true;
}

static nfds_t what_to_poll(struct pollfd **fds)
{
    nfds_t n = 1;

    for (struct selected *s = all; s; s = s->next)
        n++;
    *fds = vm__malloc(n * sizeof **fds);
    n = 1;
    (*fds)[0] = (struct pollfd){.fd = wake, .events = POLLIN};
    for (struct selected *s = all; s; s = s->next) {
        struct pollfd p = {.fd = s->fd};
        bool any = false;

        for (int e = 0; e < EVENTS; e++) {
            any |= s->armed[e].message != NULL;
            if (s->armed[e].message)
                p.events |= events[e].asks;
        }
        if (any)
            (*fds)[n++] = p;
    }
    return n;
}

/* What the poll saw may be asked for by now by another thread, or of another
 * descriptor with that number; so it is looked at once more. */
static size_t collect(struct pollfd *fds, nfds_t n, struct armed **due)
{
    size_t used = 0;

    *due = vm__malloc(EVENTS * n * sizeof **due);
    for (nfds_t i = 1; i < n; i++) {
        struct selected *s = fds[i].revents ? *find(fds[i].fd) : NULL;

        if (!s || s->stopping || poll(&fds[i], 1, 0) <= 0)
            continue;
        if (fds[i].revents & POLLNVAL)
            vm_misuse("descriptor %d was closed while it was selected", s->fd);
        for (int e = 0; e < EVENTS; e++)
            if (s->armed[e].message
                && fds[i].revents & (events[e].asks | POLLHUP | POLLERR))
                (*due)[used++] = disarm(&s->armed[e]);
    }
    return used;
}

static void send_all(const struct armed *due, size_t n)
{
    if (n && vm_options.late_events_us)
        usleep(vm_options.late_events_us);
    for (size_t i = 0; i < n; i++)
        vm__deliver(due[i].pid, due[i].message);
}

static void *serve(void *arg)
{
    pthread_mutex_lock(&lock);
    while (!ends) {
        struct pollfd *fds;
        struct armed *due;
        uint64_t drained;
        nfds_t n;
        size_t m;

        if (stop_one())
            continue;
        n = what_to_poll(&fds);
        pthread_mutex_unlock(&lock);
        if (poll(fds, n, -1) < 0 && errno != EINTR)
            vm_misuse("poll");
        if (fds[0].revents && read(wake, &drained, sizeof drained) < 0)
            vm_misuse("read of an eventfd");
        pthread_mutex_lock(&lock);
        m = collect(fds, n, &due);
        at_work = true;
        pthread_mutex_unlock(&lock);
        send_all(due, m);
        vm__free(due);
        vm__free(fds);
        pthread_mutex_lock(&lock);
        at_work = false;
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

static void start(void)
{
    if (polls)
        return;
    polls = true;
    wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    vm__thread_create(&poller, 1 << 20, serve, NULL);
}

void vm__select_stop(void)
{
    pthread_mutex_lock(&lock);
    ends = true;
    if (polls)
        wake_poller();
    pthread_mutex_unlock(&lock);
    if (polls)
        pthread_join(poller, NULL);
    polls = ends = false;
}

void vm__select_close(int fd)
{
    struct selected *s;

    pthread_mutex_lock(&lock);
    s = *find(fd);
    pthread_mutex_unlock(&lock);
    if (s)
        vm_misuse("close of descriptor %d, which is selected", fd);
}

/* -- enif_select --------------------------------------------------------- */

static void forget(struct armed old[EVENTS])
{
    for (int e = 0; e < EVENTS; e++)
        if (old[e].message)
            vm__message_free(old[e].message);
}

static void check_selected(const struct selected *s,
                           const struct vm_resource *r, int fd)
{
    if (s && s->r != r)
        vm_misuse("enif_select: stealing descriptor %d from another object",
                  fd);
    if (s && s->stopping)
        vm_misuse("enif_select of descriptor %d, which is being stopped", fd);
}

static int select_on(int fd, int flags, struct vm_resource *r, vm_term pid,
                     vm_term t)
{
    struct armed old[EVENTS] = {{NULL, 0}};
    struct selected *s;

    if (fcntl(fd, F_GETFD) < 0)
        vm_misuse("enif_select of descriptor %d, which is not open", fd);
    if (vm__fails(VM_F_SELECT))
        return INT_MIN | ERL_NIF_SELECT_FAILED;
    pthread_mutex_lock(&lock);
    start();
    s = *find(fd);
    check_selected(s, r, fd);
    if (!s) {
        s = vm__malloc(sizeof *s);
        *s = (struct selected){.fd = fd, .r = r, .next = all};
        all = s;
        vm__resource_keep(r);
        COUNT(selects, 1);
    }
    for (int e = 0; e < EVENTS; e++) {
        if (!(flags & events[e].flag))
            continue;
        old[e] = disarm(&s->armed[e]);
        s->armed[e].pid = pid;
        s->armed[e].message = vm__message(t);
    }
    wake_poller();
    pthread_mutex_unlock(&lock);
    forget(old);
    return 0;
}

/* CANCEL and STOP. */
static int select_off(int fd, int flags, struct vm_resource *r)
{
    struct armed old[EVENTS] = {{NULL, 0}};
    bool stops = flags & ERL_NIF_SELECT_STOP, late = vm_options.late_stops;
    struct selected *s;
    int answer = 0;

    pthread_mutex_lock(&lock);
    s = *find(fd);
    check_selected(s, r, fd);
    if (!s && stops)
        vm_misuse("stop of descriptor %d, which was never selected", fd);
    for (int e = 0; s && e < EVENTS; e++) {
        if (!stops && !(flags & events[e].flag))
            continue;
        old[e] = disarm(&s->armed[e]);
        if (old[e].message)
            answer |= events[e].cancelled;
    }
    if (stops && late) {
        s->stopping = true;
        wake_poller();
    } else if (stops) {
        take_out(s);
    }
    pthread_mutex_unlock(&lock);
    forget(old);
    if (!stops)
        return answer;
    if (late)
        return answer | ERL_NIF_SELECT_STOP_SCHEDULED;
    stop(s, 1);
    return answer | ERL_NIF_SELECT_STOP_CALLED;
}

int enif_select_x(ErlNifEnv *env, ErlNifEvent fd, enum ErlNifSelectFlags given,
                  void *obj, const ErlNifPid *pid, vm_term t,
                  ErlNifEnv *msg_env)
{
    struct vm_resource *r = vm__resource_of(obj);
    int flags = (int)given;

    if (env)
        vm__env_check(env, __func__);
    else if (vm__self && vm__self->slice)
        vm_misuse("enif_select without environment from inside a NIF");
    if (!vm__resource_calls(r)->stop)
        vm_misuse("enif_select with a type that has no stop callback");
    if (fd < 0)
        return INT_MIN | ERL_NIF_SELECT_INVALID_EVENT;
    if (flags & (ERL_NIF_SELECT_STOP | ERL_NIF_SELECT_CANCEL))
        return select_off(fd, flags, r);
    if (!(flags & (ERL_NIF_SELECT_READ | ERL_NIF_SELECT_WRITE))
        || !(flags & ERL_NIF_SELECT_CUSTOM_MSG) || msg_env || !pid)
        vm_misuse("enif_select for what is not here: flags %d", flags);
    if (env)
        vm__owned(env, t, __func__);
    return select_on(fd, flags, r, pid->pid, t);
}
