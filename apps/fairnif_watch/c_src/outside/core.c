#include "outside/core.h"
#include <stdio.h>
bool watch__core_dump(const char *path, struct watch__dump *d,
                      char why[WATCH__WHY])
{
    (void)d;
    snprintf(why, WATCH__WHY, "%s", path);
    return false;
}
