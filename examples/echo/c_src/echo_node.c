/*
 * echo_node.c - a C node: {Pid, Ref, Bin} is answered with {Ref, Bin}.
 *
 * Its name, the cookie and the port of the node to connect to, on the loopback
 * interface, come as a line on standard input, where no other user sees them.
 * It says when it is connected, and ends with the connection.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include <ei.h>

enum { NAME = 200 };

/* 0 when the message is of another form, or memory is out. */
static int answer(int fd, const char *in, ei_x_buff *out)
{
    int at = 0, version, arity, type, size;
    erlang_pid from;
    erlang_ref ref;

    /* The binary is not decoded but found: it begins after its tag and four
     * bytes of size, and is copied once. */
    if (ei_decode_version(in, &at, &version)
        || ei_decode_tuple_header(in, &at, &arity) || arity != 3
        || ei_decode_pid(in, &at, &from) || ei_decode_ref(in, &at, &ref)
        || ei_get_type(in, &at, &type, &size) || type != ERL_BINARY_EXT)
        return 0;
    out->index = 0;
    return ei_x_encode_version(out) == 0
        && ei_x_encode_tuple_header(out, 2) == 0
        && ei_x_encode_ref(out, &ref) == 0
        && ei_x_encode_binary(out, in + at + 5, size) == 0
        && ei_send(fd, &from, out->buff, out->index) == 0;
}

int main(void)
{
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
    char alive[NAME + 1], cookie[NAME + 1], full[NAME + sizeof "@localhost"];
    ei_x_buff in, out;
    erlang_msg msg;
    ei_cnode node;
    int port, fd, got;

    if (scanf("%200s %200s %d", alive, cookie, &port) != 3)
        return 2;
    snprintf(full, sizeof full, "%s@localhost", alive);
    if (ei_init() != 0 || ei_x_new(&in) || ei_x_new(&out)
        || ei_connect_xinit(&node, "localhost", alive, full, &loopback, cookie, 0) < 0
        || (fd = ei_connect_host_port(&node, "localhost", port)) < 0)
        return 1;
    puts("connected");
    fflush(stdout);
    do {
        in.index = 0;
        got = ei_xreceive_msg(fd, &msg, &in);
    } while (got == ERL_TICK || (got == ERL_MSG && answer(fd, in.buff, &out)));
    return got != ERL_ERROR;    /* the other end has closed */
}
