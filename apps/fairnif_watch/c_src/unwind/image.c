/*
 * image.c - a library's headers, as they lie in memory.  The library may be
 * unmapped at any time: everything is copied, checked and bounded.
 */
#include <elf.h>
#include <string.h>

#include "unwind/image.h"
#include "read/mem.h"

enum { SEGMENTS_MOST = 32, NOTES_MOST = 1024, DYNAMIC_MOST = 128,
       HEAD_MOST = 2048,
       DATA_REST = 1 << 20 };

struct headers {
    Elf64_Ehdr ehdr;
    Elf64_Phdr phdr[SEGMENTS_MOST];
};

static bool read_headers(uint64_t start, struct headers *h)
{
    memset(h, 0, sizeof *h);
    return watch__read_all(&h->ehdr, start, sizeof h->ehdr)
        && !memcmp(h->ehdr.e_ident, ELFMAG, SELFMAG)
        && h->ehdr.e_ident[EI_CLASS] == ELFCLASS64
        && h->ehdr.e_phentsize == sizeof(Elf64_Phdr)
        && h->ehdr.e_phnum > 0 && h->ehdr.e_phnum <= SEGMENTS_MOST
        && h->ehdr.e_phoff < 1 << 20
        && watch__read_all(h->phdr, start + h->ehdr.e_phoff,
                           h->ehdr.e_phnum * sizeof(Elf64_Phdr));
}

/* Note segments: {name size, size, type, name, contents}, each of the last two
 * filled up to 4 bytes. */
static void take_note(struct watch__image *image, uint64_t at, uint64_t size)
{
    unsigned char note[NOTES_MOST];
    size_t held, i = 0;

    held = watch__read(note, at, size < sizeof note ? size : sizeof note);
    while (held - i >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr n;
        size_t room = held - i - sizeof n, name, contents;

        memcpy(&n, note + i, sizeof n);
        name = ((size_t)n.n_namesz + 3) & ~(size_t)3;
        contents = ((size_t)n.n_descsz + 3) & ~(size_t)3;
        if (name > room || contents > room - name)
            return;
        i += sizeof n;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4
            && !memcmp(note + i, "GNU", 4)
            && n.n_descsz <= sizeof image->build_id) {
            image->build_id_size = n.n_descsz;
            image->build_id_at = at + i + name;
            memcpy(image->build_id, note + i + name, n.n_descsz);
        }
        i += name + contents;
    }
}

/* The table of .eh_frame_hdr, where it is of the one kind that linkers make:
 * a count of 4 bytes, entries of 4 relative to the header. */
static void take_frame_hdr(struct watch__image *image)
{
    enum { UDATA4 = 0x03, TABLE = 0x3b, PC_SDATA4 = 0x1b };
    struct { unsigned char version, pointer, count, table; } kind;
    uint32_t count;

    if (!watch__read_all(&kind, image->frame_hdr, sizeof kind)
        || kind.version != 1 || kind.pointer != PC_SDATA4
        || kind.count != UDATA4 || kind.table != TABLE
        || !watch__read_all(&count, image->frame_hdr + 8, sizeof count)
        || image->frame_hdr_size < 12
        || count > (image->frame_hdr_size - 12) / 8)
        return;
    image->table = image->frame_hdr + 12;
    image->table_count = count;
}

static void take_segment(struct watch__image *image, const Elf64_Phdr *p)
{
    uint64_t at = image->bias + p->p_vaddr;

    switch (p->p_type) {
    case PT_LOAD:
        if (at < image->low)
            image->low = at;
        if (at + p->p_memsz > image->high)
            image->high = at + p->p_memsz;
        if (p->p_flags & PF_W && image->data_count < WATCH__SEGMENTS) {
            image->data[image->data_count].start = at;
            /* What is initialised, and some of what is filled in later; the
             * rest may be large, and reading would make pages of it. */
            image->data[image->data_count++].size =
                p->p_memsz - p->p_filesz < DATA_REST ? p->p_memsz
                                                     : p->p_filesz + DATA_REST;
        }
        break;
    case PT_DYNAMIC:
        image->dynamic = at;
        image->dynamic_size = p->p_memsz;
        break;
    case PT_GNU_EH_FRAME:
        image->frame_hdr = at;
        image->frame_hdr_size = p->p_memsz;
        break;
    case PT_NOTE:
        if (image->build_id_size == 0)
            take_note(image, at, p->p_memsz);
        break;
    }
}

