/*
 * fairnif_containers.hpp - lists, tuples, alternatives and maps as C++ values
 * and back.  Part of fairnif_codec.hpp, which includes it.
 */
#ifndef FAIRNIF_CONTAINERS_HPP
#define FAIRNIF_CONTAINERS_HPP

#ifndef FAIRNIF_HPP
#  error "include fairnif.hpp"
#endif

#include <array>
#include <map>
#include <unordered_map>
#include <variant>
#include <vector>

namespace fair __attribute__((visibility("hidden"))) {

/* -- Lists ------------------------------------------------------------------ */

namespace detail {

enum : size_t { LIST_BLOCK = 64 };

/* Elements that cannot pause are read many at a time. */
template <class T>
bool get_block(task &t, root &left, std::vector<T> &values, bool &more)
{
    ERL_NIF_TERM list = left.get(), head;
    std::optional<T> value;
    size_t n = 0;

    while (n < LIST_BLOCK && enif_get_list_cell(detail::env_of(t), list, &head, &list)) {
        if (!codec<T>::get(t, head, value))
            return false;
        values.push_back(std::move(*value));
        n++;
    }
    more = n == LIST_BLOCK;
    left.set(list);
    t.tick(n);
    return true;
}

template <class T>
bool get_one(task &t, root &left, std::vector<T> &values, bool &more)
{
    ERL_NIF_TERM head;
    std::optional<T> value;

    more = left.next(head);
    if (!more)
        return true;
    if (!codec<T>::get(t, head, value))
        return false;
    values.push_back(std::move(*value));
    t.tick(1);
    return true;
}

} /* namespace detail */

template <class T> inline constexpr bool holds_terms<std::vector<T>>
    = holds_terms<T>;
template <class T> inline constexpr bool disposable<std::vector<T>>
    = !std::is_trivially_destructible_v<T>;

/* Destroys the elements in slices, the last one first. */
template <class T> void dispose(task &t, std::vector<T> &values)
{
    if constexpr (disposable<std::vector<T>>) {
        while (!values.empty()) {
            dispose(t, values.back());
            values.pop_back();
            t.tick(1);
        }
    }
}

template <class T> struct codec<std::vector<T>> : pausing {
    static_assert(!holds_terms<T>, "a pause would spoil the terms");

    static std::string name() { return "a list of: " + codec<T>::name(); }

    /* Counted first if it is long: growing it would copy all in one go. */
    static bool get(task &t, ERL_NIF_TERM any,
                    std::optional<std::vector<T>> &value)
    {
        root left(t, any);
        bool more = enif_is_list(detail::env_of(t), any) != 0;

        if (!more)
            return false;
        value.emplace();
        while (more) {
            if (value->size() == detail::LIST_BLOCK && !reserve(t, left, *value))
                return false;
            if constexpr (codec<T>::pauses) {
                if (!detail::get_one(t, left, *value, more))
                    return false;
            } else if (!detail::get_block(t, left, *value, more)) {
                return false;
            }
        }
        return enif_is_empty_list(detail::env_of(t), left.get()) != 0;
    }

    static ERL_NIF_TERM make(task &t, const std::vector<T> &values)
    {
        return from(t, values, [](size_t) {});
    }

    /* Of a value that is not needed any more: it is destroyed as the list is
     * made. */
    static ERL_NIF_TERM make(task &t, std::vector<T> &values)
    {
        return from(t, values, [&](size_t left) {
            if constexpr (disposable<std::vector<T>>)
                values.erase(values.begin() + static_cast<long>(left),
                             values.end());
        });
    }

private:
    static bool reserve(task &t, root &left, std::vector<T> &values)
    {
        size_t length = 0;
        int proper = 0;

        t.pause([&] {
            proper = fair_get_list_length(&t, left.get(), &length);
        });
        if (proper)
            values.reserve(values.size() + length);
        return proper != 0;
    }

    /* From the last element to the first. */
    template <class V, class Done>
    static ERL_NIF_TERM from(task &t, V &values, Done &&done)
    {
        root list(t, enif_make_list(fair_env(&t), 0));
        size_t left = values.size();

        while (left) {
            if constexpr (codec<T>::pauses) {
                list.push(codec<T>::make(t, values[--left]));
                done(left);
                t.tick(1);
            } else {
                size_t n = std::min<size_t>(left, detail::LIST_BLOCK);
                ERL_NIF_TERM cells = list.get();

                for (size_t i = 0; i < n; i++)
                    cells = enif_make_list_cell(
                        fair_env(&t), codec<T>::make(t, values[--left]), cells);
                list.set(cells);
                done(left);
                t.tick(n);
            }
        }
        return list.get();
    }
};

/* -- Tuples ----------------------------------------------------------------- */

namespace detail {

/* For std::tuple, std::pair and others that have std::get. */
template <class Tuple, class... T> struct members {
    static constexpr size_t count = sizeof...(T);
    static constexpr bool pauses = (codec<T>::pauses || ...);
    using indices = std::index_sequence_for<T...>;
    using decoded = std::tuple<std::optional<T>...>;
    using terms = std::array<ERL_NIF_TERM, count + 1>;

    static std::string name()
    {
        std::string names, comma;

        ((names += comma + codec<T>::name(), comma = ", "), ...);
        return "{" + names + "}";
    }

    static bool get(task &t, ERL_NIF_TERM any, std::optional<Tuple> &value)
    {
        const ERL_NIF_TERM *elements;
        int size;

        if (!enif_get_tuple(detail::env_of(t), any, &size, &elements)
            || static_cast<size_t>(size) != count)
            return false;
        if constexpr (pauses) {
            root kept(t, any);

            return get_each(t, [&](size_t i) {
                enif_get_tuple(detail::env_of(t), kept.get(), &size, &elements);
                return elements[i];
            }, value, indices());
        } else {
            return get_each(t, [&](size_t i) { return elements[i]; }, value,
                            indices());
        }
    }

    template <class Q> static ERL_NIF_TERM make(task &t, Q &values)
    {
        return make_each(t, values, indices());
    }

private:
    template <class Element, size_t... I>
    static bool get_each(task &t, Element &&element,
                         std::optional<Tuple> &value,
                         std::index_sequence<I...>)
    {
        decoded each;

        (void)element;
        if (!(codec<T>::get(t, element(I), std::get<I>(each)) && ...))
            return false;
        value.emplace(std::move(*std::get<I>(each))...);
        return true;
    }

    /* First those that may pause, each into a root, then the others. */
    template <class Q, size_t... I>
    static ERL_NIF_TERM make_each(task &t, Q &values, std::index_sequence<I...>)
    {
        std::array<std::optional<root>, count + 1> kept;
        terms made = {};

        auto keep = [&](size_t i, ERL_NIF_TERM any) {
            kept[i].emplace(t, any);
        };
        (void)keep;
        ([&] {
            if constexpr (codec<T>::pauses)
                keep(I, codec<T>::make(t, std::get<I>(values)));
        }(), ...);
        ([&] {
            if constexpr (codec<T>::pauses)
                made[I] = kept[I]->get();
            else
                made[I] = codec<T>::make(t, std::get<I>(values));
        }(), ...);
        return enif_make_tuple_from_array(fair_env(&t), made.data(), count);
    }
};

} /* namespace detail */

template <class... T> inline constexpr bool holds_terms<std::tuple<T...>>
    = (holds_terms<T> || ...);
template <class A, class B> inline constexpr bool holds_terms<std::pair<A, B>>
    = holds_terms<A> || holds_terms<B>;
template <class... T> inline constexpr bool disposable<std::tuple<T...>>
    = (disposable<T> || ...);
template <class A, class B> inline constexpr bool disposable<std::pair<A, B>>
    = disposable<A> || disposable<B>;

template <class... T> void dispose(task &t, std::tuple<T...> &values)
{
    std::apply([&](auto &...each) { (dispose(t, each), ...); }, values);
}
template <class A, class B> void dispose(task &t, std::pair<A, B> &values)
{
    dispose(t, values.first);
    dispose(t, values.second);
}

template <class... T> struct codec<std::tuple<T...>>
    : detail::members<std::tuple<T...>, T...> {};
template <class A, class B> struct codec<std::pair<A, B>>
    : detail::members<std::pair<A, B>, A, B> {};

/* -- Alternatives ----------------------------------------------------------- */

template <class T> inline constexpr bool holds_terms<std::optional<T>>
    = holds_terms<T>;
template <class T> inline constexpr bool disposable<std::optional<T>>
    = disposable<T>;

template <class T> void dispose(task &t, std::optional<T> &value)
{
    if (value)
        dispose(t, *value);
}

template <class T> struct codec<std::optional<T>> {
    static constexpr bool pauses = codec<T>::pauses;

    static std::string name()
    {
        return codec<T>::name() + " or undefined or nil";
    }
    static bool get(task &t, ERL_NIF_TERM any,
                    std::optional<std::optional<T>> &value)
    {
        value.emplace();
        return detail::is_atom(t, any, "undefined")
            || detail::is_atom(t, any, "nil")
            || codec<T>::get(t, any, *value);
    }
    template <class Q> static ERL_NIF_TERM make(task &t, Q &value)
    {
        return value ? codec<T>::make(t, *value) : detail::atom(t, FAIR_NONE);
    }
};

template <class... T> inline constexpr bool holds_terms<std::variant<T...>>
    = (holds_terms<T> || ...);
template <class... T> inline constexpr bool disposable<std::variant<T...>>
    = (disposable<T> || ...);

template <class... T> void dispose(task &t, std::variant<T...> &value)
{
    std::visit([&](auto &held) { dispose(t, held); }, value);
}

template <class... T> struct codec<std::variant<T...>> {
    static constexpr bool pauses = (codec<T>::pauses || ...);

    static std::string name()
    {
        std::string names, between;

        ((names += between + codec<T>::name(), between = " or "), ...);
        return names;
    }
    static bool get(task &t, ERL_NIF_TERM any,
                    std::optional<std::variant<T...>> &value)
    {
        if constexpr (pauses) {
            root kept(t, any);

            return (get_one<T>(t, kept.get(), value) || ...);
        } else {
            return (get_one<T>(t, any, value) || ...);
        }
    }
    template <class Q> static ERL_NIF_TERM make(task &t, Q &value)
    {
        return std::visit([&](auto &held) {
            using type = std::remove_cv_t<std::remove_reference_t<
                decltype(held)>>;

            return codec<type>::make(t, held);
        }, value);
    }

private:
    template <class One>
    static bool get_one(task &t, ERL_NIF_TERM any,
                        std::optional<std::variant<T...>> &value)
    {
        std::optional<One> one;

        if (!codec<One>::get(t, any, one))
            return false;
        value.emplace(std::move(*one));
        return true;
    }
};

/* -- Maps ------------------------------------------------------------------- */

namespace detail {

/* Up to this size it is done in place, in some us. */
enum : size_t { MAP_IN_PLACE = 256 };

/* Calls `fn()`, which works on terms and does not pause, on a scheduler where
 * it may take long. */
template <class F> void on_dirty_if(task &t, bool is_long, F &&fn)
{
    fair_mode here = t.where();

    if (!is_long) {
        fn();
        return;
    }
    t.move(FAIR_DIRTY_CPU);
    fn();
    t.move(here == FAIR_THREADED ? FAIR_DIRTY_CPU : here);
}

/* The map in the root becomes the list [K1, V1, K2, V2, ...]. */
inline void map_to_list(task &t, root &map, size_t size)
{
    on_dirty_if(t, size > MAP_IN_PLACE, [&] {
        ErlNifEnv *env = fair_env(&t);
        ERL_NIF_TERM list = enif_make_list(env, 0), key, value;
        ErlNifMapIterator it;

        if (!enif_map_iterator_create(env, map.get(), &it,
                                      ERL_NIF_MAP_ITERATOR_FIRST))
            throw std::bad_alloc();
        while (enif_map_iterator_get_pair(env, &it, &key, &value)) {
            list = enif_make_list_cell(env, value, list);
            list = enif_make_list_cell(env, key, list);
            enif_map_iterator_next(env, &it);
        }
        enif_map_iterator_destroy(env, &it);
        map.set(list);
    });
}

/* The list [V1, K1, V2, K2, ...] in the root becomes a map. */
inline void list_to_map(task &t, root &list, size_t size)
{
    std::vector<ERL_NIF_TERM> keys, values;

    on_dirty_if(t, size > MAP_IN_PLACE, [&] {
        ErlNifEnv *env = fair_env(&t);
        ERL_NIF_TERM left = list.get(), key, value, map;

        keys.reserve(size);
        values.reserve(size);
        while (enif_get_list_cell(env, left, &value, &left)
               && enif_get_list_cell(env, left, &key, &left)) {
            keys.push_back(key);
            values.push_back(value);
        }
        if (!enif_make_map_from_arrays(env, keys.data(), values.data(),
                                       keys.size(), &map))
            throw badarg(0, "two keys of a map that are the same term");
        list.set(map);
    });
}

/* Reserves room for all nodes first: making room later would move them all. */
template <class K, class V, class... X>
void make_room(task &t, std::unordered_map<K, V, X...> &map, size_t size)
{
    if (size > MAP_IN_PLACE)
        t.offload(FAIR_AUTO, size, [&] { map.reserve(size); });
}
template <class K, class V, class... X>
void make_room(task &, std::map<K, V, X...> &, size_t) {}

template <class Map> struct map_codec : pausing {
    using key_type = typename Map::key_type;
    using mapped_type = typename Map::mapped_type;
    static_assert(!holds_terms<key_type> && !holds_terms<mapped_type>,
                  "a pause would spoil the terms");

    static std::string name()
    {
        return "a map of: " + codec<key_type>::name() + " => "
            + codec<mapped_type>::name();
    }

    static bool get(task &t, ERL_NIF_TERM any, std::optional<Map> &value)
    {
        size_t size;

        if (!enif_get_map_size(detail::env_of(t), any, &size))
            return false;

        root list(t, any);

        value.emplace();
        map_to_list(t, list, size);
        make_room(t, *value, size);
        while (size--) {
            if (!get_pair(t, list, *value))
                return false;
            t.tick(1);
        }
        return true;
    }

    static ERL_NIF_TERM make(task &t, const Map &map)
    {
        root list(t, enif_make_list(fair_env(&t), 0));

        for (auto &pair : map) {
            list.push(codec<key_type>::make(t, pair.first));
            list.push(codec<mapped_type>::make(t, pair.second));
            t.tick(1);
        }
        list_to_map(t, list, map.size());
        return list.get();
    }

    /* Of a value that is not needed any more. */
    static ERL_NIF_TERM make(task &t, Map &map)
    {
        root made(t, make(t, std::as_const(map)));

        dispose(t, map);
        return made.get();
    }

private:
    static bool get_pair(task &t, root &list, Map &map)
    {
        std::optional<key_type> key;
        std::optional<mapped_type> value;
        ERL_NIF_TERM next;

        if (!list.next(next) || !codec<key_type>::get(t, next, key)
            || !list.next(next) || !codec<mapped_type>::get(t, next, value))
            return false;
        map.emplace(std::move(*key), std::move(*value));
        return true;
    }
};

/* A node's key is constant: it is destroyed in one go. */
template <class Map> void dispose_map(task &t, Map &map)
{
    while (!map.empty()) {
        dispose(t, map.begin()->second);
        map.erase(map.begin());
        t.tick(1);
    }
}

} /* namespace detail */

template <class K, class V, class... X>
inline constexpr bool disposable<std::map<K, V, X...>> = true;
template <class K, class V, class... X>
inline constexpr bool disposable<std::unordered_map<K, V, X...>> = true;

template <class K, class V, class... X>
void dispose(task &t, std::map<K, V, X...> &map)
{
    detail::dispose_map(t, map);
}
template <class K, class V, class... X>
void dispose(task &t, std::unordered_map<K, V, X...> &map)
{
    detail::dispose_map(t, map);
}

template <class K, class V, class... X> struct codec<std::map<K, V, X...>>
    : detail::map_codec<std::map<K, V, X...>> {};
template <class K, class V, class... X>
struct codec<std::unordered_map<K, V, X...>>
    : detail::map_codec<std::unordered_map<K, V, X...>> {};

} /* namespace fair */

#endif /* FAIRNIF_CONTAINERS_HPP */
