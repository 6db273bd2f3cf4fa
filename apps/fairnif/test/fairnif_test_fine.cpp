/*
 * fairnif_test_fine.cpp - a library made with fine, of which some functions are
 * fair: the test's module is fairnif_test_fine.
 */
#include <fairnif_fine.hpp>

namespace {

struct point {
    int64_t x, y;

    static constexpr auto module = &fine::__private__::atoms::message;
    static constexpr auto fields()
    {
        return std::make_tuple(
            std::make_tuple(&point::x, &fine::__private__::atoms::ok),
            std::make_tuple(&point::y, &fine::__private__::atoms::error));
    }
};

struct box {
    int64_t value;
    explicit box(int64_t v) : value(v) {}
};
FINE_RESOURCE(box);

int64_t add(ErlNifEnv *, int64_t a, int64_t b)
{
    return a + b;
}
FINE_NIF(add, 0);

fine::ResourcePtr<box> boxed(ErlNifEnv *, int64_t value)
{
    return fine::make_resource<box>(value);
}
FINE_NIF(boxed, 0);

int64_t triangle(fair::task &t, int64_t n)
{
    int64_t sum = 0;

    for (int64_t i = 1; i <= n; i++) {
        sum += i;
        t.tick();
    }
    return sum;
}
FAIR_FINE_NIF(triangle, FAIR_AUTO);

int64_t unboxed(fair::task &t, const fine::ResourcePtr<box> &b)
{
    t.move(FAIR_DIRTY_CPU);
    return b->value;
}
FAIR_FINE_NIF(unboxed, FAIR_AUTO);

fine::Ok<fine::Atom, std::string> ok(fair::task &, fine::Atom a)
{
    return fine::Ok<fine::Atom, std::string>(a, a.to_string());
}
FAIR_FINE_NIF(ok, FAIR_NORMAL);

point turned(fair::task &, point p)
{
    return point{p.y, p.x};
}
FAIR_FINE_NIF(turned, FAIR_NORMAL);

fine::Term same(fair::task &, fine::Term any)
{
    return any;
}
FAIR_FINE_NIF(same, FAIR_NORMAL);

} /* namespace */

FAIR_FINE_LOAD("fairnif_test_fine");
FINE_INIT("fairnif_test_fine");
