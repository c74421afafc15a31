/*
 * export_folder.c: shell code by which a script finds the files that were
 * written with it, and the paths that its caller named, wherever it is called
 * from.  The shell is bash under `set -euo pipefail`.
 */
#include "interop/export/export.h"

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

void fr_export_put_folder(fr_buffer *out)
{
    fr_buffer_puts(out, "script=$(realpath -- \"${BASH_SOURCE[0]}\")\n"
                        "folder=$(dirname -- \"$script\")\n"
                        "cd -- \"$folder\"\n");
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
