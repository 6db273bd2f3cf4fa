/*
 * vm_regs.c - calls that notice a callee-saved register that was lost.
 */
#include "vm_int.h"

#if defined(__x86_64__)

/* rdi fn, rsi a, rdx b, rcx c, r8 result, r9 seed.  Saved at 0(%rsp) result,
 * 8(%rsp) seed.  The marks are seed + 1, ... in rbx, rbp, r12 to r15. */
__asm__(
    ".text\n"
    ".globl vm__call_marked\n"
    ".type vm__call_marked, @function\n"
    "vm__call_marked:\n"
    "    .cfi_startproc\n"
    "    endbr64\n"
    "    pushq %rbp\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset %rbp, 0\n"
    "    pushq %rbx\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset %rbx, 0\n"
    "    pushq %r12\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset %r12, 0\n"
    "    pushq %r13\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset %r13, 0\n"
    "    pushq %r14\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset %r14, 0\n"
    "    pushq %r15\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset %r15, 0\n"
    "    subq $24, %rsp\n    .cfi_adjust_cfa_offset 24\n"
    "    movq %r8, 0(%rsp)\n"
    "    movq %r9, 8(%rsp)\n"
    "    movq %rdi, %rax\n"
    "    movq %rsi, %rdi\n"
    "    movq %rdx, %rsi\n"
    "    movq %rcx, %rdx\n"
    "    leaq 1(%r9), %rbx\n"
    "    leaq 2(%r9), %rbp\n"
    "    leaq 3(%r9), %r12\n"
    "    leaq 4(%r9), %r13\n"
    "    leaq 5(%r9), %r14\n"
    "    leaq 6(%r9), %r15\n"
    "    callq *%rax\n"
    "    movq 0(%rsp), %rcx\n"
    "    movq %rax, (%rcx)\n"
    "    movq 8(%rsp), %rdx\n"
    "    xorl %eax, %eax\n"
    "    leaq 1(%rdx), %rcx\n    cmpq %rcx, %rbx\n    je 1f\n"
    "    orl $1, %eax\n"
    "1:  leaq 2(%rdx), %rcx\n    cmpq %rcx, %rbp\n    je 1f\n"
    "    orl $2, %eax\n"
    "1:  leaq 3(%rdx), %rcx\n    cmpq %rcx, %r12\n    je 1f\n"
    "    orl $4, %eax\n"
    "1:  leaq 4(%rdx), %rcx\n    cmpq %rcx, %r13\n    je 1f\n"
    "    orl $8, %eax\n"
    "1:  leaq 5(%rdx), %rcx\n    cmpq %rcx, %r14\n    je 1f\n"
    "    orl $16, %eax\n"
    "1:  leaq 6(%rdx), %rcx\n    cmpq %rcx, %r15\n    je 1f\n"
    "    orl $32, %eax\n"
    "1:  addq $24, %rsp\n    .cfi_adjust_cfa_offset -24\n"
    "    popq %r15\n    .cfi_adjust_cfa_offset -8\n    .cfi_restore %r15\n"
    "    popq %r14\n    .cfi_adjust_cfa_offset -8\n    .cfi_restore %r14\n"
    "    popq %r13\n    .cfi_adjust_cfa_offset -8\n    .cfi_restore %r13\n"
    "    popq %r12\n    .cfi_adjust_cfa_offset -8\n    .cfi_restore %r12\n"
    "    popq %rbx\n    .cfi_adjust_cfa_offset -8\n    .cfi_restore %rbx\n"
    "    popq %rbp\n    .cfi_adjust_cfa_offset -8\n    .cfi_restore %rbp\n"
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

/* Where nobody has written the above, nothing is lost. */
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
