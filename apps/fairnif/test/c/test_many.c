/*
 * test_many.c - a library with more functions than FAIR_MAX_NIFS is by itself.
 */
#define FAIR_MAX_NIFS 512
#include "check.h"

#define BODY(UNUSED, N)                                                     \
    static ERL_NIF_TERM body_##N(fair_task *t)                              \
    {                                                                       \
        return enif_make_uint(fair_env(t), N);                              \
    }
#define ENTRY(UNUSED, N) FAIR_NIF("f" #N, 0, body_##N, FAIR_AUTO),

FAIR__X256(BODY, 0, 0x0) FAIR__X256(BODY, 0, 0x1)

static ErlNifFunc nifs[] = {
    FAIR__X256(ENTRY, 0, 0x0) FAIR__X256(ENTRY, 0, 0x1)
};
FAIR_NIF_INIT(test_many, nifs, NULL, NULL, NULL)

TEST(each_is_itself, "512 functions, and a call runs the one that it names")
{
    CHECK_CALL("f0x000", "", "0");
    CHECK_CALL("f0x0FF", "", "255");
    CHECK_CALL("f0x100", "", "256");
    CHECK_CALL("f0x1FF", "", "511");
}
