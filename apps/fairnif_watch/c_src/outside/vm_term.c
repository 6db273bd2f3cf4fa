/*
 * vm_term.c - the process table, pids and atoms of another BEAM.
 */
#include <stdio.h>
#include <string.h>

#include "outside/vm_word.h"

enum { SLOTS_LEAST = 1024, SLOTS_MOST = 1 << 27, PIECE = 512,
       SLOTS_SOUGHT = 1 << 20, LIVE_LEAST = 4, LIVE_ENOUGH = 16,
       BAD_MOST = 4096,
       PAGE_ATOMS = 1024, ATOMS_LEAST = 1000, ATOMS_MOST = 1 << 26,
       ATOM_MOST = 1020,
       /* Of an atom: its link and hash are in front of its index */
       INDEX = 2, ATOM_WORDS = 6 };

/* -- the process table ----------------------------------------------------- */

static unsigned bits_of(uint32_t slots)
{
    return (unsigned)__builtin_ctz(slots);
}

static uint64_t slot_of(const struct watch__vm *vm, uint64_t pid)
{
    return vm->wide ? (pid >> 4) & (vm->slots - 1) : pid >> 32;
}

uint64_t watch__vm_slot(const struct watch__vm *vm, uint64_t pid)
{
    uint64_t slot = slot_of(vm, pid), process, id;

    return vm->table && vm_is_pid(pid) && slot < vm->slots
        && vm_word(vm->table + 8 * slot, &process) && vm_word(process, &id)
        && id == pid ? process : 0;
}

/* What takes part in the table says so of itself: a slot's process has a pid
 * that names the slot.  How many do, and how many do not? */
static void try_table(const struct watch__vm *vm, unsigned *good, unsigned *bad)
{
    uint64_t piece[PIECE], pid;

    for (uint32_t i = 0; i < vm->slots && i < SLOTS_SOUGHT
                         && *good + *bad < LIVE_ENOUGH; i += PIECE) {
        uint32_t most = vm->slots - i < PIECE ? vm->slots - i : PIECE;
        unsigned n = vm_words(vm->table + 8 * (uint64_t)i, piece, most);

        for (unsigned k = 0; k < n; k++)
            if (piece[k]) {
                bool is = vm_word(piece[k], &pid) && vm_is_pid(pid)
                    && slot_of(vm, pid) == i + k;

                *(is ? good : bad) += 1;
            }
        if (n < most)
            return;
    }
}

/* Behind the slots come as many words for pids to be; behind the pointers to
 * both, how many slots there are. */
static bool look_table(struct watch__vm *vm, uint64_t at, const uint64_t *words,
                       unsigned rest)
{
    uint32_t slots = rest < 2 ? 0 : (uint32_t)words[2];

    (void)at;
    if (slots < SLOTS_LEAST || slots > SLOTS_MOST || (slots & (slots - 1))
        || !vm_is_pointer(words[0])
        || words[1] != words[0] + 8 * (uint64_t)slots)
        return false;
    vm->looked++;
    vm->table = words[0];
    vm->slots = slots;
    for (unsigned wide = 0; wide < 2; wide++) {
        unsigned good = 0, bad = 0;

        vm->wide = wide;
        try_table(vm, &good, &bad);
        if (good >= LIVE_LEAST && bad <= good / 32)
            return true;
    }
    vm->table = 0;
    return false;
}

void watch__vm_learn_table(struct watch__vm *vm)
{
    vm->why[VM_TABLE] = watch__vm_scan(vm, look_table) ? NULL
        : "no table of processes is found";
}

uint64_t watch__vm_each(const struct watch__vm *vm, uint32_t *slot)
{
    uint64_t piece[PIECE], pid;
    unsigned bad = 0;

    while (vm->table && *slot < vm->slots && bad < BAD_MOST) {
        uint32_t most = vm->slots - *slot < PIECE ? vm->slots - *slot
                                                   : PIECE;
        unsigned n = vm_words(vm->table + 8 * (uint64_t)*slot, piece, most);

        if (n == 0)
            return 0;
        for (unsigned k = 0; k < n; k++, ++*slot) {
            if (!piece[k])
                continue;
            if (vm_word(piece[k], &pid) && vm_is_pid(pid)
                && slot_of(vm, pid) == *slot) {
                ++*slot;
                return piece[k];
            }
            bad++;
        }
    }
    return 0;
}

/* A pid of 26 and later has its slot in the low bits: the number of the cache
 * line is above the place in the line there, below it in what is printed. */
void watch__vm_pid(const struct watch__vm *vm, uint64_t pid, char *text,
                   size_t size)
{
    uint64_t data = pid >> 4 & 0xfffffff, number, serial;

    if (vm->table && vm->wide) {
        uint64_t slot = slot_of(vm, pid);
        unsigned bits = bits_of(vm->slots);

        data = (pid >> 4 & ~(uint64_t)(vm->slots - 1))
            | slot >> 3 | (slot & 7) << (bits - 3);
        number = data & 0xfffffff;
        serial = data >> 28;
    } else {
        number = data & 0x7fff;
        serial = data >> 15;
    }
    snprintf(text, size, "<0.%llu.%llu>", (unsigned long long)number,
             (unsigned long long)serial);
}

