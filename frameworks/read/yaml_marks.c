/* yaml_marks.c: see yaml_marks.h. */
#include "frameworks/read/yaml_marks.h"

#include <stdbool.h>
#include <string.h>

int fr_yaml_find_mark(const char *text, const char *mark)
{
    size_t n = strlen(mark);
    const bool is_top = mark[n - 1] == ':' && mark[0] != '_' && mark[0] != ' ';
    int line = 1;
    if (mark[0] == ' ') {
        mark++;
        n--;
    }
    for (const char *p = text; *p != '\0'; line++) {
        const char *end = p + strcspn(p, "\n");
        const char *word = is_top ? p : p + strspn(p, " \t\r\"'-{,");
        if (end - word >= (long)n && memcmp(word, mark, n) == 0)
            return line;
        p = *end == '\0' ? end : end + 1;
    }
    return 0;
}
