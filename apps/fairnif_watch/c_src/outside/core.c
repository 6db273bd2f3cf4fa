/*
 * core.c - a core file as the source of memory, maps and registers.
 *
 * A core holds what was written to.  Code and constants are in the files that
 * were mapped, and are read there, if such a file begins with the page that the
 * core has of it: headers and build id.  Else they are not read at all.
 *
 * The file may be cut, or be no core: each piece is copied, and checked.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "outside/core.h"
#include "read/mem.h"
#include "read/source.h"

enum { PAGE = 4096, NOTES_BYTES = 64 << 20, SEGMENTS_MOST = 1 << 20,
       PATH_BYTES = 4096 };

struct segment {
    uint64_t start, end;        /* in memory */
    uint64_t at, held;          /* in the core; bytes of it that it holds */
    unsigned flags;             /* PF_R... */
    int file;                   /* that is mapped there; -1: none */
    uint64_t offset;            /* in that */
};

struct mapped {                 /* a file */
    const char *path;
    int fd;
    enum { FILE_UNTRIED, FILE_SAME, FILE_OTHER } state;
};

static struct watch__core core;
static int core_fd = -1, maps_fd = -1;
static uint64_t core_size;
static struct segment *segments;
static unsigned segment_count;
static struct mapped *files;
static unsigned file_count;
static char *notes;             /* all of them */
static uint64_t vdso;

