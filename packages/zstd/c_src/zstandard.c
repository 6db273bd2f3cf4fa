/*
 * zstandard.c - compression and decompression by libzstd, fair and plain.
 *
 * The library does not call back, but it works off what it is given, so the
 * fair forms give it little at a time.  At low levels each step ends a block of
 * 64 kB and is short.  (Left to itself it makes blocks of 128 kB, each in one
 * go.)  At higher ones no step is, so they are what the library would take, on
 * a dirty scheduler.  What a context owns is freed by the body itself,
 * FAIR_CLEANUP: at high levels that takes milliseconds.  Small contexts are kept
 * for the next call: to make one takes longer than to compress a kilobyte.
 */
#include <stdatomic.h>
#include <stdbool.h>

#define ZSTD_STATIC_LINKING_ONLY    /* two settings, ZSTD_decompressContinue */
#include <zstd.h>

#include <fairnif.h>

enum {
    LEAST_BLOCK = 32 * 1024,
    BLOCK = 64 * 1024,              /* 120 us at level 1, 170 us at level 3 */
    LARGE_BLOCK = 128 * 1024,       /* the format's limit */
    BLOCK_HEADER = 3,
    SLICE_US = 200,
    SHORT_LEVELS = 4,               /* up to here a block is a slice or two */
    KEPT = 8,                       /* contexts of each kind, and the most bytes */
    KEPT_SIZE = 2 << 20,            /* that one of them may have */
    LEVELS = 22,
    ROOM = 64 * 1024                /* at least, for a result of unknown size */
};

/* How much longer a byte takes than at level 1, about. */
static const unsigned char costs[LEVELS + 1] = {
    2, 1, 1, 2, 2, 4, 5, 6, 7, 8, 10, 12, 16, 25, 35, 50, 60, 80, 110, 130, 150,
    170, 200
};

static size_t cost_of(int level)
{
    return level < 0 ? 1 : costs[level];
}

static int get_bytes(fair_task *t, ERL_NIF_TERM term, fair_bytes *bytes)
{
    return fair_get_bytes(t, term, bytes) || fair_get_iolist(t, term, bytes);
}

static bool is_level(int level)
{
    return level <= LEVELS && level >= ZSTD_minCLevel();
}

static ERL_NIF_TERM failed(ErlNifEnv *env, const char *why)
{
    ERL_NIF_TERM text;
    size_t size = strlen(why);

    memcpy(enif_make_new_binary(env, size, &text), why, size);
    return enif_make_tuple2(env, enif_make_atom(env, "error"), text);
}

/* -- contexts --------------------------------------------------------------- */

struct kind {
    void *(*make)(void);
    size_t (*size)(const void *context);
    void (*free)(void *context);    /* up to 5 ms at high levels */
    void *_Atomic kept[KEPT];
};

/* Modules that have this library loaded: of one file, both of an upgrade. */
static atomic_int loads;

/* NULL when memory is out. */
static void *get_context(struct kind *kind)
{
    for (int i = 0; i < KEPT; i++) {
        void *context = atomic_exchange(&kind->kept[i], NULL);

        if (context)
            return context;
    }
    return kind->make();
}

static bool keep_context(struct kind *kind, void *context)
{
    for (int i = 0; i < KEPT; i++) {
        void *none = NULL;

        if (atomic_compare_exchange_strong(&kind->kept[i], &none, context))
            return true;
    }
    return false;
}

static void free_kept(struct kind *kind)
{
    for (int i = 0; i < KEPT; i++)
        kind->free(atomic_exchange(&kind->kept[i], NULL));
}

struct garbage {
    struct kind *kind;
    void *context;                  /* NULL: it was freed */
};

static void free_garbage(void *arg)
{
    struct garbage *g = arg;

    g->kind->free(g->context);
    g->context = NULL;
}

/* In whatever state it is: who gets it sets it back.  A call that is under way
 * when the library is unloaded holds it until here. */
