/*
 * names.h - the names of a document as terms, each made once.
 *
 * A document has few names and has them often.  Each stands in a root of its
 * own, so it is the same term all over the document: that saves time here, and
 * memory in what is made.  The table has room for NAMES; of two that want the
 * same place the later one stays.
 */
#ifndef NAMES_H
#define NAMES_H

#include <fairnif.h>

enum {
    NAMES = 128,
    LONGEST_NAME = 87           /* bytes as expat has it; longer: not kept */
};

struct name {
    ERL_NIF_TERM term;
    uint64_t since;             /* fair_yields: until then `term' is valid */
    unsigned root;
    char bytes[LONGEST_NAME + 1];
};

struct names {
    fair_task *t;
    uint8_t length[NAMES];      /* 0: the place is free */
    uint8_t rooted[NAMES];      /* whether there is a root */
    struct name at[NAMES];      /* not set where length is 0 */
};

/* In a name of expat's: "local", "uri\nlocal" or "uri\nlocal\nprefix". */
#define NAME_SEPARATOR '\n'

void names_begin(struct names *names, fair_task *t);

/* The name as it was written, "prefix:local" or "local"; valid until the next
 * tick. */
ERL_NIF_TERM names_term(struct names *names, const char *name);

/* Any other string of the document that comes again, as it is. */
ERL_NIF_TERM names_string(struct names *names, const char *string);

/* The same without a table. */
ERL_NIF_TERM name_term(ErlNifEnv *env, const char *name, size_t length);

ERL_NIF_TERM string_term(ErlNifEnv *env, const char *bytes, size_t length);

#endif
