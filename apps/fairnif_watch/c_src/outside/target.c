/*
 * target.c - which process is looked at: a BEAM, by its threads' names, that the
 * system lets us read.  Every refusal says what is missing.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outside/target.h"
#include "read/mem.h"
#include "read/proc.h"
#include "read/source.h"
#include "read/threads.h"

enum { CAP_PTRACE = 19, ARGUMENTS = 64 * 1024 };

static struct watch__source process;

static int read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), n = 0;

    text[0] = '\0';
    if (fd < 0)
        return -1;
    for (;;) {
        ssize_t got = read(fd, text + n, size - 1 - (size_t)n);

        if (got <= 0)           /* it has ended: ESRCH */
            break;
        n += (int)got;
    }
    text[n] = '\0';
    close(fd);
    return n;
}

/* Of a line "KEY: VALUE" in /proc/PID/status. */
static bool status_number(int pid, const char *key, unsigned base,
                          uint64_t *value)
{
    char path[64], text[4096], *at;

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (read_text(path, text, sizeof text) <= 0 || !(at = strstr(text, key)))
        return false;
    *value = strtoull(at + strlen(key), NULL, (int)base);
    return true;
}

static bool may_trace_all(void)
{
    uint64_t effective;

    return status_number(getpid(), "\nCapEff:", 16, &effective)
        && effective >> CAP_PTRACE & 1;
}

bool watch__target_lives(int pid)
{
    uint64_t group;

    return status_number(pid, "\nTgid:", 10, &group);
}

int watch__target_tracer(int pid)
{
    uint64_t tracer;

    return status_number(pid, "\nTracerPid:", 10, &tracer) ? (int)tracer : 0;
}

/* What of the system's rules stands in the way, as far as it says. */
static void say_denied(int pid, char why[WATCH__WHY])
{
    static const char yama[] = "/proc/sys/kernel/yama/ptrace_scope";
    int tracer = watch__target_tracer(pid), n;
    uint64_t uid = 0;
    char scope[16];

    status_number(pid, "\nUid:", 10, &uid);
    if (tracer) {
        snprintf(why, WATCH__WHY, "process %d is traced already, by process "
                 "%d", pid, tracer);
        return;
    }
    n = snprintf(why, WATCH__WHY, "the system does not let us read process "
                 "%d", pid);
    if (may_trace_all())
        n += snprintf(why + n, WATCH__WHY - (size_t)n, ": a security module "
                      "or a seccomp filter forbids it");
    else if (uid != geteuid())
        n += snprintf(why + n, WATCH__WHY - (size_t)n, ", which belongs to "
                      "user %d: run this as that user, or as root: "
                      "CAP_SYS_PTRACE is missing", (int)uid);
    else
        n += snprintf(why + n, WATCH__WHY - (size_t)n, ": CAP_SYS_PTRACE is "
                      "missing; run this as root (in a container: with "
                      "--cap-add SYS_PTRACE)");
    if (read_text(yama, scope, sizeof scope) > 0) {
        scope[strcspn(scope, "\n")] = '\0';
        snprintf(why + n, WATCH__WHY - (size_t)n, ". %s is %s", yama, scope);
    }
}

static void count_scheduler(int tid, const char *name, void *arg)
{
    enum watch__sched kind;
    unsigned number;

    (void)tid;
    *(unsigned *)arg += watch__parse_name(name, &kind, &number);
}

/* The first readable address of its maps. */
static bool may_read(void)
{
    char line[64];
    int fd = watch__source_open("maps");
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    line[n] = '\0';
    watch__read_start();
    return watch__read(line, strtoull(line, NULL, 16), 1) == 1;
}

/* A process of another kind of executable (32 bits, an emulator's) has other
 * system calls and registers. */
static bool is_of_our_kind(void)
{
    int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int its = watch__source_open("exe");
    Elf64_Ehdr a, b;
    bool is = own < 0 || its < 0
        || (read(own, &a, sizeof a) == sizeof a
            && read(its, &b, sizeof b) == sizeof b
            && a.e_ident[EI_CLASS] == b.e_ident[EI_CLASS]
            && a.e_machine == b.e_machine);

    if (own >= 0)
        close(own);
    if (its >= 0)
        close(its);
    return is;
}

bool watch__target_set(int pid, char why[WATCH__WHY])
{
    unsigned schedulers = 0;
    uint64_t group;

    if (!status_number(pid, "\nTgid:", 10, &group)) {
        snprintf(why, WATCH__WHY, "there is no process %d", pid);
        return false;
    }
    process = (struct watch__source){.pid = (int)group};
    watch__source_set(&process);
    watch__each_thread(count_scheduler, &schedulers);
    if (schedulers == 0) {
        snprintf(why, WATCH__WHY, "process %d has no thread that is called as "
                 "a scheduler is: it is no node of Erlang/OTP 25 or newer, or "
                 "has ended", process.pid);
        return false;
    }
    if (!may_read()) {
        say_denied(process.pid, why);
        return false;
    }
    if (!is_of_our_kind()) {
        snprintf(why, WATCH__WHY, "process %d is of another processor, or has "
                 "32 bits", process.pid);
        return false;
    }
    return true;
}

