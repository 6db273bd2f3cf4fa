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
 * A T lives as long as a term or a fair::resource refers to it.  The VM runs
 * its destructor, on any thread; it should be quick.  If it takes longer, open
 * the type by
 *
 *     FAIR_RESOURCE_IN_TASK(connection);
 *
 * instead.  That is a fair resource (fairnif_resource.h): its destructor runs
 * in a task of no process.  It may tick, by fair_tick(fair_current(), n), and
 * lock.
 *
 * The VM knows the type by its C++ name, with namespaces.  By that name an
 * upgraded library takes over its predecessor's objects.  Objects smaller than
 * its own are refused: for its functions they are not of the type, and they are
 * released without a destructor.  A layout that has changed otherwise, or
 * another macro, needs another name.  A library with two types of one name (in
 * anonymous namespaces of two files, or opened twice) does not load.  A load
 * that is refused changes nothing for the loaded library. */
template <class T> class resource;

namespace detail {

/* Where the T is in an object: of the VM's, which is aligned to 8 bytes only, or
 * in a fair one, whose address is in the VM's.  The first byte says whether it has
 * been made. */
template <class T> struct object {
    inline static std::atomic<ErlNifResourceType *> type{nullptr};
    inline static std::atomic<fair_resource_type *> fair{nullptr};

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
    /* An older library may have made it, in which T was smaller. */
    static bool is_whole(void *obj)
    {
        return (fair ? fair__of_size(fair, memory(obj))
                     : enif_sizeof_resource(obj) >= size) && made(obj);
    }

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
        if (is_whole(obj))
            in(obj)->~T();
    }
    static void clean_up(fair_task *, void *memory) noexcept
    {
        if (*static_cast<bool *>(memory))
            in_memory(memory)->~T();
    }
};

/* See fair__open_type in c_src/base/type.c: where a type is taken over that has no
 * such function the VM may write beyond an object that is made meanwhile. */
inline void ignore_down(ErlNifEnv *, void *, ErlNifPid *,
                                ErlNifMonitor *)
{
}

/* The types that this library opens at load. */
class resource_type {
    static constexpr size_t longest = 200;      /* as in fair_resource_open */
    inline static resource_type *first = nullptr;

    const std::type_info &of;
    std::atomic<ErlNifResourceType *> &type;
    std::atomic<fair_resource_type *> *const fair;  /* nullptr: a plain one */
    ErlNifResourceTypeInit calls = {};
    fair_resource_options options = {};
    char name[longest + 1] = "";
    /* by the load that is under way: theirs once it has succeeded */
    ErlNifResourceType *opened_type = nullptr;
    fair_resource_type *opened_fair = nullptr;
    resource_type *const next;

public:
    resource_type(const std::type_info &of,
                  std::atomic<ErlNifResourceType *> &type,
                  void (*destroy)(ErlNifEnv *, void *))
        : of(of), type(type), fair(nullptr), next(first)
    {
        calls.dtor = destroy;
        calls.down = ignore_down;
        calls.members = 3;
        first = this;
    }
    resource_type(const std::type_info &of,
                  std::atomic<ErlNifResourceType *> &type,
                  std::atomic<fair_resource_type *> &fair, size_t size,
                  void (*clean_up)(fair_task *, void *))
        : of(of), type(type), fair(&fair), next(first)
    {
        options.name = name;
        options.size = size;
        options.cleanup = clean_up;
        first = this;
    }

    static int open_all(ErlNifEnv *env)
    {
        for (auto *r = first; r; r = r->next) {
            if (!r->find_name())
                return FAIR_E_NOMEM;
            for (auto *before = first; before != r; before = before->next) {
                if (strcmp(r->name, before->name))
                    continue;
                fprintf(stderr, "fairnif: two resource types are called %s: "
                        "rename one\n", r->name);
                return FAIR_E_NIFS;
            }
            if (!r->open(env))
                return FAIR_E_NOMEM;
        }
        fair__lib_loaded = loaded;
        return 0;
    }

private:
    /* A name that is too long ends in a hash of the whole name. */
    bool find_name()
    {
        auto full = demangled(of);
        uint64_t hash = 14695981039346656037u;

        if (!full)
            return false;
        for (const char *c = full.get(); *c; c++)
            hash = (hash ^ static_cast<unsigned char>(*c)) * 1099511628211u;
        if (snprintf(name, sizeof name, "%s", full.get()) > int(longest))
            snprintf(name + longest - 17, 18, " %016llx",
                     static_cast<unsigned long long>(hash));
        return true;
    }

    bool open(ErlNifEnv *env)
    {
        auto flags = static_cast<ErlNifResourceFlags>(ERL_NIF_RT_CREATE
                                                      | ERL_NIF_RT_TAKEOVER);

        if (!fair) {
            opened_type = enif_init_resource_type(env, name, &calls, flags,
                                                  nullptr);
        } else {
            opened_fair = fair_resource_open(env, &options);
            opened_type = opened_fair ? opened_fair->vm : nullptr;
        }
        return opened_type != nullptr;
    }

    static void loaded(int error)
    {
        for (auto *r = first; r && !error; r = r->next) {
            if (r->fair)
                *r->fair = r->opened_fair;
            r->type = r->opened_type;
        }
    }
};

} /* namespace detail */

/* A reference to an object; never empty. */
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

        if (!object::type || !enif_get_resource(detail::env_of(t), any, object::type, &obj)
            || !object::is_whole(obj))
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

/* Makes load and upgrade open the type.  Use it at namespace scope, once. */
#define FAIR_RESOURCE(T)                                                    \
    static fair::detail::resource_type FAIR__JOIN(fair__resource_, __LINE__)\
        (typeid(T), fair::detail::object<T>::type,                          \
         fair::detail::object<T>::destroy)

/* The same for a fair resource. */
#define FAIR_RESOURCE_IN_TASK(T)                                            \
    static fair::detail::resource_type FAIR__JOIN(fair__resource_, __LINE__)\
        (typeid(T), fair::detail::object<T>::type,                          \
         fair::detail::object<T>::fair, fair::detail::object<T>::size,      \
         fair::detail::object<T>::clean_up)

} /* namespace fair */

#endif /* FAIRNIF_RESOURCE_HPP */
