/*
 * pty.c - the user's end of a pseudo-terminal, as a port program of the tests.
 *
 * Packets of two length bytes.  To Erlang: first the name of the terminal, then
 * what it shows.  From Erlang, by the first byte:
 *   w Bytes            types them
 *   s Columns Rows     resizes the window, each 16 bits
 *   x                  hangs up
 * Ends when its input does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static unsigned char buffer[65538];

static void check(int ok)
{
    if (!ok)
        _exit(1);
}

static void send_packet(size_t size)
{
    buffer[0] = (unsigned char)(size >> 8);
    buffer[1] = (unsigned char)size;
    check(write(1, buffer, size + 2) == (ssize_t)(size + 2));
}

static void read_all(size_t size)
{
    for (size_t at = 0; at < size; ) {
        ssize_t n = read(0, buffer + at, size - at);

        if (n <= 0)
            _exit(0);
        at += (size_t)n;
    }
}

static void obey(int *user, int *terminal)
{
    size_t size;

    read_all(2);
    size = (size_t)buffer[0] << 8 | buffer[1];
    read_all(size);
    if (buffer[0] == 'w') {
        check(write(*user, buffer + 1, size - 1) == (ssize_t)size - 1);
    } else if (buffer[0] == 's') {
        struct winsize window = {
            .ws_col = (unsigned short)(buffer[1] << 8 | buffer[2]),
            .ws_row = (unsigned short)(buffer[3] << 8 | buffer[4])
        };

        check(ioctl(*user, TIOCSWINSZ, &window) == 0);
    } else if (buffer[0] == 'x') {
        close(*terminal);
        close(*user);
        *user = *terminal = -1;
    }
}

int main(void)
{
    int user = posix_openpt(O_RDWR | O_NOCTTY), terminal;

    check(user >= 0 && grantpt(user) == 0 && unlockpt(user) == 0);
    /* Ours too, so that it does not count as hung up while nobody else has it. */
    terminal = open(ptsname(user), O_RDWR | O_NOCTTY);
    check(terminal >= 0);
    strcpy((char *)buffer + 2, ptsname(user));
    send_packet(strlen(ptsname(user)));
    for (;;) {
        struct pollfd fds[2] = {{0, POLLIN, 0}, {user, POLLIN, 0}};

        check(poll(fds, 2, -1) > 0);
        if (fds[0].revents)
            obey(&user, &terminal);
        else if (fds[1].revents) {
            ssize_t n = read(user, buffer + 2, 60000);

            check(n > 0);
            send_packet((size_t)n);
        }
    }
}
