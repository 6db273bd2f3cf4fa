/*
 * echo_port.c - a port program: frames of {packet, 4} from standard input to
 * standard output.  It ends when the port is closed, or the node dies.
 */
#include "echo_frames.h"

int main(void)
{
    return echo_frames(0, 1);
}
