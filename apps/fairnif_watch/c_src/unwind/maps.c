/*
 * maps.c - what is mapped where, from /proc/PID/maps: read when an address is
 * in none of it, or something turned out to have changed, and now and then.
 *
 * Only executable mappings are kept, and what begins a file that has one below:
 * a node may have 30,000 others, stacks of tasks or files of a database.
 */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "unwind/maps.h"
#include "read/mem.h"
#include "read/source.h"
#include "read/task.h"

enum {
    TEXT_PIECE = 64 * 1024,
    TEXT_MOST = 64,             /* pieces: 4 MiB of paths */
    MAPS_MOST = 64 * 1024,
    LINE_MOST = 8 * 1024,
    /* Reading takes at most this part of the time: */
    SHARE_MISSED = 20,          /* an address was in none: 1/20, save that */
    AHEAD_NS = 1000000000,      /* what a second allows is there at once */
    SHARE_ROUTINE = 2000        /* on suspicion: 1/2000 */
};

struct watch__text {
    struct watch__text *next;
    unsigned used, pieces;
    char bytes[TEXT_PIECE - 16];
};

/* The one copy of a path, which lives as long as the maps: frames point to it.
 * NULL where there are too many. */
static const char *keep_text(struct watch__maps *maps, const char *s, size_t n)
{
    struct watch__text *t;

    for (t = maps->text; t; t = t->next)
        for (unsigned at = 0; at < t->used;) {
            size_t length = strlen(t->bytes + at);

            if (length == n && !memcmp(t->bytes + at, s, n))
                return t->bytes + at;
            at += (unsigned)length + 1;
        }
    t = maps->text;
    if (!t || t->used + n + 1 > sizeof t->bytes) {
        unsigned pieces = t ? t->pieces + 1 : 1;

        if (n + 1 > sizeof t->bytes || pieces > TEXT_MOST
            || !(t = watch__pages(sizeof *t)))
            return NULL;
        t->pieces = pieces;
        t->next = maps->text;
        maps->text = t;
    }
    memcpy(t->bytes + t->used, s, n);
    t->bytes[t->used + n] = 0;
    t->used += (unsigned)n + 1;
    return t->bytes + t->used - n - 1;
}

static uint64_t number(const char **p, unsigned base)
{
    uint64_t n = 0;

    for (;; (*p)++) {
        unsigned digit = (unsigned char)**p;

        if (digit >= '0' && digit <= '9')
            digit -= '0';
        else if (digit >= 'a' && digit <= 'f')
            digit -= 'a' - 10;
        else
            return n;
        if (digit >= base)
            return n;
        n = n * base + digit;
    }
}

static void skip(const char **p, const char *what)
{
    while (**p && strchr(what, **p))
        (*p)++;
}

static bool make_room(struct watch__maps *maps)
{
    unsigned room = maps->room ? maps->room * 2 : 512;
    struct watch__map *map;

    if (maps->count < maps->room)
        return true;
    if (room > MAPS_MOST || !(map = watch__pages(room * sizeof *map)))
        return false;
    if (maps->count)
        memcpy(map, maps->map, maps->count * sizeof *map);
    watch__pages_free(maps->map, maps->room * sizeof *map);
    maps->map = map;
    maps->room = room;
    return true;
}

/* Of " (deleted)" behind a path: the length of what is before. */
static size_t length_of(const char *path, bool *deleted)
{
    static const char gone[] = " (deleted)";
    size_t length = strlen(path);

    *deleted = length > sizeof gone - 1
        && !strcmp(path + length - (sizeof gone - 1), gone);
    return *deleted ? length - (sizeof gone - 1) : length;
}

static void keep(struct watch__maps *maps, struct watch__map m,
                 const char *path, size_t length)
{
    if (!make_room(maps))
        return;
    m.path = length > 0 ? keep_text(maps, path, length) : NULL;
    if (m.executable && watch__is_vms_name(m.path))
        maps->vm_is_named = true;
    maps->map[maps->count++] = m;
}

/* What begins a file waits until something executable of that file follows. */
static void take_head(struct watch__maps *maps, const struct watch__map *m,
                      const char *path, size_t length)
{
    maps->head_length = length < sizeof maps->head_path ? length : 0;
    if (maps->head_length == 0)
        return;
    maps->head = *m;
    memcpy(maps->head_path, path, length);
}

