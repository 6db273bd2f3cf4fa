/*
 * vm_queue.c - schedulers and run queues of another BEAM: which process a
 * scheduler runs, and who waits for one.
 *
 * A scheduler points to its record for sleeping, which points back; behind it
 * are its process, type and numbers.  It points to its run queue, which points
 * back.  The queue's length is the sum of its priorities' lengths and its
 * ports'; a list is empty where its length is 0.
 */
#include <string.h>

#include "outside/vm_word.h"

enum { WORDS = 64, SCHEDULERS_MOST = 1024, LINE = 64, STRIDE_MOST = 1 << 17,
       QUEUE = 512, PRIORITIES = 4, LISTS = 3, RETRIES = 5, INFO = 12 };

/* Bytes of a queue, in the two ways that are known: its length, behind the most
 * that it was; what it has of each priority; their lists; its ports.  Of the
 * first way all, of the second the ports are counted from its pointer to its
 * scheduler. */
static const struct way { bool all; unsigned length, processes, lists, ports; }
ways[] = {
    {true, 64, 96, 144, 216},           /* 25, 27 */
    {false, 164, 48, 96, 88}            /* 29 */
};

/* -- schedulers ------------------------------------------------------------ */

/* Word `at' is its sleeper, and what comes behind is as it should be. */
static bool is_scheduler(uint64_t scheduler, unsigned at,
                         enum watch__vm_type type, unsigned number)
{
    uint64_t words[5], back;

    return vm_words(scheduler + 8 * at, words, 5) == 5
        && vm_word(words[0], &back) && back == scheduler
        && (words[1] == 0 || vm_is_pointer(words[1]))
        && (uint32_t)words[2] == type
        && words[type == VM_NORMAL ? 3 : 4] == number;
}

static uint64_t scheduler_of(const struct watch__vm *vm,
                             enum watch__vm_type type, unsigned number)
{
    return vm->scheduler[type] + vm->scheduler_stride * (number - 1);
}

/* All are of one size.  How far apart, the second one of a kind says; where
 * there is none it does not matter. */
static unsigned count_schedulers(struct watch__vm *vm, unsigned at,
                                 enum watch__vm_type type)
{
    unsigned n = 1;

    for (uint64_t s = LINE; !vm->scheduler_stride && s < STRIDE_MOST; s += LINE)
        if (is_scheduler(vm->scheduler[type] + s, at, type, 2))
            vm->scheduler_stride = s;
    while (vm->scheduler_stride && n < SCHEDULERS_MOST
           && is_scheduler(scheduler_of(vm, type, n + 1), at, type, n + 1))
        n++;
    return n;
}

/* Which of its words is the sleeper of the first scheduler of a type?  0: it is
 * none.  Only where its number and type are behind, a word is followed. */
static unsigned sleeper_of(uint64_t scheduler, const uint64_t *words,
                           unsigned n, enum watch__vm_type type)
{
    for (unsigned k = 1; k + 5 <= n; k++)
        if ((uint32_t)words[k + 2] == type
            && words[k + (type == VM_NORMAL ? 3 : 4)] == 1
            && is_scheduler(scheduler, k, type, 1))
            return k;
    return 0;
}

static bool look_scheduler(struct watch__vm *vm, uint64_t at,
                           const uint64_t *words, unsigned rest)
{
    uint64_t its[WORDS];
    unsigned n = *words % LINE ? 0 : vm_words(*words, its, WORDS);

    (void)at;
    (void)rest;
    for (unsigned type = 0; type < VM_TYPES && n > 0; type++) {
        unsigned sleeper = vm->scheduler[type] ? 0
            : sleeper_of(*words, its, n, type);

        if (sleeper && (vm->current == 0 || vm->current == sleeper + 1)) {
            vm->current = sleeper + 1;
            vm->scheduler[type] = *words;
        }
    }
    return vm->scheduler[VM_NORMAL] && vm->scheduler[VM_DIRTY_CPU]
        && vm->scheduler[VM_DIRTY_IO];
}

