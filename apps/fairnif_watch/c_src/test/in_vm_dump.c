/*
 * in_vm_dump.c - prints what outside/vm.h reads of another BEAM, as Erlang
 * terms, for in_vm.erl to compare.
 *
 *   in_vm_dump PID               all processes, schedulers and queues
 *   in_vm_dump PID flip SEED N   N times, of memory in which bits flip: prints
 *                                how often something was found
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "outside/vm.h"
#include "read/mem.h"
#include "read/source.h"
#include "unwind/maps.h"

static int pid, mem_fd;
static uint64_t state;
static unsigned one_in;         /* word has a bit flipped; 0: none has */

static uint64_t rand_next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t read_flipped(void *to, uint64_t from, size_t size)
{
    size_t done = 0;

    while (done < size) {
        size_t most = 4096 - (from + done) % 4096;
        ssize_t n = pread(mem_fd, (char *)to + done,
                          size - done < most ? size - done : most,
                          (off_t)(from + done));

        if (n <= 0)
            break;
        done += (size_t)n;
    }
    for (size_t i = 0; one_in && i < done; i += 8)
        if (rand_next() % one_in == 0)
            ((unsigned char *)to)[i + rand_next() % 8 % (done - i)]
                ^= (unsigned char)(1u << rand_next() % 8);
    if (one_in && rand_next() % (8 * one_in) == 0)
        return done / 2;
    return done;
}