static void keep_head(struct watch__maps *maps, const struct watch__map *m,
                      const char *path, size_t length)
{
    if (maps->head_length > 0 && maps->head_length == length
        && maps->head.ino == m->ino && maps->head.dev == m->dev
        && !memcmp(maps->head_path, path, length))
        keep(maps, maps->head, path, length);
    maps->head_length = 0;
}

/* 7f4e10444000-7f4e1059a000 r-xp 00026000 fe:00 326269    /usr/lib/libc.so.6 */
static void take_line(struct watch__maps *maps, const char *p)
{
    struct watch__map m = {.image = -1};
    size_t length;

    m.start = number(&p, 16);
    skip(&p, "-");
    m.end = number(&p, 16);
    skip(&p, " ");
    if (!p[0] || !p[1] || !p[2])
        return;
    m.executable = p[2] == 'x';
    skip(&p, "rwxps-");
    skip(&p, " ");
    m.offset = number(&p, 16);
    skip(&p, " ");
    m.dev = number(&p, 16) << 32;
    skip(&p, ":");
    m.dev |= number(&p, 16);
    skip(&p, " ");
    m.ino = number(&p, 10);
    skip(&p, " ");
    if (!m.executable && (m.ino == 0 || m.offset != 0))
        return;
    length = length_of(p, &m.deleted);
    if (m.executable) {
        keep_head(maps, &m, p, length);
        keep(maps, m, p, length);
    } else {
        take_head(maps, &m, p, length);
    }
}

static void read_lines(struct watch__maps *maps, int fd)
{
    char *buf = (char *)maps->scratch;
    size_t held = 0;
    ssize_t n;

    while ((n = read(fd, buf + held, WATCH__SCRATCH - held - 1)) > 0) {
        char *line = buf, *end;

        held += (size_t)n;
        buf[held] = 0;
        while ((end = memchr(line, '\n', held - (size_t)(line - buf)))) {
            *end = 0;
            take_line(maps, line);
            line = end + 1;
        }
        held -= (size_t)(line - buf);
        memmove(buf, line, held);
        if (held > LINE_MOST)
            held = 0;
    }
}

