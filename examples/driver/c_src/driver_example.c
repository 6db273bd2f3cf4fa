/*
 * A port driver whose control, call and outputv do as much work as they are
 * asked for: where the VM calls them, as drivers do, or put off.
 *
 * The command, or for outputv the first byte, says where; then comes the
 * number of microseconds that the work takes on this machine, 32 bits.  The
 * answer is what the work came to.
 */
#include <time.h>

#include <fairdrv.h>

enum { BLOCKING, NORMAL, DIRTY_CPU, DIRTY_IO };

struct state {
    ErlDrvPort port;
    ErlDrvTermData term;
};

struct job {
    struct state *s;
    uint32_t us;
};

static double rounds_per_us;

/* -- the work ------------------------------------------------------------------*/

static uint64_t rounds(uint64_t x, unsigned n)
{
    while (n-- > 0) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The shortest of some runs: 3 ms. */
static int init(void)
{
    enum { ROUNDS = 50000 };
    volatile uint64_t x = 1;

    for (int i = 0; i < 32; i++) {
        uint64_t begin = cpu_ns();
        double rate;

        x = rounds(x, ROUNDS);
        rate = ROUNDS * 1000.0 / (double)(cpu_ns() - begin + 1);
        if (rate > rounds_per_us)
            rounds_per_us = rate;
    }
    return 0;
}

/* Ticks after each microsecond; is given up when no caller wants it. */
static uint64_t work(struct state *s, uint32_t us)
{
    uint64_t x = 1;

    for (uint32_t i = 0; i < us; i++) {
        x = rounds(x, (unsigned)rounds_per_us);
        if (fair_drv_tick(s->port, 1))
            break;
    }
    return x;
}

static uint32_t number_at(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8
        | b[3];
}

/* -- control and call ------------------------------------------------------------*/

static const ErlDrvSSizeT reschedule[] = {
    [NORMAL] = FAIR_DRV_RESCHEDULE,
    [DIRTY_CPU] = FAIR_DRV_RESCHEDULE_DIRTY_CPU,
    [DIRTY_IO] = FAIR_DRV_RESCHEDULE_DIRTY_IO
};

static ErlDrvSSizeT control(ErlDrvData data, unsigned command, char *buf,
                            ErlDrvSizeT len, char **rbuf, ErlDrvSizeT rlen)
{
    struct state *s = (struct state *)data;
    uint64_t x;

    if (command > DIRTY_IO || len != 4 || rlen < sizeof x)
        return -1;
    if (command != BLOCKING && !fair_drv_callback_is_rescheduled(s->port))
        return reschedule[command];
    x = work(s, number_at(buf));
    memcpy(*rbuf, &x, sizeof x);
    return sizeof x;
}

/* The argument is a binary of four bytes, the answer one of eight, both in the
 * external format: 131, 109, size:32, bytes. */
static ErlDrvSSizeT call(ErlDrvData data, unsigned command, char *buf,
                         ErlDrvSizeT len, char **rbuf, ErlDrvSizeT rlen,
                         unsigned *flags)
{
    static const unsigned char head[] = {131, 109, 0, 0, 0, 8};
    struct state *s = (struct state *)data;
    uint64_t x;

    (void)flags;
    if (command > DIRTY_IO || len != 10 || rlen < sizeof head + sizeof x)
        return -1;
    if (command != BLOCKING && !fair_drv_callback_is_rescheduled(s->port))
        return reschedule[command];
    x = work(s, number_at(buf + 6));
    memcpy(*rbuf, head, sizeof head);
    memcpy(*rbuf + sizeof head, &x, sizeof x);
    return sizeof head + sizeof x;
}

/* -- outputv -----------------------------------------------------------------------*/

/* {Port, {done, Bytes}} to the owner; from any thread. */
static void tell(struct state *s, uint64_t x)
{
    ErlDrvTermData spec[] = {
        ERL_DRV_PORT, s->term,
        ERL_DRV_ATOM, driver_mk_atom("done"),
        ERL_DRV_BUF2BINARY, (ErlDrvTermData)&x, sizeof x,
        ERL_DRV_TUPLE, 2,
        ERL_DRV_TUPLE, 2
    };

    erl_drv_output_term(s->term, spec, sizeof spec / sizeof *spec);
}

static ErlDrvSSizeT do_job(ErlDrvData data, void *arg)
{
    struct job *job = arg;

    (void)data;
    tell(job->s, work(job->s, job->us));
    driver_free(job);
    return 0;
}

static void outputv(ErlDrvData data, ErlIOVec *ev)
{
    static const int flags[] = {
        [NORMAL] = FAIR_DRV_NORMAL, [DIRTY_CPU] = FAIR_DRV_DIRTY_CPU,
        [DIRTY_IO] = FAIR_DRV_DIRTY_IO
    };
    struct state *s = (struct state *)data;
    struct job *job;
    char order[5];

    if (ev->size != sizeof order)
        return;
    driver_vec_to_buf(ev, order, sizeof order);
    if (order[0] == BLOCKING) {
        tell(s, work(s, number_at(order + 1)));
        return;
    }
    job = driver_alloc(sizeof *job);
    *job = (struct job){s, number_at(order + 1)};
    if (order[0] < BLOCKING || order[0] > DIRTY_IO
        || fair_drv_schedule_or_cancel(s->port, flags[(int)order[0]], do_job,
                                       job, driver_free) < 0)
        driver_free(job);
}

/* -- the driver ----------------------------------------------------------------------*/

static ErlDrvData start(ErlDrvPort port, char *command)
{
    struct state *s = driver_alloc(sizeof *s);

    (void)command;
    s->port = port;
    s->term = driver_mk_port(port);
    set_port_control_flags(port, PORT_CONTROL_FLAG_BINARY);
    return (ErlDrvData)s;
}

static void stop(ErlDrvData data)
{
    driver_free(data);
}

static ErlDrvEntry entry = {
    .init = init,
    .start = start,
    .stop = stop,
    .control = control,
    .call = call,
    .outputv = outputv,
    .driver_name = "driver_example",
    .extended_marker = ERL_DRV_EXTENDED_MARKER,
    .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
    .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
    .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING
};

FAIR_DRIVER_INIT(driver_example, entry, NULL)
