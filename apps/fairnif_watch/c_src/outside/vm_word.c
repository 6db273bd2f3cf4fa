/*
 * vm_word.c - the emulator's writable data, in which its tables are looked for.
 */
#include <string.h>

#include "outside/vm_word.h"

enum { DATA_MOST = 4 << 20, LOOKED_MOST = 256 };

bool watch__vm_scan(struct watch__vm *vm, watch__vm_look *look)
{
    vm->looked = 0;
    for (unsigned i = 0; i < WATCH__SEGMENTS; i++) {
        const struct watch__vm_data *data = &vm->data[i];

        for (unsigned k = 0; k < data->count && vm->looked < LOOKED_MOST; k++)
            if (look(vm, data->start + 8 * (uint64_t)k, data->words + k,
                     data->count - k - 1))
                return true;
    }
    return false;
}

void watch__vm_take_data(struct watch__vm *vm,
                         const struct watch__image *image)
{
    for (unsigned i = 0; i < image->data_count && i < WATCH__SEGMENTS; i++) {
        struct watch__vm_data *data = &vm->data[i];
        uint64_t size = image->data[i].size;

        data->start = (image->data[i].start + 7) & ~(uint64_t)7;
        data->size = size < DATA_MOST ? (size_t)size + 8 : DATA_MOST;
        data->words = watch__pages(data->size);
        if (data->words)
            data->count = (unsigned)(watch__read(data->words, data->start,
                                                 data->size - 8) / 8);
    }
}

void watch__vm_leave_data(struct watch__vm *vm)
{
    for (unsigned i = 0; i < WATCH__SEGMENTS; i++)
        watch__pages_free(vm->data[i].words, vm->data[i].size);
    memset(vm->data, 0, sizeof vm->data);
}
