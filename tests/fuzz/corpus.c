/*
 * corpus.c: gives each file of a corpus to a fuzz target, for builds without
 * libFuzzer.  Arguments are files and folders of files.
 */
#include "core/system/fileio.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static int replay_file(const char *path)
{
    char *bytes;
    size_t n;
    fr_err err;

    if (fr_file_read(path, 0, &bytes, &n, &err) != FR_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    /* A crash ends the program: this line then says where. */
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput((const uint8_t *)bytes, n);
    free(bytes);
    return 0;
}

static int replay_folder(const char *path, int *n_files)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    int n_bad = 0;

    if (!folder) {
        printf("%s: no such corpus\n", path);
        return 1;
    }
    while ((entry = readdir(folder))) {
        char file[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        n_bad += replay_file(file);
        ++*n_files;
    }
    closedir(folder);
    return n_bad;
}

int main(int argc, char **argv)
{
    int n_files = 0, n_bad = 0;

    for (int i = 1; i < argc; i++) {
        if (fr_dir_exists(argv[i])) {
            n_bad += replay_folder(argv[i], &n_files);
        } else {
            n_bad += replay_file(argv[i]);
            n_files++;
        }
    }
    /* An empty corpus would pass whatever the reader does. */
    if (n_files == 0) {
        printf("nothing to replay\n");
        n_bad++;
    }
    printf("# %d passed, %d failed, 0 skipped\n",
           n_files - n_bad < 0 ? 0 : n_files - n_bad, n_bad);
    return n_bad ? 1 : 0;
}
