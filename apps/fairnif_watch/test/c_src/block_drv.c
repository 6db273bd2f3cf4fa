/*
 * block_drv.c - a port driver whose control callback blocks its scheduler:
 * operation 0 spins, 1 sleeps, for as many ms as the data says in decimal.
 *
 * Answers 16 bytes, big endian: since and until, ns of erlang:monotonic_time/0.
 */
#define _GNU_SOURCE             /* ways.h */

#include <erl_driver.h>

#include "ways.h"

static ErlDrvData start(ErlDrvPort port, char *command)
{
    (void)command;
    set_port_control_flags(port, PORT_CONTROL_FLAG_BINARY);
    return (ErlDrvData)port;
}

static void put(char *to, ErlDrvTime time)
{
    for (int i = 7; i >= 0; i--, time >>= 8)
        to[i] = (char)(time & 0xff);
}

static ErlDrvSSizeT control(ErlDrvData data, unsigned command, char *buf,
                            ErlDrvSizeT len, char **rbuf, ErlDrvSizeT rlen)
{
    ErlDrvTime since = erl_drv_monotonic_time(ERL_DRV_NSEC);
    struct way w = { .seed = 1 };

    (void)data;
    if (command > 1 || rlen < 16)
        return -1;
    for (ErlDrvSizeT i = 0; i < len; i++)
        w.ms = w.ms * 10 + (buf[i] - '0');
    if (command == 0)
        way_spin(&w);
    else
        way_sleep(&w);
    put(*rbuf, since);
    put(*rbuf + 8, erl_drv_monotonic_time(ERL_DRV_NSEC));
    return 16;
}

static ErlDrvEntry entry = {
    .start = start,
    .control = control,
    .driver_name = "fairnif_watch_block_drv",
    .extended_marker = ERL_DRV_EXTENDED_MARKER,
    .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
    .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
    .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING
};

DRIVER_INIT(fairnif_watch_block_drv)
{
    return &entry;
}
