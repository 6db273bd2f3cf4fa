/*
 * record.c - fairnif record: where a node's time goes, by samples from outside.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "outside/command.h"
#include "outside/print.h"
#include "outside/record.h"
#include "outside/sample.h"

static const char usage[] =
    "usage: fairnif record PID | --name NODE [--seconds 10] [--hz 100]\n"
    "                      [--out FILE] [--format collapsed | svg | pprof]\n"
    "\n"
    "Where a running node's time goes: its threads' stacks, sampled from\n"
    "outside, with Erlang and native functions. Ctrl-C ends it earlier.\n"
    "\n"
    "  --seconds S  for how long, up to 86400\n"
    "  --hz N       samples a second, up to 1000\n"
    "  --out FILE   FILE.svg: a flame graph; FILE.pb: for pprof; else, and on\n"
    "               standard output, lines for tools that draw one\n"
    "  --format F   whatever FILE is called\n"
    "\n"
    "Exit code: 0 it is recorded; 2 usage; 3 it cannot be seen, or ended: what\n"
    "was seen until then is written.\n";

static const struct format {
    const char *name, *ending;
    void (*write)(FILE *to, struct watch__fold *f);
} formats[] = {
    {"collapsed", "", watch__write_collapsed},
    {"svg", ".svg", watch__write_svg},
    {"pprof", ".pb", watch__write_pprof},
};
enum { FORMATS = sizeof formats / sizeof *formats };

struct options {
    struct watch__whom whom;
    const char *out, *format, *seconds, *hz;
    unsigned for_s, rate;
    const struct format *as;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static int usage_error(const char *what, const char *argument)
{
    return watch__command_misused("record", what, argument, usage);
}

static const struct format *format_of(const struct options *o)
{
    size_t size = o->out ? strlen(o->out) : 0;

    for (unsigned i = 0; o->format && i < FORMATS; i++)
        if (!strcmp(o->format, formats[i].name))
            return &formats[i];
    for (unsigned i = 1; !o->format && i < FORMATS; i++) {
        size_t ending = strlen(formats[i].ending);

        if (size > ending && !strcmp(o->out + size - ending, formats[i].ending))
            return &formats[i];
    }
    return o->format ? NULL : formats;
}

/* 0, or an exit code. */
static int take_options(int argc, char **argv, struct options *o)
{
    const struct { const char *name; const char **value; } known[] = {
        {"--name", &o->whom.name}, {"--out", &o->out}, {"--format", &o->format},
        {"--seconds", &o->seconds}, {"--hz", &o->hz}
    };

    for (int i = 1; i < argc; i++) {
        const char **value = argv[i][0] == '-' || o->whom.pid ? NULL
            : &o->whom.pid;
        bool is_pid = value;

        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (!strcmp(argv[i], known[k].name))
                value = known[k].value;
        if (!value)
            return usage_error("what is ", argv[i]);
        if (!is_pid && ++i == argc)
            return usage_error("a value is missing behind ", argv[i - 1]);
        *value = argv[i];
    }
    if (!!o->whom.pid + !!o->whom.name != 1)
        return usage_error("one node is needed: its process's number or --name", "");
    if (!(o->as = format_of(o)))
        return usage_error("no format is called ", o->format);
    if (!(o->for_s = watch__command_number(o->seconds, 86400)))
        return usage_error("--seconds is 1 to 86400, not ", o->seconds);
    if (!(o->rate = watch__command_number(o->hz, 1000)))
        return usage_error("--hz is 1 to 1000, not ", o->hz);
    return 0;
}

static bool open_node(struct watch__sampler *r, const struct options *o,
                      char why[WATCH__WHY])
{
    struct rlimit files;

    if (!watch__command_node(&o->whom, &r->d, why))
        return false;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (!watch__sampler_open(r)) {
        snprintf(why, WATCH__WHY, r->d.count == 0 ? "process %d has ended"
                 : "process %d has too many threads, or there is no memory",
                 r->d.pid);
        return false;
    }
    return true;
}

