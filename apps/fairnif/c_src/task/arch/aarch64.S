/*
 * Switching between a scheduler's C stack and a task's, for AArch64 (AAPCS64,
 * ELF).
 *
 * Four functions on one `struct fair__ctx` (arch.h keeps these offsets):
 *
 *      0  sp          the paused task's stack pointer
 *      8  sched_sp    the scheduler's stack pointer while the task runs
 *     16  top         where the task's stack begins, 16-byte aligned
 *     24  fp_control: fpcr           of the paused task
 *     32  sched_fp_control: fpcr     of the scheduler
 *
 * A frame that is left behind, on either side, looks the same:
 *
 *     sp + 96 ... sp + 152   d8 ... d15
 *     sp + 16 ... sp + 88    x19 ... x28
 *     sp + 8                 x30, the return address
 *     sp + 0                 x29      <- x29 points here (frame record)
 *
 * The task's stack begins with a frame record, so that frame-pointer walkers
 * (perf) and CFI unwinders (gdb) continue from the task to the scheduler that
 * runs it now.  fair__arch_resume patches its link at each slice:
 *
 *     top - 16  the ctx
 *     top - 24  a return address in fair__arch_start
 *     top - 32  link: the scheduler's x29   <- x29 in fair__arch_start
 *
 * The ABI wants of the vector registers only the low halves of v8 to v15
 * preserved, also with SVE, and fpcr's control bits.  Writing fpcr stalls some
 * processors, so it is written only where the two sides differ.
 *
 * Return addresses are not signed here: a frame is left on one thread and
 * returned to on another, with the same keys, but nothing is gained by it.
 * Not for threads with a guarded control stack (GCS): returns go elsewhere.
 */

#include "function.h"

        .text

#define FRAME 160

        .macro  save_frame
        stp     x29, x30, [sp, #-FRAME]!
        .cfi_def_cfa_offset FRAME
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        mov     x29, sp
        stp     x19, x20, [sp, #16]
        .cfi_rel_offset x19, 16
        .cfi_rel_offset x20, 24
        stp     x21, x22, [sp, #32]
        .cfi_rel_offset x21, 32
        .cfi_rel_offset x22, 40
        stp     x23, x24, [sp, #48]
        .cfi_rel_offset x23, 48
        .cfi_rel_offset x24, 56
        stp     x25, x26, [sp, #64]
        .cfi_rel_offset x25, 64
        .cfi_rel_offset x26, 72
        stp     x27, x28, [sp, #80]
        .cfi_rel_offset x27, 80
        .cfi_rel_offset x28, 88
        stp     d8, d9, [sp, #96]
        .cfi_rel_offset d8, 96
        .cfi_rel_offset d9, 104
        stp     d10, d11, [sp, #112]
        .cfi_rel_offset d10, 112
        .cfi_rel_offset d11, 120
        stp     d12, d13, [sp, #128]
        .cfi_rel_offset d12, 128
        .cfi_rel_offset d13, 136
        stp     d14, d15, [sp, #144]
        .cfi_rel_offset d14, 144
        .cfi_rel_offset d15, 152
        .endm

        /* Of the frame that sp points to now: another one than was saved. */
        .macro  load_frame
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x29, x30, [sp], #FRAME
        .cfi_def_cfa_offset 0
        .cfi_restore x19
        .cfi_restore x20
        .cfi_restore x21
        .cfi_restore x22
        .cfi_restore x23
        .cfi_restore x24
        .cfi_restore x25
        .cfi_restore x26
        .cfi_restore x27
        .cfi_restore x28
        .cfi_restore x29
        .cfi_restore x30
        .cfi_restore d8
        .cfi_restore d9
        .cfi_restore d10
        .cfi_restore d11
        .cfi_restore d12
        .cfi_restore d13
        .cfi_restore d14
        .cfi_restore d15
        .endm

        /* fpcr into [x0, #\mine], and [x0, #\other] into fpcr. */
        .macro  swap_fpcr mine, other
        mrs     x10, fpcr
        str     x10, [x0, #\mine]
        ldr     x11, [x0, #\other]
        cmp     x10, x11
        b.eq    1f
        msr     fpcr, x11
1:
        .endm

/* void fair__arch_start(struct fair__ctx *ctx, void (*fn)(void *), void *arg)
 * Runs fn(arg) on the task's stack.  Returns when fn returns or pauses. */
        function fair__arch_start
        /* gdb takes a caller whose frame lies below its callee's for a sign
         * of corruption, except beside a signal frame; and a task's stack may
         * lie on either side of the scheduler's. */
        .cfi_signal_frame
        hint    #34                     /* bti c */
        save_frame
        mov     x9, sp
        str     x9, [x0, #8]
        mrs     x10, fpcr
        str     x10, [x0, #32]
        ldr     x11, [x0, #16]
        adr     x12, LOCAL(returned)
        str     x0, [x11, #-16]
        stp     x29, x12, [x11, #-32]
        sub     sp, x11, #32
        mov     x29, sp
        /* From here the caller's frame is found through the link:
         * CFA = *(x29) + FRAME, the registers where save_frame put them. */
        .cfi_remember_state
        .cfi_escape 0x0f, 6, 0x8d, 0, 0x06, 0x23, 0xa0, 0x01
        mov     x0, x2
        blr     x1
LOCAL(returned):
        ldr     x0, [x29, #16]
        ldr     x9, [x0, #8]
        mov     sp, x9
        .cfi_restore_state
        load_frame
        ret
        end     fair__arch_start

/* void fair__arch_resume(struct fair__ctx *ctx)
 * Continues after the task's last pause.  Returns when it pauses or ends. */
        function fair__arch_resume
        hint    #34
        save_frame
        mov     x9, sp
        str     x9, [x0, #8]
        ldr     x9, [x0, #16]
        str     x29, [x9, #-32]
        swap_fpcr 32, 24
        ldr     x9, [x0, #0]
        mov     sp, x9
        load_frame
        ret
        end     fair__arch_resume

/* void fair__arch_pause(struct fair__ctx *ctx)
 * From the task: back to the scheduler.  Returns when it is resumed, on
 * whichever thread that is. */
        function fair__arch_pause
        hint    #34
        save_frame
        mov     x9, sp
        str     x9, [x0, #0]
        swap_fpcr 24, 32
        ldr     x9, [x0, #8]
        mov     sp, x9
        load_frame
        ret
        end     fair__arch_pause

/* void fair__arch_call(struct fair__ctx *ctx, void (*fn)(void *), void *arg)
 * From the task: runs fn(arg) on the scheduler's stack, below what lies there.
 * An ordinary call but for the stack pointer. */
        function fair__arch_call
        .cfi_signal_frame
        hint    #34
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        mov     x29, sp
        .cfi_def_cfa_register x29
        ldr     x9, [x0, #8]
        mov     sp, x9
        mov     x0, x2
        blr     x1
        mov     sp, x29
        .cfi_def_cfa_register sp
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        end     fair__arch_call

        NO_EXECUTABLE_STACK
