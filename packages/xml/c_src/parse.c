/*
 * parse.c - a document to terms, in slices.
 *
 * expat is given the document by the piece, and calls back; the callbacks put
 * together a tree (tree.h), and tick.  So a pause may be in the middle of
 * XML_Parse: expat's frames stay on the task's stack, and what is under
 * construction is in roots.  If the caller dies there they are dropped, and what
 * expat had allocated goes with the task (memory.h): the parser is never freed.
 *
 * What has no callback is one token, such as a comment or a start tag with all its
 * attributes, and a table of names that is rebuilt.  expat does it in one go.
 * Where it is long the body continues on a dirty scheduler meanwhile.
 */
#include <expat.h>

#include "buffer.h"
#include "library.h"
#include "memory.h"
#include "names.h"
#include "tree.h"

enum {
    PIECE = 8192,               /* bytes given to expat at a time */
    LONG_TOKEN = 16 * 1024      /* that many bytes without a callback */
};

/* Units are bytes of the document; what is made of them counts as these. */
enum { ELEMENT = 60, ATTRIBUTE = 40, TEXT = 30, TICK_AT = 1000 };

enum stopped { NOT, DOCTYPE, DEPTH, ATTRIBUTES, MEMORY };

struct parse {
    fair_task *t;
    XML_Parser parser;
    enum stopped stopped;
    size_t units;               /* since the last tick */
    size_t quiet;               /* bytes given since the last callback */
    ErlNifUInt64 most_depth, most_attributes;
    ERL_NIF_TERM declarations;  /* xmlns attributes of the element that begins,
                                   last one first */
    size_t declared;
    unsigned kept;              /* a root: [Attributes | Declarations] */
    bool away;                  /* on a dirty scheduler for a while */
    struct memory memory;
    struct tree tree;
    struct buffer text;
    struct names names;
};

/* ---- pauses ---- */

static void resume(struct parse *p)
{
    memory_use(&p->memory);
    tree_resume(&p->tree);
}

/* Everything that pauses here, but for what is long in tree.c and buffer.c, is
 * between these two.  No term in a variable survives it. */
static void tick(struct parse *p)
{
    size_t units = p->units;

    p->units = 0;
    tree_spill(&p->tree);
    fair_tick(p->t, units);
    resume(p);
}

/* Each callback begins with it; false when it is to do nothing. */
static bool begin_callback(struct parse *p, size_t units)
{
    p->quiet = 0;
    if (p->stopped)
        return false;
    p->units += units;
    if (p->units >= TICK_AT || !tree_has_room(&p->tree))
        tick(p);
    return true;
}

static void stop(struct parse *p, enum stopped why)
{
    p->stopped = why;
    XML_StopParser(p->parser, XML_FALSE);
}

/* ---- callbacks ---- */

/* The text up to here becomes a child. */
static bool add_text(struct parse *p)
{
    ERL_NIF_TERM term;

    if (p->text.size == 0)
        return true;
    if (buffer_is_short(&p->text)) {
        term = buffer_take(&p->text, p->tree.env);
    } else {
        tree_spill(&p->tree);
        term = buffer_take_long(&p->text);
        resume(p);
        if (!term) {
            stop(p, MEMORY);
            return false;
        }
    }
    tree_add(&p->tree, enif_make_tuple2(p->tree.env, atoms.xmlcdata, term));
    return true;
}

/* Puts an attribute before a list. */
static void put(struct parse *p, ERL_NIF_TERM name, ERL_NIF_TERM value,
                size_t size, ERL_NIF_TERM *list)
{
    ErlNifEnv *env = p->tree.env;

    *list = enif_make_list_cell(env, enif_make_tuple2(env, name, value), *list);
    p->units += ATTRIBUTE + size / 8;
}

/* A tick while an element has begun; the list survives. */
static ERL_NIF_TERM tick_within(struct parse *p, ERL_NIF_TERM list)
{
    if (p->units < TICK_AT)
        return list;
    fair_root_set(p->t, p->kept,
              enif_make_list_cell(p->tree.env, list, p->declarations));
    tick(p);
    enif_get_list_cell(p->tree.env, fair_root_get(p->t, p->kept), &list,
                       &p->declarations);
    return list;
}