void watch__vm_learn_schedulers(struct watch__vm *vm)
{
    vm->why[VM_SCHEDULERS] = watch__vm_scan(vm, look_scheduler) ? NULL
        : "no scheduler that its sleeper points back to is found";
    for (unsigned i = 0; i < 2 && !vm->why[VM_SCHEDULERS]; i++)
        for (unsigned type = 0; type < VM_TYPES; type++)
            vm->schedulers[type] = count_schedulers(vm, vm->current - 1, type);
}

uint64_t watch__vm_running(const struct watch__vm *vm, enum watch__vm_type type,
                           unsigned number)
{
    uint64_t process, pid;

    if (vm->why[VM_SCHEDULERS] || vm->why[VM_TABLE] || type >= VM_TYPES
        || number == 0 || number > vm->schedulers[type]
        || !vm_word(scheduler_of(vm, type, number) + 8 * vm->current, &process)
        || !vm_word(process, &pid) || watch__vm_slot(vm, pid) != process)
        return 0;
    return process;
}

/* -- run queues ------------------------------------------------------------ */

struct queue {
    uint32_t length;
    uint64_t first[LISTS];
    bool ok;
    bool used;                  /* it has had some to run */
};

static uint64_t queue_of(const struct watch__vm *vm, unsigned number)
{
    return vm->queue + number * vm->queue_stride;
}

static uint32_t half(const unsigned char *bytes, unsigned at)
{
    uint32_t value;

    memcpy(&value, bytes + at, sizeof value);
    return value;
}

/* How many there are now, at most, and the reductions they took: of one
 * priority, or of ports. */
static bool take_info(const unsigned char *info, uint32_t *length,
                      struct queue *queue)
{
    *length = half(info, 0);
    queue->used = queue->used || (half(info, 4) > 0 && half(info, 8) > 0);
    return *length <= half(info, 4) && !(half(info, 4) >> 30);
}

static struct queue take_queue(const struct watch__vm *vm,
                               const unsigned char *bytes)
{
    const struct way *way = &ways[vm->queue_way];
    unsigned scheduler = 8 * vm->queue_scheduler;
    unsigned base = way->all ? scheduler : 0;
    struct queue queue = {.length = half(bytes, base + way->length)};
    uint32_t of[PRIORITIES], sum;

    queue.ok = take_info(bytes + scheduler + way->ports, &sum, &queue);
    for (unsigned i = 0; i < PRIORITIES; i++) {
        queue.ok = take_info(bytes + base + way->processes + INFO * i, &of[i],
                             &queue) && queue.ok;
        sum += of[i];
    }
    for (unsigned i = 0; i < LISTS; i++) {
        /* Normal and low priority share one. */
        uint32_t n = of[i] + (i == LISTS - 1 ? of[i + 1] : 0);

        memcpy(&queue.first[i], bytes + base + way->lists + 16 * i, 8);
        queue.ok = queue.ok && (n == 0) == (queue.first[i] == 0)
            && (n == 0 || vm_is_pointer(queue.first[i]));
    }
    queue.used = queue.used && half(bytes, base + way->length - 4) > 0;
    queue.ok = queue.ok && sum == queue.length
        && sum <= half(bytes, base + way->length - 4);
    return queue;
}

/* What a queue says of itself agrees.  It changes while it is read. */
static struct queue read_queue(const struct watch__vm *vm, unsigned number)
{
    unsigned char bytes[QUEUE] = {0};   /* a stride may be less */
    struct queue queue = {0};

    for (unsigned i = 0; i < RETRIES && !queue.ok; i++) {
        if (!watch__read_all(bytes, queue_of(vm, number), vm->queue_stride))
            break;
        queue = take_queue(vm, bytes);
    }
    return queue;
}

/* Each queue of a normal scheduler points back. */
static bool learn_back(struct watch__vm *vm)
{
    uint64_t back;

    for (vm->queue_scheduler = 1;
         8 * vm->queue_scheduler < vm->queue_stride;
         vm->queue_scheduler++) {
        unsigned n = 0;

        while (n < vm->queues
               && vm_word(queue_of(vm, n) + 8 * vm->queue_scheduler, &back)
               && back == scheduler_of(vm, VM_NORMAL, n + 1))
            n++;
        if (n == vm->queues)
            return true;
    }
    return false;
}

