/*
 * role.c - which of a node's threads is which, by name: schedulers as the watch
 * tells them, and the others.
 *
 * OTP 25 and 26 number in front, from OTP 27 on the number stands behind.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "outside/role.h"

const char *const watch__role_names[R_ROLES] = {
    [R_NORMAL] = "scheduler", [R_DIRTY_CPU] = "dirty CPU",
    [R_DIRTY_IO] = "dirty I/O", [R_POLL] = "poll", [R_AUX] = "aux",
    [R_ASYNC] = "async", [R_SIGNALS] = "signals",
    [R_POOL] = "fairnif pool", [R_WATCH] = "fairnif watch", [R_MAIN] = "main",
    [R_OTHER] = "thread"
};

static const struct {
    const char *name;           /* '#': a number */
    enum watch__role role;
} names[] = {
    {"#_poller", R_POLL}, {"erts_poll_#", R_POLL},
    {"#_aux", R_AUX}, {"erts_aux_#", R_AUX}, {"aux", R_AUX},
    {"async_#", R_ASYNC}, {"erts_async_#", R_ASYNC},
    {"sys_sig_dispatc", R_SIGNALS}, {"sys_msg_dispatc", R_SIGNALS},
    {"erts_ssig_disp", R_SIGNALS}, {"erts_smsg_disp", R_SIGNALS},
    {"fairnif_#", R_POOL}, {"fairnif_starter", R_POOL},
    {"fairnif_watch", R_WATCH},
};

static bool is_called(const char *pattern, const char *name, unsigned *number)
{
    *number = 0;
    for (; *pattern; pattern++)
        if (*pattern == '#') {
            char *end;

            if (!isdigit((unsigned char)*name))
                return false;
            *number = (unsigned)strtoul(name, &end, 10);
            name = end;
        } else if (*pattern != *name++) {
            return false;
        }
    return *name == '\0';
}

enum watch__role watch__role_of(int tid, int pid, const char *name,
                                unsigned *number)
{
    enum watch__sched kind;

    if (watch__parse_name(name, &kind, number))
        return (enum watch__role)kind;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_called(names[i].name, name, number))
            return names[i].role;
    *number = 0;
    return tid == pid ? R_MAIN : R_OTHER;
}