static void put_context(fair_task *t, struct kind *kind, void *context,
                        size_t cost, bool keep)
{
    struct garbage g = {kind, context};

    if (keep && kind->size(context) <= KEPT_SIZE
        && keep_context(kind, context)) {
        if (atomic_load(&loads) == 0)
            free_kept(kind);
        return;
    }
    /* Where the caller dies on the way it was not called: then it is at once. */
    while (g.context)
        fair_offload(t, FAIR_AUTO, cost, free_garbage, &g);
}

static void *make_cctx(void)
{
    return ZSTD_createCCtx();
}

static size_t cctx_size(const void *context)
{
    return ZSTD_sizeof_CCtx(context);
}

static void free_cctx(void *context)
{
    ZSTD_freeCCtx(context);
}

static void *make_dctx(void)
{
    return ZSTD_createDCtx();
}

static size_t dctx_size(const void *context)
{
    return ZSTD_sizeof_DCtx(context);
}

static void free_dctx(void *context)
{
    ZSTD_freeDCtx(context);
}

static struct kind cctx = {make_cctx, cctx_size, free_cctx, {NULL}};
static struct kind dctx = {make_dctx, dctx_size, free_dctx, {NULL}};

/* -- compression ------------------------------------------------------------ */

struct step {
    ZSTD_CCtx *context;
    ZSTD_outBuffer out;
    ZSTD_inBuffer in;
    ZSTD_EndDirective how;
    size_t left;                    /* to be written, or an error */
};

static void compress_block(void *arg)
{
    struct step *s = arg;

    s->left = ZSTD_compressStream2(s->context, &s->out, &s->in, s->how);
}

/* At most so long, with a block for each step. */
static size_t bound(size_t size)
{
    return ZSTD_compressBound(size) + (size / LEAST_BLOCK + 2) * BLOCK_HEADER;
}

static size_t block_of(int level)
{
    return level < SHORT_LEVELS ? BLOCK
        : level == SHORT_LEVELS ? LEAST_BLOCK : LARGE_BLOCK;
}

/* There is room for all: a step takes its whole block. */
static void compress_blocks(fair_task *t, struct step *s, size_t size,
                            int level)
{
    bool is_short = level <= SHORT_LEVELS;
    size_t block = block_of(level), cost = cost_of(level);

    do {
        size_t n = size - s->in.size < block ? size - s->in.size : block;

        s->in.size += n;
        s->how = s->in.size == size ? ZSTD_e_end : ZSTD_e_flush;
        if (is_short)
            compress_block(s);
        else
            fair_offload(t, FAIR_AUTO, n * cost, compress_block, s);
        fair_tick(t, n * cost);
    } while (!ZSTD_isError(s->left) && s->how != ZSTD_e_end
             && !fair_cancelled(t));
}