static bool learn_way(struct watch__vm *vm)
{
    unsigned found = 0, which = 0;

    for (unsigned way = 0; way < sizeof ways / sizeof *ways; way++) {
        unsigned good = 0, used = 0;

        vm->queue_way = way;
        if (8 * vm->queue_scheduler + ways[way].ports + INFO > vm->queue_stride)
            continue;
        for (unsigned i = 0; i < vm->queues + 2; i++) {
            struct queue queue = read_queue(vm, i);

            good += queue.ok;
            used += queue.used;
        }
        if (good == vm->queues + 2 && used > 0) {
            which = way;
            found++;
        }
    }
    vm->queue_way = which;
    return found == 1;
}

/* Each scheduler has the queue of its place: normal ones, behind them the one
 * of dirty CPU and the one of dirty I/O. */
static bool learn_places(struct watch__vm *vm, unsigned word)
{
    uint64_t cpu, io, own;

    if (!vm_word(scheduler_of(vm, VM_NORMAL, 1) + 8 * word, &vm->queue)
        || !vm_word(scheduler_of(vm, VM_DIRTY_CPU, 1) + 8 * word, &cpu)
        || !vm_word(scheduler_of(vm, VM_DIRTY_IO, 1) + 8 * word, &io)
        || !vm_is_pointer(vm->queue) || vm->queue % LINE || io <= cpu
        || io - cpu > QUEUE || (io - cpu) % LINE
        || cpu != vm->queue + vm->queues * (io - cpu))
        return false;
    vm->queue_stride = io - cpu;
    for (unsigned i = 1; i <= vm->queues; i++)
        if (!vm_word(scheduler_of(vm, VM_NORMAL, i) + 8 * word, &own)
            || own != queue_of(vm, i - 1))
            return false;
    return true;
}

void watch__vm_learn_queues(struct watch__vm *vm)
{
    vm->queues = vm->schedulers[VM_NORMAL];
    vm->why[VM_QUEUES] = vm->why[VM_SCHEDULERS] ? "schedulers are not known"
        : "no word is the run queue of all schedulers";
    if (vm->why[VM_SCHEDULERS])
        return;
    for (unsigned word = vm->current; word < WORDS; word++)
        if (learn_places(vm, word) && learn_back(vm)) {
            vm->why[VM_QUEUES] = learn_way(vm) ? NULL
                : "the length of a run queue is not that of its lists";
            return;
        }
}

/* The processes of its lists, as long as each is one of the table. */
static void tell_waiting(const struct watch__vm *vm, const struct queue *queue,
                         struct watch__vm_queue *told)
{
    for (unsigned i = 0; i < LISTS; i++) {
        uint64_t at = queue->first[i], pid;

        while (at && told->count < WATCH__VM_WAIT && told->count < queue->length
               && vm_word(at, &pid) && watch__vm_slot(vm, pid)) {
            told->waiting[told->count++] = pid;
            if (vm->why[VM_NEXT] || !vm_word(at + 8 * vm->next, &at))
                break;
        }
    }
}

unsigned watch__vm_queues(const struct watch__vm *vm,
                          struct watch__vm_queue queues[], unsigned max)
{
    unsigned count = 0;

    if (vm->why[VM_QUEUES])
        return 0;
    for (unsigned i = 0; i < vm->queues + 2 && count < max; i++) {
        struct queue queue = read_queue(vm, i);

        if (!queue.ok)
            continue;
        queues[count] = (struct watch__vm_queue){
            .type = i < vm->queues ? VM_NORMAL
                : VM_DIRTY_CPU + (i - vm->queues),
            .number = i < vm->queues ? i + 1 : 0, .length = queue.length
        };
        if (!vm->why[VM_TABLE])
            tell_waiting(vm, &queue, &queues[count]);
        count++;
    }
    return count;
}
