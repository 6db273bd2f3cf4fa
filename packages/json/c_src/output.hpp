/*
 * output.hpp - bytes that are written one after the other, as an iolist.
 *
 * They stand in binaries that grow to CHUNK bytes and are then done with: so
 * nothing large is ever copied, and no write takes long.  No function but
 * `done` pauses.
 */
#ifndef OUTPUT_HPP
#define OUTPUT_HPP

#include <cstring>

#include <fairnif.hpp>

class output {
public:
    static constexpr size_t CHUNK = 64 * 1024;

    explicit output(fair::task &task);

    /* Room for that many bytes, at most a quarter of CHUNK, to be written and
     * then taken. */
    char *room(size_t n)
    {
        if (bin->size() - used < n)
            more(n);
        return reinterpret_cast<char *>(bin->data()) + used;
    }
    void take(size_t n) { used += n; }

    void put(char c)
    {
        *room(1) = c;
        take(1);
    }
    void put(const void *bytes, size_t n)
    {
        std::memcpy(room(n), bytes, n);
        take(n);
    }

    /* All of it, a binary or a list of them.  May pause: what is long. */
    ERL_NIF_TERM done();

private:
    void more(size_t n);
    ERL_NIF_TERM written();

    fair::task &t;
    std::optional<fair::binary> bin;
    size_t used = 0;
    fair::root parts;           /* those that are full, last one first */
    bool several = false;
};

#endif
