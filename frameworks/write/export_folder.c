/*
 * export_folder.c: shell code by which a script finds the files that were
 * written with it, and the paths that its caller named, wherever it is called
 * from.  The shell is bash under `set -euo pipefail`.
 */
#include "frameworks/write/export.h"

void fr_export_put_callers_path(const char *name, fr_buffer *out)
{
    fr_buffer_printf(out, "case ${%s:-/} in /*) ;; *) %s=$PWD/$%s ;; esac\n",
                     name, name, name);
}

void fr_export_put_settings(const fr_exporter *program, fr_buffer *out)
{
    const fr_export_setting *settings = program->settings;
    for (int i = 0; settings[i].name != NULL; i++) {
        if (settings[i].value == NULL)
            fr_buffer_printf(out, ": \"${%s:?%s}\"\n", settings[i].name,
                             settings[i].meaning);
        if (settings[i].is_path)
            fr_export_put_callers_path(settings[i].name, out);
    }
}

void fr_export_put_defaults(const fr_exporter *program, fr_buffer *out)
{
    const fr_export_setting *settings = program->settings;
    for (int i = 0; settings[i].name != NULL; i++) {
        const char *name = settings[i].name, *value = settings[i].value;
        if (value != NULL)
            fr_buffer_printf(out, "# %s: %s\nexport %s=\"${%s:-%s%s}\"\n", name,
                             settings[i].meaning, name, name,
                             settings[i].is_path ? "$folder/" : "", value);
        else
            fr_buffer_printf(out, "export %s\n", name);
    }
}

static void put_find_folder(fr_buffer *out)
{
    fr_buffer_puts(out, "script=$(realpath -- \"${BASH_SOURCE[0]}\")\n"
                        "folder=$(dirname -- \"$script\")\n");
}

void fr_export_put_folder(fr_buffer *out)
{
    put_find_folder(out);
    fr_buffer_puts(out, "cd -- \"$folder\"\n");
}

void fr_export_put_files(const fr_export_files *files, size_t n, fr_buffer *out)
{
    fr_buffer_puts(out, "files=(");
    for (size_t i = 0; i < n; i++)
        fr_buffer_printf(out, "%s%s", i > 0 ? " " : "", files->items[i].name);
    fr_buffer_puts(out, ")\n");
}

void fr_export_put_files_check(const char *script, fr_buffer *out)
{
    fr_buffer_printf(out,
                     "for file in \"${files[@]}\"; do\n"
                     "    if [ ! -e \"$folder/$file\" ]; then\n"
                     "        echo \"%s: '$folder' has no $file; start the "
                     "%s of a whole folder\" >&2\n"
                     "        exit 2\n"
                     "    fi\n"
                     "done\n"
                     "cd -- \"$folder\"\n",
                     script, script);
}

void fr_export_put_launcher_folder(const fr_export_files *files, size_t n,
                                   const char *script, fr_buffer *out)
{
    fr_export_put_files(files, n, out);
    put_find_folder(out);
    fr_export_put_files_check(script, out);
}

void fr_export_put_own_script_check(const char *script, fr_buffer *out)
{
    fr_buffer_printf(out,
                     "if [ ! -e \"$TRAIN\" ]; then\n"
                     "    echo \"%s: '$TRAIN' does not exist; TRAIN=FILE names "
                     "the training script\" >&2\n"
                     "    exit 2\n"
                     "fi\n",
                     script);
}