/* -- atoms ----------------------------------------------------------------- */

static uint64_t atom_at(uint64_t pages, uint64_t index)
{
    uint64_t page, atom, words[INDEX + 1];

    return index < ATOMS_MOST
        && vm_word(pages + 8 * (index / PAGE_ATOMS), &page)
        && vm_word(page + 8 * (index % PAGE_ATOMS), &atom)
        && vm_words(atom, words, INDEX + 1) == INDEX + 1
        && (uint32_t)words[INDEX] == index
        ? atom : 0;
}

/* A literal binary on a heap: header, size, and either its bytes or, where it
 * refers to another, that one's address. */
static uint64_t bytes_of(uint64_t name, bool binary)
{
    return binary ? (name & ~(uint64_t)3) + 16 : name;
}

static bool is_text(uint64_t at, const char *text)
{
    char is[64];
    size_t size = strlen(text);

    return watch__read_all(is, at, size) && !memcmp(is, text, size);
}

/* The first atoms are the same in all releases: by these few it is seen what is
 * an atom's name, and its length. */
static bool learn_names(struct watch__vm *vm)
{
    static const char *const first[] = {
        "false", "true", "_", "nonode@nohost", "$end_of_table", "", "infinity",
        "timeout", "normal", "call", "return", "throw", "error", "exit",
        "undefined", "nocatch", "undefined_function", "undefined_lambda"
    };
    enum { FIRST = sizeof first / sizeof *first };
    unsigned named[2][ATOM_WORDS] = {{0}}, found = 0;
    unsigned lengths[4 * ATOM_WORDS] = {0};

    for (unsigned i = 0; i < FIRST; i++) {
        uint64_t words[ATOM_WORDS], atom = atom_at(vm->atoms, i);
        uint16_t halves[4 * ATOM_WORDS];

        if (vm_words(atom, words, ATOM_WORDS) < ATOM_WORDS)
            return false;
        memcpy(halves, words, sizeof halves);
        for (unsigned k = INDEX + 1; k < ATOM_WORDS; k++)
            for (unsigned binary = 0; binary < 2; binary++)
                named[binary][k] += is_text(bytes_of(words[k], binary),
                                            first[i]);
        for (unsigned k = 4 * INDEX + 2; k < 4 * ATOM_WORDS; k++)
            lengths[k] += halves[k] == strlen(first[i]);
    }
    for (unsigned k = INDEX + 1; k < ATOM_WORDS; k++)
        for (unsigned binary = 0; binary < 2; binary++)
            if (named[binary][k] == FIRST) {
                vm->atom_name = k;
                vm->atom_binary = binary;
                found++;
            }
    vm->atom_length = 0;
    for (unsigned k = 4 * ATOM_WORDS; k-- > 0;)
        if (lengths[k] == FIRST)
            vm->atom_length = 2 * k;
    return found == 1 && vm->atom_length > 0;
}

/* In front of the pages are how many atoms there may be, whole pages of them,
 * and how many there are. */
static bool look_atoms(struct watch__vm *vm, uint64_t at, const uint64_t *words,
                       unsigned rest)
{
    uint32_t limit = (uint32_t)words[0], entries = (uint32_t)(words[0] >> 32);

    (void)at;
    if (rest < 1 || limit % PAGE_ATOMS || entries > limit
        || entries < ATOMS_LEAST || limit > ATOMS_MOST
        || !vm_is_pointer(words[1]) || !atom_at(words[1], 0)
        || !atom_at(words[1], 1))
        return false;
    vm->looked++;
    vm->atoms = words[1];
    if (learn_names(vm))
        return true;
    vm->atoms = 0;
    return false;
}

void watch__vm_learn_atoms(struct watch__vm *vm)
{
    vm->why[VM_ATOMS] = watch__vm_scan(vm, look_atoms) ? NULL
        : "no table that begins with the atoms false and true is found";
}

bool watch__vm_atom(const struct watch__vm *vm, uint64_t atom, char *text,
                    size_t size)
{
    uint64_t at, name;
    uint16_t length;

    text[0] = '\0';
    if (!vm->atoms || !vm_is_atom(atom) || size < 2
        || !(at = atom_at(vm->atoms, atom >> 6))
        || !watch__read_all(&length, at + vm->atom_length, sizeof length)
        || length > ATOM_MOST || !vm_word(at + 8 * vm->atom_name, &name))
        return false;
    if (length > size - 1)
        length = (uint16_t)(size - 1);
    if (!watch__read_all(text, bytes_of(name, vm->atom_binary), length)) {
        text[0] = '\0';
        return false;
    }
    text[length] = '\0';
    return true;
}

bool watch__vm_is_mfa(const struct watch__vm *vm, const uint64_t words[3])
{
    return vm_is_atom(words[0]) && vm_is_atom(words[1]) && words[2] < 256
        && atom_at(vm->atoms, words[0] >> 6)
        && atom_at(vm->atoms, words[1] >> 6);
}
