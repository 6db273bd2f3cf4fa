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

#include <fairnif.h>

class output {
public:
    static constexpr size_t CHUNK = 64 * 1024;

    bool begin(fair_task *task);

    /* Room for so many bytes, at most a quarter of CHUNK, to be written and
     * then taken; NULL when memory is out. */
    char *room(size_t n)
    {
        return bin.size - used >= n || more(n)
            ? reinterpret_cast<char *>(bin.data) + used : nullptr;
    }
    void take(size_t n) { used += n; }

    bool put(char c)
    {
        char *to = room(1);

        if (!to)
            return false;
        *to = c;
        used++;
        return true;
    }

    bool put(const void *bytes, size_t n)
    {
        char *to = room(n);

        if (!to)
            return false;
        std::memcpy(to, bytes, n);
        used += n;
        return true;
    }

    /* All of it in the root, a binary or a list of them; false when memory is
     * out.  May pause: what is long. */
    bool done(unsigned root);

private:
    bool more(size_t n);
    bool push();

    fair_task *t;
    fair_bin bin;
    size_t used;
    unsigned parts;             /* root: those that are full, last one first */
    bool several;
};

#endif
