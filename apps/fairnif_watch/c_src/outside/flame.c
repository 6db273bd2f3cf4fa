/*
 * flame.c - stacks that were counted as a picture: a page of SVG that needs
 * nothing but itself.
 */
#include <string.h>

#include "outside/fold.h"
#include "outside/print.h"

enum { WIDTH = 1200, ROW = 17, LETTER = 7, HEAD = 42, FOOT = 26 };

static const char style[] =
    "<style>text{font:12px monospace;fill:#1b1b1b}"
    "rect{stroke:#fff;stroke-width:.5}"
    ".c0{fill:#b9c6d6}.c1{fill:#f5b971}.c2{fill:#ef8a80}.c3{fill:#cfd8b0}"
    "g:hover rect{stroke:#000}</style>\n";

static void escaped(FILE *to, const char *text, size_t size)
{
    for (; size-- > 0; text++)
        switch (*text) {
        case '&': fputs("&amp;", to); break;
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '"': fputs("&quot;", to); break;
        default: putc(*text, to);
        }
}

/* As many characters as fit, two of them dots where not all do. */
static void label(FILE *to, const char *name, size_t fit)
{
    size_t at = 0, n = 0, cut = 0;

    if (fit < 3)
        return;
    while (name[at] && n < fit) {
        at += watch__utf8((const unsigned char *)name + at);
        if (++n == fit - 2)
            cut = at;
    }
    escaped(to, name, name[at] ? cut : at);
    if (name[at])
        fputs("..", to);
}

static void draw(FILE *to, const struct watch__fold *f,
                 const struct watch__node *n, double x, double y)
{
    const char *name = f->text + n->name;
    double width = WIDTH * (double)n->total / (double)f->samples;

    fputs("<g><title>", to);
    escaped(to, name, strlen(name));
    fprintf(to, " (%llu samples, %.2f %%)</title><rect class=\"c%d\" x=\"%.2f\" "
            "y=\"%.0f\" width=\"%.2f\" height=\"%d\"/>",
            (unsigned long long)n->total,
            100.0 * (double)n->total / (double)f->samples, n->colour, x, y,
            width, ROW);
    fprintf(to, "<text x=\"%.2f\" y=\"%.0f\">", x + 3, y + ROW - 5);
    label(to, name, width > 6 ? (size_t)((width - 6) / LETTER) : 0);
    fputs("</text></g>\n", to);
}

static unsigned depth_of(const struct watch__fold *f)
{
    unsigned depth = 0;

    for (uint32_t i = 1; i < f->count; i++)
        if (f->nodes[i].total && f->nodes[i].depth >= depth)
            depth = f->nodes[i].depth + 1u;
    return depth;
}

static void foot(FILE *to, const struct watch__fold *f, double y)
{
    fprintf(to, "<text x=\"4\" y=\"%.0f\" style=\"font-size:9px\">not in it: "
            "idle", y);
    for (unsigned i = 0; i < f->idle_count; i++)
        fprintf(to, ", %s %llu", f->idle[i].name,
                (unsigned long long)f->idle[i].samples);
    fputs("</text>\n</svg>\n", to);
}

/* Each node behind its parent, which knows where its next child begins. */
void watch__write_svg(FILE *to, struct watch__fold *f)
{
    unsigned depth = depth_of(f);
    double height = HEAD + (double)depth * ROW + FOOT;

    fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n%s"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text x=\"4\" y=\"18\">", WIDTH, height, WIDTH, height, style);
    escaped(to, f->title, strlen(f->title));
    fprintf(to, "</text><text x=\"4\" y=\"34\">%llu samples, %.1f s; width: the share "
            "of samples</text>\n", (unsigned long long)f->samples,
            (double)f->took_ns / NS_PER_S);
    for (uint32_t i = 1; i < f->count; i++) {
        struct watch__node *n = &f->nodes[i], *parent = &f->nodes[n->parent];

        n->at = parent->at;
        parent->at += n->total;
        /* What is too narrow to be seen is left out. */
        if (f->samples && n->total * 4.0 * WIDTH >= (double)f->samples)
            draw(to, f, n, WIDTH * (double)n->at / (double)f->samples,
                 HEAD + (double)(depth - n->depth - 1) * ROW);
    }
    foot(to, f, height - 8);
}
