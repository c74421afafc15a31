/* test_fileio.c: files as wholes. */
#include "core/system/fileio.h"
#include "tests/check.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int n = 0;

    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n - 2;
}

static void write_and_read(const char *dir)
{
    char path[256], deep[256], *text;
    unsigned char bytes[40000];
    size_t n;
    struct stat info;
    fr_err err;

    snprintf(path, sizeof path, "%s/file", dir);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * i >> 3);
    CHECK_OK(fr_file_write(path, bytes, sizeof bytes, &err), &err);
    CHECK_OK(fr_file_read(path, 0, &text, &n, &err), &err);
    CHECK(n == sizeof bytes && memcmp(text, bytes, n) == 0 && text[n] == 0);
    free(text);
    CHECK_FAILS(fr_file_read(path, 39999, &text, &n, &err), FR_INPUT, &err);
    CHECK_OK(fr_file_read(path, 40000, &text, NULL, &err), &err);
    free(text);
    /* Over an old file: its mode stays, nothing is left beside it. */
    CHECK(chmod(path, 0640) == 0);
    CHECK_OK(fr_file_write(path, "", 0, &err), &err);
    CHECK(stat(path, &info) == 0 && info.st_size == 0);
    CHECK_INT(info.st_mode & 07777, 0640);
    CHECK_INT(count_entries(dir), 1);
    CHECK(fr_file_exists(path) && !fr_dir_exists(path));
    CHECK_FAILS(fr_dir_create(path, &err), FR_IO, &err);
    snprintf(deep, sizeof deep, "%s/a//b/c/", dir);
    CHECK_OK(fr_dir_create(deep, &err), &err);
    CHECK_OK(fr_dir_create(deep, &err), &err);
    CHECK(fr_dir_exists(deep));
    CHECK_FAILS(fr_file_write(deep, "x", 1, &err), FR_IO, &err);
    snprintf(deep, sizeof deep, "%s/absent/file", dir);
    CHECK_FAILS(fr_file_write(deep, "x", 1, &err), FR_IO, &err);
    CHECK_HAS(err.text, "absent/file: No such file or directory");
    CHECK_FAILS(fr_file_read(deep, 0, &text, NULL, &err), FR_IO, &err);
    /* A file that cannot be replaced is overwritten. */
    CHECK_OK(fr_file_write("/dev/null", "x", 1, &err), &err);
    CHECK(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
}

/* A file without an end is refused, and a pipe without a writer is not waited
 * for. */
/* Looking changes nothing, also where there is a file. */
static void check_writable(const char *dir)
{
    char path[512];
    fr_err err;
    const int n_before = count_entries(dir);

    snprintf(path, sizeof path, "%s/not-yet", dir);
    CHECK_OK(fr_file_check_writable(path, &err), &err);
    CHECK(!fr_file_exists(path));
    CHECK_FAILS(fr_file_check_writable(dir, &err), FR_IO, &err);
    snprintf(path, sizeof path, "%s/nowhere/file", dir);
    CHECK_FAILS(fr_file_check_writable(path, &err), FR_IO, &err);
    CHECK_HAS(err.text, "nowhere/file: No such file or directory");
    CHECK_OK(fr_file_check_writable("/dev/null", &err), &err);
    CHECK_INT(count_entries(dir), n_before);
}

static void read_special(const char *dir)
{
    char path[CHECK_PATH_BYTES + 8], *text;
    size_t n;
    fr_err err;

    CHECK_FAILS(fr_file_read("/dev/zero", 0, &text, &n, &err), FR_INPUT, &err);
    CHECK_STR(err.text, "/dev/zero: is a device, not a file");
    CHECK_OK(fr_file_read("/dev/null", 0, &text, &n, &err), &err);
    CHECK_INT(n, 0);
    free(text);
    snprintf(path, sizeof path, "%s/fifo", dir);
    CHECK_INT(mkfifo(path, 0600), 0);
    CHECK_OK(fr_file_read(path, 0, &text, &n, &err), &err);
    CHECK_INT(n, 0);
    free(text);
}

static void test_files(void)
{
    char dir[CHECK_PATH_BYTES], line[300];

    check_tmp_path(dir, "forerun-test-XXXXXX");
    if (!mkdtemp(dir))
        SKIP("no temporary folder");
    write_and_read(dir);
    read_special(dir);
    check_writable(dir);
    snprintf(line, sizeof line, "rm -rf '%s'", dir);
    CHECK_INT(system(line), 0);
}

static void test_full_device(void)
{
    fr_err err;
    static const char bytes[100000];

    if (access("/dev/full", W_OK) != 0)
        SKIP("no /dev/full");
    CHECK_FAILS(fr_file_write("/dev/full", bytes, sizeof bytes, &err), FR_IO,
                &err);
    CHECK_STR(err.text, "/dev/full: No space left on device");
}

static void test_paths(void)
{
    char out[16];
    fr_err err;

    CHECK_OK(fr_path_dir("a/b", out, sizeof out, &err), &err);
    CHECK_STR(out, "a");
    CHECK_OK(fr_path_dir("b", out, sizeof out, &err), &err);
    CHECK_STR(out, ".");
    CHECK_OK(fr_path_dir("/b", out, sizeof out, &err), &err);
    CHECK_STR(out, "/");
    CHECK_FAILS(fr_path_dir("abcdefghijklmnop/b", out, sizeof out, &err), FR_IO,
                &err);
    CHECK_STR(fr_path_name("a/b.json"), "b.json");
    CHECK_STR(fr_path_name("b.json"), "b.json");
}

CHECK_MAIN({"files", test_files}, {"full_device", test_full_device},
           {"paths", test_paths})
