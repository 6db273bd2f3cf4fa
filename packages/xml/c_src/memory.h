/*
 * memory.h - the memory that expat works with: the task's, in large blocks.
 *
 * A document of 300,000 names makes expat allocate as many small blocks.  To let
 * go of them one by one took 24 ms; these go with the task, some at a time.
 *
 * And it says when expat is about to do what takes long and has no callback: it
 * keeps names in hash tables, and a table that is full is rebuilt, with all
 * that is in it.  It is seen by what is asked for.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>

#include <expat.h>

#include <fairnif.h>

enum { FIRST_MEMORY = 8192 };

struct memory {
    fair_task *t;
    /* Called before a table of many names is rebuilt; may pause. */
    void (*long_work)(void *);
    void *arg;
    size_t count;               /* of small blocks so far: of names, at most */
    size_t total;
    size_t left;
    unsigned char *at;
    _Alignas(16) unsigned char first[FIRST_MEMORY];
};

extern const XML_Memory_Handling_Suite task_memory;

void memory_begin(struct memory *m, fair_task *t, void (*long_work)(void *),
                  void *arg);

/* From now on expat works for this one on this thread: before it is called, and
 * after each pause within it. */
void memory_use(struct memory *m);

#endif
