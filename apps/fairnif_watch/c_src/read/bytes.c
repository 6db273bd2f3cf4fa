/*
 * bytes.c - reads numbers of tables.  Nothing of these can be trusted: each is
 * read with the bound checked.
 */
#include <string.h>

#include "read/bytes.h"
#include "read/mem.h"

enum { DW_PCREL = 0x10, DW_DATAREL = 0x30, DW_INDIRECT = 0x80 };

uint64_t watch__position(const struct watch__reader *r)
{
    return r->address - (uint64_t)(r->end - r->at);
}

uint64_t watch__get(struct watch__reader *r, unsigned bytes)
{
    uint64_t n = 0;

    if ((size_t)(r->end - r->at) < bytes) {
        r->bad = true;
        r->at = r->end;
        return 0;
    }
    memcpy(&n, r->at, bytes);       /* little-endian, as both processors */
    r->at += bytes;
    return n;
}

uint64_t watch__get_uleb(struct watch__reader *r)
{
    uint64_t n = 0;
    unsigned shift = 0;

    for (;;) {
        uint64_t byte = watch__get(r, 1);

        if (shift < 64)
            n |= (byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80))
            return n;
        if (shift > 140) {
            r->bad = true;
            return 0;
        }
    }
}

int64_t watch__get_sleb(struct watch__reader *r)
{
    uint64_t n = 0;
    unsigned shift = 0;

    for (;;) {
        uint64_t byte = watch__get(r, 1);

        if (shift < 64)
            n |= (byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80)) {
            if (shift < 64 && byte & 0x40)
                n |= -(UINT64_C(1) << shift);
            return (int64_t)n;
        }
        if (shift > 140) {
            r->bad = true;
            return 0;
        }
    }
}

static uint64_t get_signed(struct watch__reader *r, unsigned bytes)
{
    uint64_t n = watch__get(r, bytes), sign = UINT64_C(1) << (8 * bytes - 1);

    return (n ^ sign) - sign;
}

uint64_t watch__get_pointer(struct watch__reader *r, unsigned encoding,
                            uint64_t data)
{
    uint64_t here = watch__position(r), n = 0;

    switch (encoding & 0x0f) {
    case 0x00: case 0x04: case 0x0c: n = watch__get(r, 8); break;
    case 0x01: n = watch__get_uleb(r); break;
    case 0x02: n = watch__get(r, 2); break;
    case 0x03: n = watch__get(r, 4); break;
    case 0x09: n = (uint64_t)watch__get_sleb(r); break;
    case 0x0a: n = get_signed(r, 2); break;
    case 0x0b: n = get_signed(r, 4); break;
    default: r->bad = true; return 0;
    }
    switch (encoding & 0x70) {
    case 0: break;
    case DW_PCREL: n += here; break;
    case DW_DATAREL: n += data; break;
    default: r->bad = true; return 0;
    }
    if (encoding & DW_INDIRECT && !watch__read_all(&n, n, sizeof n))
        r->bad = true;
    return r->bad ? 0 : n;
}
