/*
 * tty.c - a terminal as straight-line C: lines, secrets, the window's size.
 *
 * Whoever waits for a line waits in fair_wait, in the middle of the function,
 * and holds neither a scheduler nor a thread.
 *
 * The terminal is opened anew by its name.  A descriptor that is inherited
 * (0, 1, 2) shares its non-blocking flag with the shell and everybody else who
 * has it; one of our own does not.
 *
 * errno is a variable of the thread, and a body may go on on another thread
 * after each wait.  So system calls are made in functions of their own (CALL),
 * which answer -errno.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <fairnif.h>

#define CALL static __attribute__((noinline))

enum {
    FOREVER = -1,
    LINE = 4096                 /* the most that a terminal keeps of a line */
};

/* -- answers ------------------------------------------------------------------ */

static const struct {
    int number;
    const char *name;
} reasons[] = {
    {EIO, "closed"}, {EBADF, "closed"}, {ENXIO, "closed"}, {EBUSY, "ebusy"},
    {ENOENT, "enoent"}, {EACCES, "eacces"}, {ENOTTY, "enotty"},
    {EINVAL, "einval"}, {EMFILE, "emfile"}, {ENOMEM, "enomem"},
    {ENAMETOOLONG, "enametoolong"},
};

/* {error, Reason}; `result`: what a system call or fair_wait answered, 0 (its
 * time is up) or -errno. */
static ERL_NIF_TERM failed(fair_task *t, long result)
{
    const char *name = result == 0 ? "timeout" : "unknown";

    for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].number == -result)
            name = reasons[i].name;
    return enif_make_tuple2(fair_env(t), enif_make_atom(fair_env(t), "error"),
                            enif_make_atom(fair_env(t), name));
}

static ERL_NIF_TERM ok_with(fair_task *t, ERL_NIF_TERM value)
{
    return enif_make_tuple2(fair_env(t), enif_make_atom(fair_env(t), "ok"),
                            value);
}

/* -- system calls: what they answer, or -errno --------------------------------- */

#define OR_ERRNO(CALLED) ({ long r_ = (CALLED); r_ < 0 ? -errno : r_; })

/* It does not become the node's controlling terminal. */
CALL long try_open(const char *path)
{
    int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    if (!isatty(fd)) {
        close(fd);
        return -ENOTTY;
    }
    return fd;
}

CALL long try_read(int fd, void *buffer, size_t size)
{
    return OR_ERRNO(read(fd, buffer, size));
}

CALL long try_write(int fd, const void *bytes, size_t size)
{
    return OR_ERRNO(write(fd, bytes, size));
}

CALL long try_size(int fd, struct winsize *size)
{
    return OR_ERRNO(ioctl(fd, TIOCGWINSZ, size));
}

CALL long get_modes(int fd, struct termios *modes)
{
    return OR_ERRNO(tcgetattr(fd, modes));
}

CALL long set_modes(int fd, const struct termios *modes)
{
    return OR_ERRNO(tcsetattr(fd, TCSADRAIN, modes));
}

static bool would_block(long result)
{
    return result == -EAGAIN || result == -EWOULDBLOCK || result == -EINTR;
}

/* -- bodies ---------------------------------------------------------------------- */

static void close_deferred(void *fd)
{
    close((int)(intptr_t)fd);
}

/* open(Path), which ends in a zero -> {ok, Tty} */
static ERL_NIF_TERM tty_open(fair_task *t)
{
    ERL_NIF_TERM term;
    fair_bin path;
    long fd;

    if (!fair_get_bin(t, fair_arg(t, 0), &path) || path.size == 0
        || memchr(path.data, 0, path.size) != path.data + path.size - 1)
        return fair_badarg(t);
    fd = try_open((const char *)path.data);
    if (fd < 0)
        return failed(t, fd);
    fair_defer(t, close_deferred, (void *)(intptr_t)fd);
    term = fair_make_fd(t, (int)fd);
    if (!term)
        return failed(t, -ENOMEM);
    fair_undefer(t, close_deferred, (void *)(intptr_t)fd);
    return ok_with(t, term);
}

/* Waits for a line, which the terminal hands out as one, and reads it: its
 * length, 0 at the end of input, -EAGAIN when the time is up. */
