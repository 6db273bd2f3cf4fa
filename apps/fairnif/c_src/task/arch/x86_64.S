/*
 * Switching between a scheduler's C stack and a task's, for x86-64 (System V).
 *
 * Four functions on one `struct fair__ctx` (arch.h keeps these offsets):
 *
 *      0  sp          the paused task's stack pointer
 *      8  sched_sp    the scheduler's stack pointer while the task runs
 *     16  top         where the task's stack begins, 16-byte aligned
 *     24  fp_control: mxcsr, 28 the x87 control word     of the paused task
 *     32  sched_fp_control: the same                     of the scheduler
 *
 * A frame that is left behind, on either side, looks the same:
 *
 *     sp + 48  return address
 *     sp + 40  rbp      <- rbp points here (frame pointer chain)
 *     sp + 32  rbx
 *     sp + 24  r12 ... sp + 0  r15
 *
 * The task's stack begins with a frame record, so that frame-pointer walkers
 * (perf) and CFI unwinders (gdb) continue from the task to the scheduler that
 * runs it now.  fair__arch_resume patches its link at each slice:
 *
 *     top - 16  the ctx
 *     top - 24  a return address in fair__arch_start
 *     top - 32  link: the scheduler's rbp   <- rbp in fair__arch_start
 *
 * The ABI makes mxcsr's control bits and the x87 control word callee-saved; a
 * body that changed them is paused with its own and the VM gets back its own.
 * Not for threads with a shadow stack (CET SHSTK): returns go elsewhere.
 */

#include "function.h"

        .text

        .macro  save_frame
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        movq    %rsp, %rbp
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        .endm

        .macro  load_frame
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        .endm

/* void fair__arch_start(struct fair__ctx *ctx, void (*fn)(void *), void *arg)
 * Runs fn(arg) on the task's stack.  Returns when fn returns or pauses. */
        function fair__arch_start
        /* gdb takes a caller whose frame lies below its callee's for a sign
         * of corruption, except beside a signal frame; and a task's stack may
         * lie on either side of the scheduler's. */
        .cfi_signal_frame
        endbr64
        save_frame
        movq    %rsp, 8(%rdi)
        stmxcsr 32(%rdi)
        fnstcw  36(%rdi)
        movq    16(%rdi), %rcx
        leaq    LOCAL(returned)(%rip), %rax
        movq    %rdi, -16(%rcx)
        movq    %rax, -24(%rcx)
        movq    %rbp, -32(%rcx)
        leaq    -32(%rcx), %rsp
        movq    %rsp, %rbp
        /* From here the caller's frame is found through the link:
         * CFA = *(rbp) + 16, the registers where save_frame put them. */
        .cfi_remember_state
        .cfi_escape 0x0f, 5, 0x76, 0, 0x06, 0x23, 16
        movq    %rdx, %rdi
        callq   *%rsi
LOCAL(returned):
        movq    16(%rbp), %rdi
        movq    8(%rdi), %rsp
        .cfi_restore_state
        load_frame
        ret
        end     fair__arch_start

/* void fair__arch_resume(struct fair__ctx *ctx)
 * Continues after the task's last pause.  Returns when it pauses or ends. */
        function fair__arch_resume
        endbr64
        save_frame
        movq    %rsp, 8(%rdi)
        stmxcsr 32(%rdi)
        fnstcw  36(%rdi)
        movq    16(%rdi), %rcx
        movq    %rbp, -32(%rcx)
        movq    0(%rdi), %rsp
        ldmxcsr 24(%rdi)
        fldcw   28(%rdi)
        load_frame
        ret
        end     fair__arch_resume

/* void fair__arch_pause(struct fair__ctx *ctx)
 * From the task: back to the scheduler.  Returns when it is resumed, on
 * whichever thread that is. */
        function fair__arch_pause
        endbr64
        save_frame
        movq    %rsp, 0(%rdi)
        stmxcsr 24(%rdi)
        fnstcw  28(%rdi)
        movq    8(%rdi), %rsp
        ldmxcsr 32(%rdi)
        fldcw   36(%rdi)
        load_frame
        ret
        end     fair__arch_pause

/* void fair__arch_call(struct fair__ctx *ctx, void (*fn)(void *), void *arg)
 * From the task: runs fn(arg) on the scheduler's stack, below what lies there.
 * An ordinary call but for the stack pointer: the processor foresees its
 * return, which it does not with a pause and a resume. */
        function fair__arch_call
        .cfi_signal_frame
        endbr64
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        movq    8(%rdi), %rsp
        andq    $-16, %rsp
        movq    %rdx, %rdi
        callq   *%rsi
        leave
        .cfi_def_cfa %rsp, 8
        .cfi_restore %rbp
        ret
        end     fair__arch_call

        NO_EXECUTABLE_STACK
