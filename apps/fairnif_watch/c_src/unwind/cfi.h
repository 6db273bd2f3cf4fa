/*
 * cfi.h - the instructions of an unwind table.
 */
#ifndef WATCH_CFI_H
#define WATCH_CFI_H

#include "read/bytes.h"
#include "unwind/row.h"

struct watch__cie {
    uint64_t code_factor;
    int64_t data_factor;
    unsigned encoding;          /* of addresses in its FDEs */
    bool augmented;             /* FDEs have augmentation data */
};
WATCH_HIDDEN bool watch__cfi_run(struct watch__reader *r,
                                 const struct watch__cie *cie,
                                 struct watch__row *row,
                                 const struct watch__row *first,
                                 uint64_t location, uint64_t pc);

#endif
