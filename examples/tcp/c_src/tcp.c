/*
 * tcp.c - TCP as straight-line C: connect, listen, accept, send, receive.
 *
 * Each body does its system call, and where that would block it waits with
 * fair_wait, in the middle of the function: the caller is suspended, no
 * scheduler and no thread is blocked.  A socket is a descriptor that was passed
 * with fair_adopt_fd: it is closed by close/1, or when its owner dies.
 * errno is a variable of the thread, and a body may continue on another thread
 * after each wait: what is asked for it is a function of its own (CALL).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <erl_driver.h>         /* erl_errno_id */
#include <fairnif.h>

#define CALL(NAME, PARAMETERS, CALLED)                                      \
    static __attribute__((noinline)) long NAME PARAMETERS                   \
    {                                                                       \
        long result = (CALLED);                                             \
                                                                            \
        return result < 0 ? -errno : result;                                \
    }
CALL(try_socket, (void),
     socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0))
CALL(try_connect, (int fd, const struct sockaddr_in *to),
     connect(fd, (const struct sockaddr *)to, sizeof *to))
CALL(try_bind, (int fd, const struct sockaddr_in *at),
     bind(fd, (const struct sockaddr *)at, sizeof *at))
CALL(try_listen, (int fd), listen(fd, 1024))
CALL(try_accept, (int fd),
     accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC))
CALL(try_recv, (int fd, void *to, size_t size), recv(fd, to, size, 0))
CALL(try_send, (int fd, const void *from, size_t size),
     send(fd, from, size, MSG_NOSIGNAL))

/* Bytes that can be read at once: 0 also at the end, and after an error. */
static long available(int fd)
{
    int bytes = 0;

    return ioctl(fd, FIONREAD, &bytes) == 0 ? bytes : 0;
}

static bool would_block(long result)
{
    return result == -EAGAIN || result == -EWOULDBLOCK || result == -EINTR;
}

/* {error, Reason}, as gen_tcp has it, for -errno. */
static ERL_NIF_TERM failed(fair_task *t, long result)
{
    ErlNifEnv *env = fair_env(t);
    bool closed = result == -EPIPE || result == -ECONNRESET || result == -EBADF;
    const char *name = result == -ETIMEDOUT ? "timeout" : closed ? "closed"
        : erl_errno_id((int)-result);

    return enif_make_tuple2(env, enif_make_atom(env, "error"),
                            enif_make_atom(env, name));
}

static ERL_NIF_TERM ok_with(fair_task *t, ERL_NIF_TERM value)
{
    return enif_make_tuple2(fair_env(t), enif_make_atom(fair_env(t), "ok"),
                            value);
}

/* Argument i: milliseconds, negative for ever.  When they are over. */
static bool get_end(fair_task *t, unsigned i, ErlNifTime *end)
{
    int ms;

    if (!fair_get_int(t, fair_arg(t, i), &ms))
        return false;
    *end = ms < 0 ? INT64_MAX : enif_monotonic_time(ERL_NIF_MSEC) + ms;
    return true;
}

/* What fair_wait answers. */
static long wait_until(fair_task *t, int fd, unsigned event, ErlNifTime end)
{
    ErlNifTime left = end == INT64_MAX ? -1
        : end - enif_monotonic_time(ERL_NIF_MSEC);

    return fair_wait(t, fd, event, left < 0 && end < INT64_MAX ? 0 : (int)left);
}

static void close_deferred(void *fd)
{
    close((int)(intptr_t)fd);
}

/* Ours until it is passed: closed however the body ends, also when its
 * caller is killed at a wait. */
static void hold(fair_task *t, long fd)
{
    fair_defer(t, close_deferred, (void *)(intptr_t)fd);
}

/* {ok, Socket}: Erlang's from now on. */
static ERL_NIF_TERM adopt(fair_task *t, long fd)
{
    ERL_NIF_TERM socket = fair_adopt_fd(t, (int)fd);

    if (!socket)
        return failed(t, -ENOMEM);
    fair_undefer(t, close_deferred, (void *)(intptr_t)fd);
    return ok_with(t, socket);
}

/* A new socket, kept, and the address of arguments 0 and 1: 4 bytes in network
 * order, and a port.  0, or what the body is to return. */
static ERL_NIF_TERM begin(fair_task *t, int *fd, struct sockaddr_in *at)
{
    unsigned port;
    fair_bytes ip;
    long made;

    if (!fair_get_bytes(t, fair_arg(t, 0), &ip) || ip.size != 4
        || !fair_get_uint(t, fair_arg(t, 1), &port) || port > 65535)
        return fair_badarg(t);
    *at = (struct sockaddr_in){.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port)};
    memcpy(&at->sin_addr, ip.data, 4);
    made = try_socket();
    if (made < 0)
        return failed(t, made);
    hold(t, made);
    *fd = (int)made;
    return 0;
}