static long get_line(fair_task *t, int fd, char *line, int ms)
{
    ErlNifTime end = enif_monotonic_time(ERL_NIF_MSEC) + ms;

    for (;;) {
        long n = try_read(fd, line, LINE), left = FOREVER, ready;

        if (!would_block(n))
            return n;
        if (ms >= 0) {
            left = (long)(end - enif_monotonic_time(ERL_NIF_MSEC));
            left = left > 0 ? left : 0;
        }
        ready = fair_wait(t, fd, FAIR_READ, (int)left);
        if (ready <= 0)
            return ready == 0 ? -EAGAIN : ready;
    }
}

static ERL_NIF_TERM line_term(fair_task *t, const char *line, long n)
{
    fair_bin out;

    if (n == 0)
        return enif_make_atom(fair_env(t), "eof");
    if (n < 0)
        return failed(t, n == -EAGAIN ? 0 : n);
    if (!fair_new_bin(t, (size_t)n, &out))
        return fair_enomem(t);
    memcpy(out.data, line, (size_t)n);
    return ok_with(t, fair_make_bin(t, &out));
}

/* read_line(Tty, Ms) -> {ok, Line} | eof */
static ERL_NIF_TERM tty_read_line(fair_task *t)
{
    char line[LINE];
    int fd, ms;

    if (!fair_get_int(t, fair_arg(t, 1), &ms))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    return line_term(t, line, get_line(t, fd, line, ms));
}

struct restore {
    int fd;
    struct termios modes;
};

static void restore_modes(void *arg)
{
    struct restore *before = arg;

    set_modes(before->fd, &before->modes);
}

/* read_secret(Tty, Ms): the same without echo.  The deferred function runs when
 * the caller is killed at the prompt as well, and before the descriptor, which
 * fair_get_fd keeps open, is let go. */
static ERL_NIF_TERM tty_read_secret(fair_task *t)
{
    struct restore *before = fair_alloc(t, sizeof *before);
    struct termios quiet;
    char line[LINE];
    long result;
    int ms;

    if (!before)
        return fair_enomem(t);
    if (!fair_get_int(t, fair_arg(t, 1), &ms))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &before->fd))
        return failed(t, -EBADF);
    result = get_modes(before->fd, &before->modes);
    if (result < 0)
        return failed(t, result);
    quiet = before->modes;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK);
    fair_defer(t, restore_modes, before);
    result = set_modes(before->fd, &quiet);
    if (result < 0)
        return failed(t, result);
    return line_term(t, line, get_line(t, before->fd, line, ms));
}

/* write(Tty, Iodata, Ms) -> ok */
static ERL_NIF_TERM tty_write(fair_task *t)
{
    size_t done = 0;
    fair_bin bytes;
    int fd, ms;

    if (!fair_get_int(t, fair_arg(t, 2), &ms)
        || !fair_get_iolist(t, fair_arg(t, 1), &bytes))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    while (done < bytes.size) {
        long n = try_write(fd, bytes.data + done, bytes.size - done);

        if (n >= 0) {
            done += (size_t)n;
            fair_tick(t, (size_t)n);
        } else if (would_block(n)) {
            int ready = fair_wait(t, fd, FAIR_WRITE, ms);

            if (ready <= 0)
                return failed(t, ready);
        } else {
            return failed(t, n);
        }
    }
    return enif_make_atom(fair_env(t), "ok");
}

/* size(Tty) -> {ok, {Columns, Rows}}: asked when it is needed.  SIGWINCH is the
 * VM's. */
static ERL_NIF_TERM tty_size(fair_task *t)
{
    struct winsize size;
    ErlNifEnv *env = fair_env(t);
    long result;
    int fd;

    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return failed(t, -EBADF);
    result = try_size(fd, &size);
    if (result < 0)
        return failed(t, result);
    return ok_with(t, enif_make_tuple2(env, enif_make_uint(env, size.ws_col),
                                       enif_make_uint(env, size.ws_row)));
}

/* close(Tty) -> ok */
static ERL_NIF_TERM tty_close(fair_task *t)
{
    fair_close_fd(t, fair_arg(t, 0));
    return enif_make_atom(fair_env(t), "ok");
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_open", 1, tty_open, FAIR_DIRTY_IO | FAIR_NO_YIELD),
    FAIR_NIF("nif_read_line", 2, tty_read_line, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_read_secret", 2, tty_read_secret, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_write", 3, tty_write, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("size", 1, tty_size, FAIR_AUTO),
    FAIR_NIF("close", 1, tty_close, FAIR_AUTO),
};

FAIR_NIF_INIT(tty, nifs, NULL, NULL, NULL, NULL)
