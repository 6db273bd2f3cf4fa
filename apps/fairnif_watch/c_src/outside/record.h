/*
 * record.h - fairnif record: where a node's time goes, by samples.
 */
#ifndef WATCH_RECORD_H
#define WATCH_RECORD_H

/* With its arguments, from argv[0] on; the exit code. */
int watch__record(int argc, char **argv);

#endif
