/*
 * vm_bin.c - binaries.
 *
 * Up to vm_options.heap_bin bytes (64, as in the real VM) a term lies on the
 * heap and moves with it, also one made from enif_alloc_binary's memory, which
 * goes at once, and a part of a larger one (as since OTP 27).  Larger ones are
 * counted by reference off the heap.  A binary that is resized always moves.
 * A binary
 * that does not begin on a byte is inspected as a copy that goes when the NIF
 * ends, as in the real VM.
 */
#include <string.h>

#include "vm_int.h"

#define LIVE 0x4C49564542494EULL
#define GONE 0x474F4E4542494EULL

static struct vm_bin *new_bin(size_t size)
{
    struct vm_bin *b;

    if (size > SIZE_MAX / 2)
        return NULL;
    b = vm__malloc(sizeof *b + size);
    b->magic = LIVE;
    b->refs = 1;
    b->size = size;
    memset(b->data, 0xB1, size < 4096 ? size : 4096);
    COUNT(binaries, 1);
    return b;
}

static struct vm_bin *check(struct vm_bin *b)
{
    if (b->magic != LIVE)
        vm_misuse("a binary that was freed");
    return b;
}

void vm__bin_keep(struct vm_bin *b)
{
    __atomic_add_fetch(&check(b)->refs, 1, __ATOMIC_RELAXED);
}

