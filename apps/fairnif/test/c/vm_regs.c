/*
 * vm_regs.c - calls that notice a callee-saved register that was lost.
 */
#include "vm_int.h"

#if defined(__x86_64__)

/* rdi fn, rsi a, rdx b, rcx c, r8 result, r9 seed.  Saved at 0(%rsp) result,
 * 8(%rsp) seed.  The marks are seed + 1, ... in the order of SAVED. */
#define SAVED "rbx, rbp, r12, r13, r14, r15"
__asm__(
    ".text\n"
    ".globl vm__call_marked\n"
    ".type vm__call_marked, @function\n"
    "vm__call_marked:\n"
    "    .cfi_startproc\n"
    "    endbr64\n"
    "    .irp r, " SAVED "\n"
    "    pushq %\\r\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset \\r, 0\n"
    "    .endr\n"
    "    subq $24, %rsp\n    .cfi_adjust_cfa_offset 24\n"
    "    movq %r8, 0(%rsp)\n"
    "    movq %r9, 8(%rsp)\n"
    "    movq %rdi, %rax\n"
    "    movq %rsi, %rdi\n"
    "    movq %rdx, %rsi\n"
    "    movq %rcx, %rdx\n"
    "    .irp r, " SAVED "\n"
    "    incq %r9\n    movq %r9, %\\r\n"
    "    .endr\n"
    "    callq *%rax\n"
    "    movq 0(%rsp), %rcx\n"
    "    movq %rax, (%rcx)\n"
    "    movq 8(%rsp), %rdx\n"
    "    xorl %eax, %eax\n"
    "    movl $1, %ecx\n"
    "    .irp r, " SAVED "\n"
    "    incq %rdx\n    cmpq %rdx, %\\r\n    je 1f\n    orl %ecx, %eax\n"
    "1:  addl %ecx, %ecx\n"
    "    .endr\n"
    "    addq $24, %rsp\n    .cfi_adjust_cfa_offset -24\n"
    "    .irp r, r15, r14, r13, r12, rbp, rbx\n"
    "    popq %\\r\n    .cfi_adjust_cfa_offset -8\n    .cfi_restore \\r\n"
    "    .endr\n"
    "    ret\n"
    "    .cfi_endproc\n"
    ".size vm__call_marked, . - vm__call_marked\n");

uint64_t vm__fp_control(void)
{
    uint32_t mxcsr;
    uint16_t fcw;

    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(fcw));
    return (mxcsr & 0xFFC0u) | (uint64_t)fcw << 32;
}

#else

/* Where the above is not written, nothing is lost. */
uint64_t vm__call_marked(void *fn, uint64_t a, uint64_t b, uint64_t c,
                         uint64_t *result, uint64_t seed)
{
    (void)seed;
    *result = ((uint64_t (*)(uint64_t, uint64_t, uint64_t))fn)(a, b, c);
    return 0;
}

uint64_t vm__fp_control(void)
{
#  if defined(__aarch64__)
    uint64_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
#  else
    return 0;
#  endif
}

#endif