static int open_of(const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static const struct watch__source source = {
    .read = read_flipped, .open = open_of
};

static const char *const types[VM_TYPES] = {"normal", "dirty_cpu", "dirty_io"};

static struct watch__image *emulator(struct watch__maps *maps)
{
    for (unsigned i = 0; i < WATCH__IMAGES; i++)
        if (maps->image[i].serial && maps->image[i].in == IN_EMULATOR) {
            watch__image_load(&maps->image[i]);
            return &maps->image[i];
        }
    return NULL;
}

static void put_atom(const struct watch__vm *vm, uint64_t atom)
{
    char text[1024];

    putchar('\'');
    if (watch__vm_atom(vm, atom, text, sizeof text))
        for (const char *p = text; *p; p++)
            printf(*p == '\'' || *p == '\\' ? "\\%c" : "%c", *p);
    putchar('\'');
}

static void put_function(const struct watch__vm *vm,
                         const struct watch__vm_function *f)
{
    putchar('{');
    put_atom(vm, f->module);
    putchar(',');
    put_atom(vm, f->function);
    printf(",%u}", f->arity);
}

static bool has(const struct watch__vm_process *p, enum watch__vm_field field)
{
    return p->has >> field & 1;
}

static void put_process(const struct watch__vm *vm,
                        const struct watch__vm_process *p)
{
    static const char *const statuses[] = {
        "exiting", "garbage_collecting", "suspended", "running", "runnable",
        "waiting"
    };
    static struct watch__vm_function stack[64];
    char text[64];
    unsigned n = watch__vm_stack(vm, p, 0, stack, 64);

    watch__vm_pid(vm, p->pid, text, sizeof text);
    printf("{process,\"%s\",#{address => %llu", text,
           (unsigned long long)p->address);
    if (has(p, VM_NAME) && p->name) {
        printf(",registered_name => ");
        put_atom(vm, p->name);
    }
    if (has(p, VM_HEAP))
        printf(",heap_size => %llu", (unsigned long long)p->heap);
    if (has(p, VM_HEAP) && has(p, VM_OLD_HEAP))
        printf(",both_heaps => %llu",
               (unsigned long long)(p->heap + p->old_heap));
    if (has(p, VM_MESSAGES))
        printf(",message_queue_len => %llu", (unsigned long long)p->messages);
    if (has(p, VM_REDUCTIONS))
        printf(",reductions => %llu", (unsigned long long)p->reductions);
    if (has(p, VM_STATUS))
        printf(",status => %s,dirty => %s", statuses[p->status],
               types[p->dirty]);
    if (p->called.module) {
        printf(",called => ");
        put_function(vm, &p->called);
    }
    if (has(p, VM_INITIAL)) {
        printf(",initial_call => ");
        put_function(vm, &p->initial);
    }
    if (has(p, VM_CURRENT)) {
        printf(",current_function => ");
        put_function(vm, &p->current);
    }
    if (has(p, VM_STACK)) {
        printf(",stack => [");
        for (unsigned i = 0; i < n; i++) {
            printf(i ? "," : "");
            put_function(vm, &stack[i]);
        }
        printf("]");
    }
    printf("}}.\n");
}

static void put_schedulers(const struct watch__vm *vm)
{
    static struct watch__vm_queue queues[1026];
    unsigned n = watch__vm_queues(vm, queues, 1026);
    char text[64];

    for (unsigned type = 0; type < VM_TYPES; type++)
        for (unsigned i = 1; i <= vm->schedulers[type]; i++) {
            uint64_t at = watch__vm_running(vm, type, i);
            struct watch__vm_process p;

            if (at && watch__vm_process(vm, at, &p)) {
                watch__vm_pid(vm, p.pid, text, sizeof text);
                printf("{running,%s,%u,\"%s\"}.\n", types[type], i, text);
            }
        }
    for (unsigned i = 0; i < n; i++) {
        printf("{queue,%s,%u,%u,[", types[queues[i].type], queues[i].number,
               queues[i].length);
        for (unsigned k = 0; k < queues[i].count; k++) {
            watch__vm_pid(vm, queues[i].waiting[k], text, sizeof text);
            printf("%s\"%s\"", k ? "," : "", text);
        }
        printf("]}.\n");
    }
}

static unsigned dump(const struct watch__vm *vm)
{
    struct watch__vm_process p;
    uint64_t at;
    uint32_t slot = 0;
    unsigned n = 0;

    printf("{release,\"%s\"}.\n", vm->release);
    for (unsigned i = 0; i < VM_FIELDS; i++)
        if (vm->why[i])
            printf("{not_shown,\"%s\",\"%s\"}.\n", watch__vm_field_name(i),
                   vm->why[i]);
    put_schedulers(vm);
    while (n < 4096 && (at = watch__vm_each(vm, &slot)))
        if (watch__vm_process(vm, at, &p)) {
            put_process(vm, &p);
            n++;
        }
    return n;
}

/* Bits flip from the beginning, or after what is there was learned. */
static void flip(const struct watch__image *image, int seed, int times)
{
    unsigned processes = 0, learned = 0;

    freopen("/dev/null", "w", stdout);
    for (int i = 0; i < times; i++) {
        unsigned often = 1u << (4 + i % 12);
        struct watch__vm *vm;

        state = (uint64_t)seed * 7919 + (uint64_t)i + 1;
        one_in = i % 2 ? often : 0;
        vm = watch__vm_open(image);
        for (unsigned k = 0; k < VM_FIELDS; k++)
            learned += !vm->why[k];
        one_in = often;
        watch__vm_again(vm);
        processes += dump(vm);
        one_in = 0;
        watch__vm_close(vm);
    }
    fprintf(stderr, "{flipped,%d,%u,%u}.\n", times, learned, processes);
}

int main(int argc, char **argv)
{
    struct timespec from, to;
    struct watch__maps *maps;
    struct watch__image *image;
    struct watch__vm *vm;
    char path[64];

    if (argc < 2)
        return 2;
    pid = atoi(argv[1]);
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    mem_fd = open(path, O_RDONLY | O_CLOEXEC);
    watch__source_set(&source);
    maps = watch__maps_new();
    if (mem_fd < 0 || !maps || !(image = emulator(maps))) {
        fprintf(stderr, "cannot read process %d\n", pid);
        return 1;
    }
    if (argc > 4) {
        flip(image, atoi(argv[3]), atoi(argv[4]));
    } else {
        clock_gettime(CLOCK_MONOTONIC, &from);
        vm = watch__vm_open(image);
        clock_gettime(CLOCK_MONOTONIC, &to);
        dump(vm);
        printf("{learned_us,%lld}.\n",
               (long long)(to.tv_sec - from.tv_sec) * 1000000
               + (to.tv_nsec - from.tv_nsec) / 1000);
        watch__vm_close(vm);
    }
    watch__maps_free(maps);
    return 0;
}
