/*
 * test_framework_keys.c: over every row of a framework's keys: a value that is
 * written is read back as it was, each value of an enum by a word of its own,
 * and a key that the target's table names exists.
 */
#include "core/document/toml.h"
#include "frameworks/framework_list.h"
#include "frameworks/megatron/megatron_keys.h"
#include "frameworks/torchtitan/torchtitan_keys.h"
#include "tests/check.h"

#include <ctype.h>
#include <string.h>

/* A plan file that uses every key: experts, stages, a decay. */
static void make_file(fr_plan_file *file)
{
    fr_plan_file_init(file);
    file->plan.tp = 4;
    file->plan.pp = 2;
    file->plan.ep = 2;
    file->model.n_experts = 8;
    file->model.n_layers = 12;
    file->job.lr_schedule = FR_LR_LINEAR;
    file->job.lr_rule = FR_LR_RULE_NONE;
}

static bool is_read_back(const fr_framework_key *key, int newest)
{
    return key->field.n_bytes > 0 && key->why == NULL && key->since <= newest;
}

/* Written by the oldest version that has it; false: the text has it not. */
static bool round_trip(fr_framework_keys keys, const fr_framework_key *key,
                       int newest, const fr_plan_file *file, fr_plan_file *back)
{
    fr_buffer text;
    fr_json *json;
    fr_err err;
    fr_buffer_init(&text);
    const fr_framework_keys one = {key, 1};
    fr_framework_keys_put(one, key->table, key->since, &fr_key_style_toml, file,
                          &text);
    bool is_there = text.n > 0;
    if (is_there && CHECK_OK(fr_toml_parse("keys", fr_buffer_text(&text),
                                           text.n, &json, &err),
                             &err)) {
        CHECK_OK(fr_framework_keys_read(keys, key->table, newest,
                                        fr_json_root(json), back, &err),
                 &err);
        fr_json_destroy(json);
    }
    fr_buffer_release(&text);
    return is_there;
}

/* Values that the row has words for, or some of a number. */
static size_t values_of(const fr_framework_key *key, int64_t values[8])
{
    size_t n = 0;
    for (const fr_key_word *at = key->words; at != NULL && at->word != NULL;
         at++)
        values[n++] = at->value;
    if (key->words == NULL && key->field.kind == FR_FIELD_BOOL)
        for (; n < 2; n++)
            values[n] = (int64_t)n;
    else if (key->words == NULL)
        values[n++] = 23;
    return n;
}

static size_t check_keys(fr_framework_keys keys, int newest)
{
    size_t n_checked = 0;
    for (size_t i = 0; i < keys.n; i++) {
        const fr_framework_key *key = &keys.rows[i];
        int64_t values[8];
        const size_t n = is_read_back(key, newest) ? values_of(key, values) : 0;
        for (size_t v = 0; v < n; v++) {
            fr_plan_file file, back;
            make_file(&file);
            fr_plan_file_init(&back);
            if (key->field.kind == FR_FIELD_DOUBLE)
                fr_field_set(&key->field, 0.2385, &file);
            else
                fr_field_set_i64(&key->field, values[v], &file);
            if (!round_trip(keys, key, newest, &file, &back))
                continue; /* is_used: decay_type of a constant rate */
            n_checked++;
            check_that(fr_field_is_same(&key->field, &file, &back), __FILE__,
                       __LINE__, "%s.%s: value %lld does not come back",
                       key->table, key->name, (long long)values[v]);
        }
    }
    return n_checked;
}

static void test_round_trip(void)
{
    CHECK(check_keys(fr_torchtitan_keys, FR_TORCHTITAN_0_2) >= 40);
}

/* A word is that of one value alone; no version has a key twice. */
static void test_unique(void)
{
    const fr_framework_keys keys = fr_torchtitan_keys;
    for (size_t i = 0; i < keys.n; i++) {
        const fr_framework_key *key = &keys.rows[i];
        for (const fr_key_word *a = key->words; a != NULL && a->word != NULL;
             a++)
            for (const fr_key_word *b = a + 1; b->word != NULL; b++)
                CHECK(strcmp(a->word, b->word) != 0);
        for (size_t k = 0; k < i; k++) {
            const fr_framework_key *other = &keys.rows[k];
            const fr_target_rule of = {.since = other->since,
                                       .until = other->until};
            check_that(strcmp(key->table, other->table) != 0 ||
                           strcmp(key->name, other->name) != 0 ||
                           !fr_target_rule_is_of(&of, key->since),
                       __FILE__, __LINE__, "%s.%s is there twice", key->table,
                       key->name);
        }
    }
}

/* Each word of Megatron-LM is read as a value that is written by a word of the
 * same value. */
static void test_megatron(void)
{
    const fr_key_word *const tables[] = {
        fr_megatron_cp_kinds, fr_megatron_recipes, fr_megatron_lr_styles,
        fr_megatron_shardings, fr_megatron_modules};
    for (size_t i = 0; i < FR_LENGTH(tables); i++)
        for (const fr_key_word *at = tables[i]; at->word != NULL; at++) {
            const char *written = fr_key_word_of(tables[i], at->value);
            CHECK(fr_key_word_find(tables[i], at->word) == at);
            CHECK_INT(fr_key_word_find(tables[i], written)->value, at->value);
        }
    CHECK(fr_key_word_find(fr_megatron_recipes, "rowwise") == NULL);
}

static bool has_key(const char *table, const char *name)
{
    const fr_framework_keys keys = fr_torchtitan_keys;
    bool is_there = false;
    for (size_t i = 0; i < keys.n; i++)
        is_there = is_there || (strcmp(keys.rows[i].table, table) == 0 &&
                                strcmp(keys.rows[i].name, name) == 0);
    return is_there;
}

/* "parallelism.tensor_parallel_degree" in what `catalog targets` prints. */
static size_t check_how(const char *how)
{
    size_t n = 0;
    for (const char *dot = how; (dot = strchr(dot, '.')) != NULL; dot++) {
        char table[64] = "", name[64] = "";
        const char *first = dot;
        size_t n_name = 0;
        while (first > how &&
               (islower((unsigned char)first[-1]) || first[-1] == '_'))
            first--;
        while (islower((unsigned char)dot[1 + n_name]) ||
               dot[1 + n_name] == '_')
            n_name++;
        if (n_name == 0 || first == dot)
            continue;
        snprintf(table, sizeof table, "%.*s", (int)(dot - first), first);
        snprintf(name, sizeof name, "%.*s", (int)n_name, dot + 1);
        n++;
        check_that(has_key(table, name), __FILE__, __LINE__,
                   "the target names %s.%s, which is no key", table, name);
    }
    return n;
}

static void test_named(void)
{
    size_t n = 0;
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const fr_target_field row =
            fr_target_item(&fr_target_torchtitan, fr_plan_items[i]);
        if (row.fate == FR_FATE_WRITTEN)
            n += check_how(row.how);
    }
    CHECK(n >= 15);
}

CHECK_MAIN({"round_trip", test_round_trip}, {"unique", test_unique},
           {"megatron", test_megatron}, {"named", test_named})
