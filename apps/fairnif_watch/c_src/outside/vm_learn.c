/*
 * vm_learn.c - which word of a Process is what.  Looked at are up to 256 live
 * processes; a place is taken only where what must hold holds for all of them
 * (for 31 of 32, where there are so many: some change while they are read), and
 * where it is the only such place, or the first of those that the source has
 * in this order.
 */
#include <string.h>

#include "outside/vm_word.h"

enum { W = WATCH__VM_WORDS, REGISTERED_LEAST = 3,
       /* So many processes say enough. */
       SOME = 8, ATTEMPTS = 3,
       /* Of a large table it is not sought on and on. */
       ENOUGH = 32, SLOTS_ENOUGH = 1 << 15,
       /* Lengths, from the beginning of their queue */
       INNER = 3, OUTER = 5, IN_LENGTH = 2,
       WALK_MOST = 1 << 10 };

struct sample {
    unsigned count;
    unsigned words;             /* of each, up to the next process at least */
    uint64_t at[WATCH__VM_SAMPLE];
    uint64_t word[WATCH__VM_SAMPLE][W];
};

typedef bool proof(const struct watch__vm *vm, uint64_t address,
                   const uint64_t *words, unsigned k);

/* For how many of the sample. */
static unsigned count_of(const struct watch__vm *vm, const struct sample *s,
                      proof *holds, unsigned k)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->count; i++)
        n += holds(vm, s->at[i], s->word[i], k);
    return n;
}

static bool holds_all(const struct watch__vm *vm, const struct sample *s,
                proof *holds, unsigned k)
{
    unsigned wrong = 0, most = s->count / 32;

    for (unsigned i = 0; i < s->count && wrong <= most; i++)
        wrong += !holds(vm, s->at[i], s->word[i], k);
    return wrong <= most;
}

/* The first word from `k' on, `size' words before the end; W: none. */
static unsigned first_word(const struct watch__vm *vm, const struct sample *s,
                     proof *holds, unsigned k, unsigned size)
{
    while (k + size <= s->words && !holds_all(vm, s, holds, k))
        k++;
    return k + size <= s->words ? k : W;
}

static bool find_only(const struct watch__vm *vm, const struct sample *s,
                      proof *holds, unsigned size, unsigned *word)
{
    *word = first_word(vm, s, holds, 1, size);
    return *word < W && first_word(vm, s, holds, *word + 1, size) == W;
}

/* -- the registered name: a record that points to the process -------------- */

static bool is_registered(const struct watch__vm *vm, uint64_t address,
                          const uint64_t *words, unsigned k)
{
    uint64_t record[5];

    (void)vm;
    return vm_words(words[k], record, 5) == 5 && record[2] == address
        && vm_is_atom(record[4]);
}

static bool is_name(const struct watch__vm *vm, uint64_t address,
                    const uint64_t *words, unsigned k)
{
    return words[k] == 0 || is_registered(vm, address, words, k);
}

static const char *learn_name(struct watch__vm *vm, const struct sample *s)
{
    unsigned found = 0;

    for (unsigned k = 1; k < s->words; k++)
        if (holds_all(vm, s, is_name, k)
            && count_of(vm, s, is_registered, k) >= REGISTERED_LEAST) {
            vm->name = k;
            found++;
        }
    return found == 1 ? NULL : "no word is the record of a registered name";
}

/* -- the heap -------------------------------------------------------------- */

/* Start and end, and close behind them the size. */
static bool is_heap(const struct watch__vm *vm, uint64_t address,
                    const uint64_t *words, unsigned k)
{
    uint64_t start = words[k], end = words[k + 1];

    (void)vm;
    (void)address;
    return vm_is_pointer(start) && vm_is_pointer(end) && end > start
        && (end - start) / 8 == words[k + 3];
}

/* Top of the heap and of the stack, which grows towards it */
static bool is_top(const struct watch__vm *vm, uint64_t address,
                   const uint64_t *words, unsigned k)
{
    uint64_t start = words[vm->heap], end = words[vm->heap + 1];

    (void)address;
    return start <= words[k] && words[k] <= words[k + 1] && words[k + 1] <= end
        && words[k] % 8 == 0 && words[k + 1] % 8 == 0;
}

static bool is_used(const struct watch__vm *vm, uint64_t address,
                    const uint64_t *words, unsigned k)
{
    return is_top(vm, address, words, k) && words[k] > words[vm->heap]
        && words[k + 1] > words[k];
}

/* What the youngest are above, then end, top and start of the old heap. */
static bool is_old(const struct watch__vm *vm, uint64_t address,
                   const uint64_t *words, unsigned k)
{
    bool none = !words[k + 1] && !words[k + 2] && !words[k + 3];

    (void)address;
    return words[k] >= words[vm->heap] && words[k] <= words[vm->heap + 1]
        && (none || (vm_is_pointer(words[k + 3])
                     && words[k + 3] <= words[k + 2]
                     && words[k + 2] <= words[k + 1]));
}

