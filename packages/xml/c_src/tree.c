/*
 * tree.c - elements under construction, see tree.h.
 */
#include "tree.h"

#include "library.h"

/* Lists of more children than that are made in slices. */
enum { IN_PLACE = 256 };

/* To take a part from its root and put it before a list, in units. */
enum { PART_COST = 200, CHILD_COST = 8 };

static void look(struct tree *tree)
{
    tree->since = fair_yields(tree->t);
    tree->env = fair_env(tree->t);
    tree->rest = fair_root_get(tree->t, tree->stack);
}

void tree_begin(struct tree *tree, fair_task *t)
{
    tree->t = t;
    tree->nil = enif_make_list(fair_env(t), 0);
    tree->stack = fair_root_new(t, tree->nil);
    tree->whole = fair_root_new(t, tree->nil);
    tree->depth = 0;
    tree->opened = tree->count = 0;
    look(tree);
}

void tree_resume(struct tree *tree)
{
    if (tree->since != fair_yields(tree->t))
        look(tree);
}

/* What stands in `pending' from `from' to `end', as the first of the parts. */
static ERL_NIF_TERM with_part(struct tree *tree, ERL_NIF_TERM parts,
                              unsigned from, unsigned end)
{
    ERL_NIF_TERM part;

    if (from == end)
        return parts;
    part = enif_make_tuple_from_array(tree->env, tree->pending + from,
                                      end - from);
    return enif_make_list_cell(tree->env, part, parts);
}

void tree_spill(struct tree *tree)
{
    ErlNifEnv *env = tree->env;

    if (tree->opened == 0)
        return;
    for (unsigned i = 0; i < tree->opened; i++) {
        const struct level *l = &tree->levels[i];
        unsigned end = i + 1 < tree->opened ? l[1].from : tree->count;
        ERL_NIF_TERM n = enif_make_uint64(env, l->spilled + end - l->from);
        ERL_NIF_TERM parts = with_part(tree, l->parts, l->from, end);

        tree->rest = enif_make_list_cell(
            env, enif_make_tuple4(env, l->name, l->attributes, n, parts),
            tree->rest);
    }
    fair_root_set(tree->t, tree->stack, tree->rest);
    tree->opened = tree->count = 0;
}

static void read_level(ErlNifEnv *env, ERL_NIF_TERM entry, struct level *l)
{
    const ERL_NIF_TERM *fields;
    int arity;

    enif_get_tuple(env, entry, &arity, &fields);
    l->name = fields[0];
    l->attributes = fields[1];
    enif_get_uint64(env, fields[2], &l->spilled);
    l->parts = fields[3];
    l->from = 0;
}

/* Takes the innermost level back from the stack.  The root may still have
 * it: the next spill sets that. */
static void reload(struct tree *tree)
{
    ERL_NIF_TERM entry;

    enif_get_list_cell(tree->env, tree->rest, &entry, &tree->rest);
    read_level(tree->env, entry, &tree->levels[0]);
    tree->opened = 1;
}

void tree_open(struct tree *tree, ERL_NIF_TERM name, ERL_NIF_TERM attributes)
{
    if (tree->opened == 0 && tree->depth > 0)
        reload(tree);
    tree->levels[tree->opened++] = (struct level){
        .name = name, .attributes = attributes, .parts = tree->nil,
        .from = tree->count
    };
    tree->depth++;
}

void tree_add(struct tree *tree, ERL_NIF_TERM child)
{
    if (tree->depth == 0) {
        fair_root_set(tree->t, tree->whole, child);
        return;
    }
    if (tree->opened == 0)
        reload(tree);
    tree->pending[tree->count++] = child;
}

/* A part before a list. */
static ERL_NIF_TERM prepend(ErlNifEnv *env, ERL_NIF_TERM part,
                            ERL_NIF_TERM list, int *n)
{
    const ERL_NIF_TERM *children;

    enif_get_tuple(env, part, n, &children);
    for (int i = *n; i-- > 0;)
        list = enif_make_list_cell(env, children[i], list);
    return list;
}

/* The children of the innermost level, which is here. */
static ERL_NIF_TERM few_children(struct tree *tree, const struct level *l)
{
    ERL_NIF_TERM list = tree->nil, parts = l->parts, part;
    int n;

    for (unsigned i = tree->count; i-- > l->from;)
        list = enif_make_list_cell(tree->env, tree->pending[i], list);
    while (enif_get_list_cell(tree->env, parts, &part, &parts))
        list = prepend(tree->env, part, list, &n);
    return list;
}

/* The children in the parts that are in the root, in slices. */
static void many_children(struct tree *tree, unsigned parts, unsigned list)
{
    fair_task *t = tree->t;
    ERL_NIF_TERM part;
    int n;

    while (fair_list_next(t, parts, &part)) {
        fair_root_set(t, list, prepend(fair_env(t), part, fair_root_get(t, list), &n));
        fair_tick(t, PART_COST + CHILD_COST * (size_t)n);
    }
}

/* All that is open goes to the stack, and this level is taken off it: with all
 * its children in parts. */
static void close_large(struct tree *tree)
{
    fair_task *t = tree->t;
    unsigned entry, parts, list;
    struct level l;

    tree_spill(tree);
    reload(tree);
    tree->opened = 0;
    tree->depth--;
    fair_root_set(t, tree->stack, tree->rest);
    parts = fair_root_new(t, tree->levels[0].parts);
    list = fair_root_new(t, tree->nil);
    entry = fair_root_new(t, enif_make_tuple4(
        tree->env, tree->levels[0].name, tree->levels[0].attributes,
        enif_make_uint(tree->env, 0), tree->nil));
    many_children(tree, parts, list);
    tree_resume(tree);
    read_level(tree->env, fair_root_get(t, entry), &l);
    tree_add(tree, enif_make_tuple4(tree->env, atoms.xmlel, l.name,
                                    l.attributes, fair_root_get(t, list)));
    fair_root_drop(t, parts);
}

void tree_close(struct tree *tree)
{
    const struct level *l;
    ERL_NIF_TERM element;

    if (tree->opened == 0)
        reload(tree);
    l = &tree->levels[tree->opened - 1];
    if (l->spilled > IN_PLACE) {
        close_large(tree);
        return;
    }
    element = enif_make_tuple4(tree->env, atoms.xmlel, l->name, l->attributes,
                               few_children(tree, l));
    tree->count = l->from;
    tree->opened--;
    tree->depth--;
    tree_add(tree, element);
}
