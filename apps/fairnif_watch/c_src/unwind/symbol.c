/*
 * symbol.c - the symbol that covers an address: of .symtab in the library's
 * file on disk, else of .dynsym in memory.  Never the nearest one below.
 *
 * The file is read, not mapped: one that is cut short while it is looked at
 * would otherwise be a SIGBUS in the node.  It is taken only if it is the one
 * that is mapped: by device and inode, or (overlay file systems show others)
 * by its build id.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "unwind/symbol.h"
#include "read/mem.h"
#include "read/source.h"

enum { SECTIONS_MOST = 256, SYMBOLS_MOST = 1 << 22, PIECE = 1024 };

/* A file, or where fd is -1 memory. */
struct source {
    int fd;
    uint64_t symbols, count, strings, strings_size;
};

static bool take(int fd, void *to, uint64_t at, size_t size)
{
    ssize_t n;

    if (fd < 0)
        return watch__read_all(to, at, size);
    do
        n = pread(fd, to, size, (off_t)at);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size;
}

static bool covers(const Elf64_Sym *s, uint64_t address)
{
    unsigned type = ELF64_ST_TYPE(s->st_info);

    return s->st_shndx != SHN_UNDEF && address >= s->st_value
        && address - s->st_value < s->st_size
        && (type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC);
}

/* Of several names for one place the one that people use: global before weak
 * before local, then the one with fewer underscores in front. */
static unsigned rank(const Elf64_Sym *s, const char *name)
{
    static const unsigned char by_binding[] = {
        [STB_LOCAL] = 0, [STB_GLOBAL] = 2, [STB_WEAK] = 1
    };
    unsigned binding = ELF64_ST_BIND(s->st_info);
    unsigned underscores = (unsigned)strspn(name, "_");

    return (binding < sizeof by_binding ? by_binding[binding] : 0) * 16
        + (underscores < 15 ? 15 - underscores : 0) + 1;
}

