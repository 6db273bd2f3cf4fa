/*
 * library.h - what the files of this library share.
 */
#ifndef LIBRARY_H
#define LIBRARY_H

#include <stdbool.h>

#include <expat.h>

#include <fairnif.h>

/* Made when the library is loaded; the same in every environment. */
extern struct atoms {
    ERL_NIF_TERM xmlel, xmlcdata, error, limit, depth, attributes;
} atoms;

/* The VM's. */
extern const XML_Memory_Handling_Suite parser_memory;

/* The sentence for what expat calls "parsing aborted". */
extern const char no_doctype[];

/* What a byte is written as. */
enum escapes { OF_NAME, OF_TEXT, OF_ATTRIBUTE };
extern const char *const escapes[3][256];

/* NULL: as it is. */
static inline const char *escape(unsigned char byte, enum escapes of)
{
    return escapes[of][byte];
}

ERL_NIF_TERM parse(fair_task *t);
ERL_NIF_TERM to_binary(fair_task *t);
ERL_NIF_TERM plain_parse(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM plain_to_binary(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[]);

#endif