/* A round that is late takes the place of those that it is late for.  False: the
 * node has ended. */
static bool rounds(struct watch__sampler *r, const struct options *o,
                   uint64_t *missed)
{
    uint64_t next = watch__now(), end = next + o->for_s * NS_PER_S;
    bool lives = true;

    while (!interrupted && next < end && (lives = watch__sampler_round(r))) {
        uint64_t now = watch__now(), late;
        struct timespec t;

        next += r->fold.period_ns;
        late = watch__less(now, next) / r->fold.period_ns;
        *missed += late;
        next += late * r->fold.period_ns;
        t = (struct timespec){(time_t)(next / NS_PER_S),
                              (long)(next % NS_PER_S)};
        while (!interrupted && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
                                               &t, NULL) == EINTR)
            ;
    }
    return lives;
}

static uint64_t used_ns(void)
{
    return watch__cpu(CLOCK_PROCESS_CPUTIME_ID);
}

static void say_end(const struct watch__sampler *r, uint64_t missed, uint64_t own)
{
    char median[32], p99[32], longest[32];
    uint64_t other = watch__fold_other(&r->fold);

    fprintf(stderr, "fairnif: %llu samples, %llu lost, %llu rounds left out",
            (unsigned long long)r->fold.samples, (unsigned long long)r->lost,
            (unsigned long long)missed);
    if (other)
        fprintf(stderr, ", %llu without room in (other)",
                (unsigned long long)other);
    fprintf(stderr, "; %llu stops, at most: median %s, p99 %s, longest %s; "
            "recording took %.1f %% of a processor\n",
            (unsigned long long)r->stops,
            watch__time(watch__sampler_pause(r, 500), median),
            watch__time(watch__sampler_pause(r, 990), p99),
            watch__time(r->longest_ns, longest),
            100.0 * (double)own / (double)r->fold.took_ns);
}

static bool record(struct watch__sampler *r, const struct options *o, FILE *to)
{
    uint64_t since = watch__now(), own = used_ns(), missed = 0;
    struct timespec t;
    char title[320];
    bool lives;

    clock_gettime(CLOCK_REALTIME, &t);
    r->fold.since_ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
    r->fold.period_ns = NS_PER_S / o->rate;
    lives = rounds(r, o, &missed);
    r->fold.took_ns = watch__now() - since;
    own = used_ns() - own;
    watch__sampler_end(r);
    snprintf(title, sizeof title, "%s%sprocess %d, %u Hz", r->d.name,
             r->d.name[0] ? ", " : "", r->d.pid, o->rate);
    watch__fold_clean(r->fold.title, title);
    o->as->write(to, &r->fold);
    say_end(r, missed, own);
    return lives;
}

int watch__record(int argc, char **argv)
{
    static struct watch__sampler sampler;
    struct options o = {.seconds = "10", .hz = "100"};
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction end = {.sa_handler = interrupt};
    struct sigaction was;
    char why[WATCH__WHY] = "";
    bool lives, written;
    FILE *to = stdout;
    int error;

    if (watch__command_help(argc, argv, usage))
        return 0;
    error = take_options(argc, argv, &o);
    if (error)
        return error;
    if (!open_node(&sampler, &o, why))
        return watch__command_failed(why);
    if (o.out && !(to = fopen(o.out, "we"))) {
        snprintf(why, sizeof why, "cannot write %s: %s", o.out,
                 strerror(errno));
        return watch__command_failed(why);
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction(ends[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaction(ends[i], &end, NULL);
    lives = record(&sampler, &o, to);
    written = fflush(to) == 0 && !ferror(to);
    if (to != stdout && fclose(to) != 0)
        written = false;
    if (!written)
        return watch__command_failed("cannot write");
    if (!lives)
        return watch__command_failed("the node has ended while it was recorded");
    if (sampler.fold.samples == 0 && sampler.lost > 0)
        return watch__command_failed("no thread could be stopped: is the node traced already?");
    return 0;
}
