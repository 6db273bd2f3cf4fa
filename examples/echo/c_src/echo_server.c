/*
 * echo_server.c - `echo_server tcp`: frames of {packet, 4} of one connection;
 * `echo_server udp`: the datagrams of the first who sends one.
 *
 * It listens on the loopback interface only, at a port that the system chooses
 * and that it writes to standard output as a line.  It ends with its client,
 * and when standard input, which whoever started it holds, is closed.
 */
#include "echo_frames.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

/* The largest datagram is smaller; one that is lost is not waited for. */
enum { DATAGRAM = 1 << 16, BUFFERED = 1 << 20, LOOK_US = 200000 };

static int bound(int type)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t size = sizeof addr;
    int sock = socket(AF_INET, type, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (sock < 0 || bind(sock, (struct sockaddr *)&addr, size) != 0
        || (type == SOCK_STREAM && listen(sock, 1) != 0)
        || getsockname(sock, (struct sockaddr *)&addr, &size) != 0)
        return -1;
    printf("%d\n", ntohs(addr.sin_port));
    return fflush(stdout) == 0 ? sock : -1;
}

/* Whether standard input has come to its end; nothing is ever written to it. */
static int left_alone(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};

    return poll(&in, 1, 0) != 0;
}

static int tcp(void)
{
    int one = 1, listener = bound(SOCK_STREAM), sock;
    struct pollfd both[] = {{.fd = 0, .events = POLLIN},
                            {.fd = listener, .events = POLLIN}};

    if (listener < 0)
        return 1;
    while (poll(both, 2, -1) < 0)
        if (errno != EINTR)
            return 1;
    if (both[0].revents)
        return 0;
    sock = accept(listener, NULL, NULL);
    close(listener);
    if (sock < 0
        || setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        return 1;
    return echo_frames(sock, sock);
}

static int udp(void)
{
    static unsigned char data[DATAGRAM];
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    struct timeval look = {.tv_usec = LOOK_US};
    int room = BUFFERED, connected = 0, sock = bound(SOCK_DGRAM);

    if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look) != 0)
        return 1;
    /* As much as the system grants. */
    setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    for (;;) {
        ssize_t n = recvfrom(sock, data, sizeof data, 0,
                             (struct sockaddr *)&from, &size);

        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return 1;
        if (n < 0 && left_alone())
            return 0;
        if (n < 0)
            continue;
        if (!connected
            && connect(sock, (struct sockaddr *)&from, size) != 0)
            return 1;
        connected = 1;
        if (send(sock, data, (size_t)n, 0) != n)
            return 1;
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "tcp") == 0)
        return tcp();
    if (argc == 2 && strcmp(argv[1], "udp") == 0)
        return udp();
    fprintf(stderr, "usage: echo_server tcp|udp\n");
    return 2;
}
