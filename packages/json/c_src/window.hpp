/*
 * window.hpp - where the tokens of a document begin, a window at a time.
 *
 * simdjson's first stage finds them, some gigabytes a second, and refuses
 * control characters in strings and what is not UTF-8.  It takes any piece of
 * text that begins and ends outside of strings; a piece of 16 KiB is done in a
 * few microseconds, whatever the document's size, and its index stays in the
 * processor's cache.  So a window ends where a string begins, and what is
 * longer than a window is left to the caller.
 *
 * Knows nothing of tasks and terms.
 */
#ifndef WINDOW_HPP
#define WINDOW_HPP

#include <cstddef>
#include <cstdint>
#include <memory>

namespace simdjson::internal {
class dom_parser_implementation;
}

class window {
public:
    static constexpr size_t MOST = 16 * 1024;
    enum class found { tokens, long_string, bad_byte };

    /* For a document of `size` bytes.  Throws std::bad_alloc. */
    explicit window(size_t size);
    ~window();

    /* Looks at what is left of the document, at least one byte. */
    found read(const unsigned char *text, size_t left);

    size_t length;              /* of this window, in bytes */
    size_t bad;                 /* with bad_byte: where */
    /* The offsets of the tokens in this window. */
    uint32_t count;
    const uint32_t *at;

private:
    found failed(found why);

    std::unique_ptr<simdjson::internal::dom_parser_implementation> parser;
};

/* Whether the bytes are UTF-8, whole characters. */
bool is_utf8(const unsigned char *text, size_t size);

/* The offset of the first byte that is not part of a UTF-8 character; `size`
 * where there is none. */
size_t not_utf8(const unsigned char *text, size_t size);

/* At most `n` bytes, and none of a character that continues at `n`; of what is
 * UTF-8. */
size_t whole_characters(const unsigned char *text, size_t n);

#endif