static bool has_old(const struct watch__vm *vm, uint64_t address,
                    const uint64_t *words, unsigned k)
{
    return is_old(vm, address, words, k) && words[k + 3] != 0;
}

static const char *learn_heap(struct watch__vm *vm, const struct sample *s)
{
    if (!find_only(vm, s, is_heap, 4, &vm->heap))
        return "no four words are a heap's start, end and size";
    vm->top = first_word(vm, s, is_top, 1, 2);
    return vm->top < W && count_of(vm, s, is_used, vm->top) > s->count / 2
        ? NULL : "no two words are the tops of heap and stack";
}

static const char *learn_old_heap(struct watch__vm *vm, const struct sample *s)
{
    if (vm->why[VM_HEAP])
        return "the heap is not known";
    for (unsigned k = 1; k + 4 <= s->words; k++)
        if (k != vm->top && holds_all(vm, s, is_old, k)
            && count_of(vm, s, has_old, k) > 0) {
            vm->old_heap = k;
            return NULL;
        }
    return "no process has an old heap";
}

/* -- functions ------------------------------------------------------------- */

static bool is_initial(const struct watch__vm *vm, uint64_t address,
                       const uint64_t *words, unsigned k)
{
    (void)address;
    return watch__vm_is_mfa(vm, words + k);
}

static bool is_mfa_at(const struct watch__vm *vm, uint64_t at)
{
    uint64_t names[3];

    return vm_words(at, names, 3) == 3 && watch__vm_is_mfa(vm, names);
}

/* In code, and not at a function's name. */
static bool is_code(const struct watch__vm *vm, uint64_t address,
                    const uint64_t *words, unsigned k)
{
    struct watch__vm_function function;

    (void)address;
    return watch__vm_function_at(vm, words[k], &function)
        && !is_mfa_at(vm, words[k]);
}

static bool is_current(const struct watch__vm *vm, uint64_t address,
                       const uint64_t *words, unsigned k)
{
    (void)address;
    return words[k] == 0 || is_mfa_at(vm, words[k]);
}

static const char *learn_initial(struct watch__vm *vm, const struct sample *s)
{
    if (vm->why[VM_ATOMS])
        return "atoms are not known";
    return find_only(vm, s, is_initial, 4, &vm->initial)
        ? NULL : "no three words are a function";
}

/* A process that has not run yet, or ends, is at code of the emulator's own;
 * of the others it is this word alone that is in code. */
static const char *learn_current(struct watch__vm *vm, const struct sample *s)
{
    unsigned best = 0, second = 0;

    if (vm->why[VM_CODE])
        return "the code's modules are not known";
    for (unsigned k = 1; k < s->words; k++) {
        unsigned n = count_of(vm, s, is_code, k);

        if (n > best) {
            second = best;
            best = n;
            vm->code_pointer = k;
        } else if (n > second) {
            second = n;
        }
    }
    vm->current_mfa = vm->why[VM_INITIAL] ? 0 : vm->initial + 3;
    if (vm->current_mfa && !holds_all(vm, s, is_current, vm->current_mfa))
        vm->current_mfa = 0;
    return best >= SOME && best >= s->count / 8 && second < best / 2
        ? NULL : "no word is a code address of most processes";
}

/* -- messages -------------------------------------------------------------- */

/* A queue that is empty: its first is none, and its last pointer is itself. */
static bool is_empty(const struct watch__vm *vm, uint64_t address,
                     const uint64_t *words, unsigned k)
{
    (void)vm;
    return words[k] == 0 && words[k + 1] == address + 8 * k;
}

/* Or its last pointer is another one, that of its last element. */
static bool is_queue(const struct watch__vm *vm, uint64_t address,
                     const uint64_t *words, unsigned k)
{
    return is_empty(vm, address, words, k)
        || (vm_is_pointer(words[k]) && vm_is_pointer(words[k + 1]));
}

/* How many messages; false: there are too many, or they change.  Other signals
 * have a header's tag where a message has its term. */
static bool walk_queue(uint64_t at, uint64_t *messages)
{
    uint64_t element[3];

    *messages = 0;
    for (unsigned i = 0; at && i < WALK_MOST; i++) {
        if (vm_words(at, element, 3) < 3)
            return false;
        *messages += element[2] == 0 || (element[2] & 3) != 0;
        at = element[0];
    }
    return at == 0;
}

/* Three queues, one behind the other: received, fetched, and what comes in.
 * Before 26 the end of the second has the length of both. */
static uint64_t own_length(const struct watch__vm *vm, const uint64_t *words)
{
    return words[vm->inner_length ? vm->messages + INNER : vm->middle + OUTER];
}

