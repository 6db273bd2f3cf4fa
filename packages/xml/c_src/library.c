/*
 * library.c - the library: what expat.erl finds in it.
 */
#include "library.h"

struct atoms atoms;

const XML_Memory_Handling_Suite parser_memory = {
    enif_alloc, enif_realloc, enif_free
};

const char no_doctype[] = "document type declarations are refused";

/* Those of fast_xml, and \r in text: a parser would make a \n of it. */
const char *const escapes[3][256] = {
    [OF_TEXT] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;",
        ['\''] = "&apos;", ['\r'] = "&#xD;"
    },
    [OF_ATTRIBUTE] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['"'] = "&quot;", ['\''] = "&apos;",
        ['\t'] = "&#x9;", ['\n'] = "&#xA;", ['\r'] = "&#xD;"
    }
};

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv, (void)info;
    atoms.xmlel = enif_make_atom(env, "xmlel");
    atoms.xmlcdata = enif_make_atom(env, "xmlcdata");
    atoms.error = enif_make_atom(env, "error");
    atoms.limit = enif_make_atom(env, "limit");
    atoms.depth = enif_make_atom(env, "depth");
    atoms.attributes = enif_make_atom(env, "attributes");
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

static ErlNifFunc nifs[] = {
    /* Not FAIR_AUTO: it leaves for what is long itself, and one document of
     * that kind would send all others to dirty schedulers. */
    FAIR_NIF("nif_parse", 3, parse, FAIR_NORMAL),
    FAIR_NIF("to_binary", 1, to_binary, FAIR_AUTO),
    {"plain_parse", 1, plain_parse, 0},
    {"plain_to_binary", 1, plain_to_binary, 0},
    {"dirty_parse", 1, plain_parse, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"dirty_to_binary", 1, plain_to_binary, ERL_NIF_DIRTY_JOB_CPU_BOUND}
};

FAIR_NIF_INIT(expat, nifs, load, upgrade, NULL)
