/*
 * echo_frames.h - echoes frames of {packet, 4} from one descriptor to another:
 * what the port program and the TCP server have in common.
 */
#ifndef ECHO_FRAMES_H
#define ECHO_FRAMES_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER = 4, LARGEST = 64 << 20 };

/* 1 when all was written */
static int write_all(int to, const unsigned char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(to, data, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        data += n;
        size -= (size_t)n;
    }
    return 1;
}

/* Bytes of the frame that begins here, its header included; of one that has
 * not come as far as that, the header's. */
static size_t frame_size(const unsigned char *data, size_t size)
{
    if (size < HEADER)
        return HEADER;
    return HEADER + ((size_t)data[0] << 24 | (size_t)data[1] << 16
                     | (size_t)data[2] << 8 | data[3]);
}

/* Until the one end closes (0), or something is wrong (1).  As few system calls
 * as can be: whole frames are read and written at once where they come so. */
static int echo_frames(int from, int to)
{
    size_t room = 1 << 17, got = 0, need;
    unsigned char *data = malloc(room);

    while (data) {
        ssize_t n = read(from, data + got, room - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            free(data);
            return n < 0 || got > 0;
        }
        got += (size_t)n;
        while (got >= HEADER && got >= (need = frame_size(data, got))) {
            if (!write_all(to, data, need))
                break;
            got -= need;
            memmove(data, data + need, got);
        }
        need = frame_size(data, got);
        if (need > LARGEST || (got >= HEADER && got >= need))
            break;              /* too large, or it could not be written */
        if (need > room) {
            unsigned char *more = realloc(data, need);

            if (!more)
                break;
            data = more;
            room = need;
        }
    }
    free(data);
    return 1;
}

#endif