static void name_of(const struct source *from, const Elf64_Sym *s, char *name)
{
    uint64_t rest = from->strings_size - s->st_name;

    name[0] = 0;
    if (s->st_name >= from->strings_size)
        return;
    if (rest > WATCH__NAME - 1)
        rest = WATCH__NAME - 1;
    /* What of it can be read: a page may end first. */
    if (from->fd < 0)
        rest = watch__read(name, from->strings + s->st_name, (size_t)rest);
    else if (!take(from->fd, name, from->strings + s->st_name, (size_t)rest))
        rest = 0;
    name[rest] = 0;
    name[strcspn(name, "@")] = 0;       /* the symbol's version */
    for (char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
}

static bool find(const struct source *from, uint64_t address,
                 struct watch__frame *frame)
{
    Elf64_Sym piece[PIECE];
    uint64_t best_size = UINT64_MAX;
    unsigned best = 0;

    for (uint64_t i = 0; i < from->count; i += PIECE) {
        size_t n = from->count - i < PIECE ? (size_t)(from->count - i) : PIECE;

        if (!take(from->fd, piece, from->symbols + i * sizeof *piece,
                  n * sizeof *piece))
            break;
        for (size_t k = 0; k < n; k++) {
            char name[WATCH__NAME];
            unsigned r;

            if (!covers(&piece[k], address) || piece[k].st_size > best_size)
                continue;
            name_of(from, &piece[k], name);
            r = rank(&piece[k], name);
            if (!name[0] || (piece[k].st_size == best_size && r <= best))
                continue;
            best = r;
            best_size = piece[k].st_size;
            memcpy(frame->symbol, name, sizeof name);
            frame->symbol_offset = frame->offset - piece[k].st_value;
            frame->symbol_size = piece[k].st_size;
        }
    }
    return best > 0;
}

/* -- the file ------------------------------------------------------------ */

static bool build_id_of(int fd, const Elf64_Shdr *s, unsigned char *id,
                        unsigned *size)
{
    struct { Elf64_Nhdr n; char name[4]; } note;

    if (s->sh_type != SHT_NOTE
        || !take(fd, &note, s->sh_offset, sizeof note)
        || note.n.n_type != NT_GNU_BUILD_ID || note.n.n_namesz != 4
        || memcmp(note.name, "GNU", 4) || note.n.n_descsz > WATCH__BUILD_ID
        || !take(fd, id, s->sh_offset + sizeof note, note.n.n_descsz))
        return false;
    *size = note.n.n_descsz;
    return true;
}

static bool same_file(const struct watch__image *image, const struct stat *st)
{
    return !image->deleted && (uint64_t)st->st_ino == image->ino
        && ((uint64_t)major(st->st_dev) << 32 | minor(st->st_dev))
           == image->dev;
}

/* Its .symtab; false: it has none, or it is another file. */
static bool open_file(const struct watch__image *image, const char *path,
                      struct source *from)
{
    Elf64_Shdr sections[SECTIONS_MOST];
    const Elf64_Shdr *symtab = NULL;
    unsigned char id[WATCH__BUILD_ID];
    unsigned id_size = 0;
    struct stat st;
    Elf64_Ehdr h;
    bool same;

    from->fd = watch__source_open_file(path);
    if (from->fd < 0)
        return false;
    if (fstat(from->fd, &st) != 0
        || !take(from->fd, &h, 0, sizeof h)
        || memcmp(h.e_ident, ELFMAG, SELFMAG)
        || h.e_ident[EI_CLASS] != ELFCLASS64
        || h.e_shentsize != sizeof *sections || h.e_shnum == 0
        || h.e_shnum > SECTIONS_MOST
        || !take(from->fd, sections, h.e_shoff, h.e_shnum * sizeof *sections))
        return false;
    for (unsigned i = 0; i < h.e_shnum; i++) {
        if (sections[i].sh_type == SHT_SYMTAB)
            symtab = &sections[i];
        else if (id_size == 0)
            build_id_of(from->fd, &sections[i], id, &id_size);
    }
    same = image->build_id_size > 0 && id_size > 0
        ? id_size == image->build_id_size && !memcmp(id, image->build_id, id_size)
        : same_file(image, &st);
    if (!same || !symtab || symtab->sh_link >= h.e_shnum
        || symtab->sh_entsize != sizeof(Elf64_Sym))
        return false;
    from->symbols = symtab->sh_offset;
    from->count = symtab->sh_size / sizeof(Elf64_Sym);
    if (from->count > SYMBOLS_MOST)
        from->count = SYMBOLS_MOST;
    from->strings = sections[symtab->sh_link].sh_offset;
    from->strings_size = sections[symtab->sh_link].sh_size;
    return true;
}

static bool find_in_file(const struct watch__image *image, const char *path,
                         uint64_t address, struct watch__frame *frame)
{
    struct source from = {.fd = -1};
    bool found = open_file(image, path, &from)
        && find(&from, address, frame);

    if (from.fd >= 0)
        close(from.fd);
    return found;
}

/* -- memory -------------------------------------------------------------- */

/* How many symbols: of the hash table's chains the last one. */
static uint64_t count_gnu(uint64_t hash)
{
    struct { uint32_t buckets, first, bloom, shift; } h;
    uint32_t piece[PIECE], last = 0;
    uint64_t at, chains;

    if (!watch__read_all(&h, hash, sizeof h) || h.buckets > SYMBOLS_MOST
        || h.bloom > SYMBOLS_MOST)
        return 0;
    at = hash + sizeof h + 8 * (uint64_t)h.bloom;
    chains = at + 4 * (uint64_t)h.buckets;
    for (uint64_t i = 0; i < h.buckets; i += PIECE) {
        size_t n = h.buckets - i < PIECE ? (size_t)(h.buckets - i) : PIECE;

        if (!watch__read_all(piece, at + 4 * i, 4 * n))
            return 0;
        for (size_t k = 0; k < n; k++)
            if (piece[k] > last)
                last = piece[k];
    }
    if (last < h.first)
        return h.first < SYMBOLS_MOST ? h.first : 0;
    while (last < SYMBOLS_MOST) {
        size_t n = watch__read(piece, chains + 4 * (uint64_t)(last - h.first),
                               64 * sizeof *piece) / sizeof *piece;

        if (n == 0)
            return 0;
        for (size_t k = 0; k < n; k++, last++)
            if (piece[k] & 1)
                return (uint64_t)last + 1;
    }
    return 0;
}

/* Its .dynsym, how many symbols that has left out; its hash tables, or 0. */
static bool find_dynamic(const struct watch__image *image, struct source *from,
                         uint64_t *hash, uint64_t *gnu_hash)
{
    Elf64_Dyn dyn[128];
    size_t n = image->dynamic_size < sizeof dyn ? (size_t)image->dynamic_size
                                                : sizeof dyn;

    *from = (struct source){.fd = -1};
    *hash = *gnu_hash = 0;
    n = watch__read(dyn, image->dynamic, n) / sizeof *dyn;
    for (size_t i = 0; i < n && dyn[i].d_tag != DT_NULL; i++) {
        uint64_t value = dyn[i].d_un.d_val;
        /* The loader has added the bias to most; not for the vdso. */
        uint64_t at = watch__image_has(image, value) ? value
                                                     : value + image->bias;

        switch (dyn[i].d_tag) {
        case DT_SYMTAB: from->symbols = at; break;
        case DT_STRTAB: from->strings = at; break;
        case DT_STRSZ: from->strings_size = value; break;
        case DT_HASH: *hash = at; break;
        case DT_GNU_HASH: *gnu_hash = at; break;
        }
    }
    return from->symbols && from->strings;
}

static bool find_in_memory(const struct watch__image *image, uint64_t address,
                           struct watch__frame *frame)
{
    struct source from;
    uint64_t hash, gnu_hash;

    if (!find_dynamic(image, &from, &hash, &gnu_hash))
        return false;
    if (gnu_hash) {
        from.count = count_gnu(gnu_hash);
    } else if (hash) {
        uint32_t count[2];

        if (watch__read_all(count, hash, sizeof count)
            && count[1] < SYMBOLS_MOST)
            from.count = count[1];
    }
    return find(&from, address, frame);
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t h = 5381;

    while (*name)
        h = h * 33 + (unsigned char)*name++;
    return h;
}

uint64_t watch__symbol_named(const struct watch__image *image,
                             const char *wanted)
{
    struct { uint32_t buckets, first, bloom, shift; } h;
    uint32_t hash = gnu_hash_of(wanted), i, chain;
    uint64_t old_hash, table, chains;
    char name[WATCH__NAME];
    struct source from;
    Elf64_Sym s;

    if (!find_dynamic(image, &from, &old_hash, &table) || !table
        || !watch__read_all(&h, table, sizeof h) || h.buckets == 0
        || h.buckets > SYMBOLS_MOST || h.bloom > SYMBOLS_MOST)
        return 0;
    table += sizeof h + 8 * (uint64_t)h.bloom;
    chains = table + 4 * (uint64_t)h.buckets;
    if (!watch__read_all(&i, table + 4 * (hash % h.buckets), sizeof i))
        return 0;
    for (chain = 0; i >= h.first && i < SYMBOLS_MOST && !(chain & 1); i++) {
        if (!watch__read_all(&chain, chains + 4 * (uint64_t)(i - h.first),
                             sizeof chain)
            || !watch__read_all(&s, from.symbols + i * sizeof s, sizeof s))
            return 0;
        if ((chain ^ hash) > 1 || s.st_shndx == SHN_UNDEF)
            continue;
        name_of(&from, &s, name);
        if (!strcmp(name, wanted))
            return s.st_value + image->bias;
    }
    return 0;
}

/* Debian's packages of debug symbols lie there, by build id. */
static bool find_in_debug(const struct watch__image *image, uint64_t address,
                          struct watch__frame *frame)
{
    char path[128] = "/usr/lib/debug/.build-id/";
    size_t n = strlen(path);

    if (image->build_id_size < 2)
        return false;
    for (unsigned i = 0; i < image->build_id_size; i++)
        n += (size_t)snprintf(path + n, sizeof path - n, i == 0 ? "%02x/"
                                                                : "%02x",
                              image->build_id[i]);
    snprintf(path + n, sizeof path - n, ".debug");
    return find_in_file(image, path, address, frame);
}

/* `address` as the file counts. */
bool watch__symbol_of(const struct watch__image *image, uint64_t address,
                      struct watch__frame *frame)
{
    if ((image->path && image->path[0] == '/'
         && find_in_file(image, image->path, address, frame))
        || find_in_debug(image, address, frame)) {
        frame->named = NAMED_SYMTAB;
        return true;
    }
    if (find_in_memory(image, address, frame)) {
        frame->named = NAMED_DYNSYM;
        return true;
    }
    return false;
}
