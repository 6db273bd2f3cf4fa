/*
 * tcp.c - TCP as straight-line C: connect, listen, accept, send, receive.
 *
 * Each body does its system call, and where that would block it waits with
 * fair_wait, in the middle of the function: the caller is suspended, no
 * scheduler and no thread is held.  A socket is a descriptor that was handed
 * over with fair_make_fd: it is closed by close/1, or when its owner dies.
 *
 * errno is a variable of the thread, and a body may go on on another thread
 * after each wait.  So system calls are made in functions of their own (CALL),
 * which answer -errno.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fairnif.h>

#define CALL static __attribute__((noinline))

enum {
    FOREVER = -1,
    CHUNK = 256 * 1024,         /* what recv/2 takes at once, at most */
    PIECES = 256,               /* of an iovec that are looked at at once */
    PIECES_SENT = 1024          /* IOV_MAX: that a system call takes */
};

/* -- errors: {error, Reason}, named as gen_tcp names them --------------------- */

static const struct {
    int number;
    const char *name;
} reasons[] = {
    {EPIPE, "closed"}, {ECONNRESET, "closed"}, {EBADF, "closed"},
    {ENOTCONN, "enotconn"}, {ETIMEDOUT, "etimedout"}, {EBUSY, "ebusy"},
    {ECONNREFUSED, "econnrefused"}, {ECONNABORTED, "econnaborted"},
    {EADDRINUSE, "eaddrinuse"}, {EADDRNOTAVAIL, "eaddrnotavail"},
    {EHOSTUNREACH, "ehostunreach"}, {ENETUNREACH, "enetunreach"},
    {EACCES, "eacces"}, {EPERM, "eperm"}, {EMFILE, "emfile"},
    {ENFILE, "enfile"}, {ENOMEM, "enomem"}, {ENOBUFS, "enobufs"},
    {EINVAL, "einval"}, {EAFNOSUPPORT, "eafnosupport"}, {EISCONN, "eisconn"},
    {ENETDOWN, "enetdown"}, {EHOSTDOWN, "ehostdown"}, {EALREADY, "ealready"},
};

static ERL_NIF_TERM error_term(fair_task *t, ERL_NIF_TERM reason)
{
    return enif_make_tuple2(fair_env(t), enif_make_atom(fair_env(t), "error"),
                            reason);
}

/* `result`: what a system call or fair_wait answered, 0 (its time is up) or
 * -errno. */
static ERL_NIF_TERM failed(fair_task *t, long result)
{
    const char *name = result == 0 ? "timeout" : "unknown";

    for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].number == -result)
            name = reasons[i].name;
    return error_term(t, enif_make_atom(fair_env(t), name));
}

static ERL_NIF_TERM ok_with(fair_task *t, ERL_NIF_TERM value)
{
    return enif_make_tuple2(fair_env(t), enif_make_atom(fair_env(t), "ok"),
                            value);
}

static ERL_NIF_TERM ok(fair_task *t)
{
    return enif_make_atom(fair_env(t), "ok");
}

/* -- system calls: what they answer, or -errno -------------------------------- */

#define OR_ERRNO(CALLED) ({ long r_ = (CALLED); r_ < 0 ? -errno : r_; })

CALL long try_socket(int family)
{
    return OR_ERRNO(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                           0));
}

CALL long try_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    return OR_ERRNO(connect(fd, to, size));
}

CALL long try_listen(int fd, const struct sockaddr *at, socklen_t size,
                     int backlog)
{
    int yes = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, at, size) < 0)
        return -errno;
    return OR_ERRNO(listen(fd, backlog));
}

