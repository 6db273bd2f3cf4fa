/*
 * echo_driver.c - a linked-in driver: what comes by erlang:port_command/2 goes to
 * the port's owner, large binaries without being copied.
 *
 * It runs under the lock of its port, on the scheduler of its caller, and may
 * not take long.  There is no state but the port itself.
 */
#include <erl_driver.h>

static ErlDrvData start(ErlDrvPort port, char *command)
{
    (void)command;
    return (ErlDrvData)port;
}

static void outputv(ErlDrvData data, ErlIOVec *ev)
{
    driver_outputv((ErlDrvPort)data, "", 0, ev, 0);
}

static ErlDrvEntry entry = {
    .start = start,
    .driver_name = "echo_driver",
    .outputv = outputv,
    .extended_marker = ERL_DRV_EXTENDED_MARKER,
    .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
    .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
    .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING,
};

DRIVER_INIT(echo_driver)
{
    return &entry;
}
