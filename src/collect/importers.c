/* The table of importers. A new one is a file import_NAME.c and a row here. The order is that
 * of detection: formats with a magic number first, free text last. */
#include "collect/importers.h"

#include <string.h>

extern const struct importer importer_perf, importer_pprof, importer_script, importer_folded;

const struct importer *const importers[] = {
    &importer_perf, &importer_script, &importer_folded, &importer_pprof, NULL,
};

const struct importer *importer_find(const char *name)
{
    for (size_t i = 0; importers[i]; i++)
        if (strcmp(importers[i]->name, name) == 0)
            return importers[i];
    return NULL;
}

const struct importer *importer_detect(struct str head)
{
    for (size_t i = 0; importers[i]; i++)
        if (importers[i]->detect(head))
            return importers[i];
    return NULL;
}
