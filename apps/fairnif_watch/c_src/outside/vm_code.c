/*
 * vm_code.c - which Erlang function a code address of another BEAM is in, and
 * the functions that a process's stack returns to.
 *
 * The emulator keeps three sorted lists of where modules lie, one of them
 * active: three records of {modules, how many, room, a middle}.  A module
 * begins with a header, whose last part is a list of its functions; each
 * function begins with its name.
 */
#include <string.h>

#include "outside/vm_word.h"

enum { LIST_WORDS = 4, MODULES_LEAST = 8, MODULES_MOST = WATCH__VM_MODULES,
       HEADER_WORDS = 32, FUNCTIONS_MOST = 1 << 20,
       TRIED = 24, STACK_MOST = 1 << 17, PIECE = 512 };

/* -- the lists of modules -------------------------------------------------- */

static bool is_list(const uint64_t *list)
{
    uint64_t modules = list[0], count = list[1], room = list[2];

    return (count == 0 && room <= MODULES_MOST)
        || (vm_is_pointer(modules) && count <= room && room <= MODULES_MOST
            && list[3] - modules < 16 * count && list[3] % 8 == 0);
}

/* Its copy is taken only if it is in order. */
static bool take_list(struct watch__vm_list *to, const uint64_t *list)
{
    unsigned count = (unsigned)list[1];

    to->count = 0;
    if (!is_list(list) || list[1] < MODULES_LEAST
        || !watch__read_all(to->modules, list[0], count * sizeof *to->modules))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (to->modules[i].start > to->modules[i].end
            || (i > 0 && to->modules[i].start < to->modules[i - 1].end))
            return false;
    to->count = count;
    return true;
}

/* Which of them is active, the emulator does not say.  Another one is an older
 * one, or the next: what is found through it is checked like all else. */
bool watch__vm_again(struct watch__vm *vm)
{
    uint64_t lists[WATCH__VM_LISTS][LIST_WORDS];
    unsigned good = 0;

    if (!vm->code || !watch__read_all(lists, vm->code, sizeof lists))
        return false;
    for (unsigned i = 0; i < WATCH__VM_LISTS; i++)
        good += take_list(&vm->list[i], lists[i]);
    return good > 0;
}

static const struct watch__vm_range *range_of(const struct watch__vm_list *list,
                                              uint64_t pc)
{
    unsigned low = 0, high = list->count;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (pc < list->modules[middle].start)
            high = middle;
        else if (pc >= list->modules[middle].end)
            low = middle + 1;
        else
            return &list->modules[middle];
    }
    return NULL;
}

/* -- functions of a module ------------------------------------------------- */

/* The first functions of all modules tried are in order, in the module, and
 * have names, of one module. */
static bool are_functions(const struct watch__vm *vm,
                          const struct watch__vm_range *range, unsigned word,
                          unsigned mfa)
{
    uint64_t count, functions[4], names[3], module = 0, last = 0;

    if (!vm_word(range->start, &count) || count < 3 || count > FUNCTIONS_MOST
        || vm_words(range->start + 8 * word, functions, 4) < 4)
        return false;
    for (unsigned i = 0; i < 3; i++) {
        if (functions[i] <= last || functions[i] < range->start
            || functions[i] >= range->end
            || vm_words(functions[i] + mfa, names, 3) < 3
            || !watch__vm_is_mfa(vm, names) || (module && names[0] != module))
            return false;
        last = functions[i];
        module = names[0];
    }
    return true;
}

static bool list_fits(const struct watch__vm *vm,
                      const struct watch__vm_list *list, unsigned word,
                      unsigned mfa)
{
    unsigned step = list->count / TRIED + 1, good = 0, tried = 0;

    for (unsigned i = 0; i < list->count; i += step) {
        uint64_t count;

        if (list->modules[i].start == list->modules[i].end
            || !vm_word(list->modules[i].start, &count) || count < 3)
            continue;
        tried++;
        good += are_functions(vm, &list->modules[i], word, mfa);
        if (good + 1 < tried)           /* one may be purged meanwhile */
            return false;
    }
    return good >= 4;
}

