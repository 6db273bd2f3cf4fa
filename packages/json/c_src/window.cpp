/*
 * window.cpp - simdjson's first stage, a window at a time, see window.hpp.
 *
 * The class `dom_parser_implementation` is what simdjson's own parsers stand
 * on; its documents call it internal.  What is used of it here, `stage1` in
 * the regular mode and the index it leaves, is the same in 3.0 and in 4.6.
 */
#include "window.hpp"

#include <algorithm>
#include <new>

#include <simdjson.h>

using simdjson::error_code;

/* How far back from a window's end a string's begin is looked for. */
static constexpr size_t LOOK_BACK = 512;

window::window(size_t size)
{
    if (simdjson::get_active_implementation()->create_dom_parser_implementation(
            std::max<size_t>(1, std::min(size, MOST)), 1, parser)
        != simdjson::SUCCESS)
        throw std::bad_alloc();
}

window::~window() = default;

/* How many backslashes stand right before. */
static size_t backslashes(const unsigned char *text, size_t at)
{
    size_t n = 0;

    while (n < at && text[at - n - 1] == '\\')
        n++;
    return n;
}

/* Where the last string in `size` bytes begins, if it does not end there. */
static size_t unclosed(const unsigned char *text, size_t size)
{
    while (size-- > 0) {
        if (text[size] == '"' && backslashes(text, size) % 2 == 0)
            return size;
    }
    return 0;
}

static bool before_string(unsigned char c)
{
    return c == ' ' || c == ':' || c == ',' || c == '[' || c == '{'
        || c == '\n' || c == '\t' || c == '\r';
}

/* A quote after a colon, a comma or a blank: that strings begin so is likely,
 * and all the cut needs to be.  What is cut badly is cut again. */
static size_t likely_cut(const unsigned char *text, size_t size)
{
    for (size_t i = size; i > size - LOOK_BACK; i--) {
        if (text[i - 1] == '"' && before_string(text[i - 2]))
            return i - 1;
    }
    return size;
}

/* The first byte that does not belong: no UTF-8, or a control character in a
 * string.  `cut` is then where its string begins, or the byte itself. */
static size_t bad_byte(const unsigned char *text, size_t size, size_t *cut)
{
    size_t end = not_utf8(text, size), string = 0;
    bool inside = false;

    for (size_t i = 0; i < end; i++) {
        if (text[i] == '"') {
            inside = !inside;
            string = i;
        } else if (inside && text[i] < 0x20) {
            end = i;
        } else if (inside && text[i] == '\\' && i + 1 < end
                   && text[i + 1] >= 0x20) {
            i++;
        }
    }
    *cut = inside ? string : end;
    return end;
}

window::found window::failed(found why)
{
    count = 0;
    length = 0;
    return why;
}

window::found window::read(const unsigned char *text, size_t left)
{
    size_t n = left <= MOST ? left : likely_cut(text, MOST), cut;
    error_code error;

    for (;;) {
        error = parser->stage1(text, n, simdjson::stage1_mode::regular);
        switch (error) {
        case simdjson::SUCCESS:
        case simdjson::EMPTY:               /* nothing but blanks */
            length = n;
            count = error ? 0 : parser->n_structural_indexes;
            at = parser->structural_indexes.get();
            return found::tokens;
        case simdjson::UNCLOSED_STRING:
            n = unclosed(text, n);
            if (n == 0)
                return failed(found::long_string);
            break;
        default:
            bad = bad_byte(text, n, &cut);
            if (cut == 0 || cut >= n)
                return failed(found::bad_byte);
            n = cut;
        }
    }
}

bool is_utf8(const unsigned char *text, size_t size)
{
    return simdjson::validate_utf8(reinterpret_cast<const char *>(text), size);
}

/* The length of the character that begins here, 0 where none does. */
static size_t character(const unsigned char *p, size_t left)
{
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2
        : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    unsigned least = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
    unsigned most = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;

    if (n > left || (n > 1 && (p[1] < least || p[1] > most)))
        return 0;
    for (size_t i = 2; i < n; i++) {
        if (p[i] < 0x80 || p[i] > 0xBF)
            return 0;
    }
    return n;
}

size_t not_utf8(const unsigned char *text, size_t size)
{
    size_t i = 0, n;

    while (i < size && (n = character(text + i, size - i)) > 0)
        i += n;
    return i;
}

size_t whole_characters(const unsigned char *text, size_t n)
{
    for (unsigned i = 0; i < 3 && n > 1 && (text[n] & 0xC0) == 0x80; i++)
        n--;
    return n;
}
