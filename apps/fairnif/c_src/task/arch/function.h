/*
 * function.h - how a function begins and ends, in ELF and in Mach-O (macOS).
 */
#ifdef __APPLE__
#  define LOCAL(NAME) L##NAME
#  define NO_EXECUTABLE_STACK
        .macro  function name
        .globl  _\name
        .private_extern _\name
        .p2align 4
_\name:
        .cfi_startproc
        .endm

        .macro  end name
        .cfi_endproc
        .endm
#else
#  define LOCAL(NAME) .L##NAME
#  define NO_EXECUTABLE_STACK .section .note.GNU-stack, "", %progbits
        .macro  function name
        .globl  \name
        .hidden \name
        .type   \name, %function
        .p2align 4
\name:
        .cfi_startproc
        .endm

        .macro  end name
        .cfi_endproc
        .size   \name, . - \name
        .endm
#endif