static bool learn_functions(struct watch__vm *vm)
{
    for (unsigned i = 0; i < WATCH__VM_LISTS; i++)
        for (unsigned word = 4; word < HEADER_WORDS; word++)
            for (unsigned mfa = 8; mfa <= 32; mfa += 8)
                if (list_fits(vm, &vm->list[i], word, mfa)) {
                    vm->functions = word;
                    vm->mfa = mfa;
                    return true;
                }
    return false;
}

static bool look_lists(struct watch__vm *vm, uint64_t at, const uint64_t *words,
                       unsigned rest)
{
    unsigned filled = 0;

    if (rest < WATCH__VM_LISTS * LIST_WORDS - 1)
        return false;
    for (unsigned i = 0; i < WATCH__VM_LISTS; i++) {
        if (!is_list(words + LIST_WORDS * i))
            return false;
        filled += words[LIST_WORDS * i + 1] >= MODULES_LEAST;
    }
    vm->code = at;
    vm->looked += filled > 0;
    if (filled > 0 && watch__vm_again(vm) && learn_functions(vm))
        return true;
    vm->code = 0;
    return false;
}

void watch__vm_learn_code(struct watch__vm *vm)
{
    vm->why[VM_CODE] = vm->why[VM_ATOMS] ? "atoms are not known"
        : watch__vm_scan(vm, look_lists) ? NULL : "no list of modules is found";
    if (vm->why[VM_CODE])
        for (unsigned i = 0; i < WATCH__VM_LISTS; i++)
            vm->list[i].count = 0;
}

/* The last function that begins at or below it; the list has one more at its
 * end, where the last function ends.  All functions are of one module. */
static bool function_in(const struct watch__vm *vm,
                        const struct watch__vm_range *range, uint64_t pc,
                        struct watch__vm_function *function)
{
    uint64_t list = range->start + 8 * vm->functions;
    uint64_t low = 0, high, at, end, first, module, names[3];

    if (!vm_word(range->start, &high) || high == 0 || high > FUNCTIONS_MOST)
        return false;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;

        if (!vm_word(list + 8 * middle, &at))
            return false;
        if (at <= pc)
            low = middle;
        else
            high = middle;
    }
    if (!vm_word(list + 8 * low, &at) || !vm_word(list + 8 * low + 8, &end)
        || !vm_word(list, &first) || !vm_word(first + vm->mfa, &module)
        || pc < at || pc >= end || vm_words(at + vm->mfa, names, 3) < 3
        || names[0] != module || !watch__vm_is_mfa(vm, names))
        return false;
    *function = (struct watch__vm_function){
        .module = names[0], .function = names[1], .arity = (unsigned)names[2],
        .offset = pc - at
    };
    return true;
}

bool watch__vm_function_at(const struct watch__vm *vm, uint64_t pc,
                           struct watch__vm_function *function)
{
    for (unsigned i = 0; i < WATCH__VM_LISTS; i++) {
        const struct watch__vm_range *range = range_of(&vm->list[i], pc);

        if (range && function_in(vm, range, pc, function))
            return true;
    }
    return false;
}

/* -- stacks ---------------------------------------------------------------- */

/* Return addresses are the only words of a stack without a term's tag that are
 * in code.  Each is behind its call, which may be its function's last word. */
unsigned watch__vm_stack(const struct watch__vm *vm,
                         const struct watch__vm_process *process, uint64_t sp,
                         struct watch__vm_function functions[], unsigned max)
{
    uint64_t piece[PIECE], at = process->stop;
    unsigned found = 0;

    if (!(process->has >> VM_STACK & 1))
        return 0;
    if (sp >= process->htop && sp < process->bottom && sp % 8 == 0)
        at = sp;
    for (unsigned done = 0; done < STACK_MOST && found < max
                            && at < process->bottom; done += PIECE) {
        uint64_t rest = (process->bottom - at) / 8;
        unsigned most = rest < PIECE ? (unsigned)rest : PIECE;
        unsigned n = vm_words(at, piece, most);

        for (unsigned i = 0; i < n && found < max; i++)
            if ((piece[i] & 3) == 0
                && watch__vm_function_at(vm, piece[i] - 1, &functions[found])) {
                functions[found].offset++;
                found++;
            }
        if (n < most)
            break;
        at += 8 * (uint64_t)n;
    }
    return found;
}