static size_t read_at(int fd, void *to, uint64_t at, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = pread(fd, (char *)to + done, size - done,
                          (off_t)(at + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

/* -- memory -------------------------------------------------------------- */

static const struct segment *segment_of(uint64_t address)
{
    unsigned low = 0, high = segment_count;

    while (low < high) {
        unsigned mid = low + (high - low) / 2;

        if (address >= segments[mid].end)
            low = mid + 1;
        else
            high = mid;
    }
    return low < segment_count && address >= segments[low].start
        ? &segments[low] : NULL;
}

/* Does it begin as what was mapped did?  False too where the core has nothing
 * of that. */
static bool begins_same(unsigned file, int fd)
{
    for (unsigned i = 0; i < segment_count; i++) {
        const struct segment *s = &segments[i];
        unsigned char was[PAGE], is[PAGE];

        if (s->file == (int)file && s->offset == 0 && s->held >= PAGE)
            return read_at(core_fd, was, s->at, PAGE) == PAGE
                && read_at(fd, is, 0, PAGE) == PAGE
                && !memcmp(was, is, PAGE);
    }
    return false;
}

/* Of others than libraries and executables a core has no head. */
static bool has_head(unsigned file)
{
    for (unsigned i = 0; i < segment_count; i++)
        if (segments[i].file == (int)file && segments[i].offset == 0
            && segments[i].held >= PAGE)
            return true;
    return false;
}

/* Its descriptor; -1: it is not the one that was mapped. */
static int core_file(unsigned file)
{
    struct mapped *f = &files[file];

    if (f->state == FILE_UNTRIED) {
        f->fd = watch__source_open_file(f->path);
        f->state = f->fd >= 0 && begins_same(file, f->fd) ? FILE_SAME
                                                          : FILE_OTHER;
        if (f->state == FILE_OTHER) {
            if (f->fd >= 0)
                close(f->fd);
            if (has_head(file)) {
                core.missing++;
                core.missing_path = f->path;
            }
        }
    }
    return f->state == FILE_SAME ? f->fd : -1;
}

/* Of one segment, up to where what is there changes. */
static size_t read_piece(void *to, uint64_t from, size_t size)
{
    const struct segment *s = segment_of(from);
    uint64_t in = s ? from - s->start : 0;

    if (!s)
        return 0;
    if (size > s->end - from)
        size = (size_t)(s->end - from);
    if (in < s->held)
        return read_at(core_fd, to, s->at + in,
                       size < s->held - in ? size : (size_t)(s->held - in));
    if (s->file < 0 || s->flags & PF_W || core_file((unsigned)s->file) < 0)
        return 0;
    return read_at(core_file((unsigned)s->file), to, s->offset + in, size);
}

static size_t read_core(void *to, uint64_t from, size_t size)
{
    size_t done = 0, n = 1;

    while (done < size && n > 0) {
        n = read_piece((char *)to + done, from + done, size - done);
        done += n;
    }
    return done;
}

static int open_core(const char *name)
{
    if (strcmp(name, "maps") || maps_fd < 0)
        return -1;
    lseek(maps_fd, 0, SEEK_SET);
    return dup(maps_fd);
}

/* As /proc/PID/maps would have it: what the unwinder reads. */
static bool write_maps(void)
{
    FILE *to;

    maps_fd = (int)syscall(SYS_memfd_create, "maps", MFD_CLOEXEC);
    to = maps_fd >= 0 ? fdopen(dup(maps_fd), "w") : NULL;
    if (!to)
        return false;
    for (unsigned i = 0; i < segment_count; i++) {
        const struct segment *s = &segments[i];

        fprintf(to, "%llx-%llx %c%c%cp %llx 00:00 %d ",
                (unsigned long long)s->start, (unsigned long long)s->end,
                s->flags & PF_R ? 'r' : '-', s->flags & PF_W ? 'w' : '-',
                s->flags & PF_X ? 'x' : '-', (unsigned long long)s->offset,
                s->file + 1);
        if (s->file >= 0)
            for (const char *p = files[s->file].path; *p; p++)
                putc((unsigned char)*p < ' ' ? '?' : *p, to);
        else if (vdso && s->start == vdso)
            fputs("[vdso]", to);
        putc('\n', to);
    }
    return fclose(to) == 0;
}

static int by_start(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

/* By address; those that lie on another one are dropped. */
static void sort_segments(void)
{
    unsigned kept = 0;

    qsort(segments, segment_count, sizeof *segments, by_start);
    for (unsigned i = 0; i < segment_count; i++)
        if (kept == 0 || segments[i].start >= segments[kept - 1].end)
            segments[kept++] = segments[i];
    segment_count = kept;
}

/* -- notes --------------------------------------------------------------- */

static void take_thread_note(const char *at, size_t size)
{
    static unsigned room;
    prstatus_t status;

    if (size < sizeof status)
        return;
    if (core.count == room) {
        unsigned more = room ? 2 * room : 64;
        void *threads = realloc(core.threads, more * sizeof *core.threads);

        if (!threads)
            return;
        core.threads = threads;
        room = more;
    }
    memcpy(&status, at, sizeof status);
    if (core.count == 0)
        core.signal = status.pr_cursig;         /* of one that lives: 0 */
    core.threads[core.count++] = (struct watch__core_thread){
        .tid = status.pr_pid,
        .regs = at + offsetof(prstatus_t, pr_reg), .size = sizeof status.pr_reg
    };
}

static void take_signal(const char *at, size_t size)
{
    siginfo_t info;

    if (size < sizeof info || core.count > 1)
        return;                 /* a debugger writes one for each thread */
    memcpy(&info, at, sizeof info);
    core.sender = info.si_code <= 0 ? info.si_pid : 0;
    core.has_address = info.si_code > 0
        && (info.si_signo == SIGSEGV || info.si_signo == SIGBUS);
    core.address = (uint64_t)(uintptr_t)info.si_addr;
}

static void take_auxv(const char *at, size_t size)
{
    uint64_t pair[2];

    for (size_t i = 0; i + sizeof pair <= size; i += sizeof pair) {
        memcpy(pair, at + i, sizeof pair);
        if (pair[0] == AT_SYSINFO_EHDR)
            vdso = pair[1];
    }
}

static int file_named(const char *path)
{
    /* By address, so one's ranges follow one another. */
    if (file_count > 0 && !strcmp(files[file_count - 1].path, path))
        return (int)file_count - 1;
    files[file_count] = (struct mapped){.path = path, .fd = -1};
    return (int)file_count++;
}

/* {count, size of a page}, count times {start, end, offset in pages}, paths. */
static void take_files(const char *at, size_t size)
{
    uint64_t head[2], range[3];
    const char *end = at + size, *path;
    struct segment *room;
    unsigned more = 0;

    if (size < sizeof head || end[-1] || files)
        return;
    memcpy(head, at, sizeof head);
    if (head[0] > (size - sizeof head) / sizeof range
        || !(room = realloc(segments, (segment_count + head[0] + 1)
                            * sizeof *segments)))
        return;
    segments = room;
    files = calloc(head[0] + 1, sizeof *files);
    if (!files)
        return;
    path = at + sizeof head + head[0] * sizeof range;
    for (uint64_t i = 0; i < head[0] && path < end; i++) {
        size_t length = strlen(path);
        struct segment *s;

        memcpy(range, at + sizeof head + i * sizeof range, sizeof range);
        s = (struct segment *)(uintptr_t)segment_of(range[0]);
        if (!s && range[0] < range[1] && !segment_of(range[1] - 1)
            && more < head[0]) {
            /* Not written by a debugger, since the file has it. */
            s = &segments[segment_count + more++];
            *s = (struct segment){
                .start = range[0], .end = range[1], .flags = PF_R | PF_X,
                .file = -1
            };
        }
        if (s && s->start == range[0] && length > 0 && length < PATH_BYTES) {
            s->file = file_named(path);
            s->offset = range[2] * head[1];
        }
        path += length + 1;
    }
    segment_count += more;
    sort_segments();
}

static void take_core_note(const Elf64_Nhdr *n, const char *at)
{
    switch (n->n_type) {
    case NT_PRSTATUS: take_thread_note(at, n->n_descsz); break;
    case NT_PRPSINFO: {
        prpsinfo_t info;

        if (n->n_descsz >= sizeof info) {
            memcpy(&info, at, sizeof info);
            core.pid = info.pr_pid;
        }
        break;
    }
    case NT_SIGINFO: take_signal(at, n->n_descsz); break;
    case NT_AUXV: take_auxv(at, n->n_descsz); break;
    case NT_FILE: take_files(at, n->n_descsz); break;
    }
}

static void take_notes(uint64_t at, uint64_t size)
{
    size_t held, i = 0;

    if (notes || size > NOTES_BYTES || !(notes = malloc((size_t)size + 1)))
        return;
    held = read_at(core_fd, notes, at, (size_t)size);
    core.is_cut |= held < size;
    while (held - i >= sizeof(Elf64_Nhdr)) {
        size_t room = held - i - sizeof(Elf64_Nhdr), name, contents;
        Elf64_Nhdr n;

        memcpy(&n, notes + i, sizeof n);
        name = ((size_t)n.n_namesz + 3) & ~(size_t)3;
        contents = ((size_t)n.n_descsz + 3) & ~(size_t)3;
        if (name > room || n.n_descsz > room - name)
            return;
        i += sizeof n + name;
        if (n.n_namesz == 5 && !memcmp(notes + i - name, "CORE", 5))
            take_core_note(&n, notes + i);
        if (contents > held - i)
            return;
        i += contents;
    }
}

/* -- the file ------------------------------------------------------------ */

static void take_segments(const Elf64_Phdr *p, unsigned count)
{
    segments = calloc((size_t)count + 1, sizeof *segments);
    for (unsigned i = 0; segments && i < count; i++) {
        uint64_t end = p[i].p_vaddr + p[i].p_memsz;

        if (p[i].p_type != PT_LOAD || end <= p[i].p_vaddr)
            continue;
        segments[segment_count++] = (struct segment){
            .start = p[i].p_vaddr, .end = end, .at = p[i].p_offset,
            .held = p[i].p_filesz < p[i].p_memsz ? p[i].p_filesz
                                                 : p[i].p_memsz,
            .flags = p[i].p_flags, .file = -1
        };
        core.is_cut |= p[i].p_filesz > core_size
            || p[i].p_offset > core_size - p[i].p_filesz;
    }
    if (segments)
        sort_segments();
}

/* More than 65534 are counted in the first section's header. */
static unsigned count_headers(const Elf64_Ehdr *h)
{
    Elf64_Shdr first;

    if (h->e_phnum != PN_XNUM)
        return h->e_phnum;
    return read_at(core_fd, &first, h->e_shoff, sizeof first) == sizeof first
        && first.sh_info < SEGMENTS_MOST ? first.sh_info : 0;
}

static const char *read_headers_of_core(void)
{
    unsigned count;
    Elf64_Phdr *p;
    Elf64_Ehdr h;

    if (read_at(core_fd, &h, 0, sizeof h) < sizeof h
        || memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_type != ET_CORE
        || h.e_ident[EI_CLASS] != ELFCLASS64
        || h.e_phentsize != sizeof(Elf64_Phdr))
        return "is no core file of a 64-bit process";
#if defined(__x86_64__)
    if (h.e_machine != EM_X86_64)
        return "is of another processor";
#elif defined(__aarch64__)
    if (h.e_machine != EM_AARCH64)
        return "is of another processor";
#endif
    count = count_headers(&h);
    p = calloc((size_t)count + 1, sizeof *p);
    if (!p)
        return "does not fit into memory";
    if (read_at(core_fd, p, h.e_phoff, count * sizeof *p) < count * sizeof *p)
        count = 0;
    take_segments(p, count);
    for (unsigned i = 0; i < count; i++)
        if (p[i].p_type == PT_NOTE)
            take_notes(p[i].p_offset, p[i].p_filesz);
    free(p);
    return core.count == 0 ? "is cut: no thread is left in it" : NULL;
}

const struct watch__core *watch__core_open(const char *path,
                                           char why[WATCH__WHY])
{
    static const struct watch__source source = {
        .read = read_core, .open = open_core
    };
    const char *fault;
    off_t size;

    core_fd = watch__source_open_file(path);
    size = core_fd >= 0 ? lseek(core_fd, 0, SEEK_END) : -1;
    if (size < 0) {
        snprintf(why, WATCH__WHY, "cannot read %.400s: %s", path,
                 access(path, R_OK) ? strerror(errno) : "it is no file");
        return NULL;
    }
    core_size = (uint64_t)size;
    fault = read_headers_of_core();
    if (!fault && !write_maps())
        fault = "cannot be mapped: no memory";
    if (fault) {
        snprintf(why, WATCH__WHY, "%s %s", path, fault);
        return NULL;
    }
    watch__source_set(&source);
    return &core;
}