CALL long try_accept(int fd)
{
    return OR_ERRNO(accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

CALL long try_recv(int fd, void *buffer, size_t size)
{
    return OR_ERRNO(recv(fd, buffer, size, 0));
}

CALL long try_send(int fd, SysIOVec *pieces, int count)
{
    _Static_assert(sizeof(SysIOVec) == sizeof(struct iovec), "same layout");
    struct msghdr message = {
        .msg_iov = (struct iovec *)(void *)pieces,
        .msg_iovlen = (size_t)(count < PIECES_SENT ? count : PIECES_SENT),
    };

    return OR_ERRNO(sendmsg(fd, &message, MSG_NOSIGNAL));
}

CALL long try_shutdown(int fd, int how)
{
    return OR_ERRNO(shutdown(fd, how));
}

CALL long try_duplicate(int fd)
{
    return OR_ERRNO(fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

/* How a connect that had to wait went. */
CALL long connected(int fd)
{
    socklen_t size = sizeof(int);
    int error = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        return -errno;
    return -error;
}

/* Bytes that can be read at once: 0 also at the end, and after an error. */
CALL long available(int fd)
{
    int bytes = 0;

    return ioctl(fd, FIONREAD, &bytes) == 0 ? bytes : 0;
}

CALL long local_port(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;

    if (getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return -errno;
    return ntohs(at.ss_family == AF_INET
                 ? ((struct sockaddr_in *)&at)->sin_port
                 : ((struct sockaddr_in6 *)&at)->sin6_port);
}

static bool would_block(long result)
{
    return result == -EAGAIN || result == -EWOULDBLOCK || result == -EINTR;
}

/* -- time ------------------------------------------------------------------------ */

struct limit {
    bool set;
    ErlNifTime end;             /* ms */
};

static bool get_limit(fair_task *t, unsigned i, struct limit *limit)
{
    int ms;

    if (!fair_get_int(t, fair_arg(t, i), &ms))
        return false;
    limit->set = ms >= 0;
    limit->end = enif_monotonic_time(ERL_NIF_MSEC) + ms;
    return true;
}

/* What fair_wait answers. */
static int wait_until(fair_task *t, int fd, unsigned event,
                      const struct limit *limit)
{
    ErlNifTime left;

    if (!limit->set)
        return fair_wait(t, fd, event, FOREVER);
    left = limit->end - enif_monotonic_time(ERL_NIF_MSEC);
    return fair_wait(t, fd, event, left > 0 ? (int)left : 0);
}

/* -- addresses ---------------------------------------------------------------------- */

/* Arguments i and i + 1: 4 or 16 bytes in network order, and a port. */
static bool get_address(fair_task *t, unsigned i, struct sockaddr_storage *at,
                        socklen_t *size)
{
    fair_bin ip;
    unsigned port;

    memset(at, 0, sizeof *at);
    if (!fair_get_bin(t, fair_arg(t, i), &ip)
        || !fair_get_uint(t, fair_arg(t, i + 1), &port)
        || port > 65535)
        return false;
    if (ip.size == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)at;

        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)port);
        memcpy(&in->sin_addr, ip.data, 4);
        *size = sizeof *in;
        return true;
    } else if (ip.size == 16) {
        struct sockaddr_in6 *in = (struct sockaddr_in6 *)at;

        in->sin6_family = AF_INET6;
        in->sin6_port = htons((uint16_t)port);
        memcpy(&in->sin6_addr, ip.data, 16);
        *size = sizeof *in;
        return true;
    }
    return false;
}

/* -- descriptors ------------------------------------------------------------------------ */

static void close_deferred(void *fd)
{
    close((int)(intptr_t)fd);
}

/* Ours until it is handed over: closed however the body ends. */
static void hold(fair_task *t, long fd)
{
    fair_defer(t, close_deferred, (void *)(intptr_t)fd);
}

/* {ok, Socket}: Erlang's from now on. */
static ERL_NIF_TERM hand_over(fair_task *t, long fd)
{
    ERL_NIF_TERM term = fair_make_fd(t, (int)fd);

    if (!term)
        return failed(t, -ENOMEM);
    fair_undefer(t, close_deferred, (void *)(intptr_t)fd);
    return ok_with(t, term);
}

/* -- bodies ------------------------------------------------------------------------------ */

/* connect(Ip, Port, Ms) -> {ok, Socket} */
static ERL_NIF_TERM tcp_connect(fair_task *t)
{
    struct sockaddr_storage to;
    struct limit limit;
    socklen_t size;
    long fd, result;

    if (!get_address(t, 0, &to, &size) || !get_limit(t, 2, &limit))
        return fair_badarg(t);
    fd = try_socket(to.ss_family);
    if (fd < 0)
        return failed(t, fd);
    hold(t, fd);
    result = try_connect((int)fd, (struct sockaddr *)&to, size);
    if (result == -EINPROGRESS) {
        result = wait_until(t, (int)fd, FAIR_WRITE, &limit);
        if (result <= 0)
            return failed(t, result);
        result = connected((int)fd);
    }
    return result < 0 ? failed(t, result) : hand_over(t, fd);
}

/* listen(Ip, Port, Backlog) -> {ok, Socket} */
static ERL_NIF_TERM tcp_listen(fair_task *t)
{
    struct sockaddr_storage at;
    socklen_t size;
    long fd, result;
    int backlog;

    if (!get_address(t, 0, &at, &size)
        || !fair_get_int(t, fair_arg(t, 2), &backlog))
        return fair_badarg(t);
    fd = try_socket(at.ss_family);
    if (fd < 0)
        return failed(t, fd);
    hold(t, fd);
    result = try_listen((int)fd, (struct sockaddr *)&at, size, backlog);
    return result < 0 ? failed(t, result) : hand_over(t, fd);
}

/* accept(Listening, Ms) -> {ok, Socket} */
static ERL_NIF_TERM tcp_accept(fair_task *t)
{
    struct limit limit;
    int listening;

    if (!get_limit(t, 1, &limit))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &listening))
        return failed(t, -EBADF);
    for (;;) {
        long fd = try_accept(listening), ready;

        if (fd >= 0) {
            hold(t, fd);
            return hand_over(t, fd);
        }
        if (fd == -ECONNABORTED)        /* that one went away: the next */
            continue;
        if (!would_block(fd))
            return failed(t, fd);
        ready = wait_until(t, listening, FAIR_READ, &limit);
        if (ready <= 0)
            return failed(t, ready);
    }
}

