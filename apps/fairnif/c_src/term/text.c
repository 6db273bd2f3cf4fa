/*
 * text.c - characters as bytes; the names of atoms.
 */
#include "term/text.h"

#include "task/debug.h"

enum { FAIR__ATOM_MOST = 255 };     /* characters of an atom */

size_t fair__encode(unsigned code, enum fair_encoding encoding,
                    unsigned char *to)
{
    static const unsigned limits[] = {0x80, 0x800, 0x10000, 0x110000};
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    size_t bytes = 1;

    if (encoding == FAIR_LATIN1) {
        if (code > 0xFF)
            return 0;
        if (to)
            *to = (unsigned char)code;
        return 1;
    }
    while (bytes <= sizeof first && code >= limits[bytes - 1])
        bytes++;
    if (bytes > sizeof first || (code >= 0xD800 && code < 0xE000))
        return 0;
    for (size_t i = bytes - 1; to && i > 0; i--, code >>= 6)
        to[i] = (unsigned char)(0x80 | (code & 0x3F));
    if (to)
        to[0] = (unsigned char)(first[bytes - 1] | code);
    return bytes;
}

/* The text with its final zero; false, and nothing is set, when it has no room. */
static bool put_latin1(const unsigned char *text, size_t length, char *buf,
                       size_t size, enum fair_encoding encoding)
{
    size_t bytes = length;

    for (size_t i = 0; encoding != FAIR_LATIN1 && i < length; i++)
        bytes += text[i] >= 0x80;
    if (bytes >= size)
        return false;
    if (bytes == length)
        memcpy(buf, text, length);
    for (size_t i = 0, at = 0; bytes > length && i < length; i++)
        at += fair__encode(text[i], encoding, (unsigned char *)buf + at);
    buf[bytes] = 0;
    return true;
}

/* Before OTP 26 enif_get_atom knows Latin-1 only, and an atom that has other
 * characters shows them in the external format alone. */
static bool external_name(struct fair__task *t, ERL_NIF_TERM atom, char *buf,
                          size_t size)
{
    enum { SMALL_ATOM_UTF8 = 119, ATOM_UTF8 = 118 };
    ErlNifBinary bin;
    size_t begin, length;
    bool fits;

    if (!enif_term_to_binary(t->pub.env, atom, &bin)) {
        t->lacked = "enomem";
        return false;
    }
    begin = bin.data[1] == SMALL_ATOM_UTF8 ? 3 : 4;
    length = bin.size - begin;
    fits = (bin.data[1] == SMALL_ATOM_UTF8 || bin.data[1] == ATOM_UTF8)
        && length < size;
    if (fits) {
        memcpy(buf, bin.data + begin, length);
        buf[length] = 0;
    }
    enif_release_binary(&bin);
    return fits;
}

int fair__get_atom(fair_task *pub, ERL_NIF_TERM term, char *buf, size_t size,
                   enum fair_encoding encoding)
{
    struct fair__task *t = fair__of(pub);
    char latin1[FAIR__ATOM_MOST + 1];
    int got = enif_get_atom(pub->env, term, latin1, sizeof latin1,
                            ERL_NIF_LATIN1);

    fair__term_in(t, term);
    t->lacked = NULL;
    if (got > 0)
        return put_latin1((unsigned char *)latin1, (size_t)got - 1, buf, size,
                          encoding);
    return encoding != FAIR_LATIN1 && enif_is_atom(pub->env, term)
        && external_name(t, term, buf, size);
}
