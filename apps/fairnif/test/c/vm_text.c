/*
 * vm_text.c - terms as text, as Erlang writes them, and from text.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vm_int.h"

/* -- printing ------------------------------------------------------------ */

static void print(FILE *o, vm_term t);

static void print_words(FILE *o, const vm_term *p, size_t n,
                        const char *between)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            fputs(i % 2 ? between : ",", o);
        print(o, p[i]);
    }
}

static void print_list(FILE *o, vm_term t)
{
    fputc('[', o);
    print(o, PTR(t)[0]);
    for (t = PTR(t)[1]; TAG(t) == TAG_CONS; t = PTR(t)[1]) {
        fputc(',', o);
        print(o, PTR(t)[0]);
    }
    if (t != VM_NIL) {
        fputc('|', o);
        print(o, t);
    }
    fputc(']', o);
}

static void print_bits(FILE *o, const struct vm_span *s)
{
    fputs("<<", o);
    for (size_t i = 0; i < s->size; i++) {
        struct vm_span one = {s->data + i, 1, s->bit, 0};
        unsigned char byte;

        vm__span_copy(&one, &byte);
        fprintf(o, "%s%u", i ? "," : "", byte);
    }
    if (s->bits)
        fprintf(o, "%s:%u", s->size ? "," : "", s->bits);
    fputs(">>", o);
}

static void print_integer(FILE *o, __int128 n)
{
    char digits[48] = "";
    size_t i = sizeof digits - 1;
    unsigned __int128 m = (unsigned __int128)(n < 0 ? -n : n);

    do
        digits[--i] = (char)('0' + (int)(m % 10));
    while (m /= 10);
    fprintf(o, "%s%s", n < 0 ? "-" : "", digits + i);
}

static void print(FILE *o, vm_term t)
{
    struct vm_span s;
    __int128 n;
    double x;

    if (vm__integer(t, &n)) {
        print_integer(o, n);
    } else if (IS_ATOM(t)) {
        fputs(vm__atom_name(t), o);
    } else if (IS_PID(t)) {
        fprintf(o, "<0.%zu.0>", PID_NUMBER(t));
    } else if (t == VM_NIL) {
        fputs("[]", o);
    } else if (TAG(t) == TAG_CONS) {
        print_list(o, t);
    } else if (TAG(t) != TAG_BOXED) {
        fprintf(o, "#no_term<%#lx>", t);
    } else if (vm__float(t, &x)) {
        fprintf(o, "%.17g", x);
    } else if (vm__span(t, &s)) {
        print_bits(o, &s);
    } else if (vm__is(t, T_TUPLE)) {
        fputc('{', o);
        print_words(o, PTR(t) + 1, HSIZE(PTR(t)[0]), ",");
        fputc('}', o);
    } else if (vm__is(t, T_MAP)) {
        fputs("#{", o);
        print_words(o, PTR(t) + 1, 2 * HSIZE(PTR(t)[0]), "=>");
        fputc('}', o);
    } else {
        fputs(vm__is(t, T_FUN) ? "#Fun" : "#Ref", o);
    }
}

/* For one term, as far as anybody asks. */
int enif_snprintf(char *buf, size_t size, const char *format, ...)
{
    va_list args;

    if (strcmp(format, "%T") != 0)
        vm_misuse("enif_snprintf of \"%s\"", format);
    va_start(args, format);
    vm_print(va_arg(args, vm_term), buf, size);
    va_end(args);
    return (int)strlen(buf);
}

char *vm_print(vm_term term, char *buf, size_t size)
{
    FILE *o = fmemopen(buf, size, "w");

    print(o, term);
    fclose(o);
    buf[size - 1] = 0;
    return buf;
}

/* -- parsing ------------------------------------------------------------- */

struct in {
    ErlNifEnv *env;
    const char *p;
};

static bool next(struct in *in, const char *token)
{
    while (*in->p == ' ' || *in->p == '\n')
        in->p++;
    if (strncmp(in->p, token, strlen(token)))
        return false;
    in->p += strlen(token);
    return true;
}

static void want(struct in *in, const char *token)
{
    if (!next(in, token))
        vm_misuse("vm_parse: %s expected before: %s", token, in->p);
}

static vm_term term(struct in *in);

static unsigned sequence(struct in *in, const char *end, vm_term *terms)
{
    unsigned n = 0;

    if (next(in, end))
        return 0;
    do {
        if (n == 64)
            vm_misuse("vm_parse: more than 64 elements");
        terms[n++] = term(in);
    } while (next(in, ",") || next(in, "=>"));
    if (strcmp(end, "]"))
        want(in, end);
    return n;
}

