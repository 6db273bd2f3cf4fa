/*
 * sodium.c - three functions of libsodium, each in three forms: fair, plain,
 * plain on a dirty scheduler.
 *
 * libsodium cannot tick: one call does all of a message.  So the fair form
 * hands it to fair_offload, which runs it in place while it is short and on a
 * dirty scheduler otherwise.  All forms run the same `work`; they differ in
 * nothing else, since they are measured against each other.
 */
#include <fairnif.h>
#include <sodium.h>

enum {
    NONCE = crypto_secretbox_NONCEBYTES,
    KEY = crypto_secretbox_KEYBYTES,
    MAC = crypto_secretbox_MACBYTES,
    SMALL = 64                      /* binaries up to this lie on the heap */
};
_Static_assert(NONCE == crypto_box_NONCEBYTES && MAC == crypto_box_MACBYTES
               && KEY == crypto_box_PUBLICKEYBYTES
               && KEY == crypto_box_SECRETKEYBYTES, "one layout for both");

/* One call of libsodium.  What is small is copied: it would move with the
 * caller's heap while the call is on its way to another scheduler. */
struct job {
    const unsigned char *in;
    size_t in_size;
    unsigned char *out;
    size_t out_size;
    int refused;                    /* forged, or a public key of low order */
    unsigned char nonce[NONCE], key[KEY], secret_key[KEY];
};

static void secretbox(void *arg)
{
    struct job *j = arg;

    j->refused = crypto_secretbox_easy(j->out, j->in, j->in_size, j->nonce,
                                       j->key);
}

static void secretbox_open(void *arg)
{
    struct job *j = arg;

    j->refused = crypto_secretbox_open_easy(j->out, j->in, j->in_size,
                                            j->nonce, j->key);
}

static void box(void *arg)
{
    struct job *j = arg;

    j->refused = crypto_box_easy(j->out, j->in, j->in_size, j->nonce, j->key,
                                 j->secret_key);
}

static void box_open(void *arg)
{
    struct job *j = arg;

    j->refused = crypto_box_open_easy(j->out, j->in, j->in_size, j->nonce,
                                      j->key, j->secret_key);
}

static void keypair(void *arg)
{
    struct job *j = arg;

    j->refused = crypto_box_keypair(j->key, j->secret_key);
}

static void random_bytes(void *arg)
{
    struct job *j = arg;

    randombytes_buf(j->out, j->out_size);
}

/* -- arguments and results ------------------------------------------------ */

static int get_bytes(ErlNifEnv *env, ERL_NIF_TERM term, unsigned char *to,
                     size_t size)
{
    ErlNifBinary bin;

    if (!enif_inspect_binary(env, term, &bin) || bin.size != size)
        return 0;
    memcpy(to, bin.data, size);
    return 1;
}