static uint64_t sum(uint64_t h, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;

    while (size-- > 0)
        h = (h ^ *p++) * 0x100000001b3u;
    return h;
}

/* What tells this library from another one at the same place: headers, build
 * id, and the addresses and sizes in its dynamic part, which differ with nearly
 * any change to it. */
static uint64_t check_of(const struct watch__image *image,
                         const struct headers *h)
{
    Elf64_Dyn dyn[DYNAMIC_MOST];
    size_t size = image->dynamic_size < sizeof dyn ? image->dynamic_size
                                                   : sizeof dyn;
    uint64_t c = sum(0xcbf29ce484222325u, h, sizeof *h);

    size = watch__read(dyn, image->dynamic, size) / sizeof *dyn;
    for (size_t i = 0; i < size && dyn[i].d_tag != DT_NULL; i++)
        if (dyn[i].d_tag != DT_DEBUG)   /* the loader's, may come later */
            c = sum(c, &dyn[i], sizeof *dyn);
    return sum(c, image->build_id, image->build_id_size);
}

/* In words: it is done for each library of each stack. */
static bool check_head(const struct watch__image *image, unsigned size,
                       uint64_t *check)
{
    uint64_t head[HEAD_MOST / 8] = {0}, c = size;

    if (!watch__read_all(head, image->start, size))
        return false;
    for (unsigned i = 0; i < (size + 7) / 8; i++) {
        c = (c ^ head[i]) * 0x9e3779b97f4a7c15u;
        c ^= c >> 29;
    }
    *check = c;
    return true;
}

static void take_headers(struct watch__image *image)
{
    uint64_t size = image->build_id_at + image->build_id_size - image->start;

    if (image->build_id_size >= 8 && image->build_id_at > image->start
        && size <= HEAD_MOST
        && check_head(image, (unsigned)size, &image->head_check))
        image->head_size = (unsigned)size;
}

void watch__image_load(struct watch__image *image)
{
    struct headers h;

    image->state = IMAGE_NO_ELF;
    if (!read_headers(image->start, &h))
        return;
    image->low = UINT64_MAX;
    for (unsigned i = 0; i < h.ehdr.e_phnum; i++)
        if (h.phdr[i].p_type == PT_LOAD) {
            image->bias = image->start - h.phdr[i].p_vaddr
                + h.phdr[i].p_offset;
            break;
        }
    for (unsigned i = 0; i < h.ehdr.e_phnum; i++)
        take_segment(image, &h.phdr[i]);
    if (image->low >= image->high)
        return;
    if (image->frame_hdr)
        take_frame_hdr(image);
    image->check = check_of(image, &h);
    take_headers(image);
    image->state = IMAGE_GOOD;
}

bool watch__image_same(const struct watch__image *image)
{
    struct watch__image now = {.bias = image->bias};
    struct headers h;
    uint64_t check;

    if (image->head_size > 0)
        return check_head(image, image->head_size, &check)
            && check == image->head_check;
    if (!read_headers(image->start, &h))
        return false;
    for (unsigned i = 0; i < h.ehdr.e_phnum; i++)
        if (h.phdr[i].p_type == PT_NOTE || h.phdr[i].p_type == PT_DYNAMIC)
            take_segment(&now, &h.phdr[i]);
    return check_of(&now, &h) == image->check;
}

bool watch__image_has(const struct watch__image *image, uint64_t address)
{
    return address >= image->low && address < image->high;
}