void vm__bin_drop(struct vm_bin *b)
{
    if (__atomic_sub_fetch(&check(b)->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    b->magic = GONE;
    memset(b->data, 0xDD, b->size < 4096 ? b->size : 4096);
    vm__free(b);
    COUNT(binaries, -1);
}

static vm_term make_refcbin(struct vm_heap *h, struct vm_bin *b)
{
    vm_term *p = vm__heap_alloc(h, 4);

    p[0] = HEADER(T_REFCBIN, 0);
    p[1] = (vm_term)b;
    p[2] = 0;
    p[3] = b->size;
    vm__heap_off(h, p);
    return BOXED(p);
}

vm_term vm__make_heapbin(struct vm_heap *h, size_t size, unsigned char **data)
{
    vm_term header = HEADER(T_HEAPBIN, size);
    vm_term *p = vm__heap_alloc(h, vm__boxed_words(header));

    p[0] = header;
    *data = (unsigned char *)(p + 1);
    return BOXED(p);
}

/* Where the bytes are; false when it is no binary nor bitstring. */
bool vm__span(vm_term t, struct vm_span *s)
{
    const vm_term *p = PTR(t);

    if (TAG(t) != TAG_BOXED)
        return false;
    s->bit = s->bits = 0;
    switch (SUBTAG(p[0])) {
    case T_HEAPBIN:
        s->data = (const unsigned char *)(p + 1);
        s->size = HSIZE(p[0]);
        return true;
    case T_REFCBIN:
        s->data = check((struct vm_bin *)p[1])->data + p[2];
        s->size = p[3];
        return true;
    case T_SUBBIN:
        vm__span(p[4], s);
        s->data += p[2];
        s->size = p[1];
        s->bit = p[3] & 255;
        s->bits = (unsigned)(p[3] >> 8);
        return true;
    default:
        return false;
    }
}

unsigned char *vm__span_copy(const struct vm_span *s, unsigned char *to)
{
    for (size_t i = 0; i < s->size; i++)
        to[i] = s->bit ? (unsigned char)(s->data[i] << s->bit
                                         | s->data[i + 1] >> (8 - s->bit))
                       : s->data[i];
    return to;
}

/* -- making -------------------------------------------------------------- */

unsigned char *enif_make_new_binary(ErlNifEnv *env, size_t size,
                                    vm_term *term)
{
    unsigned char *data;
    struct vm_bin *b;

    vm__env_check(env, __func__);
    if (size <= vm_options.heap_bin) {
        *term = vm__make_heapbin(env->heap, size, &data);
        return data;
    }
    b = new_bin(size);
    if (!b)
        vm_misuse("enif_make_new_binary of %zu bytes", size);
    *term = make_refcbin(env->heap, b);
    return b->data;
}

int enif_alloc_binary(size_t size, ErlNifBinary *bin)
{
    struct vm_bin *b = vm__fails(VM_F_BINARY) ? NULL : new_bin(size);

    if (!b)
        return 0;
    bin->size = size;
    bin->data = b->data;
    bin->ref_bin = b;
    return 1;
}

/* Moves always, as the real one may. */
int enif_realloc_binary(ErlNifBinary *bin, size_t size)
{
    struct vm_bin *old = bin->ref_bin, *b;

    b = vm__fails(VM_F_BINARY) ? NULL : new_bin(size);
    if (!b)
        return 0;
    if (old && check(old)->refs != 1)
        vm_misuse("enif_realloc_binary of a binary that is in use");
    memcpy(b->data, bin->data, size < bin->size ? size : bin->size);
    if (old)
        vm__bin_drop(old);
    bin->size = size;
    bin->data = b->data;
    bin->ref_bin = b;
    return 1;
}

void enif_release_binary(ErlNifBinary *bin)
{
    if (bin->ref_bin)
        vm__bin_drop(bin->ref_bin);
    bin->ref_bin = NULL;
    bin->data = NULL;
    bin->size = 0;
}

vm_term enif_make_binary(ErlNifEnv *env, ErlNifBinary *bin)
{
    vm_term t;

    vm__env_check(env, __func__);
    if (bin->ref_bin && bin->size > vm_options.heap_bin) {
        t = make_refcbin(env->heap, check(bin->ref_bin));
        bin->ref_bin = NULL;
        return t;
    }
    if (bin->size)
        memcpy(enif_make_new_binary(env, bin->size, &t), bin->data, bin->size);
    else
        enif_make_new_binary(env, 0, &t);
    vm__walked(bin->size / sizeof(vm_term));
    if (bin->ref_bin)
        enif_release_binary(bin);
    return t;
}

static vm_term make_subbin(struct vm_heap *h, vm_term of, size_t offset,
                           size_t size, unsigned bit, unsigned bits)
{
    vm_term *p = vm__heap_alloc(h, 5);

    p[0] = HEADER(T_SUBBIN, 0);
    p[1] = size;
    p[2] = offset;
    p[3] = bit | (vm_term)bits << 8;
    p[4] = of;
    return BOXED(p);
}

vm_term enif_make_sub_binary(ErlNifEnv *env, vm_term term, size_t pos,
                             size_t size)
{
    struct vm_span s;
    unsigned char *data;
    size_t offset = pos;
    unsigned bit = 0;

    vm__env_check(env, __func__);
    vm__owned(env, term, __func__);
    if (!vm__span(term, &s) || pos + size < pos || pos + size > s.size)
        vm_misuse("enif_make_sub_binary: bad part");
    if (vm__is(term, T_SUBBIN)) {
        offset += PTR(term)[2];
        bit = PTR(term)[3] & 255;
        term = PTR(term)[4];
    }
    if (size <= vm_options.heap_bin) {
        s.data += pos;
        s.size = size;
        term = vm__make_heapbin(env->heap, size, &data);
        vm__span_copy(&s, data);
        return term;
    }
    return make_subbin(env->heap, term, offset, size, bit, 0);
}

/* -- reading ------------------------------------------------------------- */

int enif_is_binary(ErlNifEnv *env, vm_term term)
{
    struct vm_span s;

    vm__env_check(env, __func__);
    return vm__span(term, &s) && !s.bits;
}

int enif_inspect_binary(ErlNifEnv *env, vm_term term, ErlNifBinary *bin)
{
    struct vm_span s;

    vm__env_check(env, __func__);
    if (!vm__span(term, &s) || s.bits)
        return 0;
    bin->size = s.size;
    bin->ref_bin = NULL;
    bin->data = (unsigned char *)s.data;
    if (s.bit) {
        bin->data = vm__span_copy(&s, vm__malloc(s.size + 1));
        vm__walked(s.size / sizeof(vm_term));
        vm__temporary(env, bin->data);
    }
    return 1;
}

/* -- for tests ----------------------------------------------------------- */

vm_term vm_bits(ErlNifEnv *env, const void *data, size_t size, unsigned bit)
{
    const unsigned char *from = data;
    unsigned char *to;
    vm_term t;

    if (!bit)
        return vm_binary(env, data, size);
    to = enif_make_new_binary(env, size + 1, &t);
    memset(to, 0, size + 1);
    for (size_t i = 0; i < size; i++) {
        to[i] |= (unsigned char)(from[i] >> bit);
        to[i + 1] |= (unsigned char)(from[i] << (8 - bit));
    }
    return make_subbin(env->heap, t, 0, size, bit, 0);
}

vm_term vm__bitstring(ErlNifEnv *env, size_t bytes, unsigned bits)
{
    vm_term t;

    memset(enif_make_new_binary(env, bytes + 1, &t), 0x55, bytes + 1);
    return make_subbin(env->heap, t, 0, bytes, 0, bits);
}

/* No fair function uses it, only the plain forms of examples. */
int enif_inspect_iolist_as_binary(ErlNifEnv *env, ERL_NIF_TERM term,
                                  ErlNifBinary *bin)
{
    if (!enif_inspect_binary(env, term, bin))
        vm_misuse("an iolist, which the stand-in does not flatten");
    return 1;
}
