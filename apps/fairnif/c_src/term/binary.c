/*
 * binary.c - binaries whose bytes stay where they are until the task ends.
 *
 * Up to a limit (64 bytes in every VM so far) the VM keeps a binary on the
 * process heap, where the garbage collector moves it: such bytes
 * are copied into the task, or stay in memory of its own, and a term of them
 * is another copy.  Longer ones lie outside, counted by references: the slice's
 * own term holds them, and at the first pause a copy of that term in an
 * environment of ours (0.2 us), so that they outlive the caller.
 */
#include "term/binary.h"

#include "base/os.h"
#include "task/debug.h"
#include "task/slice.h"

enum { KEPT_MOST = 256 };       /* binaries in one environment: it goes at once */

/* The longest binary that the VM may keep on a heap. */
static size_t heap_limit = FAIR__SMALL_BIN;

/* Memory of that size from enif_alloc_binary, made into a term and copied as at
 * a pause: is it the same memory still? */
static bool stays(ErlNifEnv *env, size_t size)
{
    ErlNifEnv *other = enif_alloc_env();
    ErlNifBinary bin, seen, copied;
    unsigned char *data;
    bool same = true;           /* out of memory: nothing was learned */

    if (other && enif_alloc_binary(size, &bin)) {
        ERL_NIF_TERM term;

        data = bin.data;
        term = enif_make_binary(env, &bin);
        same = enif_inspect_binary(env, term, &seen) && seen.data == data
            && enif_inspect_binary(other, enif_make_copy(other, term), &copied)
            && copied.data == data;
    }
    if (other)
        enif_free_env(other);
    return same;
}

/* Learns the limit, once, as the runtime is loaded: one step where it is what it
 * always was.  A VM that moves everything would end the search. */
void fair__bins_init(void)
{
    enum { MOST = 1024 * 1024 };
    ErlNifEnv *env = enif_alloc_env();
    size_t moves = FAIR__SMALL_BIN, stay = moves + 1;

    if (!env)
        return;
    while (stay < MOST && !stays(env, stay)) {
        moves = stay;
        stay *= 2;
    }
    while (stay - moves > 1) {
        size_t middle = moves + (stay - moves) / 2;

        *(stays(env, middle) ? &stay : &moves) = middle;
    }
    heap_limit = moves;
    enif_free_env(env);
}

/* The lists hold the records of which something must be kept or released; one
 * in the task itself whose bytes are there too is in neither. */
static void list_record(struct fair__bin **list, struct fair__bin *r)
{
    r->list = list;
    r->prev = NULL;
    r->next = *list;
    if (*list)
        (*list)->prev = r;
    *list = r;
}

static void delist_record(struct fair__bin *r)
{
    if (!r->list)
        return;
    *(r->prev ? &r->prev->next : r->list) = r->next;
    if (r->next)
        r->next->prev = r->prev;
    r->list = NULL;
}

/* Of what the task itself has no room for: a record, and bytes that are the
 * task's own. */
static unsigned weight_of(const struct fair__bin *r)
{
    return (r->on_heap ? 2 : 0)
        + (r->kind == B_OWNED ? fair__weight(r->bin.size) : 0);
}

static struct fair__bin *new_record(struct fair__task *t)
{
    struct fair__bin *r;

    if (fair_likely(t->hold.inline_bins_used < FAIR__INLINE_BINS)) {
        r = &t->hold.inline_bins[t->hold.inline_bins_used++];
        r->on_heap = false;
        r->list = NULL;
    } else {
        r = enif_alloc(sizeof *r);
        if (!r)
            return NULL;
        r->on_heap = true;
        list_record(&t->hold.bins, r);
    }
    r->kind = B_SMALL;
    r->fixed = false;
    t->hold.weight += weight_of(r);
    return r;
}

/* From now on `r` is more than bytes in the task. */
static void set_kind(struct fair__task *t, struct fair__bin *r, int kind)
{
    delist_record(r);
    list_record(kind == B_TERM ? &t->hold.terms : &t->hold.bins, r);
    t->hold.weight -= weight_of(r);
    t->hold.to_keep -= r->kind == B_TERM;
    r->kind = kind;
    t->hold.weight += weight_of(r);
    if (kind == B_TERM && ++t->hold.to_keep >= FAIR__KEEP_AT_ONCE)
        fair__force_look(t);
}

