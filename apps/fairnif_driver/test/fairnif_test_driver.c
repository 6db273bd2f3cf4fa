/*
 * A port driver for the tests: what each callback is to do comes in its
 * data, and what it did is counted where it outlives the driver: in a file
 * that everybody maps.
 *
 * Data begins with  flags:8, work_ms:32, ticks:8, number:32.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fairdrv.h>

/* The first is no count: with it the test ends work that is under way. */
#define COUNTERS(X) X(release) \
    X(inits) X(finishes) X(starts) X(stops) X(closings) \
    X(begun) X(ended) X(cancelled) X(notified) X(overlaps) X(freed) X(moved)
#define FIELD(NAME) _Atomic uint64_t NAME;
static struct counters { COUNTERS(FIELD) } *counters, nowhere;

enum {                          /* commands of control */
    ECHO, WORK, SCHEDULE, JOURNAL, BIG, ERROR, FAIL, FAILURE, TIMER, BUSY,
    LISTS, TWICE, QUEUE
};
enum { HEAD = 10, JOURNAL_SIZE = 4096 };

struct state {
    ErlDrvPort port;
    _Atomic int inside;
    _Atomic unsigned written;
    uint32_t journal[JOURNAL_SIZE];
};

struct order {
    struct state *s;
    int flags, ticks;
    uint32_t ms, number;
    int fails;
    ErlIOVec *ev;
};

static uint32_t number_at(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8
        | b[3];
}

static struct order order_of(struct state *s, const char *buf)
{
    return (struct order){s, (unsigned char)buf[0], buf[5], number_at(buf + 1),
                          number_at(buf + 6), 0, NULL};
}

static uint64_t now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void enter(struct state *s)
{
    if (atomic_fetch_add(&s->inside, 1) != 0)
        counters->overlaps++;
}

static void leave(struct state *s)
{
    s->inside--;
}

static void note(struct state *s, uint32_t number)
{
    unsigned i = s->written++;

    if (i < JOURNAL_SIZE)
        s->journal[i] = number;
}

static void work(const struct order *o)
{
    uint64_t end = now_us() + (uint64_t)o->ms * 1000;
    long thread = syscall(SYS_gettid);

    counters->begun++;
    while (now_us() < end && !counters->release) {
        if (o->ticks) {
            if (fair_drv_tick(o->s->port, 1)) {
                counters->notified++;
                break;
            }
        }
        if (syscall(SYS_gettid) != thread) {
            thread = syscall(SYS_gettid);
            counters->moved++;
        }
        if (o->flags == FAIR_DRV_DIRTY_IO)
            usleep(500);
    }
    note(o->s, o->number);
    counters->ended++;
}

static void free_order(void *arg)
{
    struct order *o = arg;

    fair_drv_free_iovec(o->ev);
    driver_free(o);
    counters->freed++;
}

static void cancelled(void *arg)
{
    counters->cancelled++;
    free_order(arg);
}

static ErlDrvSSizeT on_turn(ErlDrvData data, void *arg)
{
    struct order o = *(struct order *)arg;
    struct state *s = (struct state *)data;

    enter(s);
    work(&o);
    if (o.fails == FAILURE)
        driver_failure_atom(s->port, "failure");
    free_order(arg);
    leave(s);
    return o.fails == FAIL ? -1 : 0;
}

static ErlDrvSSizeT schedule(struct order order)
{
    struct order *o = driver_alloc(sizeof *o);
    int error;

    *o = order;
    if (fair_drv_schedule_or_cancel(o->s->port, o->flags, on_turn, o,
                                    cancelled) == 0)
        return 0;
    error = errno;
    driver_free(o);
    return -error;
}

/* -- the driver ---------------------------------------------------------------*/

static int init(void)
{
    char path[1024];
    size_t size = sizeof path;
    int fd;

    counters = &nowhere;
    if (erl_drv_getenv("FAIRNIF_TEST_COUNTERS", path, &size) == 0
        && (fd = open(path, O_RDWR)) >= 0) {
        counters = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);
        close(fd);
    }
    counters->inits++;
    return 0;
}

static void finish(void)
{
    counters->finishes++;
    if (counters != &nowhere)
        munmap(counters, sizeof *counters);
    counters = &nowhere;
}

static ErlDrvData start(ErlDrvPort port, char *command)
{
    struct state *s = driver_alloc(sizeof *s);

    memset(s, 0, sizeof *s);
    s->port = port;
    counters->starts++;
    if (strstr(command, "refuse")) {
        driver_free(s);
        return ERL_DRV_ERROR_BADARG;
    }
    if (strstr(command, "binary"))
        set_port_control_flags(port, PORT_CONTROL_FLAG_BINARY);
    return (ErlDrvData)s;
}

static void closing(ErlDrvData data)
{
    (void)data;
    counters->closings++;
}

static void stop(ErlDrvData data)
{
    struct state *s = (struct state *)data;

    enter(s);                   /* not while anything else runs */
    counters->stops++;
    memset(s, 0xFF, sizeof *s);
    driver_free(s);
}

