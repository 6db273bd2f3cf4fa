/*
 * echo_node.c - a C node: {Pid, Ref, Bin} is answered with {Ref, Bin}.
 *
 * Its name and cookie come as a line on standard input, where no other user
 * sees them.  It listens on the loopback interface, at a port that it writes to
 * standard output as a line: no epmd is asked.  It serves one connection, and
 * ends with it; before there is one, when standard input is closed.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ei.h>

enum { NAME = 200, ACCEPT_MS = 10000 };

/* A connected node; negative when there will be none. */
static int connection(ei_cnode *node)
{
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
    ErlConnect other;
    int port = 0, listener = ei_xlisten(node, &loopback, &port, 1), fd;
    struct pollfd both[] = {{.fd = 0, .events = POLLIN},
                            {.fd = listener, .events = POLLIN}};

    if (listener < 0)
        return -1;
    printf("%d\n", port);
    fflush(stdout);
    if (poll(both, 2, -1) < 0 || both[0].revents)
        return -1;
    fd = ei_accept_tmo(node, listener, &other, ACCEPT_MS);
    ei_close_connection(listener);
    return fd;
}

/* 0 when the message is of another form, or memory is out. */
static int answer(int fd, const char *in, ei_x_buff *out)
{
    int at = 0, version, arity, type, size;
    erlang_pid from;
    erlang_ref ref;
    const char *bytes;

    /* The binary is not decoded but found: it begins after its tag and four
     * bytes of size, and is copied once. */
    if (ei_decode_version(in, &at, &version)
        || ei_decode_tuple_header(in, &at, &arity) || arity != 3
        || ei_decode_pid(in, &at, &from) || ei_decode_ref(in, &at, &ref)
        || ei_get_type(in, &at, &type, &size) || type != ERL_BINARY_EXT)
        return 0;
    bytes = in + at + 5;
    out->index = 0;
    return ei_x_encode_version(out) == 0
        && ei_x_encode_tuple_header(out, 2) == 0
        && ei_x_encode_ref(out, &ref) == 0
        && ei_x_encode_binary(out, bytes, size) == 0
        && ei_send(fd, &from, out->buff, out->index) == 0;
}

static int serve(int fd)
{
    ei_x_buff in, out;
    erlang_msg msg;
    int got;

    if (ei_x_new(&in) || ei_x_new(&out))
        return 1;
    do {
        in.index = 0;
        got = ei_xreceive_msg(fd, &msg, &in);
    } while (got == ERL_TICK
             || (got == ERL_MSG
                 && ((msg.msgtype != ERL_SEND && msg.msgtype != ERL_REG_SEND)
                     || answer(fd, in.buff, &out))));
    ei_x_free(&in);
    ei_x_free(&out);
    ei_close_connection(fd);
    return got != ERL_ERROR;    /* the other end has closed */
}

int main(void)
{
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
    char alive[NAME + 1], cookie[NAME + 1], full[NAME + sizeof "@localhost"];
    ei_cnode node;
    int fd;

    if (scanf("%200s %200s", alive, cookie) != 2)
        return 2;
    snprintf(full, sizeof full, "%s@localhost", alive);
    if (ei_init() != 0
        || ei_connect_xinit(&node, "localhost", alive, full, &loopback, cookie, 0) < 0)
        return 1;
    fd = connection(&node);
    return fd < 0 ? 1 : serve(fd);
}
