/*
 * fairnif_lock.hpp - locks that suspend the task, and what is made once for all
 * tasks.  Part of fairnif.hpp, which includes it.
 */
#ifndef FAIRNIF_LOCK_HPP
#define FAIRNIF_LOCK_HPP

#ifndef FAIRNIF_HPP
#  error "include fairnif.hpp"
#endif

namespace fair __attribute__((visibility("hidden"))) {

/* -- Locks ------------------------------------------------------------------
 *
 * Put it where all its users find it; it must not move (fair_mutex). */
class mutex {
    fair_mutex m = FAIR_MUTEX_INIT;
    friend class lock;

public:
    mutex() = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
};

/* Holds a mutex for its own lifetime, across pauses too. */
class lock {
    task &t;
    mutex &held;

public:
    lock(task &task, mutex &m) : t(task), held(m)
    {
        int got = 0;

        try {
            t.pause([&] { got = fair_mutex_lock(&t, &m.m); });
        } catch (...) {
            if (got > 0)        /* cancelled before */
                fair_mutex_unlock(&t, &m.m);
            throw;
        }
        /* It was cancelled while it waited, and an exception is under way: now
         * the thread waits for the lock. */
        if (got == -ECANCELED)
            t.pause([&] { fair_mutex_lock(&t, &m.m); });
    }
    ~lock() { fair_mutex_unlock(&t, &held.m); }
    lock(const lock &) = delete;
    lock &operator=(const lock &) = delete;
};

/* -- What is made once --------------------------------------------------------
 *
 * Instead of a static variable of a function, if making it may pause:
 *
 *     static fair::once<std::vector<int64_t>> made;
 *     const auto &table = made.get(t, [&] { return table_of(t); });
 *
 * The first task that asks for the object makes it.  The others ask again every
 * millisecond, from a dirty I/O scheduler, until it exists; so no FAIR_MAY_WAIT
 * is needed.  If its maker ends early, by an exception or its caller's death,
 * the next task makes it.
 *
 * All tasks share the object, so it is const.  It is not destroyed, since
 * bodies still run while the node halts. */
template <class T> class once {
    fair_mutex making = FAIR_MUTEX_INIT;
    std::atomic<task *> maker{nullptr};
    std::atomic<bool> is_made{false};
    alignas(T) unsigned char memory[sizeof(T)] = {};

    struct release {
        task &t;
        once &o;

        ~release()
        {
            o.maker = nullptr;
            fair_mutex_unlock(&t, &o.making);
        }
    };

    template <class F> bool try_to_make(task &t, F &fn)
    {
        if (!fair_mutex_trylock(&t, &making)) {
            if (maker == &t)
                throw std::logic_error("fair::once: its maker asks for it");
            return false;
        }

        release afterwards{t, *this};

        maker = &t;
        if (!is_made.load(std::memory_order_acquire)) {
            new (memory) T(fn());
            is_made.store(true, std::memory_order_release);
        }
        return true;
    }

public:
    constexpr once() = default;
    once(const once &) = delete;
    once &operator=(const once &) = delete;

    template <class F> const T &get(task &t, F &&fn)
    {
        while (!is_made.load(std::memory_order_acquire)
               && !try_to_make(t, fn))
            t.offload(FAIR_DIRTY_IO, 1, [] {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            });
        return *std::launder(reinterpret_cast<const T *>(memory));
    }
};

} /* namespace fair */

/* The compiler calls these before and after it initialises a static variable.
 * With FAIR_DEBUG they are this library's own: in between a lock is held.  The
 * first byte of a guard is the compiler's, 1 once the variable is initialised;
 * the second one says that a thread is initialising it. */
#if defined(FAIR_DEBUG) && defined(__ELF__) && !defined(__ARM_EABI__)
extern "C" {

#define FAIR__GUARD(TYPE, NAME)                                             \
    __attribute__((weak, visibility("hidden")))                             \
    TYPE fair__guard_##NAME(unsigned char *guard)                           \
        __asm__("__cxa_guard_" #NAME);                                      \
    __attribute__((weak, visibility("hidden")))                             \
    TYPE fair__guard_##NAME(unsigned char *guard)

FAIR__GUARD(int, acquire)
{
    while (!__atomic_load_n(guard, __ATOMIC_ACQUIRE)) {
        if (__atomic_exchange_n(guard + 1, 1, __ATOMIC_ACQUIRE)) {
            std::this_thread::yield();
            continue;
        }
        if (!__atomic_load_n(guard, __ATOMIC_ACQUIRE)) {
            fair__locked(1);
            return 1;
        }
        __atomic_store_n(guard + 1, 0, __ATOMIC_RELEASE);
    }
    return 0;
}

FAIR__GUARD(void, abort)
{
    fair__locked(-1);
    __atomic_store_n(guard + 1, 0, __ATOMIC_RELEASE);
}

FAIR__GUARD(void, release)
{
    __atomic_store_n(guard, 1, __ATOMIC_RELEASE);
    fair__guard_abort(guard);
}

#undef FAIR__GUARD

}
#endif

#endif /* FAIRNIF_LOCK_HPP */
