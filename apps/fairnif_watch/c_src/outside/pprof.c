/*
 * pprof.c - stacks that were counted, as pprof's profile.proto: a location and a
 * function for each name, without addresses.
 */
#include <string.h>

#include "outside/fold.h"

enum { FIELDS = 2048, NUMBER = 10 };

/* Fields of the messages, as profile.proto numbers them. */
enum { SAMPLE_TYPE = 1, SAMPLE = 2, LOCATION = 4, FUNCTION = 5, STRING = 6,
       TIME = 9, DURATION = 10, PERIOD_TYPE = 11, PERIOD = 12, COMMENT = 13 };
enum { VARINT, BYTES = 2 };
/* Strings that are there before the names. */
enum { S_SAMPLES = 1, S_COUNT, S_TIME, S_NS, S_IDLE };

struct message { unsigned char bytes[FIELDS]; size_t size; };

static void varint(struct message *m, uint64_t value)
{
    for (; value > 0x7f && m->size < FIELDS - NUMBER; value >>= 7)
        m->bytes[m->size++] = (unsigned char)(value | 0x80);
    m->bytes[m->size++] = (unsigned char)value;
}

static void field(struct message *m, unsigned number, uint64_t value)
{
    varint(m, number << 3 | VARINT);
    varint(m, value);
}

static void bytes(FILE *to, unsigned number, const void *what, size_t size)
{
    struct message head = {.size = 0};

    varint(&head, number << 3 | BYTES);
    varint(&head, size);
    fwrite(head.bytes, 1, head.size, to);
    fwrite(what, 1, size, to);
}

/* Up to WATCH__DEPTH numbers: they have room. */
static void packed(struct message *m, unsigned number,
                   const struct message *numbers)
{
    varint(m, number << 3 | BYTES);
    varint(m, numbers->size);
    memcpy(m->bytes + m->size, numbers->bytes, numbers->size);
    m->size += numbers->size;
}

static void type(FILE *to, unsigned number, unsigned what, unsigned unit)
{
    struct message m = {.size = 0};

    field(&m, 1, what);
    field(&m, 2, unit);
    bytes(to, number, m.bytes, m.size);
}

static void sample(FILE *to, const struct watch__fold *f, uint32_t node)
{
    struct message m = {.size = 0}, places = {.size = 0}, values = {.size = 0};
    uint64_t count = f->nodes[node].self;

    for (uint32_t at = node; at; at = f->nodes[at].parent)
        varint(&places, f->nodes[at].name);
    varint(&values, count);
    varint(&values, count * f->period_ns);
    packed(&m, 1, &places);
    packed(&m, 2, &values);
    bytes(to, SAMPLE, m.bytes, m.size);
}

/* A name's number is where it lies in the text; its string's comes in the order
 * of the text. */
static void names(FILE *to, const struct watch__fold *f, unsigned string)
{
    for (uint32_t at = 1; at < f->used; at += strlen(f->text + at) + 1) {
        struct message m = {.size = 0}, line = {.size = 0};

        field(&m, 1, at);
        field(&m, 2, string);
        field(&m, 3, string++);
        bytes(to, FUNCTION, m.bytes, m.size);
        bytes(to, STRING, f->text + at, strlen(f->text + at));
        field(&line, 1, at);
        m.size = 0;
        field(&m, 1, at);
        packed(&m, 4, &line);
        bytes(to, LOCATION, m.bytes, m.size);
    }
}

static void once(FILE *to, unsigned number, uint64_t value)
{
    struct message m = {.size = 0};

    field(&m, number, value);
    fwrite(m.bytes, 1, m.size, to);
}

void watch__write_pprof(FILE *to, struct watch__fold *f)
{
    static const char *const strings[] = {"", "samples", "count", "time",
                                          "nanoseconds"};

    for (unsigned i = 0; i < S_IDLE; i++)
        bytes(to, STRING, strings[i], strlen(strings[i]));
    for (unsigned i = 0; i < f->idle_count; i++) {
        char text[96];

        snprintf(text, sizeof text, "left out: idle %s %llu",
                 f->idle[i].name, (unsigned long long)f->idle[i].samples);
        bytes(to, STRING, text, strlen(text));
        once(to, COMMENT, S_IDLE + i);
    }
    type(to, SAMPLE_TYPE, S_SAMPLES, S_COUNT);
    type(to, SAMPLE_TYPE, S_TIME, S_NS);
    type(to, PERIOD_TYPE, S_TIME, S_NS);
    names(to, f, S_IDLE + f->idle_count);
    for (uint32_t i = 1; i < f->count; i++)
        if (f->nodes[i].self)
            sample(to, f, i);
    once(to, TIME, f->since_ns);
    once(to, DURATION, f->took_ns);
    once(to, PERIOD, f->period_ns);
}
