/*
 * echo_port.c - a port program: frames of {packet, 4} from standard input to
 * standard output.  It ends when the port is closed, or the node dies.  A
 * read takes what is there into stdio's buffer; a frame is written at once.
 */
#include <stdio.h>
#include <stdlib.h>

enum { HEADER = 4, LARGEST = 64 << 20, BUFFER = 1 << 17 };

int main(void)
{
    unsigned char *data = malloc(HEADER + LARGEST);

    if (!data || setvbuf(stdin, NULL, _IOFBF, BUFFER)
        || setvbuf(stdout, NULL, _IOFBF, BUFFER))
        return 1;
    while (fread(data, 1, HEADER, stdin) == HEADER) {
        size_t size = (size_t)data[0] << 24 | (size_t)data[1] << 16
            | (size_t)data[2] << 8 | data[3];

        if (size > LARGEST || fread(data + HEADER, 1, size, stdin) != size
            || fwrite(data, 1, HEADER + size, stdout) != HEADER + size
            || fflush(stdout))
            return 1;
    }
    return !feof(stdin);
}
