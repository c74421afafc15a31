/* doctor_checks.c: what checks share. */
#include "calibrate/doctor/doctor_checks.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void fr_doctor_add(fr_examination *at, const char *check,
                   fr_finding_state state, const char *needed_for,
                   const char *mend, const char *found, ...)
{
    fr_finding finding = {
        .check = check, .state = state, .needed_for = needed_for};
    va_list args;
    va_start(args, found);
    vsnprintf(finding.found, sizeof finding.found, found, args);
    va_end(args);
    snprintf(finding.mend, sizeof finding.mend, "%s", mend);
    if (fr_vec_push(at->out, finding) != FR_OK)
        at->has_failed = true;
}

bool fr_doctor_read(const fr_examination *at, const char *path, char *out,
                    size_t n)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", at->root, path);
    FILE *file = fopen(whole, "r");
    if (file == NULL)
        return false;
    bool is_read = fgets(out, (int)n, file) != NULL;
    fclose(file);
    if (is_read)
        out[strcspn(out, "\n")] = '\0';
    return is_read;
}

void fr_doctor_fold(fr_examination *at, const char *path,
                    void (*visit)(fr_examination *at, const char *name,
                                  double *number),
                    double *number)
{
    char whole[512];
    struct dirent **entries;
    snprintf(whole, sizeof whole, "%s%s", at->root, path);
    int n = scandir(whole, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.')
            visit(at, entries[i]->d_name, number);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

bool fr_doctor_has_program(const char *name)
{
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        char whole[1024];
        size_t n = strcspn(path, ":");
        snprintf(whole, sizeof whole, "%.*s/%s", (int)n, path, name);
        if (access(whole, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}