static void release_bytes(struct fair__bin *r)
{
    if (r->kind == B_OWNED) {
        enif_release_binary(&r->bin);
    } else if (r->kind == B_KEPT && --r->keeper->refs == 0) {
        enif_free_env(r->keeper->env);
        enif_free(r->keeper);
    }
}

static void free_record(struct fair__task *t, struct fair__bin *r)
{
    delist_record(r);
    t->hold.weight -= weight_of(r);
    t->hold.to_keep -= r->kind == B_TERM;
    release_bytes(r);
    if (r->on_heap)
        enif_free(r);
}

/* NULL, where the task may not be ended, when it was released. */
static struct fair__bin *record_of(fair_task *pub, const fair_bin *bin)
{
    if (fair_unlikely(!bin->ref))
        fair__refuse(fair__of(pub), RULE_RELEASED, "released_bin");
    return bin->ref;
}

void fair__release_bin(fair_task *pub, fair_bin *bin)
{
    struct fair__bin *r = record_of(pub, bin);

    if (!r)
        return;
    free_record(fair__of(pub), r);
    bin->ref = bin->data = NULL;
    bin->size = 0;
}

void fair__release_bytes(fair_task *pub, fair_bytes *bytes)
{
    fair__release_bin(pub, fair__as_bin(bytes));
}

enum { PIECE = 2048 };          /* bytes, as heavy as an item: fair__weight */

unsigned fair__lighten(void *memory, size_t *size, unsigned most)
{
    size_t pieces = *size / PIECE;

    pieces = pieces < most ? pieces : most;
    *size -= pieces * PIECE;
    fair__os_forget((char *)memory + *size, pieces * PIECE);
    return (unsigned)pieces;
}

static unsigned release_list(struct fair__task *t, struct fair__bin **list,
                             unsigned most)
{
    while (*list && most > 0) {
        struct fair__bin *r = *list;
        unsigned weight = weight_of(r);

        if (weight > most && r->kind == B_OWNED) {
            weight = fair__lighten(r->bin.data, &r->bin.size, most);
            t->hold.weight -= weight;
        } else {
            weight = weight < most ? weight : most;
            free_record(t, r);
        }
        most -= weight + !weight;
    }
    return most;
}

unsigned fair__bins_release(struct fair__task *t, unsigned most)
{
    most = release_list(t, &t->hold.terms, most);
    return release_list(t, &t->hold.bins, most);
}

static struct fair__keeper *new_keeper(void)
{
    struct fair__keeper *keeper = enif_alloc(sizeof *keeper);

    if (!keeper)
        return NULL;
    keeper->refs = 0;
    keeper->env = enif_alloc_env();
    if (!keeper->env) {
        enif_free(keeper);
        return NULL;
    }
    return keeper;
}

/* Before a pause: what only this slice's terms hold gets a holder that outlives
 * them, and the caller: one environment for many.  False when out of memory. */
bool fair__bins_pause(struct fair__task *t)
{
    struct fair__keeper *keeper = NULL;

    while (t->hold.terms) {
        struct fair__bin *r = t->hold.terms;

        if (!keeper || keeper->refs == KEPT_MOST)
            keeper = new_keeper();
        if (!keeper)
            return false;
        r->term = enif_make_copy(keeper->env, r->term);
        r->keeper = keeper;
        keeper->refs++;
        set_kind(t, r, B_KEPT);
    }
    return true;
}

static int filled(fair_bin *bin, struct fair__bin *r, unsigned char *data,
                  size_t size)
{
    bin->data = data;
    bin->size = size;
    bin->ref = r;
    return 1;
}

/* Of a binary over the limit.  The bytes of one that begins within a byte were
 * copied by the VM into memory that ends with this slice. */
static bool is_temporary(struct fair__task *t, ERL_NIF_TERM term,
                         const ErlNifBinary *bin)
{
    ErlNifEnv *env = t->pub.env;
    ErlNifBinary part;
    ERL_NIF_TERM sub = enif_make_sub_binary(env, term, 0, heap_limit + 1);

    fair__made(t, FAIR__SUB_BIN);
    return !enif_inspect_binary(env, sub, &part) || part.data != bin->data;
}

/* At most FAIR__SMALL_BIN bytes.  Two copies of fixed length that overlap take a
 * third of the time of a call to memcpy. */
