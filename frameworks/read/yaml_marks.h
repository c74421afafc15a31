/* yaml_marks.h: names by which a YAML file is known as that of a framework. */
#ifndef FR_FRAMEWORKS_READ_YAML_MARKS_H
#define FR_FRAMEWORKS_READ_YAML_MARKS_H

/*
 * Returns the line that begins with a mark, 0: none does.  "model:" stands at
 * the beginning of a line; others ("micro_batch_size", " devices:") after
 * blanks, quotes or a '-'.
 */
int fr_yaml_find_mark(const char *text, const char *mark);

#endif
