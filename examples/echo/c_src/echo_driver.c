/*
 * echo_driver.c - a linked-in driver that echoes in the three ways in which a
 * port takes data: control, call and outputv.
 *
 * All callbacks run under the lock of their port, on the scheduler of whoever
 * calls; none may take long.  There is no state but the port itself.
 */
#include <string.h>

#include <erl_driver.h>

static ErlDrvData start(ErlDrvPort port, char *command)
{
    (void)command;
    set_port_control_flags(port, PORT_CONTROL_FLAG_BINARY);
    return (ErlDrvData)port;
}

/* erlang:port_control/3: a binary of its own, which the VM takes over. */
static ErlDrvSSizeT control(ErlDrvData data, unsigned command, char *buf,
                            ErlDrvSizeT size, char **answer, ErlDrvSizeT room)
{
    ErlDrvBinary *bin = driver_alloc_binary(size);

    (void)data, (void)command, (void)room;
    if (!bin)
        return (ErlDrvSSizeT)ERL_DRV_ERROR_GENERAL;
    memcpy(bin->orig_bytes, buf, size);
    *answer = (char *)bin;
    return (ErlDrvSSizeT)size;
}

/* erlang:port_call/3: a term in the external format, which it leaves as it is.
 * The VM frees what is not its own buffer. */
static ErlDrvSSizeT call(ErlDrvData data, unsigned command, char *buf,
                         ErlDrvSizeT size, char **answer, ErlDrvSizeT room,
                         unsigned *flags)
{
    (void)data, (void)command, (void)flags;
    if (size > room) {
        char *more = driver_alloc(size);

        if (!more)
            return (ErlDrvSSizeT)ERL_DRV_ERROR_GENERAL;
        *answer = more;
    }
    memcpy(*answer, buf, size);
    return (ErlDrvSSizeT)size;
}

/* erlang:port_command/2: what came goes to the owner, large binaries without
 * being copied. */
static void outputv(ErlDrvData data, ErlIOVec *ev)
{
    driver_outputv((ErlDrvPort)data, "", 0, ev, 0);
}

static ErlDrvEntry entry = {
    .start = start,
    .driver_name = "echo_driver",
    .control = control,
    .call = call,
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