static void copy_small(unsigned char *to, const unsigned char *from,
                       size_t size)
{
    _Static_assert(FAIR__SMALL_BIN == 64, "two halves of 32");
    if (size >= 32) {
        memcpy(to, from, 32);
        memcpy(to + size - 32, from + size - 32, 32);
    } else if (size >= 16) {
        memcpy(to, from, 16);
        memcpy(to + size - 16, from + size - 16, 16);
    } else {
        memcpy(to, from, size);
    }
}

int fair__get_bytes(fair_task *pub, ERL_NIF_TERM term, fair_bytes *bytes)
{
    struct fair__task *t = fair__of(pub);
    fair_bin *bin = fair__as_bin(bytes);
    ErlNifBinary seen;
    struct fair__bin *r;

    fair__term_in(t, term);
    t->lacked = NULL;
    if (!enif_inspect_binary(pub->env, term, &seen))
        return 0;
    r = new_record(t);
    if (!r) {
        t->lacked = "enomem";
        return 0;
    }
    r->fixed = true;
    if (seen.size <= FAIR__SMALL_BIN) {
        copy_small(r->small, seen.data, seen.size);
        return filled(bin, r, r->small, seen.size);
    }
    if (seen.size > heap_limit && !is_temporary(t, term, &seen)) {
        set_kind(t, r, B_TERM);
        r->term = term;
        return filled(bin, r, seen.data, seen.size);
    }
    if (!enif_alloc_binary(seen.size, &r->bin)) {
        free_record(t, r);
        t->lacked = "enomem";
        return 0;
    }
    set_kind(t, r, B_OWNED);
    memcpy(r->bin.data, seen.data, seen.size);
    return filled(bin, r, r->bin.data, seen.size);
}

int fair__new_bin(fair_task *pub, size_t size, fair_bin *bin)
{
    struct fair__task *t = fair__of(pub);
    struct fair__bin *r = new_record(t);

    if (!r)
        return 0;
    if (size <= FAIR__SMALL_BIN)
        return filled(bin, r, r->small, size);
    if (!enif_alloc_binary(size, &r->bin)) {
        free_record(t, r);
        return 0;
    }
    set_kind(t, r, B_OWNED);
    return filled(bin, r, r->bin.data, size);
}

int fair__resize_bin(fair_task *pub, fair_bin *bin, size_t size)
{
    struct fair__task *t = fair__of(pub);
    struct fair__bin *r = record_of(pub, bin);
    unsigned before;

    if (!r || r->fixed)
        return 0;
    if (r->kind == B_OWNED) {
        before = weight_of(r);
        if (!enif_realloc_binary(&r->bin, size))
            return 0;
        t->hold.weight += weight_of(r) - before;
    } else if (size > FAIR__SMALL_BIN) {
        if (!enif_alloc_binary(size, &r->bin))
            return 0;
        memcpy(r->bin.data, r->small, bin->size);
        set_kind(t, r, B_OWNED);
    } else {
        bin->size = size;
        return 1;
    }
    return filled(bin, r, r->bin.data, size);
}

static ERL_NIF_TERM copy_of(fair_task *pub, const void *data, size_t size)
{
    ERL_NIF_TERM term = 0;
    unsigned char *bytes = enif_make_new_binary(pub->env, size, &term);

    if (bytes)
        memcpy(bytes, data, size);
    return term;
}

ERL_NIF_TERM fair__make_bin(fair_task *pub, fair_bin *bin)
{
    struct fair__task *t = fair__of(pub);
    struct fair__bin *r = record_of(pub, bin);
    ERL_NIF_TERM term = 0;

    if (!r)
        return enif_make_list(pub->env, 0);
    r->fixed = true;
    switch (r->kind) {
    case B_SMALL:
        term = copy_of(pub, r->small, bin->size);
        break;
    case B_OWNED:
        /* The VM would copy it as well, and free ours. */
        if (r->bin.size <= heap_limit) {
            term = copy_of(pub, r->bin.data, r->bin.size);
            break;
        }
        set_kind(t, r, B_TERM);
        term = r->term = enif_make_binary(pub->env, &r->bin);
        break;
    case B_TERM:
        term = r->term;
        break;
    case B_KEPT:
        term = enif_make_copy(pub->env, r->term);
        break;
    }
    fair__made(t, FAIR__SMALL_BIN);
    return fair__term_out(t, term);
}

ERL_NIF_TERM fair__make_bytes(fair_task *pub, fair_bytes *bytes)
{
    return fair__make_bin(pub, fair__as_bin(bytes));
}