static ERL_NIF_TERM enomem(ErlNifEnv *env)
{
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

static ERL_NIF_TERM tagged(ErlNifEnv *env, const char *tag, ERL_NIF_TERM term)
{
    return enif_make_tuple2(env, enif_make_atom(env, tag), term);
}

/* -- the fair forms ------------------------------------------------------- */

/* What follows the message: nonce and key, or nonce and two keys. */
static int get_keys(fair_task *t, struct job *j)
{
    ErlNifEnv *env = fair_env(t);

    return get_bytes(env, fair_arg(t, 1), j->nonce, NONCE)
        && get_bytes(env, fair_arg(t, 2), j->key, KEY)
        && (fair_argc(t) < 4
            || get_bytes(env, fair_arg(t, 3), j->secret_key, KEY));
}

/* Units are bytes.  That a call has a fixed cost as well, which of a short box
 * is nearly all, does not matter: fair_offload learns short and long calls apart.
 */
static ERL_NIF_TERM seal(fair_task *t, void (*work)(void *))
{
    struct job j;
    fair_bytes in;
    fair_bin out;

    if (!fair_get_bytes(t, fair_arg(t, 0), &in) || !get_keys(t, &j))
        return fair_badarg(t);
    if (!fair_new_bin(t, in.size + MAC, &out))
        return fair_enomem(t);
    j.in = in.data;
    j.in_size = in.size;
    j.out = out.data;
    fair_offload(t, FAIR_AUTO, in.size, work, &j);
    return j.refused ? fair_badarg(t) : fair_make_bin(t, &out);
}

static ERL_NIF_TERM unseal(fair_task *t, void (*work)(void *))
{
    struct job j;
    fair_bytes in;
    fair_bin out;

    if (!fair_get_bytes(t, fair_arg(t, 0), &in) || !get_keys(t, &j))
        return fair_badarg(t);
    if (!fair_new_bin(t, in.size < MAC ? 0 : in.size - MAC, &out))
        return fair_enomem(t);
    j.in = in.data;
    j.in_size = in.size;
    j.out = out.data;
    fair_offload(t, FAIR_AUTO, in.size, work, &j);    /* refuses what is shorter than MAC */
    return j.refused
        ? tagged(fair_env(t), "error",
                 enif_make_atom(fair_env(t), "failed_verification"))
        : tagged(fair_env(t), "ok", fair_make_bin(t, &out));
}

static ERL_NIF_TERM secretbox_body(fair_task *t)
{
    return seal(t, secretbox);
}

static ERL_NIF_TERM box_body(fair_task *t)
{
    return seal(t, box);
}

static ERL_NIF_TERM secretbox_open_body(fair_task *t)
{
    return unseal(t, secretbox_open);
}

static ERL_NIF_TERM box_open_body(fair_task *t)
{
    return unseal(t, box_open);
}

static ERL_NIF_TERM randombytes_body(fair_task *t)
{
    struct job j;
    ErlNifUInt64 n;
    fair_bin out;

    if (!fair_get_uint64(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    if (!fair_new_bin(t, n, &out))
        return fair_enomem(t);
    j.out = out.data;
    j.out_size = n;
    fair_offload(t, FAIR_AUTO, n, random_bytes, &j);
    return fair_make_bin(t, &out);
}

static ERL_NIF_TERM keypair_body(fair_task *t)
{
    struct job j;
    fair_bin public, secret;

    if (!fair_new_bin(t, KEY, &public) || !fair_new_bin(t, KEY, &secret))
        return fair_enomem(t);
    fair_offload(t, FAIR_AUTO, 1, keypair, &j);
    memcpy(public.data, j.key, KEY);
    memcpy(secret.data, j.secret_key, KEY);
    return enif_make_tuple2(fair_env(t), fair_make_bin(t, &public),
                            fair_make_bin(t, &secret));
}

/* -- the plain forms ------------------------------------------------------ */

/* As quick as it can be done: what is small is made on the heap.  (A larger
 * one is not: enif_make_new_binary ends the VM when memory is out.) */
static unsigned char *new_out(ErlNifEnv *env, size_t size, ErlNifBinary *bin,
                              ERL_NIF_TERM *term)
{
    if (size <= SMALL)
        return enif_make_new_binary(env, size, term);
    *term = 0;
    return enif_alloc_binary(size, bin) ? bin->data : NULL;
}

static ERL_NIF_TERM made(ErlNifEnv *env, ErlNifBinary *bin, ERL_NIF_TERM term)
{
    return term ? term : enif_make_binary(env, bin);
}

static ERL_NIF_TERM plain_seal(ErlNifEnv *env, int argc,
                               const ERL_NIF_TERM argv[],
                               void (*work)(void *))
{
    struct job j;
    ErlNifBinary in, out;
    ERL_NIF_TERM term;

    if (!enif_inspect_binary(env, argv[0], &in)
        || !get_bytes(env, argv[1], j.nonce, NONCE)
        || !get_bytes(env, argv[2], j.key, KEY)
        || (argc == 4 && !get_bytes(env, argv[3], j.secret_key, KEY)))
        return enif_make_badarg(env);
    j.in = in.data;
    j.in_size = in.size;
    j.out = new_out(env, in.size + MAC, &out, &term);
    if (!j.out)
        return enomem(env);
    work(&j);
    if (!j.refused)
        return made(env, &out, term);
    if (!term)
        enif_release_binary(&out);
    return enif_make_badarg(env);
}

static ERL_NIF_TERM plain_secretbox(ErlNifEnv *env, int argc,
                                    const ERL_NIF_TERM argv[])
{
    return plain_seal(env, argc, argv, secretbox);
}

static ERL_NIF_TERM plain_box(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    return plain_seal(env, argc, argv, box);
}

static ERL_NIF_TERM plain_randombytes(ErlNifEnv *env, int argc,
                                      const ERL_NIF_TERM argv[])
{
    struct job j;
    ErlNifUInt64 n;
    ErlNifBinary out;
    ERL_NIF_TERM term;

    (void)argc;
    if (!enif_get_uint64(env, argv[0], &n))
        return enif_make_badarg(env);
    j.out = new_out(env, n, &out, &term);
    if (!j.out)
        return enomem(env);
    j.out_size = n;
    random_bytes(&j);
    return made(env, &out, term);
}

/* -- the library ---------------------------------------------------------- */

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)env, (void)priv, (void)info;
    return sodium_init() < 0;           /* 1: it was initialised already */
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

#define THREE_FORMS(NAME, ARITY, FAIR, PLAIN)                               \
    FAIR_NIF(NAME, ARITY, FAIR, FAIR_AUTO),                                 \
    {NAME "_b", ARITY, PLAIN, 0},                                           \
    {NAME "_dirty", ARITY, PLAIN, ERL_NIF_DIRTY_JOB_CPU_BOUND}

static ErlNifFunc nifs[] = {
    THREE_FORMS("crypto_secretbox", 3, secretbox_body, plain_secretbox),
    THREE_FORMS("crypto_box", 4, box_body, plain_box),
    THREE_FORMS("randombytes", 1, randombytes_body, plain_randombytes),
    FAIR_NIF("crypto_secretbox_open", 3, secretbox_open_body, FAIR_AUTO),
    FAIR_NIF("crypto_box_open", 4, box_open_body, FAIR_AUTO),
    FAIR_NIF("crypto_box_keypair", 0, keypair_body, FAIR_AUTO)
};

FAIR_NIF_INIT(sodium, nifs, load, upgrade, NULL)
