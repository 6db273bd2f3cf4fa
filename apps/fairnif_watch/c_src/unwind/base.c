/*
 * base.c - the frame pointer of a function of x86_64 that is not known, because
 * the thread sleeps and only its stack pointer is.
 *
 * Where all is compiled with frame pointers (Ubuntu, Fedora), the first frame in
 * libc already needs it.  It is not searched for on the stack, where dead
 * frames lie.  The function's code says how far it is from the stack pointer:
 * what it pushes, as the unwind table says, and what it subtracts, as one of
 * its first instructions says.  What comes out is believed only if the word
 * above it is a return address, just behind a call of this very function.
 */
#include <string.h>

#include "unwind/base.h"
#include "read/mem.h"

#if defined(__x86_64__)

enum { BYTES = 96, CALL_MOST = 7, RBP = 6, FRAME_MOST = 8192 };

/* Jumps and calls through a slot of the loader's. */
static bool slot_is(const unsigned char *displacement, uint64_t next,
                    uint64_t function)
{
    int32_t d;
    uint64_t target;

    memcpy(&d, displacement, sizeof d);
    return watch__read_all(&target, next + (uint64_t)(int64_t)d, sizeof target)
        && target == function;
}

/* `at` is the function, or a jump of the linker's to it: (endbr64) (bnd)
 * jmp *slot(%rip). */
static bool leads_to(uint64_t at, uint64_t function)
{
    static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    unsigned char code[16];
    unsigned i = 0;

    if (at == function)
        return true;
    if (!watch__read_all(code, at, sizeof code))
        return false;
    if (!memcmp(code, endbr64, sizeof endbr64))
        i = sizeof endbr64;
    if (code[i] == 0xf2)
        i++;
    return code[i] == 0xff && code[i + 1] == 0x25
        && slot_is(code + i + 2, at + i + 6, function);
}

/* How long `ff /2`, a call through a register or through memory, is: what its
 * second byte, and the third where there is one, say.  0: that is none. */
static unsigned call_length(const unsigned char *code)
{
    static const unsigned char displacement[] = {0, 1, 4, 0};
    unsigned mode = code[1] >> 6, reg = code[1] & 7;
    bool scaled = mode != 3 && reg == 4;    /* a third byte: base and index */

    if (code[0] != 0xff || (code[1] >> 3 & 7) != 2)
        return 0;
    if (mode == 0 && (scaled ? code[2] & 7 : reg) == 5)     /* no base */
        return 2 + scaled + 4;
    return 2 + scaled + displacement[mode];
}

/* Is the address just behind a call of the function?  Of a call through a
 * register or a table only that it is a call can be said. */
static bool called_from(uint64_t address, uint64_t function)
{
    enum { SLOT = 0x15 };       /* disp32(%rip): its address is known */
    unsigned char code[CALL_MOST + 1] = {0};
    const unsigned char *end = code + CALL_MOST;
    int32_t d;

    if (!watch__read_all(code, address - CALL_MOST, CALL_MOST))
        return false;
    memcpy(&d, end - 4, sizeof d);
    if (end[-5] == 0xe8 && leads_to(address + (uint64_t)(int64_t)d, function))
        return true;
    if (end[-6] == 0xff && end[-5] == SLOT)
        return slot_is(end - 4, address, function);
    for (unsigned n = 2; n <= CALL_MOST; n++)
        if (call_length(end - n) == n)
            return true;
    return false;
}

bool watch__frame_fits(const struct watch__snapshot *s, uint64_t at,
                       uint64_t function)
{
    uint64_t address;

    return watch__stack_word(s, at, &address)
        && called_from(address, function);
}

static bool fits(const struct watch__snapshot *s, uint64_t base,
                 uint64_t function)
{
    return watch__frame_fits(s, base + 8, function);
}

/* How much of the stack the function's saved registers take below its base. */
static bool pushed(const struct watch__row *row, uint64_t *bytes)
{
    int64_t lowest = -16;

    if (row->cfa.kind != RULE_OFFSET || row->cfa.base != RBP
        || row->cfa.n != 16 || row->reg[RBP].kind != RULE_OFFSET
        || row->reg[RBP].n != -16)
        return false;
    for (unsigned i = 0; i < WATCH__REGS; i++)
        if (row->reg[i].kind == RULE_OFFSET && row->reg[i].n < lowest)
            lowest = row->reg[i].n;
    *bytes = (uint64_t)(-16 - lowest);
    return *bytes <= 8 * WATCH__REGS;
}

bool watch__frame_base(const struct watch__snapshot *s,
                       const struct watch__row *row, uint64_t sp, uint64_t pc,
                       uint64_t *base)
{
    unsigned char code[BYTES];
    uint64_t saved, size, found = 0;
    size_t n = pc - row->start < BYTES ? (size_t)(pc - row->start) : BYTES;
    unsigned hits = 0;

    if (!pushed(row, &saved) || !watch__read_all(code, row->start, n))
        return false;
    if (fits(s, sp + saved, row->start)) {      /* it subtracts nothing */
        found = sp + saved;
        hits++;
    }
    for (size_t i = 0; i + 4 <= n; i++) {       /* sub $size, %rsp */
        int32_t wide = 0;

        if (code[i] != 0x48 || code[i + 2] != 0xec)
            continue;
        if (code[i + 1] == 0x83)
            size = code[i + 3];
        else if (code[i + 1] == 0x81 && i + 7 <= n)
            memcpy(&wide, code + i + 3, sizeof wide), size = (uint64_t)wide;
        else
            continue;
        if (size == 0 || size % 8 != 0 || size > FRAME_MOST
            || !fits(s, sp + saved + size, row->start))
            continue;
        found = sp + saved + size;
        hits++;
    }
    *base = found;
    return hits == 1;
}

#else

/* Elsewhere tables go by the stack pointer. */
bool watch__frame_fits(const struct watch__snapshot *s, uint64_t at,
                       uint64_t function)
{
    (void)s, (void)at, (void)function;
    return false;
}

bool watch__frame_base(const struct watch__snapshot *s,
                       const struct watch__row *row, uint64_t sp, uint64_t pc,
                       uint64_t *base)
{
    (void)s, (void)row, (void)sp, (void)pc, (void)base;
    return false;
}

#endif
