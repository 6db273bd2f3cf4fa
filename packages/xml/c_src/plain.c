/*
 * plain.c - parse.c and write.c as a plain NIF has them: each in one go, with
 * what is under construction in memory of C, where no collector looks.  To be
 * measured against.
 */
#include <expat.h>

#include "library.h"
#include "names.h"

/* Grows by factors; `items' of `size' bytes each. */
struct array {
    void *items;
    size_t count, room;
};

struct open {
    ERL_NIF_TERM name, attributes;
    size_t from;                /* where its children begin */
};

struct plain {
    ErlNifEnv *env;
    XML_Parser parser;
    struct array text, children, opened;
    ERL_NIF_TERM declarations;  /* last one first */
    bool doctype, out_of_memory;
};

/* Room for n more; NULL when memory is out. */
static void *more(struct array *a, size_t n, size_t size)
{
    size_t room = 2 * (a->count + n);
    void *items;

    if (a->count + n > a->room) {
        items = enif_realloc(a->items, room * size);
        if (!items)
            return NULL;
        a->items = items;
        a->room = room;
    }
    a->count += n;
    return (char *)a->items + (a->count - n) * size;
}

/* ---- parse ---- */

static void give_up(struct plain *p)
{
    p->out_of_memory = true;
    XML_StopParser(p->parser, XML_FALSE);
}

static void add(struct plain *p, ERL_NIF_TERM child)
{
    ERL_NIF_TERM *place = more(&p->children, 1, sizeof *place);

    if (place)
        *place = child;
    else
        give_up(p);
}

static void add_text(struct plain *p)
{
    if (p->text.count > 0 && p->opened.count > 0)
        add(p, enif_make_tuple2(p->env, atoms.xmlcdata, string_term(
            p->env, p->text.items, p->text.count)));
    p->text.count = 0;
}

static void XMLCALL declare(void *user, const XML_Char *prefix,
                            const XML_Char *uri)
{
    struct plain *p = user;
    size_t n = prefix ? strlen(prefix) + 1 : 0;
    ERL_NIF_TERM name;
    unsigned char *bytes;

    if (!uri)
        return;
    bytes = enif_make_new_binary(p->env, 5 + n, &name);
    memcpy(bytes, "xmlns", 5);
    if (n > 0) {
        bytes[5] = ':';
        memcpy(bytes + 6, prefix, n - 1);
    }
    p->declarations = enif_make_list_cell(
        p->env, enif_make_tuple2(p->env, name,
                                 string_term(p->env, uri, strlen(uri))),
        p->declarations);
}

static void XMLCALL start_element(void *user, const XML_Char *name,
                                  const XML_Char **of)
{
    struct plain *p = user;
    ERL_NIF_TERM list = enif_make_list(p->env, 0), next;
    struct open *o;
    size_t n = 0;

    add_text(p);
    while (of[2 * n])
        n++;
    while (n-- > 0)
        list = enif_make_list_cell(p->env, enif_make_tuple2(
            p->env, name_term(p->env, of[2 * n], strlen(of[2 * n])),
            string_term(p->env, of[2 * n + 1], strlen(of[2 * n + 1]))), list);
    while (enif_get_list_cell(p->env, p->declarations, &next,
                              &p->declarations))
        list = enif_make_list_cell(p->env, next, list);
    o = more(&p->opened, 1, sizeof *o);
    if (o)
        *o = (struct open){name_term(p->env, name, strlen(name)), list,
                           p->children.count};
    else
        give_up(p);
}

static void XMLCALL end_element(void *user, const XML_Char *name)
{
    struct plain *p = user;
    const ERL_NIF_TERM *children;
    const struct open *o;

    (void)name;
    add_text(p);
    if (p->out_of_memory)
        return;
    o = (const struct open *)p->opened.items + --p->opened.count;
    children = (const ERL_NIF_TERM *)p->children.items + o->from;
    add(p, enif_make_tuple4(
        p->env, atoms.xmlel, o->name, o->attributes,
        enif_make_list_from_array(p->env, children,
                                  (unsigned)(p->children.count - o->from))));
    if (p->out_of_memory)
        return;
    ((ERL_NIF_TERM *)p->children.items)[o->from]
        = ((ERL_NIF_TERM *)p->children.items)[p->children.count - 1];
    p->children.count = o->from + 1;
}

static void XMLCALL characters(void *user, const XML_Char *bytes, int size)
{
    struct plain *p = user;
    void *place = more(&p->text, (size_t)size, 1);

    if (place)
        memcpy(place, bytes, (size_t)size);
    else
        give_up(p);
}

static void XMLCALL doctype(void *user, const XML_Char *name,
                            const XML_Char *system, const XML_Char *public,
                            int subset)
{
    struct plain *p = user;

    (void)name, (void)system, (void)public, (void)subset;
    p->doctype = true;
    XML_StopParser(p->parser, XML_FALSE);
}