static bool begins(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

static enum watch__in belongs(const struct watch__maps *maps,
                              const struct watch__map *m)
{
    static const char *const libc[] = {
        "libc.so", "libc-2.", "ld-linux", "ld-2.", "ld-musl", "libc.musl",
        "libpthread", "libm.so", "libm-2.", "librt.so", "librt-2.", "libdl.so",
        "libdl-2.", "[vdso]", "[vsyscall]"
    };
    const char *slash = m->path ? strrchr(m->path, '/') : NULL;
    const char *base = slash ? slash + 1 : m->path;

    if (!base)
        return IN_UNKNOWN;
    /* The name too: it may have been started by a loader. */
    if (!strcmp(m->path, maps->exe) || begins(base, "beam."))
        return IN_EMULATOR;
    for (size_t i = 0; i < sizeof libc / sizeof *libc; i++)
        if (begins(base, libc[i]))
            return IN_LIBC;
    if (!strcmp(base, "fairnif.so"))
        return IN_FAIRNIF;
    return IN_LIBRARY;
}

static int image_for(struct watch__maps *maps, const struct watch__map *head)
{
    int unused = -1;

    for (int i = 0; i < WATCH__IMAGES; i++) {
        struct watch__image *image = &maps->image[i];

        if (image->serial == 0) {
            if (unused < 0)
                unused = i;
        } else if (image->start == head->start && image->dev == head->dev
                   && image->ino == head->ino && image->path == head->path
                   && (image->state != IMAGE_GOOD
                       || watch__image_same(image))) {
            image->deleted = head->deleted;
            image->seen = true;
            return i;
        }
    }
    if (unused >= 0) {
        struct watch__image *image = &maps->image[unused];

        memset(image, 0, sizeof *image);
        image->serial = ++maps->serial;
        image->start = head->start;
        image->dev = head->dev;
        image->ino = head->ino;
        image->path = head->path;
        image->deleted = head->deleted;
        image->in = belongs(maps, head);
        image->seen = true;
    }
    return unused;
}

static bool is_of_one_file(const struct watch__map *a,
                           const struct watch__map *b)
{
    return a->ino == b->ino && a->dev == b->dev && a->path == b->path;
}

/* In a file of less than a page the code is at offset 0, too, if the linker does
 * not fill pages up (lld): its mapping follows that of the headers. */
static bool is_head(const struct watch__maps *maps, unsigned i)
{
    const struct watch__map *m = &maps->map[i];

    return m->offset == 0
        && (i == 0 || m[-1].offset != 0 || m[-1].end != m->start
            || !is_of_one_file(&m[-1], m));
}

/* Each executable mapping of a file to what the file begins with, the nearest
 * below: a file may be mapped more than once. */
static void find_images(struct watch__maps *maps)
{
    for (int i = 0; i < WATCH__IMAGES; i++)
        maps->image[i].seen = false;
    for (unsigned i = 0; i < maps->count; i++) {
        struct watch__map *m = &maps->map[i];

        if (!m->executable || !m->path)
            continue;
        for (unsigned j = i + 1; j-- > 0;) {
            const struct watch__map *head = &maps->map[j];

            if (is_of_one_file(head, m) && is_head(maps, j)) {
                m->image = image_for(maps, head);
                break;
            }
        }
        if (m->image >= 0 && watch__source_is_own()
            && (uintptr_t)watch__read >= m->start
            && (uintptr_t)watch__read < m->end
            && maps->image[m->image].in == IN_LIBRARY)
            maps->image[m->image].in = IN_WATCH;
    }
    for (int i = 0; i < WATCH__IMAGES; i++)
        if (!maps->image[i].seen)
            maps->image[i].serial = 0;
}

static void read_maps(struct watch__maps *maps)
{
    uint64_t since = watch__now();
    int fd = watch__source_open("maps");

    if (fd < 0)
        return;
    maps->count = 0;
    maps->vm_is_named = false;
    maps->head_length = 0;
    read_lines(maps, fd);
    close(fd);
    find_images(maps);
    maps->reads++;
    maps->read_at = watch__now();
    maps->read_cost = maps->read_at - since;
}

struct watch__maps *watch__maps_new(void)
{
    struct watch__maps *maps = watch__pages(sizeof *maps);
    char path[WATCH__PROC];
    bool deleted;
    ssize_t n;

    if (!maps)
        return NULL;
    n = readlink(watch__source_name(path, "exe"), maps->exe,
                 sizeof maps->exe - 1);
    maps->exe[n > 0 ? n : 0] = 0;
    /* So it says once the emulator's package was upgraded. */
    maps->exe[length_of(maps->exe, &deleted)] = 0;
    read_maps(maps);
    return maps;
}

void watch__maps_free(struct watch__maps *maps)
{
    struct watch__text *next;

    if (!maps)
        return;
    for (struct watch__text *t = maps->text; t; t = next) {
        next = t->next;
        watch__pages_free(t, sizeof *t);
    }
    watch__pages_free(maps->map, maps->room * sizeof *maps->map);
    watch__pages_free(maps, sizeof *maps);
}

void watch__maps_changed(struct watch__maps *maps)
{
    read_maps(maps);
}

static const struct watch__map *search_maps(const struct watch__maps *maps,
                                            uint64_t pc)
{
    unsigned low = 0, high = maps->count;

    while (low < high) {
        unsigned mid = low + (high - low) / 2;

        if (pc >= maps->map[mid].end)
            low = mid + 1;
        else
            high = mid;
    }
    return low < maps->count && pc >= maps->map[low].start
        && maps->map[low].executable ? &maps->map[low] : NULL;
}

const struct watch__map *watch__map_of(struct watch__maps *maps, uint64_t pc)
{
    const struct watch__map *m = search_maps(maps, pc);
    uint64_t now = watch__now();
    bool again;

    if (m) {
        again = now - maps->read_at > SHARE_ROUTINE * maps->read_cost;
    } else {
        if (maps->paid_until < now)
            maps->paid_until = now;
        again = maps->paid_until < now + AHEAD_NS;
    }
    if (!again)
        return m;
    read_maps(maps);
    if (!m)
        maps->paid_until += SHARE_MISSED * maps->read_cost;
    return search_maps(maps, pc);
}

struct watch__image *watch__image_of(struct watch__maps *maps,
                                     const struct watch__map *map)
{
    struct watch__image *image;

    if (!map || map->image < 0)
        return NULL;
    image = &maps->image[map->image];
    if (image->state == IMAGE_NEW)
        watch__image_load(image);
    return image->state == IMAGE_GOOD ? image : NULL;
}