static ErlDrvSSizeT answer(char **rbuf, ErlDrvSizeT rlen, const char *bytes,
                           size_t size, int as_binary)
{
    if (size <= rlen) {
        memcpy(*rbuf, bytes, size);
    } else if (as_binary) {
        ErlDrvBinary *bin = driver_alloc_binary(size);

        memcpy(bin->orig_bytes, bytes, size);
        *rbuf = (char *)bin;
    } else {
        *rbuf = driver_alloc(size);
        memcpy(*rbuf, bytes, size);
    }
    return (ErlDrvSSizeT)size;
}

static ErlDrvSSizeT put_off(int flags)
{
    return flags == FAIR_DRV_NORMAL ? FAIR_DRV_RESCHEDULE
        : flags == FAIR_DRV_DIRTY_CPU ? FAIR_DRV_RESCHEDULE_DIRTY_CPU
        : FAIR_DRV_RESCHEDULE_DIRTY_IO;
}

static ErlDrvSSizeT again(struct order *o, char **rbuf, ErlDrvSizeT rlen)
{
    char where = (char)fair_drv_callback_is_on_dirty_scheduler(o->s->port);

    work(o);
    return answer(rbuf, rlen, &where, 1, 1);
}

static ErlDrvSSizeT obey(struct state *s, unsigned command, struct order o,
                         char *buf, ErlDrvSizeT len, char **rbuf,
                         ErlDrvSizeT rlen)
{
    int is_again = fair_drv_callback_is_rescheduled(s->port);
    ErlDrvSSizeT result;
    char *big;

    switch (command) {
    case ECHO:
        return answer(rbuf, rlen, buf, len, 1);
    case WORK:
        return is_again ? again(&o, rbuf, rlen) : put_off(o.flags);
    case TWICE:
        if (is_again && fair_drv_callback_is_on_dirty_scheduler(s->port))
            return put_off(FAIR_DRV_NORMAL);
        return is_again ? again(&o, rbuf, rlen) : put_off(o.flags);
    case FAIL:
    case FAILURE:
        o.fails = (int)command;
        /* fall through */
    case SCHEDULE:
        result = schedule(o);
        return result < 0 ? answer(rbuf, rlen, "error", 5, 1)
            : answer(rbuf, rlen, "ok", 2, 1);
    case QUEUE:                 /* that, and one for each place behind it */
        result = schedule(o);
        for (o.flags = 0, o.ticks = 1; o.flags < 3; o.flags++)
            schedule(o);
        return result;
    case JOURNAL:
        return answer(rbuf, rlen, (char *)s->journal, 4 * s->written, 1);
    case LISTS:
    case BIG:
        if (!is_again)
            return put_off(o.flags);
        big = driver_alloc(o.number);
        memset(big, 'x', o.number);
        result = answer(rbuf, rlen, big, o.number, command == BIG);
        driver_free(big);
        return result;
    case ERROR:
        return is_again ? -1 : put_off(o.flags);
    case TIMER:
        driver_set_timer(s->port, o.ms);
        return 0;
    case BUSY:
        set_busy_port(s->port, o.flags);
        return 0;
    default:
        return -1;
    }
}

static const char zeros[HEAD];

static ErlDrvSSizeT control(ErlDrvData data, unsigned command, char *buf,
                            ErlDrvSizeT len, char **rbuf, ErlDrvSizeT rlen)
{
    struct state *s = (struct state *)data;
    ErlDrvSSizeT result;

    if (len < HEAD && command != ECHO && command != JOURNAL)
        return -1;
    enter(s);
    result = obey(s, command, order_of(s, len < HEAD ? zeros : buf),
                  buf, len, rbuf, rlen);
    leave(s);
    return result;
}

/* Answers its argument; command is the flags, or 3 for at once. */
static ErlDrvSSizeT call(ErlDrvData data, unsigned command, char *buf,
                         ErlDrvSizeT len, char **rbuf, ErlDrvSizeT rlen,
                         unsigned *flags)
{
    struct state *s = (struct state *)data;

    (void)flags;
    if (command < 3 && !fair_drv_callback_is_rescheduled(s->port))
        return put_off((int)command);
    return answer(rbuf, rlen, buf, len, 0);
}

static void outputv(ErlDrvData data, ErlIOVec *ev)
{
    struct state *s = (struct state *)data;
    char head[HEAD];
    struct order o;

    if (ev->size < HEAD)
        return;
    enter(s);
    driver_vec_to_buf(ev, head, HEAD);
    o = order_of(s, head);
    o.ev = fair_drv_keep_iovec(ev);
    if (o.flags == 3)           /* at once */
        work(&o), fair_drv_free_iovec(o.ev);
    else if (schedule(o) < 0)
        fair_drv_free_iovec(o.ev);
    leave(s);
}

static void timeout(ErlDrvData data)
{
    struct state *s = (struct state *)data;

    enter(s);
    note(s, 0xFFFFFFFF);
    leave(s);
}

static ErlDrvEntry entry = {
    .init = init,
    .finish = finish,
    .start = start,
    .stop = stop,
    .control = control,
    .call = call,
    .outputv = outputv,
    .timeout = timeout,
    .driver_name = DRIVER,
    .extended_marker = ERL_DRV_EXTENDED_MARKER,
    .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
    .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
    .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING
};

FAIR_DRIVER_INIT(fairnif_test_driver, entry, closing)
