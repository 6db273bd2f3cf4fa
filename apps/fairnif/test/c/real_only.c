/*
 * real_only.c - what of vm.h only the stand-in can do: a test that calls one of
 * these in the real emulator is skipped, by that name.  They never return, so
 * what they take and answer does not matter here.
 */
#include "real.h"

#define STANDS_IN_ONLY(NAME) void NAME(void); \
    void NAME(void) { real_skip(#NAME); }

/* which slice runs when, on which thread */
STANDS_IN_ONLY(step_by_step)
STANDS_IN_ONLY(vm_step)
STANDS_IN_ONLY(vm_slice)
STANDS_IN_ONLY(run_all_slices)
STANDS_IN_ONLY(vm_post)
STANDS_IN_ONLY(vm_wait)
STANDS_IN_ONLY(vm_on)
STANDS_IN_ONLY(vm_nth_thread)
STANDS_IN_ONLY(vm_thread_count)
STANDS_IN_ONLY(vm_next_kind)
STANDS_IN_ONLY(vm_kinds)
STANDS_IN_ONLY(vm_slices)
STANDS_IN_ONLY(vm_percent)
STANDS_IN_ONLY(vm_pause)
STANDS_IN_ONLY(node_forget)
STANDS_IN_ONLY(vm_run_destructors)
STANDS_IN_ONLY(real_options)
/* what there is, to the last block */
STANDS_IN_ONLY(vm_counts)
STANDS_IN_ONLY(vm_reset_maxima)
STANDS_IN_ONLY(node_leftovers)
STANDS_IN_ONLY(node_records)
/* faults */
STANDS_IN_ONLY(vm_fail)
STANDS_IN_ONLY(vm_failed)
/* libraries that come and go */
STANDS_IN_ONLY(vm_load)
STANDS_IN_ONLY(vm_purge)
STANDS_IN_ONLY(vm_unmapped)
STANDS_IN_ONLY(vm_on_unmap)
STANDS_IN_ONLY(node_load_info)
STANDS_IN_ONLY(node_upgrade)
STANDS_IN_ONLY(node_runtime_again)
STANDS_IN_ONLY(node_visit)
STANDS_IN_ONLY(node_without_pool)
/* registers at the switch */
STANDS_IN_ONLY(vm__call_marked)
STANDS_IN_ONLY(vm__fp_control)
/* processes without a call */
STANDS_IN_ONLY(vm_register)
STANDS_IN_ONLY(vm_message)
STANDS_IN_ONLY(vm_await_term)