static ERL_NIF_TERM answer(struct plain *p, const ErlNifBinary *in)
{
    enum XML_Error code;
    const char *why;

    if (XML_Parse(p->parser, (const char *)in->data, (int)in->size, 1))
        return *(ERL_NIF_TERM *)p->children.items;
    code = XML_GetErrorCode(p->parser);
    if (p->out_of_memory || code == XML_ERROR_NO_MEMORY)
        return enif_raise_exception(p->env, enif_make_atom(p->env, "enomem"));
    why = p->doctype ? no_doctype : XML_ErrorString(code);
    return enif_make_tuple2(p->env, atoms.error, enif_make_tuple2(
        p->env, enif_make_uint(p->env, code),
        string_term(p->env, why, strlen(why))));
}

ERL_NIF_TERM plain_parse(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static const XML_Char separator[] = {NAME_SEPARATOR, 0};
    struct plain p = {.env = env, .declarations = enif_make_list(env, 0)};
    ErlNifBinary in;
    ERL_NIF_TERM term;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &in) || in.size > INT32_MAX)
        return enif_make_badarg(env);
    p.parser = XML_ParserCreate_MM("UTF-8", &parser_memory, separator);
    if (!p.parser)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    XML_SetUserData(p.parser, &p);
    XML_SetReturnNSTriplet(p.parser, 1);
    XML_SetElementHandler(p.parser, start_element, end_element);
    XML_SetCharacterDataHandler(p.parser, characters);
    XML_SetStartNamespaceDeclHandler(p.parser, declare);
    XML_SetStartDoctypeDeclHandler(p.parser, doctype);
    term = answer(&p, &in);
    XML_ParserFree(p.parser);
    enif_free(p.text.items);
    enif_free(p.children.items);
    enif_free(p.opened.items);
    return term;
}

/* ---- to_binary ---- */

static bool put(struct array *out, const void *bytes, size_t size)
{
    void *place = more(out, size, 1);

    if (place)
        memcpy(place, bytes, size);
    return place != NULL;
}

static bool bytes(ErlNifEnv *env, struct array *out, ERL_NIF_TERM term,
                  enum escapes of)
{
    const char *instead;
    ErlNifBinary bin;
    size_t from = 0;

    if (!enif_inspect_iolist_as_binary(env, term, &bin))
        return false;
    for (size_t i = 0; i < bin.size; i++) {
        instead = escape(bin.data[i], of);
        if (!instead)
            continue;
        if (!put(out, bin.data + from, i - from)
            || !put(out, instead, strlen(instead)))
            return false;
        from = i + 1;
    }
    return put(out, bin.data + from, bin.size - from);
}

static bool attribute(ErlNifEnv *env, struct array *out, ERL_NIF_TERM term)
{
    const ERL_NIF_TERM *pair;
    int arity;

    return enif_get_tuple(env, term, &arity, &pair) && arity == 2
        && put(out, " ", 1) && bytes(env, out, pair[0], OF_NAME)
        && put(out, "='", 2) && bytes(env, out, pair[1], OF_ATTRIBUTE)
        && put(out, "'", 1);
}

/* An element or text. */
static bool node(ErlNifEnv *env, struct array *out, ERL_NIF_TERM term)
{
    const ERL_NIF_TERM *of;
    ERL_NIF_TERM list, head;
    int arity;

    if (!enif_get_tuple(env, term, &arity, &of))
        return false;
    if (arity == 2 && enif_is_identical(of[0], atoms.xmlcdata))
        return bytes(env, out, of[1], OF_TEXT);
    if (arity != 4 || !enif_is_identical(of[0], atoms.xmlel)
        || !put(out, "<", 1) || !bytes(env, out, of[1], OF_NAME))
        return false;
    for (list = of[2]; enif_get_list_cell(env, list, &head, &list);)
        if (!attribute(env, out, head))
            return false;
    if (!enif_is_empty_list(env, list))
        return false;
    if (enif_is_empty_list(env, of[3]))
        return put(out, "/>", 2);
    if (!put(out, ">", 1))
        return false;
    for (list = of[3]; enif_get_list_cell(env, list, &head, &list);)
        if (!node(env, out, head))
            return false;
    return enif_is_empty_list(env, list) && put(out, "</", 2)
        && bytes(env, out, of[1], OF_NAME) && put(out, ">", 1);
}

/* By recursion, as deep as the tree is. */
ERL_NIF_TERM plain_to_binary(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    struct array out = {0};
    ERL_NIF_TERM term;

    (void)argc;
    if (node(env, &out, argv[0]))
        term = string_term(env, out.items, out.count);
    else
        term = enif_make_badarg(env);
    enif_free(out.items);
    return term;
}
