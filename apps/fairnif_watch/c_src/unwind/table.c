/*
 * table.c - finds the unwind table's entry for a pc in a library's memory:
 * .eh_frame_hdr, then the FDE and its CIE in .eh_frame.
 *
 * None of it can be trusted: the library may have just been unmapped, or be
 * broken.  Each piece is copied with a bound and read with the bound checked.
 */
#include <string.h>

#include "unwind/table.h"
#include "read/bytes.h"
#include "read/mem.h"
#include "unwind/cfi.h"

enum {
    FDE_MOST = 60 * 1024,       /* bytes of one entry */
    CIE_MOST = 1024,
    NEAR = 256,                 /* table entries that are read at once */
    WAYS = 4,                   /* places where a row may be kept */

    DW_DATAREL = 0x30, DW_OMIT = 0xff
};

/* Copies an entry of .eh_frame, its length read first.  `id` is its second
 * word: 0 of a CIE, else how far back from `*id_at` the FDE's CIE lies. */
static bool open_entry(struct watch__reader *r, unsigned char *buf, size_t most,
                       uint64_t at, uint64_t *id, uint64_t *id_at)
{
    uint32_t short_length;
    uint64_t length;
    unsigned before = 4;

    if (!watch__read_all(&short_length, at, 4))
        return false;
    length = short_length;
    if (short_length == UINT32_MAX) {
        before = 12;
        if (!watch__read_all(&length, at + 4, 8))
            return false;
    }
    if (length < 4 || length > most
        || !watch__read_all(buf, at + before, (size_t)length))
        return false;
    *r = (struct watch__reader){
        .at = buf, .end = buf + length, .address = at + before + length
    };
    *id_at = at + before;
    *id = watch__get(r, 4);
    return !r->bad;
}

/* -- finding ------------------------------------------------------------- */

static int64_t relative(const int32_t *entry, unsigned which)
{
    return entry[which];
}

/* The last entry that does not begin behind pc: halves by single reads, then
 * one read of what is near. */
static bool search(const struct watch__image *image, uint64_t pc,
                   uint64_t *start, uint64_t *fde)
{
    int32_t near[NEAR][2], *found = NULL;
    int64_t wanted = (int64_t)(pc - image->frame_hdr);
    uint64_t low = 0, high = image->table_count;

    while (high - low > NEAR) {
        uint64_t mid = low + (high - low) / 2;

        if (!watch__read_all(near[0], image->table + mid * 8, 8))
            return false;
        if (relative(near[0], 0) <= wanted)
            low = mid;
        else
            high = mid;
    }
    if (high == low
        || !watch__read_all(near, image->table + low * 8, (high - low) * 8))
        return false;
    for (uint64_t i = 0; i < high - low && relative(near[i], 0) <= wanted; i++)
        found = near[i];
    if (!found)
        return false;
    *start = image->frame_hdr + (uint64_t)relative(found, 0);
    *fde = image->frame_hdr + (uint64_t)relative(found, 1);
    return watch__image_has(image, *fde);
}

/* "zPLR" and the like; `r` stands behind the entry's id, and is left at the
 * first instruction. */
static bool take_cie(struct watch__reader *r, struct watch__cie *cie,
                     struct watch__row *row)
{
    const unsigned char *augmentation, *nul, *end = NULL;
    uint64_t version = watch__get(r, 1), ra;

    augmentation = r->at;
    nul = memchr(r->at, 0, (size_t)(r->end - r->at));
    if (!nul || (version != 1 && version != 3))
        return false;
    r->at = nul + 1;
    cie->encoding = 0;
    cie->code_factor = watch__get_uleb(r);
    cie->data_factor = watch__get_sleb(r);
    ra = version == 1 ? watch__get(r, 1) : watch__get_uleb(r);
    if (ra >= WATCH__REGS)
        return false;
    row->ra = (uint8_t)ra;
    cie->augmented = *augmentation == 'z';
    if (cie->augmented) {
        uint64_t size = watch__get_uleb(r);

        if (r->bad || size > (size_t)(r->end - r->at))
            return false;
        end = r->at + size;
        augmentation++;
    }
    for (; *augmentation; augmentation++)
        switch (*augmentation) {
        case 'R': cie->encoding = (unsigned)watch__get(r, 1); break;
        case 'P': {
            unsigned encoding = (unsigned)watch__get(r, 1);

            watch__get_pointer(r, encoding & 0x7f, 0);
            break;
        }
        case 'L': watch__get(r, 1); break;
        case 'S': row->signal = true; break;
        case 'B': break;        /* AArch64: signed with the other key */
        case 'G': break;        /* AArch64: tagged stack */
        default:
            if (!end)
                return false;
            r->at = end;        /* its size says where it ends */
            return true;
        }
    if (end)
        r->at = end;
    return !r->bad;
}

static bool read_row(struct watch__maps *maps, struct watch__image *image,
                     uint64_t pc, struct watch__row *row)
{
    unsigned char cie_bytes[CIE_MOST];
    struct watch__reader r, c;
    struct watch__cie cie = {0};
    struct watch__row first;
    uint64_t start, fde, id, id_at, cie_id, cie_at;

    if (!search(image, pc, &start, &fde)
        || !open_entry(&r, maps->scratch, FDE_MOST, fde, &id, &id_at)
        || id == 0 || !watch__image_has(image, id_at - id)
        || !open_entry(&c, cie_bytes, sizeof cie_bytes, id_at - id, &cie_id,
                       &cie_at)
        || cie_id != 0 || !take_cie(&c, &cie, row))
        return false;
    row->start = watch__get_pointer(&r, cie.encoding, image->frame_hdr);
    row->end = row->start + watch__get_pointer(&r, cie.encoding & 0x0f, 0);
    if (r.bad || row->start != start || pc < row->start || pc >= row->end)
        return false;
    if (cie.augmented) {
        uint64_t size = watch__get_uleb(&r);

        if (r.bad || size > (size_t)(r.end - r.at))
            return false;
        r.at += size;
    }
    if (!watch__cfi_run(&c, &cie, row, NULL, 0, UINT64_MAX))
        return false;
    first = *row;
    return watch__cfi_run(&r, &cie, row, &first, row->start, pc);
}

const struct watch__row *watch__row_of(struct watch__maps *maps,
                                       struct watch__image *image, uint64_t pc)
{
    uint64_t h = (pc ^ image->serial << 20) * 0x9e3779b97f4a7c15u >> 32;
    struct watch__row *set = &maps->rows[h % (WATCH__ROWS / WAYS) * WAYS];
    struct watch__row *row;

    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].serial == image->serial && set[i].pc == pc)
            return &set[i];
    row = &set[maps->rows_read++ % WAYS];
    memset(row, 0, sizeof *row);
    if (image->table_count == 0 || !read_row(maps, image, pc, row)) {
        row->serial = 0;
        return NULL;
    }
    row->serial = image->serial;
    row->pc = pc;
    return row;
}