/* compress(Data, Level) -> binary() */
static ERL_NIF_TERM compress(fair_task *t)
{
    struct step s = {0};
    fair_bytes in;
    fair_bin out;
    int level;

    if (!fair_get_int(t, fair_arg(t, 1), &level) || !is_level(level)
        || !get_bytes(t, fair_arg(t, 0), &in))
        return fair_badarg(t);
    if (!fair_new_bin(t, bound(in.size), &out)
        || !(s.context = get_context(&cctx)))
        return fair_enomem(t);
    ZSTD_CCtx_reset(s.context, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(s.context, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setPledgedSrcSize(s.context, in.size);
    /* The data stays where it is: nothing need be copied.  A library that does
     * not know these copies. */
    ZSTD_CCtx_setParameter(s.context, ZSTD_c_stableInBuffer, 1);
    ZSTD_CCtx_setParameter(s.context, ZSTD_c_stableOutBuffer, 1);
    s.out = (ZSTD_outBuffer){out.data, out.size, 0};
    s.in = (ZSTD_inBuffer){in.data, 0, 0};
    compress_blocks(t, &s, in.size, level);
    put_context(t, &cctx, s.context, BLOCK * cost_of(level), true);
    if (ZSTD_isError(s.left) || !fair_resize_bin(t, &out, s.out.pos))
        return fair_enomem(t);      /* nothing else can fail */
    return fair_make_bin(t, &out);
}

/* The same in one go, as it is done where no body ticks. */
static ERL_NIF_TERM plain_compress(ErlNifEnv *env, int argc,
                                   const ERL_NIF_TERM argv[])
{
    ErlNifBinary in, out;
    size_t size;
    int level;

    (void)argc;
    if (!enif_inspect_iolist_as_binary(env, argv[0], &in)
        || !enif_get_int(env, argv[1], &level) || !is_level(level))
        return enif_make_badarg(env);
    if (!enif_alloc_binary(ZSTD_compressBound(in.size), &out))
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    size = ZSTD_compress(out.data, out.size, in.data, in.size, level);
    if (ZSTD_isError(size)) {
        enif_release_binary(&out);
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    }
    enif_realloc_binary(&out, size);
    return enif_make_binary(env, &out);
}

/* -- decompression ----------------------------------------------------------- */

/* How large the result will be, if that can be believed: a few bytes may say
 * that they are terabytes. */
static size_t first_size(const fair_bytes *in, size_t most)
{
    unsigned long long said = ZSTD_getFrameContentSize(in->data, in->size);
    size_t likely = in->size < SIZE_MAX / 64 ? in->size * 64 : in->size;

    if (said == ZSTD_CONTENTSIZE_UNKNOWN || said == ZSTD_CONTENTSIZE_ERROR)
        said = in->size < SIZE_MAX / 4 ? in->size * 4 : in->size;
    if (likely < ROOM)
        likely = ROOM;
    if (said > likely)
        said = likely;
    return said > most ? most : (size_t)said;
}

/* Room for one byte more than `most' tells who has too many. */
static int grow(fair_task *t, fair_bin *out, size_t most)
{
    size_t size = out->size < ROOM / 2 ? ROOM : out->size * 2;

    return fair_resize_bin(t, out, size < most ? size : most);
}

struct unpacking {
    ZSTD_DCtx *context;
    ZSTD_inBuffer from;
    fair_bin *out;
    size_t size;                    /* of what is in it */
    size_t most;
    bool other;                     /* a frame was of another format: the context
                                       may have more than it says */
};

/* A frame that says how long it is, and for all of which there is room. */
static bool fits(struct unpacking *u, size_t *said)
{
    const unsigned char *at = (const unsigned char *)u->from.src + u->from.pos;
    size_t left = u->from.size - u->from.pos;
    static const unsigned char magic[] = {0x28, 0xB5, 0x2F, 0xFD};
    unsigned long long size;

    if (left <= sizeof magic || memcmp(at, magic, sizeof magic) != 0) {
        u->other = true;
        return false;
    }
    size = ZSTD_getFrameContentSize(at, left);
    *said = (size_t)size;
    return size <= u->out->size - u->size;
}

/* Such a frame, a block at a time, to where it belongs.  NULL, or why not. */
static const char *unpack_in_place(fair_task *t, struct unpacking *u,
                                   size_t said)
{
    size_t n, made, before = u->size;

    ZSTD_decompressBegin(u->context);
    while ((n = ZSTD_nextSrcSizeToDecompress(u->context)) > 0
           && !fair_cancelled(t)) {
        if (n > u->from.size - u->from.pos)
            return "the data ends early";
        made = ZSTD_decompressContinue(
            u->context, u->out->data + u->size, u->out->size - u->size,
            (const char *)u->from.src + u->from.pos, n);
        if (ZSTD_isError(made))
            return ZSTD_getErrorName(made);
        u->from.pos += n;
        u->size += made;
        fair_tick(t, n + made);
    }
    /* libzstd does not look where the last block is an empty one. */
    return n == 0 && u->size - before != said ? "Data corruption detected"
        : NULL;
}

/* Any frame, by way of libzstd's window. */
static const char *unpack_stream(fair_task *t, struct unpacking *u)
{
    size_t left;

    ZSTD_DCtx_reset(u->context, ZSTD_reset_session_only);
    do {
        size_t room = u->out->size - u->size < BLOCK
            ? u->out->size - u->size : BLOCK;
        ZSTD_outBuffer to = {u->out->data + u->size, room, 0};
        size_t before = u->from.pos;

        left = ZSTD_decompressStream(u->context, &to, &u->from);
        if (ZSTD_isError(left))
            return ZSTD_getErrorName(left);
        u->size += to.pos;
        if (left > 0 && to.pos < room && u->from.pos == u->from.size)
            return "the data ends early";
        if (left > 0 && u->size == u->out->size) {
            if (u->size == u->most)
                return "the result is too large";
            if (!grow(t, u->out, u->most))
                return "enomem";
        }
        fair_tick(t, to.pos + (u->from.pos - before));
    } while (left > 0 && !fair_cancelled(t));
    return NULL;
}

static const char *unpack(fair_task *t, struct unpacking *u)
{
    const char *why;
    size_t said;

    do
        why = fits(u, &said) ? unpack_in_place(t, u, said)
            : unpack_stream(t, u);
    while (!why && u->from.pos < u->from.size && !fair_cancelled(t));
    return why;
}

/* decompress(Data, Most) -> binary() | {error, binary()} */
static ERL_NIF_TERM decompress(fair_task *t)
{
    struct unpacking u = {0};
    fair_bytes in;
    fair_bin out;
    ErlNifUInt64 most;
    const char *why;

    if (!get_bytes(t, fair_arg(t, 0), &in)
        || !fair_get_uint64(t, fair_arg(t, 1), &most) || most > SIZE_MAX / 2)
        return fair_badarg(t);
    if (!fair_new_bin(t, first_size(&in, most), &out)
        || !(u.context = get_context(&dctx)))
        return fair_enomem(t);
    u.from = (ZSTD_inBuffer){in.data, in.size, 0};
    u.out = &out;
    u.most = most;
    why = unpack(t, &u);
    put_context(t, &dctx, u.context, BLOCK, !u.other);
    if (why)
        return strcmp(why, "enomem") == 0 ? fair_enomem(t)
            : failed(fair_env(t), why);
    if (!fair_resize_bin(t, &out, u.size))
        return fair_enomem(t);
    return fair_make_bin(t, &out);
}

/* One frame that says how long it is, in one go. */
static ERL_NIF_TERM plain_decompress(ErlNifEnv *env, int argc,
                                     const ERL_NIF_TERM argv[])
{
    ErlNifBinary in, out;
    unsigned long long said;
    size_t size;

    (void)argc;
    if (!enif_inspect_iolist_as_binary(env, argv[0], &in))
        return enif_make_badarg(env);
    said = ZSTD_getFrameContentSize(in.data, in.size);
    if (said == ZSTD_CONTENTSIZE_UNKNOWN || said == ZSTD_CONTENTSIZE_ERROR)
        return failed(env, "no frame that says how long it is");
    if (!enif_alloc_binary((size_t)said, &out))
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    size = ZSTD_decompress(out.data, out.size, in.data, in.size);
    if (ZSTD_isError(size)) {
        enif_release_binary(&out);
        return failed(env, ZSTD_getErrorName(size));
    }
    enif_realloc_binary(&out, size);
    return enif_make_binary(env, &out);
}

/* -- the library ------------------------------------------------------------- */

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)env, (void)priv, (void)info;
    atomic_fetch_add(&loads, 1);
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

static void unload(ErlNifEnv *env, void *priv)
{
    (void)env, (void)priv;
    if (atomic_fetch_sub(&loads, 1) > 1)
        return;
    free_kept(&cctx);
    free_kept(&dctx);
}

static const fair_options compress_options = {
    .body = compress, .slice_us = SLICE_US
};
static const fair_options decompress_options = {
    .body = decompress, .slice_us = SLICE_US
};

static ErlNifFunc nifs[] = {
    FAIR_NIF_OPTIONS("compress", 2, &compress_options,
                     FAIR_AUTO | FAIR_CLEANUP),
    FAIR_NIF_OPTIONS("decompress", 2, &decompress_options,
                     FAIR_AUTO | FAIR_CLEANUP),
    {"plain_compress", 2, plain_compress, 0},
    {"plain_decompress", 1, plain_decompress, 0},
    {"dirty_compress", 2, plain_compress, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"dirty_decompress", 1, plain_decompress, ERL_NIF_DIRTY_JOB_CPU_BOUND}
};

FAIR_NIF_INIT(zstandard, nifs, load, upgrade, unload)
