/*
 * fairnif_resource.hpp - typed resource objects.  Part of fairnif_codec.hpp,
 * which includes it.
 */
#ifndef FAIRNIF_RESOURCE_HPP
#define FAIRNIF_RESOURCE_HPP

#ifndef FAIRNIF_HPP
#  error "include fairnif.hpp"
#endif

namespace fair __attribute__((visibility("hidden"))) {

/* -- Resources --------------------------------------------------------------
 *
 *     struct counter { std::atomic<long> n; };
 *     FAIR_RESOURCE(counter);
 *
 *     static fair::resource<counter> new_counter(fair::task &)
 *     {
 *         return fair::make_resource<counter>();
 *     }
 *
 * A T that lives as long as a term or a fair::resource refers to it.  Its
 * destructor is run by the VM, on any thread, and should be quick.  An upgraded
 * library takes over the objects of its predecessor: a type whose layout has
 * changed needs another name. */
template <class T> class resource;

namespace detail {

/* Where the T is in an object of the VM's, which is aligned to 8 bytes only.
 * The first byte says whether it has been made. */
template <class T> struct object {
    inline static ErlNifResourceType *type = nullptr;

    static constexpr size_t size = 1 + alignof(T) - 1 + sizeof(T);

    static T *in(void *obj)
    {
        auto after = reinterpret_cast<uintptr_t>(obj) + 1;

        return reinterpret_cast<T *>((after + alignof(T) - 1)
                                     / alignof(T) * alignof(T));
    }
    static bool &made(void *obj) { return *static_cast<bool *>(obj); }

    static void destroy(ErlNifEnv *, void *obj) noexcept
    {
        if (made(obj))
            in(obj)->~T();
    }
};

/* The types that this library opens at load. */
struct resource_type {
    const char *name;
    ErlNifResourceType **type;
    void (*destroy)(ErlNifEnv *, void *);
    resource_type *next;

    inline static resource_type *first = nullptr;

    resource_type(const char *name, ErlNifResourceType **type,
                  void (*destroy)(ErlNifEnv *, void *))
        : name(name), type(type), destroy(destroy), next(first)
    {
        first = this;
    }
};

inline bool open_resources(ErlNifEnv *env)
{
    auto flags = static_cast<ErlNifResourceFlags>(ERL_NIF_RT_CREATE
                                                  | ERL_NIF_RT_TAKEOVER);

    for (auto *r = resource_type::first; r; r = r->next) {
        ErlNifResourceType *type = enif_open_resource_type(
            env, nullptr, r->name, r->destroy, flags, nullptr);

        if (!type)
            return false;
        *r->type = type;
    }
    return true;
}

} /* namespace detail */

/* A reference to an object; always to one. */
template <class T> class resource {
    void *obj;

    friend struct codec<resource<T>>;
    template <class U, class... Args>
    friend resource<U> make_resource(Args &&...args);

    explicit resource(void *counted) : obj(counted) {}

public:
    resource(const resource &other) : obj(other.obj)
    {
        enif_keep_resource(obj);
    }
    resource &operator=(const resource &other)
    {
        resource copy(other);

        std::swap(obj, copy.obj);
        return *this;
    }
    ~resource() { enif_release_resource(obj); }

    T *get() const { return detail::object<T>::in(obj); }
    T &operator*() const { return *get(); }
    T *operator->() const { return get(); }
};

/* A new object, made with the constructor's arguments. */
template <class T, class... Args> resource<T> make_resource(Args &&...args)
{
    using object = detail::object<T>;
    void *obj;

    if (!object::type)
        throw std::logic_error("no FAIR_RESOURCE of this type, or no load");
    obj = enif_alloc_resource(object::type, object::size);
    if (!obj)
        throw std::bad_alloc();
    object::made(obj) = false;

    resource<T> made(obj);

    new (object::in(obj)) T(std::forward<Args>(args)...);
    object::made(obj) = true;
    return made;
}

template <class T> struct codec<resource<T>> : plain {
    using object = detail::object<T>;

    static std::string name() { return "a resource of its type"; }
    static bool get(task &t, ERL_NIF_TERM any,
                    std::optional<resource<T>> &value)
    {
        void *obj;

        if (!object::type || !enif_get_resource(t.env, any, object::type, &obj)
            || !object::made(obj))
            return false;
        enif_keep_resource(obj);
        value.emplace(resource<T>(obj));
        return true;
    }
    static ERL_NIF_TERM make(task &t, const resource<T> &r)
    {
        return enif_make_resource(fair_env(&t), r.obj);
    }
};

#define FAIR__JOIN_(A, B) A##B
#define FAIR__JOIN(A, B) FAIR__JOIN_(A, B)

/* Has load and upgrade open the type; at namespace scope, once. */
#define FAIR_RESOURCE(T)                                                    \
    static fair::detail::resource_type FAIR__JOIN(fair__resource_, __LINE__)\
        (#T, &fair::detail::object<T>::type, fair::detail::object<T>::destroy)

} /* namespace fair */

#endif /* FAIRNIF_RESOURCE_HPP */
