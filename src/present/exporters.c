/* The table of exporters. A new one is a file export_NAME.c and a row here. */
#include "present/exporters.h"

#include "present/export_flame.h"

#include <string.h>

extern const struct exporter exporter_pprof, exporter_firefox, exporter_firefox_gz,
    exporter_speedscope, exporter_folded, exporter_callgrind, exporter_autofdo;

const struct exporter *const exporters[] = {
    &exporter_pprof,
    &exporter_firefox,
    &exporter_firefox_gz,
    &exporter_speedscope,
    &exporter_folded,
    &exporter_callgrind,
    &exporter_autofdo,
    &exporter_flame,
    &exporter_icicle,
    &exporter_html,
    NULL,
};

const struct exporter *exporter_find(const char *name)
{
    for (size_t i = 0; exporters[i]; i++)
        if (strcmp(exporters[i]->name, name) == 0)
            return exporters[i];
    return NULL;
}

const struct exporter *exporter_for_file(const char *path)
{
    const struct exporter *found = NULL;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    /* valgrind's own way of naming them, which kcachegrind looks for. */
    if (strncmp(name, "callgrind.", strlen("callgrind.")) == 0)
        return &exporter_callgrind;
    for (size_t i = 0; exporters[i]; i++)
        if (str_ends(str_from(name), exporters[i]->extension) &&
            (!found || strlen(exporters[i]->extension) > strlen(found->extension)))
            found = exporters[i];
    return found;
}
