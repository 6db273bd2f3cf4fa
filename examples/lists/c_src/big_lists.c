/*
 * big_lists.c - the table of the library's functions.
 */
#include "big_lists.h"

static ErlNifFunc nifs[] = {
    FAIR_NIF("sum", 1, sum, FAIR_AUTO),
    FAIR_NIF("native_range", 2, range, FAIR_AUTO),
    FAIR_NIF("native_sort", 1, sort, FAIR_AUTO),
    FAIR_NIF("native_to_maps", 1, to_maps, FAIR_AUTO),
    {"unfair_sum", 1, unfair_sum, 0},
    {"unfair_range", 2, unfair_range, 0},
    {"unfair_sort", 1, unfair_sort, 0},
    {"unfair_to_map", 1, unfair_to_map, 0}
};

FAIR_NIF_INIT(big_lists, nifs, NULL, NULL, NULL, NULL)