static void destroy_queue(void *queue)
{
    enif_ioq_destroy(queue);
}

/* Puts the next pieces of a root, a list of binaries, into the queue, which
 * refers to their bytes.  What is left stays in the root. */
static bool enqueue(fair_task *t, ErlNifIOQueue *queue, unsigned list)
{
    ErlNifIOVec vec, *pieces = &vec;
    ERL_NIF_TERM rest;

    if (!enif_inspect_iovec(fair_env(t), PIECES, fair_kept(t, list), &rest,
                            &pieces)
        || !enif_ioq_enqv(queue, pieces, 0))
        return false;
    fair_keep(t, list, rest);
    return true;
}

/* Sends what is in the queue: 1, or as for `failed`. */
static long flush(fair_task *t, int fd, ErlNifIOQueue *queue,
                  const struct limit *limit)
{
    while (enif_ioq_size(queue) > 0) {
        int count;
        SysIOVec *pieces = enif_ioq_peek(queue, &count);
        long sent = try_send(fd, pieces, count);

        if (sent >= 0) {
            enif_ioq_deq(queue, (size_t)sent, NULL);
            fair_tick(t, (size_t)sent);
        } else if (would_block(sent)) {
            long ready = wait_until(t, fd, FAIR_WRITE, limit);

            if (ready <= 0)
                return ready;
        } else {
            return sent;
        }
    }
    return 1;
}

/* send(Socket, [Binary], Ms) -> ok */
static ERL_NIF_TERM tcp_send(fair_task *t)
{
    ErlNifIOQueue *queue;
    struct limit limit;
    unsigned list;
    int fd;

    if (!get_limit(t, 2, &limit))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    queue = enif_ioq_create(ERL_NIF_IOQ_NORMAL);
    if (!queue)
        return fair_enomem(t);
    fair_defer(t, destroy_queue, queue);
    list = fair_root(t, fair_arg(t, 1));
    while (!enif_is_empty_list(fair_env(t), fair_kept(t, list))) {
        long result;

        if (!enqueue(t, queue, list))
            return fair_badarg(t);
        result = flush(t, fd, queue, &limit);
        if (result <= 0)
            return failed(t, result);
    }
    return ok(t);
}

/* recv(Socket, Ms) -> {ok, Binary}: what is there, at least one byte */
static ERL_NIF_TERM tcp_recv(fair_task *t)
{
    struct limit limit;
    long there, got;
    fair_bin out;
    int fd;

    if (!get_limit(t, 1, &limit))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    do {
        there = available(fd);
        if (there == 0) {
            long ready = wait_until(t, fd, FAIR_READ, &limit);

            if (ready <= 0)
                return failed(t, ready);
            there = available(fd);
        }
        /* One byte of room shows the end, and what went wrong. */
        if (!fair_new_bin(t, (size_t)(there == 0 ? 1 : there < CHUNK ? there
                                      : CHUNK), &out))
            return fair_enomem(t);
        got = try_recv(fd, out.data, out.size);
        if (got <= 0)
            fair_release_bin(t, &out);
    } while (would_block(got));         /* somebody else took it */
    if (got <= 0)
        return failed(t, got < 0 ? got : -EPIPE);
    fair_tick(t, (size_t)got);
    if (!fair_resize_bin(t, &out, (size_t)got))
        return fair_enomem(t);
    return ok_with(t, fair_make_bin(t, &out));
}

