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
 * destructor is run by the VM, on any thread, and should be quick.  One that takes
 * longer is opened by
 *
 *     FAIR_RESOURCE_IN_TASK(connection);
 *
 * instead: a fair resource (fairnif_resource.h), whose destructor runs in a task
 * of no process.  It may tick, by fair_tick(fair_current(), n), and lock.
 *
 * An upgraded library takes over the objects of its predecessor: a type whose
 * layout has changed, or which macro opens it, needs another name. */
template <class T> class resource;

namespace detail {

/* Where the T is in an object: of the VM's, which is aligned to 8 bytes only, or
 * in a fair one, whose address is in the VM's.  The first byte says whether it has
 * been made. */
template <class T> struct object {
    inline static ErlNifResourceType *type = nullptr;
    inline static fair_resource_type *fair = nullptr;

    static constexpr size_t size = 1 + alignof(T) - 1 + sizeof(T);

    static void *memory(void *obj)
    {
        return fair ? *static_cast<void **>(obj) : obj;
    }
    static T *in_memory(void *memory)
    {
        auto after = reinterpret_cast<uintptr_t>(memory) + 1;

        return reinterpret_cast<T *>((after + alignof(T) - 1)
                                     / alignof(T) * alignof(T));
    }
    static T *in(void *obj) { return in_memory(memory(obj)); }
    static bool &made(void *obj) { return *static_cast<bool *>(memory(obj)); }

    static void *create()
    {
        void *memory;

        if (!fair)
            return enif_alloc_resource(type, size);
        memory = fair_resource_new(fair, size);
        return memory ? fair_resource_vm(memory) : nullptr;
    }

    static void destroy(ErlNifEnv *, void *obj) noexcept
    {
        if (made(obj))
            in(obj)->~T();
    }
    static void clean_up(fair_task *, void *memory) noexcept
    {
        if (*static_cast<bool *>(memory))
            in_memory(memory)->~T();
    }
};

/* The types that this library opens at load. */
struct resource_type {
    const char *name;
    ErlNifResourceType **type;
    void (*destroy)(ErlNifEnv *, void *);
    fair_resource_type **fair;      /* nullptr: a plain one */
    fair_resource_options options;
    resource_type *next;

    inline static resource_type *first = nullptr;

    resource_type(const char *name, ErlNifResourceType **type,
                  void (*destroy)(ErlNifEnv *, void *))
        : name(name), type(type), destroy(destroy), fair(nullptr), options(),
          next(first)
    {
        first = this;
    }
    resource_type(const char *name, ErlNifResourceType **type,
                  fair_resource_type **fair,
                  void (*clean_up)(fair_task *, void *))
        : name(name), type(type), destroy(nullptr), fair(fair), options(),
          next(first)
    {
        options.name = name;
        options.cleanup = clean_up;
        first = this;
    }

    bool open(ErlNifEnv *env)
    {
        auto flags = static_cast<ErlNifResourceFlags>(ERL_NIF_RT_CREATE
                                                      | ERL_NIF_RT_TAKEOVER);

        if (!fair) {
            *type = enif_open_resource_type(env, nullptr, name, destroy, flags,
                                            nullptr);
        } else {
            *fair = fair_resource_open(env, &options);
            *type = *fair ? (*fair)->vm : nullptr;
        }
        return *type != nullptr;
    }
};

inline bool open_resources(ErlNifEnv *env)
{
    for (auto *r = resource_type::first; r; r = r->next)
        if (!r->open(env))
            return false;
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
    obj = object::create();
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

/* The same for a fair resource. */
#define FAIR_RESOURCE_IN_TASK(T)                                            \
    static fair::detail::resource_type FAIR__JOIN(fair__resource_, __LINE__)\
        (#T, &fair::detail::object<T>::type, &fair::detail::object<T>::fair,  \
         fair::detail::object<T>::clean_up)

} /* namespace fair */

#endif /* FAIRNIF_RESOURCE_HPP */