static vm_term list(struct in *in)
{
    vm_term terms[64], tail = VM_NIL;
    unsigned n = sequence(in, "]", terms);

    if (!n)
        return VM_NIL;
    if (next(in, "|"))
        tail = term(in);
    want(in, "]");
    while (n-- > 0)
        tail = enif_make_list_cell(in->env, terms[n], tail);
    return tail;
}

static vm_term map(struct in *in)
{
    vm_term terms[64], m = enif_make_new_map(in->env);
    unsigned n = sequence(in, "}", terms);

    for (unsigned i = 0; i + 1 < n; i += 2)
        enif_make_map_put(in->env, m, terms[i], terms[i + 1], &m);
    return m;
}

/* <<1,2,3>>; <<1,2,3:5>> has 5 bits more than two bytes; <<1,2/3>> begins
 * 3 bits into a byte. */
static vm_term bits(struct in *in)
{
    unsigned char bytes[256];
    size_t n = 0;
    unsigned bit = 0;

    if (next(in, ">>"))
        return vm_binary(in->env, "", 0);
    do {
        char *end;

        bytes[n++] = (unsigned char)strtoul(in->p, &end, 10);
        in->p = end;
        if (next(in, ":")) {
            bit = (unsigned)strtoul(in->p, &end, 10);
            in->p = end;
            want(in, ">>");
            return vm__bitstring(in->env, n - 1, bit);
        }
        if (next(in, "/")) {
            bit = (unsigned)strtoul(in->p, &end, 10);
            in->p = end;
        }
    } while (next(in, ","));
    want(in, ">>");
    return vm_bits(in->env, bytes, n, bit);
}

static vm_term number(struct in *in)
{
    const char *p = in->p;
    bool negative = *p == '-';
    __int128 n = 0;
    char *end;

    for (p += negative; isdigit((unsigned char)*p); p++)
        n = n * 10 + (*p - '0');
    if (*p == '.' && isdigit((unsigned char)p[1])) {
        double x = strtod(in->p, &end);

        in->p = end;
        return enif_make_double(in->env, x);
    }
    in->p = p;
    return vm__make_integer(in->env->heap, negative ? -n : n);
}

static vm_term string(struct in *in)
{
    const char *end = strchr(in->p, '"');
    vm_term t = enif_make_string_len(in->env, in->p, (size_t)(end - in->p),
                                     ERL_NIF_LATIN1);

    in->p = end + 1;
    return t;
}

static vm_term term(struct in *in)
{
    vm_term terms[64];
    const char *p;
    size_t n;

    if (next(in, "{")) {
        unsigned arity = sequence(in, "}", terms);

        return enif_make_tuple_from_array(in->env, terms, arity);
    }
    if (next(in, "["))
        return list(in);
    if (next(in, "#{"))
        return map(in);
    if (next(in, "<<"))
        return bits(in);
    if (next(in, "\""))
        return string(in);
    if (next(in, "#Ref"))
        return enif_make_ref(in->env);
    if (next(in, "#Fun")) {
        vm_term *f = vm__heap_alloc(in->env->heap, 2);

        f[0] = HEADER(T_FUN, 1);
        f[1] = 1;
        return BOXED(f);
    }
    if (isdigit((unsigned char)*in->p) || *in->p == '-')
        return number(in);
    for (p = in->p, n = 0; isalnum((unsigned char)p[n]) || p[n] == '_'; n++)
        ;
    if (!n)
        vm_misuse("vm_parse: no term: %s", in->p);
    in->p += n;
    return vm__atom(p, n);
}

vm_term vm_parse(ErlNifEnv *env, const char *text)
{
    struct in in = {env, text};

    return term(&in);
}

int vm_parse_args(ErlNifEnv *env, const char *text, vm_term *argv, int max)
{
    struct in in = {env, text};
    int n = 0;

    next(&in, "");
    while (*in.p) {
        if (n == max)
            vm_misuse("vm_parse_args: too many");
        argv[n++] = term(&in);
        next(&in, ",");
        next(&in, "");
    }
    return n;
}

vm_term vm_byte_list(ErlNifEnv *env, size_t length, vm_term tail)
{
    while (length-- > 0)
        tail = enif_make_list_cell(env, SMALL(length & 255), tail);
    return tail;
}
