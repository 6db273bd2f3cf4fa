/*
 * A port driver that knows nothing of fairnif: control answers its data.
 */
#include <string.h>

#include <erl_driver.h>

static ErlDrvData start(ErlDrvPort port, char *command)
{
    (void)command;
    set_port_control_flags(port, PORT_CONTROL_FLAG_BINARY);
    return (ErlDrvData)port;
}

static ErlDrvSSizeT control(ErlDrvData data, unsigned command, char *buf,
                            ErlDrvSizeT len, char **rbuf, ErlDrvSizeT rlen)
{
    (void)data;
    if (command != 0 || len > rlen)
        return -1;
    memcpy(*rbuf, buf, len);
    return (ErlDrvSSizeT)len;
}

static ErlDrvEntry entry = {
    .start = start,
    .control = control,
    .driver_name = "fairnif_test_driver_plain",
    .extended_marker = ERL_DRV_EXTENDED_MARKER,
    .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
    .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
    .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING
};

DRIVER_INIT(fairnif_test_driver_plain)
{
    return &entry;
}