/* Its time is up in the middle: the bytes that came are not lost. */
static ERL_NIF_TERM timeout_with(fair_task *t, fair_bin *out, size_t got)
{
    ERL_NIF_TERM bytes;

    if (got == 0)
        return failed(t, 0);
    if (!fair_resize_bin(t, out, got))
        return fair_enomem(t);
    bytes = fair_make_bin(t, out);
    return error_term(t, enif_make_tuple2(fair_env(t),
                                          enif_make_atom(fair_env(t),
                                                         "timeout"), bytes));
}

/* recv_exactly(Socket, Size, Ms) -> {ok, Binary} */
static ERL_NIF_TERM tcp_recv_exactly(fair_task *t)
{
    struct limit limit;
    size_t got = 0;
    unsigned size;
    fair_bin out;
    int fd;

    if (!fair_get_uint(t, fair_arg(t, 1), &size) || size == 0
        || !get_limit(t, 2, &limit))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    if (!fair_new_bin(t, size, &out))
        return fair_enomem(t);
    while (got < size) {
        long n = try_recv(fd, out.data + got, size - got);

        if (n > 0) {
            got += (size_t)n;
            fair_tick(t, (size_t)n);
        } else if (would_block(n)) {
            long ready = wait_until(t, fd, FAIR_READ, &limit);

            if (ready == 0)
                return timeout_with(t, &out, got);
            if (ready < 0)
                return failed(t, ready);
        } else {
            return failed(t, n < 0 ? n : -EPIPE);
        }
    }
    return ok_with(t, fair_make_bin(t, &out));
}

/* shutdown(Socket, read | write | read_write) -> ok */
static ERL_NIF_TERM tcp_shutdown(fair_task *t)
{
    static const char *const names[] = {
        [SHUT_RD] = "read", [SHUT_WR] = "write", [SHUT_RDWR] = "read_write"
    };
    char name[16];
    int fd, how = 0;
    long result;

    if (!fair_get_atom(t, fair_arg(t, 1), name, sizeof name))
        return fair_badarg(t);
    while (how < 3 && strcmp(names[how], name) != 0)
        how++;
    if (how == 3)
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    result = try_shutdown(fd, how);
    return result < 0 ? failed(t, result) : ok(t);
}

/* close(Socket) -> ok, also when it was closed before */
static ERL_NIF_TERM tcp_close(fair_task *t)
{
    fair_close_fd(t, fair_arg(t, 0));
    return ok(t);
}

/* own(Socket) -> {ok, Socket}: another one for the same connection, which the
 * caller owns; the one before is closed. */
static ERL_NIF_TERM tcp_own(fair_task *t)
{
    ERL_NIF_TERM owned;
    long copy;
    int fd;

    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    copy = try_duplicate(fd);
    if (copy < 0)
        return failed(t, copy);
    hold(t, copy);
    owned = hand_over(t, copy);
    fair_close_fd(t, fair_arg(t, 0));
    return owned;
}

/* port(Socket) -> {ok, Port} of its own end */
static ERL_NIF_TERM tcp_port(fair_task *t)
{
    long port;
    int fd;

    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    port = local_port(fd);
    return port < 0 ? failed(t, port)
        : ok_with(t, enif_make_long(fair_env(t), port));
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_connect", 3, tcp_connect, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_listen", 3, tcp_listen, FAIR_AUTO),
    FAIR_NIF("nif_accept", 2, tcp_accept, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_send", 3, tcp_send, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_recv", 2, tcp_recv, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_recv_exactly", 3, tcp_recv_exactly,
             FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("shutdown", 2, tcp_shutdown, FAIR_AUTO),
    FAIR_NIF("close", 1, tcp_close, FAIR_AUTO),
    FAIR_NIF("own", 1, tcp_own, FAIR_AUTO),
    FAIR_NIF("port", 1, tcp_port, FAIR_AUTO),
};

FAIR_NIF_INIT(tcp, nifs, NULL, NULL, NULL, NULL)
