/* ask.h: a question to api/ without a command line, and its answer as JSON. */
#ifndef FR_TESTS_UNIT_API_ASK_H
#define FR_TESTS_UNIT_API_ASK_H

#include "api/request/request.h"

typedef struct setting {
    const char *name, *text; /* NULL: no more */
} setting;

enum { ASK_WORDS = 2, ASK_SETTINGS = 6 };

typedef struct question {
    const char *command;
    const char *words[ASK_WORDS];   /* NULL: no more */
    setting settings[ASK_SETTINGS]; /* the same */
} question;

/* Returns the answer, which the caller frees, or NULL after a failure. */
char *ask(const question *of, const fr_session *session, fr_status *status,
          fr_err *err);

/* Cuts "wall_s" out of an answer: two calls do not take the same time. */
void drop_wall_s(char *json);

#endif