struct walked { uint64_t inner, middle, incoming; };

static bool walk_all(const struct watch__vm *vm, const uint64_t *words,
                     struct walked *w)
{
    return walk_queue(words[vm->messages], &w->inner)
        && walk_queue(words[vm->middle], &w->middle)
        && walk_queue(words[vm->incoming], &w->incoming);
}

/* Nothing came or went meanwhile. */
static bool queues_stay(const struct watch__vm *vm, uint64_t address,
                        const uint64_t *words)
{
    unsigned from = vm->messages, n = vm->middle + OUTER + 1 - from;
    uint64_t now[W], in[IN_LENGTH + 1];

    return vm_words(address + 8 * from, now, n) == n
        && !memcmp(now, words + from, n * sizeof *now)
        && vm_words(address + 8 * vm->incoming, in, IN_LENGTH + 1)
            == IN_LENGTH + 1
        && !memcmp(in, words + vm->incoming, sizeof in);
}

/* Counted; where they are many, or come and go, what the queues say. */
bool watch__vm_messages(const struct watch__vm *vm, uint64_t address,
                        const uint64_t *words, uint64_t *messages)
{
    uint64_t own = own_length(vm, words);
    uint64_t in = words[vm->incoming + IN_LENGTH];
    struct walked w;

    if (!is_queue(vm, address, words, vm->messages)
        || !is_queue(vm, address, words, vm->middle)
        || !is_queue(vm, address, words, vm->incoming))
        return false;
    *messages = walk_all(vm, words, &w) && queues_stay(vm, address, words)
        ? w.inner + w.middle + w.incoming : own + in;
    return *messages <= UINT32_MAX;
}

/* k 1: and it can be seen. */
static bool has_length(const struct watch__vm *vm, uint64_t address,
                       const uint64_t *words, unsigned k)
{
    struct walked w;
    bool whole = walk_all(vm, words, &w);

    if (!queues_stay(vm, address, words))
        return k == 0;
    return whole
        ? own_length(vm, words) == w.inner + (vm->inner_length ? 0 : w.middle)
            && words[vm->incoming + IN_LENGTH] == w.incoming
        : own_length(vm, words) + words[vm->incoming + IN_LENGTH] >= WALK_MOST;
}

static const char *learn_messages(struct watch__vm *vm, const struct sample *s)
{
    unsigned found[3], n = 0;

    for (unsigned k = 2; k + 8 <= s->words; k++)
        if (holds_all(vm, s, is_queue, k)
            && count_of(vm, s, is_empty, k) > s->count / 4) {
            if (n < 3)
                found[n] = k;
            n++;
        }
    if (n != 3)
        return "no three words are the message queues";
    vm->messages = found[0];
    vm->middle = found[1];
    vm->incoming = found[2];
    vm->inner_length = vm->middle - vm->messages == INNER + 1;
    if (!vm->inner_length && vm->middle - vm->messages != INNER)
        return "the message queues lie in no known way";
    return vm->middle + OUTER < W && holds_all(vm, s, has_length, 0)
        && count_of(vm, s, has_length, 1) >= SOME ? NULL
        : "the length of a message queue is not how many are in it";
}

/* -- reductions, status, queue --------------------------------------------- */

/* Three words behind the code pointer.  init has counted some thousand since
 * the node began; nobody has an address' worth. */
static const char *learn_reductions(struct watch__vm *vm,
                                    const struct sample *s)
{
    unsigned k = vm->code_pointer + 3, used = 0, most = 0;

    if (vm->why[VM_CURRENT] || k + 3 > s->words)
        return "the code pointer is not known";
    for (unsigned i = 0; i < s->count; i++) {
        if (s->word[i][k] >> 44)
            return "it is no count of all processes";
        used += s->word[i][k] > 0;
        most += s->word[i][k] >= 2000;
    }
    vm->reductions = k;
    return used >= SOME && used >= s->count / 8 && most > 0
        ? NULL : "it is no count of most processes";
}

/* Priorities fill the lowest 6 bits: the user's and the actual one are the same
 * but while a process is raised, and most are normal. */
static uint32_t status_of(const uint64_t *words, unsigned k)
{
    return (uint32_t)(words[k / 2] >> (k % 2 * 32));
}

enum { ACTUAL = 0x3, USER = 0xc, NORMAL = 0xa, FREE = 1 << 10 };

static bool is_status(const struct watch__vm *vm, uint64_t address,
                      const uint64_t *words, unsigned k)
{
    uint32_t status = status_of(words, k);

    (void)vm;
    (void)address;
    return !(status >> 31) && !(status & FREE)
        && (status & USER) >> 2 == (status & ACTUAL);
}

static bool is_normal(const struct watch__vm *vm, uint64_t address,
                      const uint64_t *words, unsigned k)
{
    return is_status(vm, address, words, k)
        && (status_of(words, k) & (USER | ACTUAL)) == NORMAL;
}

