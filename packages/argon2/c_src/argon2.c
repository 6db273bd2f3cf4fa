/*
 * argon2.c - a password hash by libargon2, fair, and as a plain dirty NIF.
 *
 * One call of the library computes for tens to hundreds of milliseconds and
 * cannot tick.  So the fair form hands it to fair_offload, to a thread of the
 * pool: the caller waits without a scheduler.  Both forms run the same `work`,
 * since they are measured against each other.
 */
#include <fairnif.h>
#include <argon2.h>

/* How many hash at once, each with its own memory; others wait their turn. */
#ifndef ARGON2_MAX_TASKS
#define ARGON2_MAX_TASKS 4
#endif

struct job {
    argon2_context context;
    unsigned type;
    int error;
};

static void work(void *arg)
{
    struct job *j = arg;

    j->error = argon2_ctx(&j->context, (argon2_type)j->type);
}

/* Type, version, passes, KiB, lanes.  The lanes are computed one after the other:
 * the library's own threads would be more than the pool knows of. */
static int get_numbers(ErlNifEnv *env, const ERL_NIF_TERM argv[5],
                       struct job *j)
{
    argon2_context *c = &j->context;

    c->threads = 1;
    return enif_get_uint(env, argv[0], &j->type) && j->type <= Argon2_id
        && enif_get_uint(env, argv[1], &c->version)
        && enif_get_uint(env, argv[2], &c->t_cost)
        && enif_get_uint(env, argv[3], &c->m_cost)
        && enif_get_uint(env, argv[4], &c->lanes);
}

/* The library does not write to the password nor to the salt, though their types
 * allow it: flags are 0.  It checks all ranges. */
static int set_bytes(struct job *j, const unsigned char *password,
                     size_t password_size, const unsigned char *salt,
                     size_t salt_size)
{
    argon2_context *c = &j->context;

    c->pwd = (uint8_t *)(uintptr_t)password;
    c->pwdlen = (uint32_t)password_size;
    c->salt = (uint8_t *)(uintptr_t)salt;
    c->saltlen = (uint32_t)salt_size;
    return password_size <= ARGON2_MAX_PWD_LENGTH
        && salt_size <= ARGON2_MAX_SALT_LENGTH;
}

static ERL_NIF_TERM hash(fair_task *t)
{
    struct job j = {0};
    ERL_NIF_TERM argv[5];
    fair_bytes password, salt;
    fair_bin out;
    unsigned size;

    for (int i = 0; i < 5; i++)
        argv[i] = fair_arg(t, i);
    if (!get_numbers(fair_env(t), argv, &j)
        || !enif_get_uint(fair_env(t), fair_arg(t, 5), &size)
        || !fair_get_bytes(t, fair_arg(t, 6), &password)
        || !fair_get_bytes(t, fair_arg(t, 7), &salt)
        || !set_bytes(&j, password.data, password.size, salt.data, salt.size))
        return fair_badarg(t);
    if (!fair_new_bin(t, size, &out))
        return fair_enomem(t);
    j.context.out = out.data;
    j.context.outlen = size;
    fair_offload(t, FAIR_THREADED, 1, work, &j);
    if (j.error == ARGON2_MEMORY_ALLOCATION_ERROR)
        return fair_enomem(t);
    return j.error ? fair_badarg(t) : fair_make_bin(t, &out);
}

static ERL_NIF_TERM hash_dirty(ErlNifEnv *env, int argc,
                               const ERL_NIF_TERM argv[])
{
    struct job j = {0};
    ErlNifBinary password, salt, out;
    unsigned size;

    (void)argc;
    if (!get_numbers(env, argv, &j) || !enif_get_uint(env, argv[5], &size)
        || !enif_inspect_binary(env, argv[6], &password)
        || !enif_inspect_binary(env, argv[7], &salt)
        || !set_bytes(&j, password.data, password.size, salt.data, salt.size))
        return enif_make_badarg(env);
    if (!enif_alloc_binary(size, &out))
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    j.context.out = out.data;
    j.context.outlen = size;
    work(&j);
    if (!j.error)
        return enif_make_binary(env, &out);
    enif_release_binary(&out);
    return j.error == ARGON2_MEMORY_ALLOCATION_ERROR
        ? enif_raise_exception(env, enif_make_atom(env, "enomem"))
        : enif_make_badarg(env);
}

static const fair_options hashing = {
    .body = hash, .max_tasks = ARGON2_MAX_TASKS
};

static ErlNifFunc nifs[] = {
    FAIR_NIF_OPTIONS("nif_hash", 8, &hashing, FAIR_NORMAL | FAIR_MAY_WAIT),
    {"nif_hash_dirty", 8, hash_dirty, ERL_NIF_DIRTY_JOB_CPU_BOUND}
};

FAIR_NIF_INIT(argon2, nifs, NULL, NULL, NULL)
