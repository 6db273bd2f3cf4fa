/*
 * fairnif_test_types.cpp - an author's library in C++ that is loaded again and
 * again: types of resources.  Its module is fairnif_test_types, its suite
 * fairnif_cpp_tests.
 */
#include <fairnif.hpp>

/* -- resources: two of one unqualified name --------------------------------- */

namespace a {
struct box {
#ifdef GROWN
    std::string before = "an older box has none";
#endif
    int64_t number = 42;
};
struct tended : box {};
FAIR_RESOURCE(box);
FAIR_RESOURCE_IN_TASK(tended);
}

namespace b {
struct box {
    std::string text = "long enough to be elsewhere";
};
FAIR_RESOURCE(box);
}

/* Two whose names are too long for the VM, and differ at the end only. */
template <class T> struct boxed {};
template <class T> using map_of = std::map<std::vector<std::string>,
                                           std::vector<boxed<T>>>;
using long_named = map_of<int>;
using longer_named = map_of<char>;
FAIR_RESOURCE(long_named);
FAIR_RESOURCE(longer_named);

#ifdef TWICE
FAIR_RESOURCE(b::box);
#endif

namespace {

template <class T> fair::resource<T> make(fair::task &)
{
    return fair::make_resource<T>();
}

template <class T> int64_t number(fair::task &, fair::resource<T> box)
{
    return box->number;
}

std::string text(fair::task &, fair::resource<b::box> box)
{
    return box->text;
}

/* What the VM says to a monitor of an object: -1 where its type has no `down`. */
int monitored(fair::task &t, fair::term box)
{
    ErlNifPid self = t.caller();
    ErlNifMonitor monitor;
    void *object;
    int answer;

    if (!enif_get_resource(t.environment(), box.get(),
                           fair::detail::object<a::box>::type, &object))
        throw fair::error("no box");
    answer = enif_monitor_process(nullptr, object, &self, &monitor);
    if (answer == 0)
        enif_demonitor_process(nullptr, object, &monitor);
    return answer;
}

/* -- the library -------------------------------------------------------------- */

/* Refused where the author's load_info is a number. */
int load(ErlNifEnv *env, void **, ERL_NIF_TERM info)
{
    int error = 0;

    enif_get_int(env, info, &error);
    return error;
}

int upgrade(ErlNifEnv *env, void **priv, void **, ERL_NIF_TERM info)
{
    return load(env, priv, info);
}

ErlNifFunc nifs[] = {
    FAIR_FN("make_a", make<a::box>, FAIR_NORMAL),
    FAIR_FN("make_b", make<b::box>, FAIR_NORMAL),
    FAIR_FN("make_tended", make<a::tended>, FAIR_NORMAL),
    FAIR_FN("number", number<a::box>, FAIR_NORMAL),
    FAIR_FN("tended_number", number<a::tended>, FAIR_NORMAL),
    FAIR_FN("text", text, FAIR_NORMAL),
    FAIR_FN("monitored", monitored, FAIR_NORMAL),
};

} /* namespace */

FAIR_NIF_INIT(fairnif_test_types, nifs, fair::load<load>, fair::upgrade<upgrade>, NULL)