/* Whom a scheduler runs is marked so, at this place alone. */
static bool runs_marked(const struct watch__vm *vm, unsigned k)
{
    for (unsigned type = 0; type < VM_TYPES && !vm->why[VM_SCHEDULERS]; type++)
        for (unsigned i = 1; i <= vm->schedulers[type]; i++) {
            uint64_t process = watch__vm_running(vm, type, i);
            uint32_t status;

            if (process
                && watch__read_all(&status, process + 4 * k, sizeof status)
                && !(status & WATCH__VM_RUNS)
                && watch__vm_running(vm, type, i) == process)
                return false;
        }
    return true;
}

static const char *learn_status(struct watch__vm *vm, const struct sample *s)
{
    unsigned found = 0;

    for (unsigned k = 2; k < 2 * s->words; k++)
        if (holds_all(vm, s, is_status, k)
            && count_of(vm, s, is_normal, k) > s->count / 2
            && runs_marked(vm, k)) {
            vm->status_half = k;
            found++;
        }
    return found == 1 ? NULL : "no half word is the status of all processes";
}

/* In front of the message queues: the next in a run queue, and a counter.  The
 * reader of a queue checks each again. */
static bool is_next(const struct watch__vm *vm, uint64_t address,
                    const uint64_t *words, unsigned k)
{
    (void)vm;
    (void)address;
    return (words[k] == 0 || vm_is_pointer(words[k])) && !(words[k + 1] >> 44);
}

static const char *learn_next(struct watch__vm *vm, const struct sample *s)
{
    if (vm->why[VM_MESSAGES])
        return "the message queues are not known";
    vm->next = vm->messages - 2;
    return holds_all(vm, s, is_next, vm->next) ? NULL
        : "no word is the next process of a run queue";
}

/* -- all of it ------------------------------------------------------------- */

/* As they are for two readings. */
static void take_sample(const struct watch__vm *vm, struct sample *s)
{
    uint64_t again[W], at;
    uint32_t slot = 0;

    s->count = 0;
    for (unsigned tried = 0; s->count < WATCH__VM_SAMPLE
                             && tried < 2 * WATCH__VM_SAMPLE
                             && (s->count < ENOUGH || slot < SLOTS_ENOUGH)
                             && (at = watch__vm_each(vm, &slot)); tried++) {
        uint64_t *words = s->word[s->count];
        unsigned n = vm_words(at, words, W);

        memset(words + n, 0xff, (W - n) * sizeof *words);
        if (n >= W / 2 && vm_words(at, again, n) == n
            && !memcmp(words, again, n * sizeof *words))
            s->at[s->count++] = at;
    }
    s->words = W;
    for (unsigned i = 0; i < s->count; i++)
        for (unsigned k = 0; k < s->count; k++)
            if (s->at[k] > s->at[i] && (s->at[k] - s->at[i]) / 8 < s->words)
                s->words = (unsigned)((s->at[k] - s->at[i]) / 8);
}

static const char *learn_stack(struct watch__vm *vm, const struct sample *s)
{
    (void)s;
    return vm->why[VM_HEAP] ? "the heap is not known"
        : vm->why[VM_CODE] ? "the code's modules are not known" : NULL;
}

/* Each behind those that it needs */
static const struct {
    enum watch__vm_field field;
    const char *(*learn)(struct watch__vm *vm, const struct sample *s);
} fields[] = {
    {VM_NAME, learn_name}, {VM_HEAP, learn_heap}, {VM_OLD_HEAP, learn_old_heap},
    {VM_INITIAL, learn_initial}, {VM_CURRENT, learn_current},
    {VM_MESSAGES, learn_messages}, {VM_REDUCTIONS, learn_reductions},
    {VM_STATUS, learn_status}, {VM_NEXT, learn_next}, {VM_STACK, learn_stack}
};

/* The first time, and again what could not be shown. */
static bool learn_from(struct watch__vm *vm, const struct sample *s, bool again)
{
    bool shown = true;

    for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char **why = &vm->why[fields[i].field];

        if (!again || *why)
            *why = s->count < SOME ? "there are too few processes"
                : fields[i].learn(vm, s);
        shown = shown && !*why;
    }
    return shown;
}

void watch__vm_learn_processes(struct watch__vm *vm)
{
    struct sample *s = watch__pages(sizeof *s);

    for (unsigned i = 0; i < ATTEMPTS; i++) {
        if (s)
            take_sample(vm, s);
        if (!s || vm->why[VM_TABLE]) {
            for (unsigned k = VM_NEXT; k < VM_FIELDS; k++)
                vm->why[k] = "the process table is not known";
            break;
        }
        if (learn_from(vm, s, i > 0))
            break;
    }
    watch__pages_free(s, sizeof *s);
}