/* -- names --------------------------------------------------------------- */

/* The argument behind -sname or -name, which the emulator is started with. */
void watch__target_name(int pid, char *name, size_t size)
{
    static char text[ARGUMENTS];
    char path[64];
    int n;

    name[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    n = read_text(path, text, sizeof text);
    for (char *at = text; at < text + n; at += strlen(at) + 1)
        if (!strcmp(at, "-sname") || !strcmp(at, "-name")) {
            at += strlen(at) + 1;
            if (at < text + n)
                snprintf(name, size, "%.*s", (int)strcspn(at, "\n"), at);
            return;
        } else if (!strcmp(at, "-extra")) {
            return;
        }
}

/* A part that is not given is any. */
static bool same_node(const char *a, const char *b)
{
    size_t n = strcspn(a, "@");

    return n == strcspn(b, "@") && !memcmp(a, b, n)
        && (!a[n] || !b[n] || !strcmp(a + n, b + n));
}

/* The one BEAM of which that holds; 0: none, or `why' names several. */
static int only(bool (*holds)(int pid, const char *what), const char *is,
                const char *what, char why[WATCH__WHY])
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    char path[64], comm[32], pids[128] = "";
    size_t length = 0;
    int found = 0, n = 0;

    while (dir && (entry = readdir(dir)) != NULL) {
        int pid = atoi(entry->d_name);

        snprintf(path, sizeof path, "/proc/%d/comm", pid);
        if (pid <= 0 || read_text(path, comm, sizeof comm) <= 0
            || strncmp(comm, "beam", 4) || !holds(pid, what))
            continue;
        found = pid;
        if (length < sizeof pids)
            length += (size_t)snprintf(pids + length, sizeof pids - length,
                                       "%s%d", n ? ", " : "", pid);
        n++;
    }
    if (dir)
        closedir(dir);
    if (n > 1)
        snprintf(why, WATCH__WHY, "processes %s are all %s %s: give one's "
                 "number", pids, is, what);
    return n == 1 ? found : 0;
}

static bool has_name(int pid, const char *name)
{
    char its[256];

    watch__target_name(pid, its, sizeof its);
    return its[0] && same_node(its, name);
}

int watch__target_named(const char *name, char why[WATCH__WHY])
{
    int pid = only(has_name, "called", name, why);

    if (!pid && !why[0])
        snprintf(why, WATCH__WHY, "no process here was started as node %s; "
                 "give the number of its process", name);
    return pid;
}

/* -- containers ---------------------------------------------------------- */

/* Fewer digits may begin many an id; ids have 32 or 64. */
enum { PREFIX = 8, WHOLE_ID = 32 };

static const char hex[] = "0123456789abcdef";

/* An id stands between other characters: /docker/ID, cri-containerd-ID.scope */
static bool has_id(const char *text, const char *id)
{
    while (*text) {
        size_t n = strspn(text, hex);

        if (n >= WHOLE_ID && !strncmp(text, id, strlen(id)))
            return true;
        text += n ? n : 1;
    }
    return false;
}

/* By its control groups; or where they are seen from within (`/'), by the files
 * that the container's own folder lends it (the root of a mount): on the host,
 * the mounts of all containers are seen, but not with such a root. */
static bool is_in_container(int pid, const char *id)
{
    static char text[ARGUMENTS];
    char path[64], root[1024];

    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    if (read_text(path, text, sizeof text) > 0 && has_id(text, id))
        return true;
    snprintf(path, sizeof path, "/proc/%d/mountinfo", pid);
    if (read_text(path, text, sizeof text) <= 0)
        return false;
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "%*s %*s %*s %1023s", root) == 1 && has_id(root, id))
            return true;
    }
    return false;
}

int watch__target_contained(const char *id, char why[WATCH__WHY])
{
    size_t n = strlen(id);
    int pid;

    if (n < PREFIX || strspn(id, hex) != n) {
        snprintf(why, WATCH__WHY, "%s is no id of a container: its first 8 "
                 "digits or more, as `docker ps' and its like show them", id);
        return 0;
    }
    pid = only(is_in_container, "in container", id, why);
    if (!pid && !why[0])
        snprintf(why, WATCH__WHY, "no node is seen in container %s; as root "
                 "on its host more is seen; or give the number of its process "
                 "there", id);
    return pid;
}