/* Before an element's declarations, of which there may be none. */
static bool begin_element(struct parse *p)
{
    return p->declared > 0 ? !p->stopped : begin_callback(p, 0) && add_text(p);
}

/* "xmlns", or that with a prefix. */
static ERL_NIF_TERM xmlns(struct parse *p, const XML_Char *prefix)
{
    char name[LONGEST_NAME + 1] = "xmlns:";
    size_t before = strlen(name), n = prefix ? strlen(prefix) : 0;
    ERL_NIF_TERM term;

    if (!prefix)
        return names_string(&p->names, "xmlns");
    if (before + n <= LONGEST_NAME) {
        memcpy(name + before, prefix, n + 1);
        return names_string(&p->names, name);
    }
    memcpy((char *)memcpy(enif_make_new_binary(p->tree.env, before + n, &term),
                          name, before) + before, prefix, n);
    return term;
}

static void XMLCALL declare(void *user, const XML_Char *prefix,
                            const XML_Char *uri)
{
    struct parse *p = user;
    ERL_NIF_TERM name;

    if (!begin_element(p))
        return;
    p->declared++;
    if (p->declared > p->most_attributes) {
        stop(p, ATTRIBUTES);
        return;
    }
    /* An empty xmlns: fast_xml does not show it. */
    if (!uri)
        return;
    name = xmlns(p, prefix);
    put(p, name, names_string(&p->names, uri), strlen(uri), &p->declarations);
    tick_within(p, p->tree.nil);
}

static ERL_NIF_TERM attributes(struct parse *p, const XML_Char **of, size_t n)
{
    ERL_NIF_TERM list = p->tree.nil, name, next;

    while (n-- > 0) {
        const char *value = of[2 * n + 1];
        size_t size = strlen(value);

        name = names_term(&p->names, of[2 * n]);
        put(p, name, string_term(p->tree.env, value, size), size, &list);
        list = tick_within(p, list);
    }
    while (enif_get_list_cell(p->tree.env, p->declarations, &next,
                              &p->declarations))
        list = enif_make_list_cell(p->tree.env, next, list);
    return list;
}

static void XMLCALL start_element(void *user, const XML_Char *name,
                                  const XML_Char **of)
{
    struct parse *p = user;
    ERL_NIF_TERM list;
    size_t n = 0;

    if (!begin_element(p))
        return;
    while (of[2 * n])
        n++;
    if (p->tree.depth >= p->most_depth) {
        stop(p, DEPTH);
        return;
    }
    if (n + p->declared > p->most_attributes) {
        stop(p, ATTRIBUTES);
        return;
    }
    list = attributes(p, of, n);
    tree_open(&p->tree, names_term(&p->names, name), list);
    p->declared = 0;
    p->units += ELEMENT;
}

static void XMLCALL end_element(void *user, const XML_Char *name)
{
    struct parse *p = user;
    uint64_t yields;

    (void)name;
    if (!begin_callback(p, ELEMENT) || !add_text(p))
        return;
    yields = fair_yields(p->t);
    tree_close(&p->tree);
    if (fair_yields(p->t) != yields)
        memory_use(&p->memory);
}

static void XMLCALL characters(void *user, const XML_Char *bytes, int size)
{
    struct parse *p = user;

    if (!begin_callback(p, TEXT + (size_t)size / 8))
        return;
    if (!buffer_add(&p->text, bytes, (size_t)size))
        stop(p, MEMORY);
}

/* Comments and the like.  With such a handler expat would also leave entities
 * of the document's own alone; there are none without a document type. */
static void XMLCALL others(void *user, const XML_Char *bytes, int size)
{
    (void)bytes;
    begin_callback(user, (size_t)size / 8);
}

static void XMLCALL doctype(void *user, const XML_Char *name,
                            const XML_Char *system, const XML_Char *public,
                            int subset)
{
    (void)name, (void)system, (void)public, (void)subset;
    stop(user, DOCTYPE);
}

