/*
 * main.c - fairnif stacks and record: what each thread of a node does, seen
 * from outside.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>

#include "outside/command.h"
#include "outside/dead.h"
#include "outside/erlang.h"
#include "outside/print.h"
#include "outside/record.h"

/* Two looks: what is seen twice has lasted for as long; a tenth of a second is
 * what the watch calls an error. */
enum { BETWEEN_MS = 100 };

static const char usage[] =
    "usage: fairnif stacks PID | --name NODE | --container ID | --core FILE "
    "[--json] [--no-stop] [--all]\n"
    "\n"
    "What each thread of a running node does, and who blocks it: seen from\n"
    "outside, without the node's help. Or of one that has died.\n"
    "\n"
    "  --name NODE  the node that was started with that name on this machine\n"
    "  --container ID  the node in that container, by 8 or more digits of its id\n"
    "  --core FILE  a core file\n"
    "  --json       one JSON object, for programs\n"
    "  --no-stop    stops no thread: what runs shows no stack\n"
    "  --all        also the stacks of threads that sleep idle\n"
    "\n"
    "Exit code: 0 no scheduler is blocked; 1 one is, or a pool is full and jobs\n"
    "wait, or the node is stopped or has died; 2 usage; 3 it cannot be seen.\n";

struct options {
    struct watch__whom whom;
    const char *core;
    bool json, no_stop, all;
};

static int misused(const char *what, const char *argument)
{
    return watch__command_misused("stacks", what, argument, usage);
}

/* 0, or an exit code. */
static int parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char **value = !strcmp(argv[i], "--name") ? &o->whom.name
            : !strcmp(argv[i], "--container") ? &o->whom.container
            : !strcmp(argv[i], "--core") ? &o->core : NULL;

        if (value) {
            if (++i == argc)
                return misused("a value is missing behind ", argv[i - 1]);
            *value = argv[i];
        } else if (!strcmp(argv[i], "--json")) {
            o->json = true;
        } else if (!strcmp(argv[i], "--no-stop")) {
            o->no_stop = true;
        } else if (!strcmp(argv[i], "--all")) {
            o->all = true;
        } else if (argv[i][0] == '-' || o->whom.pid) {
            return misused("what is ", argv[i]);
        } else {
            o->whom.pid = argv[i];
        }
    }
    if (!!o->whom.pid + !!o->whom.name + !!o->whom.container + !!o->core != 1)
        return misused("one node is needed: its process's number, --name, "
                       "--container or --core", "");
    return 0;
}

static bool see_process(const struct options *o, struct watch__dump *d,
                        char why[WATCH__WHY])
{
    if (!watch__command_node(&o->whom, d, why))
        return false;
    d->stops = !o->no_stop;
    d->tracer = watch__target_tracer(d->pid);
    if (!watch__dump_start(d)) {
        snprintf(why, WATCH__WHY, "process %d has ended", d->pid);
        return false;
    }
    watch__erlang_open(d);
    watch__dump_look(d, BETWEEN_MS * NS_PER_MS, watch__erlang_seen);
    watch__dump_look_again(d, watch__erlang_seen);
    if (!watch__target_lives(d->pid)) {
        snprintf(why, WATCH__WHY, "process %d has ended while it was looked "
                 "at", d->pid);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct watch__verdict verdict;
    struct options o = {.json = false};
    struct watch__dump d = {.waiting = {-1, -1, -1}};
    char why[WATCH__WHY] = "";
    int error;

    /* To be stopped by the terminal would stop the thread that is held. */
    signal(SIGTSTP, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    if (argc > 1 && !strcmp(argv[1], "record"))
        return watch__record(argc - 1, argv + 1);
    if (watch__command_help(argc, argv, usage))
        return 0;
    error = parse(argc, argv, &o);
    if (error)
        return error;
    if (o.core ? !watch__dump_core(o.core, &d, why) : !see_process(&o, &d, why))
        return watch__command_failed(why);
    watch__erlang_close(&d);
    watch__verdict(&d, &verdict);
    if (o.json)
        watch__print_json(stdout, &d, &verdict);
    else
        watch__print(stdout, &d, &verdict, o.all);
    watch__dump_free(&d);
    return fflush(stdout) == 0 && !ferror(stdout) ? verdict.exit_code
        : watch__command_failed("cannot write");
}