/* connect(Ip, Port, Ms) -> {ok, Socket} */
static ERL_NIF_TERM tcp_connect(fair_task *t)
{
    struct sockaddr_in to;
    ErlNifTime end;
    ERL_NIF_TERM error;
    long result;
    int fd;

    if (!get_end(t, 2, &end))
        return fair_badarg(t);
    if ((error = begin(t, &fd, &to)))
        return error;
    while ((result = try_connect(fd, &to)) < 0 && result != -EISCONN) {
        if (result == -EINPROGRESS || result == -EALREADY)
            result = wait_until(t, fd, FAIR_WRITE, end);
        if (result < 0)
            return failed(t, result);
    }
    return adopt(t, fd);
}

/* listen(Ip, Port) -> {ok, Socket} */
static ERL_NIF_TERM tcp_listen(fair_task *t)
{
    struct sockaddr_in at;
    ERL_NIF_TERM error;
    int fd, yes = 1;
    long result;

    if ((error = begin(t, &fd, &at)))
        return error;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    result = try_bind(fd, &at);
    if (result == 0)
        result = try_listen(fd);
    return result < 0 ? failed(t, result) : adopt(t, fd);
}

/* accept(Listening, Ms) -> {ok, Socket} */
static ERL_NIF_TERM tcp_accept(fair_task *t)
{
    ErlNifTime end;
    int listening;
    long fd;

    if (!get_end(t, 1, &end))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &listening))
        return failed(t, -EBADF);
    while ((fd = try_accept(listening)) < 0) {
        if (would_block(fd))
            fd = wait_until(t, listening, FAIR_READ, end);
        if (fd < 0 && fd != -ECONNABORTED)      /* one went away: the next */
            return failed(t, fd);
    }
    hold(t, fd);
    return adopt(t, fd);
}

/* send(Socket, Binary, Ms) -> ok */
static ERL_NIF_TERM tcp_send(fair_task *t)
{
    ErlNifTime end;
    fair_bytes data;                    /* not copied; it stays where it is */
    long n;
    int fd;

    if (!fair_get_bytes(t, fair_arg(t, 1), &data) || !get_end(t, 2, &end))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    for (size_t at = 0; at < data.size; at += (size_t)n) {
        while ((n = try_send(fd, data.data + at, data.size - at)) < 0) {
            if (would_block(n))
                n = wait_until(t, fd, FAIR_WRITE, end);
            if (n < 0)
                return failed(t, n);
        }
        fair_tick(t, (size_t)n);
    }
    return enif_make_atom(fair_env(t), "ok");
}

/* recv(Socket, Most, Ms) -> {ok, Binary}: what is there, at least one byte */
static ERL_NIF_TERM tcp_recv(fair_task *t)
{
    long got, there, ready;
    ErlNifTime end;
    unsigned most;
    fair_bin out;
    int fd;

    if (!fair_get_uint(t, fair_arg(t, 1), &most) || most == 0
        || !get_end(t, 2, &end))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    do {
        there = available(fd);
        if (there == 0) {
            ready = wait_until(t, fd, FAIR_READ, end);
            if (ready < 0)
                return failed(t, ready);
            there = available(fd);
        }
        /* One byte of room shows the end, and what went wrong. */
        there = there == 0 ? 1 : there < most ? there : most;
        if (!fair_new_bin(t, (size_t)there, &out))
            return fair_enomem(t);
        got = try_recv(fd, out.data, (size_t)there);
        if (got <= 0)
            fair_release_bin(t, &out);
    } while (would_block(got));         /* another reader took it */
    if (got <= 0)
        return failed(t, got < 0 ? got : -EPIPE);
    fair_tick(t, (size_t)got);
    if (!fair_resize_bin(t, &out, (size_t)got))
        return fair_enomem(t);
    return ok_with(t, fair_make_bin(t, &out));
}

/* port(Socket) -> {ok, Port} of its own end */
static ERL_NIF_TERM tcp_port(fair_task *t)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    int fd;

    if (!fair_get_fd(t, fair_arg(t, 0), &fd)
        || getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return failed(t, -EBADF);
    return ok_with(t, enif_make_uint(fair_env(t), ntohs(at.sin_port)));
}

/* close(Socket) -> ok, also when it was closed before */
static ERL_NIF_TERM tcp_close(fair_task *t)
{
    fair_close_fd(t, fair_arg(t, 0));
    return enif_make_atom(fair_env(t), "ok");
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_connect", 3, tcp_connect, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("nif_listen", 2, tcp_listen, FAIR_AUTO),
    FAIR_NIF("nif_accept", 2, tcp_accept, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("nif_send", 3, tcp_send, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("nif_recv", 3, tcp_recv, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("close", 1, tcp_close, FAIR_AUTO),
    FAIR_NIF("port", 1, tcp_port, FAIR_AUTO),
};

FAIR_NIF_INIT(tcp, nifs, NULL, NULL, NULL)