/* ---- the whole ---- */

/* Away from a normal scheduler, and back. */
static void go(struct parse *p, bool away)
{
    if (away == p->away || (away && fair_where(p->t) != FAIR_NORMAL))
        return;
    tree_spill(&p->tree);
    fair_root_set(p->t, p->kept, p->declarations);
    fair_move(p->t, away ? FAIR_DIRTY_CPU : FAIR_NORMAL);
    p->declarations = fair_root_get(p->t, p->kept);
    resume(p);
    p->away = away;
}

/* expat asks for memory: between two callbacks. */
static void before_long_work(void *arg)
{
    go(arg, true);
}

static bool begin(struct parse *p, fair_task *t)
{
    static const XML_Char separator[] = {NAME_SEPARATOR, 0};

    p->t = t;
    memory_begin(&p->memory, t, before_long_work, p);
    p->parser = XML_ParserCreate_MM("UTF-8", &task_memory, separator);
    if (!p->parser)
        return false;
    XML_SetUserData(p->parser, p);
    XML_SetReturnNSTriplet(p->parser, 1);
    XML_SetElementHandler(p->parser, start_element, end_element);
    XML_SetCharacterDataHandler(p->parser, characters);
    XML_SetStartNamespaceDeclHandler(p->parser, declare);
    XML_SetStartDoctypeDeclHandler(p->parser, doctype);
    XML_SetDefaultHandler(p->parser, others);
    tree_begin(&p->tree, t);
    buffer_begin(&p->text, t);
    names_begin(&p->names, t);
    p->kept = fair_root_new(t, p->tree.nil);
    p->declarations = p->tree.nil;
    p->away = false;
    p->stopped = NOT;
    p->units = p->quiet = p->declared = 0;
    return true;
}

static bool all_pieces(struct parse *p, const fair_bytes *in)
{
    const char *data = (const char *)in->data;
    size_t at = 0, n;

    do {
        n = in->size - at < PIECE ? in->size - at : PIECE;
        p->quiet += n;
        memory_use(&p->memory);
        if (!XML_Parse(p->parser, data + at, (int)n, at + n == in->size))
            return false;
        at += n;
        p->units += n / 4;
        if (p->units >= TICK_AT)
            tick(p);
        go(p, p->quiet >= LONG_TOKEN);
    } while (at < in->size);
    return true;
}

static ERL_NIF_TERM refusal(ErlNifEnv *env, const struct parse *p)
{
    enum XML_Error code = XML_GetErrorCode(p->parser);
    const char *why = p->stopped == DOCTYPE
        ? no_doctype : XML_ErrorString(code);

    if (p->stopped == DEPTH || p->stopped == ATTRIBUTES)
        return enif_make_tuple2(
            env, atoms.limit,
            p->stopped == DEPTH ? atoms.depth : atoms.attributes);
    return enif_make_tuple2(env, enif_make_uint(env, code),
                            string_term(env, why, strlen(why)));
}

/* parse(Document, Depth, Attributes) -> Element | {error, Reason} */
ERL_NIF_TERM parse(fair_task *t)
{
    struct parse *p = fair_alloc(t, sizeof *p);
    fair_bytes in;

    if (!p)
        return fair_enomem(t);
    if (!fair_get_iolist(t, fair_arg(t, 0), &in)
        || !fair_get_uint64(t, fair_arg(t, 1), &p->most_depth)
        || !fair_get_uint64(t, fair_arg(t, 2), &p->most_attributes))
        return fair_badarg(t);
    if (!begin(p, t))
        return fair_enomem(t);
    if (all_pieces(p, &in))
        return fair_root_get(t, p->tree.whole);
    if (p->stopped == MEMORY
        || XML_GetErrorCode(p->parser) == XML_ERROR_NO_MEMORY)
        return fair_enomem(t);
    return enif_make_tuple2(fair_env(t), atoms.error,
                            refusal(fair_env(t), p));
}
