/*
 * test_shell.c: launch scripts are evaluated as bash does it.  Each row is held
 * against words written by hand, and against bash itself, which runs our own
 * scripts here with a function in the place of the program.
 */
#include "core/base/buffer.h"
#include "core/shell/shell.h"
#include "tests/check.h"

#include <string.h>

typedef struct row {
    const char *script;
    const char *words; /* of each `launch`, a line each */
} row;

static const row rows[] = {
    {"A=1 B='x  y'\nlaunch $A \"$B\" $B '$A' \\$A a\\ b a\\\nb",
     "<1><x  y><x><y><$A><$A><a b><ab>\n"},
    {"launch ${X:-d} \"${X:-a b}\" ${X:=s} $X ${X:+alt} \"${Y+no}\" ${X-n}",
     "<d><a b><s><s><alt><><s>\n"},
    {"D=(1 '2 3'); D+=(4); D[7]=z\nlaunch \"${D[@]}\" ${#D[@]} ${D[1]} "
     "\"p${D[@]}q\" ${D[-1]} ${!D[@]} \"${D[@]:1:2}\"",
     "<1><2 3><4><z><4><2><3><p1><2 3><4><zq><z><0><1><2><7><2 3><4>\n"},
    {"E=(); launch \"${E[@]}\" ${#E[@]} \"\"", "<0><>\n"},
    {"declare -A M=([a]=1 [b]='2 3'); M[c]=4; k=b\n"
     "launch ${M[a]} \"${M[$k]}\" ${M[c]} ${#M[@]}",
     "<1><2 3><4><3>\n"},
    {"F=p/q.tar.gz; launch ${F##*/} ${F#*/} ${F%.*} ${F%%.*} ${F/q/x} ${F//a/b}"
     " ${#F} ${F:2:3} ${F: -2} ${F^^} ${F/#p/P} ${F/%gz/xz}",
     "<q.tar.gz><q.tar.gz><p/q.tar><p/q><p/x.tar.gz><p/q.tbr.gz><10><q.t><gz>"
     "<P/Q.TAR.GZ><P/q.tar.gz><p/q.tar.xz>\n"},
    {"a=7; launch $((2*3+a)) $((a/2)) $((-a%4)) $((2**3**2)) $((1<<4|1)) "
     "$((a>6&&a<8)) $((a?5:6)) $((a+=2)) $a $((a++)) $((--a)) $((0x1f)) "
     "$(((1+2)*3)) $((!a)) $((10-3-2))",
     "<13><3><-3><512><17><1><5><9><9><9><9><31><9><0><5>\n"},
    {"n=3; ((n*=2, m=n+1)); let k=m+1; launch $n $m $k; ((n>100)) || launch no",
     "<6><7><8>\n<no>\n"},
    {"for i in 1 $(seq 2 3) {4..5} x{a,b}; do launch $i; done",
     "<1>\n<2>\n<3>\n<4>\n<5>\n<xa>\n<xb>\n"},
    {"for ((i=0;i<5;i++)); do [ $i -eq 1 ] && continue; [[ $i == 4 ]] && "
     "break\n"
     "launch $i; done",
     "<0>\n<2>\n<3>\n"},
    {"i=0; while [ $i -lt 9 ]; do i=$((i+1)); if [ $i = 3 ]; then break; fi\n"
     "launch $i; done; until ((i>=5)); do ((i++)); done; launch u$i",
     "<1>\n<2>\n<u5>\n"},
    {"for x in a b; do for y in 1 2; do [ $x$y = a2 ] && continue 2\n"
     "launch $x$y; done; done",
     "<a1>\n<b1>\n<b2>\n"},
    {"case 7B in 7[AC]) launch no;; *B|x) launch yes;; *) launch other;; esac\n"
     "case a in a) launch 1 ;& b) launch 2 ;; c) launch 3;; esac\n"
     "case '*' in '*') launch star;; esac; case q in '*') launch no;; esac",
     "<yes>\n<1>\n<2>\n<star>\n"},
    {"f() { local v=$1; shift; launch $v \"$@\" $#; return 3; }\n"
     "v=1; f a 'b c' d; launch $? $v; function g { echo \"<$1>\"; }\n"
     "launch \"$(g 1)\" $(g 2)",
     "<a><b c><d><2>\n<3><1>\n<<1>><<2>>\n"},
    {"c=\"launch --x '([0]*1+[1]*3)' \\\"a b\\\"\"; eval $c; $c",
     "<--x><([0]*1+[1]*3)><a b>\n<--x><'([0]*1+[1]*3)'><\"a><b\">\n"},
    {"set -- p 'q r' s; launch \"$@\" $#; shift; launch \"$*\" ${@:2}\n"
     "while [ $# -gt 0 ]; do case $1 in q*) launch Q \"$1\"; shift;; *) "
     "shift;; "
     "esac; done; launch $#",
     "<p><q r><s><3>\n<q r s><s>\n<Q><q r>\n<0>\n"},
    {"A=3\nX=$(cat <<E\n{\"a\": $A, \"b\": \"$(echo in)\"}\nE\n)\n"
     "Y=$(cat <<'E'\n$A\nE\n); Z=$(cat <<-E\n\t\ttab\n\tE\n)\n"
     "launch \"$X\" \"$Y\" \"$Z\"",
     "<{\"a\": 3, \"b\": \"in\"}><$A><tab>\n"},
    {"IFS=, read -ra L <<<'1,2,3'; read x y <<<'a b c'; launch ${L[2]} "
     "${#L[@]} "
     "\"$x\" \"$y\" 1,2",
     "<3><3><a><b c><1,2>\n"},
    {"[[ abc == a* && ! abc == 'a*' ]] && launch 1; [[ abc =~ ^a.c$ ]] && "
     "launch "
     "2\n[ a = a -a 1 -lt 2 ] && launch 3; [ ! -z x ] && launch 4\n"
     "[[ -z '' && ( 1 -gt 2 || b > a ) ]] && launch 5; test x = y || launch 6\n"
     "if ! [ 1 = 2 ]; then launch 7; fi; [ = x ] 2>/dev/null || launch 8",
     "<1>\n<2>\n<3>\n<4>\n<5>\n<6>\n<7>\n<8>\n"},
    {"S=(a 'b c'); [[ \" ${S[*]} \" =~ \" b c \" ]] && launch 1; [[ a.b =~ "
     "'a.b' && axb =~ ^a(x|y)b$ && ! axb =~ 'a.b' ]] && launch 2\n"
     "N=a; [ -z $N] 2>/dev/null || launch 3; [ -z $N ] || launch 4",
     "<1>\n<2>\n<3>\n<4>\n"},
    {"while read -r a b; do launch $a \"$b\"; done < <(echo 1 2 3; echo 4)\n"
     "while IFS== read -r k v; do launch $k $v; done <<<'A=x y'",
     "<1><2 3>\n<4><>\n<A><x><y>\n"},
    {"{ A=1; }; (A=2; launch $A); launch $A; true && launch t || launch e\n"
     "echo 5 | { read n; launch $n; }; launch ${n:-none}",
     "<2>\n<1>\n<t>\n<5>\n<none>\n"},
    {"O=( # it's \"here\n --a 1 # (\n --b '2 3'\n)\nlaunch ${O[@]} \"${O[@]}\"",
     "<--a><1><--b><2><3><--a><1><--b><2 3>\n"},
    {"A='\n --one 1 \\\n --two 2'\nB=\"\n --one 1 \\\n --two 2\"; B+=' --c'\n"
     "launch $B",
     "<--one><1><--two><2><--c>\n"},
    {"U=abc; V=U; W=(x y); launch ${!V} ${W[@]/#/p-} \"${W[@]^}\" ${W[*]} "
     "\"${W[*]}\"; unset U; launch \"[$U]\" \"${U-un}\"; U=; launch "
     "\"${U-un}\"",
     "<abc><p-x><p-y><X><Y><x><y><x y>\n<[]><un>\n<>\n"},
    {"launch $(basename /a/b.json .json) $(dirname /a/b/c) $(expr 3 \\* 4) "
     "$(echo '3*4' | bc) `echo a \\`echo b\\`` $(echo 0,1,2 | tr , '\\n' | wc "
     "-l)",
     "<b></a/b><12><12><a><b><3>\n"},
    {"launch $(echo a.a.b | sed 's/a/x/') $(echo aab | sed -e s,a,y,g -e "
     "'s/b/z z/') \"$(echo 'q  r' | head -n 1)\" $(echo a:b | cut -d: -f2)",
     "<x.a.b><yyz><z><q  r><b>\n"},
    {"launch a;launch b # c\nlaunch $'t\\tn' \"x\\y\" \"a'b\" 'c\"d'; time "
     "launch "
     "e",
     "<a>\n<b>\n<t\tn><x\\y><a'b><c\"d>\n<e>\n"},
    {"if [ 1 -eq 2 ]; then launch 1; elif [[ x == y ]]; then launch 2\n"
     "elif true; then launch 3; else launch 4; fi",
     "<3>\n"},
    {"f() { [ $1 -gt 0 ] || return; launch $1; f $(($1 - 1)); }; f 3",
     "<3>\n<2>\n<1>\n"},
    {"A=1; launch a & wait; launch ${A}x 2>&1 >/dev/stderr | cat; exit "
     "0\nlaunch "
     "never",
     "<a>\n<1x>\n"},
};

/* ---- one script ---------------------------------------------------------- */

static fr_err err;

static fr_status run(const char *script, const char *const *settings, size_t n,
                     fr_shell *out)
{
    const fr_shell_request request = {.path = "s.sh",
                                      .text = script,
                                      .n_text = strlen(script),
                                      .settings = settings,
                                      .n_settings = n};
    return fr_shell_run(&request, out, &err);
}

static void put_commands(const fr_shell *shell, fr_buffer *out)
{
    char shown[256];
    bool is_first = true, is_launch = false;
    for (size_t i = 0; i < shell->commands.n; i++) {
        const char *text = shell->commands.items[i].text;
        if (text == NULL)
            fr_buffer_puts(out, is_launch ? "\n" : "");
        else if (is_first)
            is_launch = strcmp(text, "launch") == 0;
        else if (is_launch)
            fr_buffer_printf(out, "<%s>",
                             fr_shell_show(shell, text, shown, sizeof shown));
        is_first = text == NULL;
    }
}

/* The words of `launch` under settings, or the error. */
static void check_script(const char *script, const char *const *settings,
                         size_t n, const char *words)
{
    fr_shell shell;
    fr_buffer text;
    fr_buffer_init(&text);
    if (run(script, settings, n, &shell) == FR_OK)
        put_commands(&shell, &text);
    else
        fr_buffer_puts(&text, err.text);
    CHECK_STR(fr_buffer_text(&text), words);
    fr_buffer_release(&text);
    fr_shell_release(&shell);
}

static void test_rows(void)
{
    for (size_t i = 0; i < FR_LENGTH(rows); i++)
        check_script(rows[i].script, NULL, 0, rows[i].words);
}

/* Bash agrees with the words that were written by hand. */
static void test_bash(void)
{
    char path[CHECK_PATH_BYTES], command[CHECK_PATH_BYTES + 64], text[4096];
    if (system("bash -c true") != 0)
        SKIP("no bash");
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        check_tmp_path(path, "row.sh");
        FILE *file = fopen(path, "w");
        if (file == NULL)
            SKIP("no file can be written");
        fprintf(file,
                "launch() { local w t=; for w; do t+=\"<$w>\"; done\n"
                "printf '%%s\\n' \"$t\" >&3; }\n%s\n",
                rows[i].script);
        fclose(file);
        snprintf(command, sizeof command, "bash %s 3>&1 >/dev/null", path);
        FILE *pipe = popen(command, "r");
        const size_t n =
            pipe != NULL ? fread(text, 1, sizeof text - 1, pipe) : 0;
        text[n] = '\0';
        if (pipe != NULL)
            pclose(pipe);
        CHECK_STR(text, rows[i].words);
    }
}

/* ---- unknown values ------------------------------------------------------ */

static void test_settings(void)
{
    static const char *const none[] = {"Q=0"};
    static const char *const some[] = {"TP=4", "2=b c", "G=8"};
    static const char *const all[] = {"@=a 'b c'"};
    check_script("launch $1 x$TP ${TP:-2} $((TP*2)) $((0&&TP)) ${1:-3}", none,
                 1, "<$1><x$TP><2><$TP><0><3>\n");
    check_script("TP=2; launch $TP \"$2\" $1 $3; shift; launch \"$1\" $2", some,
                 3, "<4><b c><$1><$3>\n<b c><$3>\n");
    check_script("G=$(nproc); launch $G $((G*2)); H=$(nproc); launch $H", some,
                 3, "<8><16>\n<$(nproc)>\n");
    check_script("launch $# \"$@\"; for a; do launch \"$a\"; done", all, 1,
                 "<2><a><b c>\n<a>\n<b c>\n");
    check_script("launch \"$@\" z; for a in \"$@\"; do launch n; done", none, 1,
                 "<z>\n");
    check_script(
        "#SBATCH --nodes=4\n#SBATCH --gres=gpu:8\nlaunch $SLURM_NNODES "
        "$((SLURM_NNODES*SLURM_GPUS_ON_NODE)) $SLURM_PROCID",
        none, 1, "<4><32><$SLURM_PROCID>\n");
    check_script("if [ -z \"$N\" ]; then N=5; fi; launch $N", none, 1, "<5>\n");
    check_script(
        "launch 1", (const char *const[]){"1x=2"}, 1,
        "--set 1x=2: give NAME=VALUE, 1=VALUE for $1 of the script, or "
        "@=VALUES for all its arguments");
}

/* Scripts that other programs start are read with their arguments. */
static void test_nested(void)
{
    check_script("export C='--a 1'; srun -N 2 bash -c 'launch $C $1' x y", NULL,
                 0, "<--a><1><y>\n");
    check_script(
        "cat >t.sh <<'E'\nlaunch $1 $#\nE\nbash t.sh 7 8; . ./t.sh; sh "
        "-x t.sh",
        NULL, 0, "<7><2>\n<$1><$#>\n<0>\n");
}

/* The branches that a script meets, "line:name:taken " each. */
static void check_branches(const char *script, const bool *decisions, size_t n,
                           const char *branches, const char *words)
{
    const fr_shell_request request = {.path = "s.sh",
                                      .text = script,
                                      .n_text = strlen(script),
                                      .decisions = decisions,
                                      .n_decisions = n};
    fr_shell shell;
    fr_buffer text, commands;
    fr_buffer_init(&text);
    fr_buffer_init(&commands);
    if (CHECK_OK(fr_shell_run(&request, &shell, &err), &err)) {
        for (size_t i = 0; i < shell.branches.n; i++) {
            const fr_shell_branch *b = &shell.branches.items[i];
            fr_buffer_printf(&text, "%d:%s:%d ", b->line,
                             shell.unknown.items[b->i_unknown].text,
                             b->is_taken);
        }
        put_commands(&shell, &commands);
        CHECK_STR(fr_buffer_text(&text), branches);
        CHECK_STR(fr_buffer_text(&commands), words);
    }
    fr_buffer_release(&text);
    fr_buffer_release(&commands);
    fr_shell_release(&shell);
}

static void test_branches(void)
{
    /* A loop over unknown lines has one round, and one that waits ends. */
    check_branches("while read l; do launch \"$l\"; done", NULL, 0, "1:$l:1 ",
                   "<$l>\n");
    check_branches("while read l; do launch \"$l\"; done < <(ls)", NULL, 0, "",
                   "<$(ls)>\n");
    fr_shell shell;
    CHECK_OK(run("while :; do if [ $X = 1 ]; then break; fi; done; launch a",
                 NULL, 0, &shell),
             &err);
    CHECK_INT(shell.branches.n, 100);
    fr_shell_release(&shell);
    static const char script[] = "A=1\nif [ \"$X\" = y ]; then A=2; fi\n"
                                 "case $1 in big) A=3;; esac\nlaunch $A";
    check_branches(script, NULL, 0, "2:$X:0 3:$1:0 ", "<1>\n");
    check_branches(script, (const bool[]){true}, 1, "2:$X:1 3:$1:0 ", "<2>\n");
    check_branches(script, (const bool[]){false, true}, 2, "2:$X:0 3:$1:1 ",
                   "<3>\n");
    /* A known half decides; a known prefix that differs does, too. */
    check_branches(
        "[ 1 = 2 -a $X = y ] && launch 1; [[ a-$X == b* ]] || launch "
        "2\n[[ 1 == 1 || $X ]] && launch 3",
        NULL, 0, "", "<2>\n<3>\n");
    check_branches("! [ $X ] && launch 1; grep -q a b || launch 2", NULL, 0,
                   "1:$X:0 1:the result of 'grep':1 ", "<1>\n");
}

/* ---- hostile scripts ----------------------------------------------------- */

static void check_refused(const char *script, const char *why)
{
    fr_shell shell;
    CHECK_FAILS(run(script, NULL, 0, &shell), FR_INPUT, &err);
    CHECK_HAS(err.text, why);
    fr_shell_release(&shell);
}

static void test_refused(void)
{
    check_refused("\nlaunch 'a\n\n", "s.sh:2: a quote is left open");
    check_refused("A=(1 2\n", "an array is left open");
    check_refused("launch $(echo\n", "left open");
    check_refused("if true; then launch", "'fi' is missing");
    check_refused("\n)\n", "s.sh:2: ");
    check_refused("select x in a; do :; done", "not evaluated");
    check_refused("launch $((1/0))", "divides by 0");
    check_refused("launch $((1 +))", "not understood");
    check_refused("while :; do :; done", "s.sh:1: the loop does not end");
    check_refused("for ((;;)); do :; done", "the loop does not end");
    check_refused("f() { f; }; f", "too deep");
    check_refused(":(){ :|:& };:", "too deep");
    check_refused("x='y[x]'; y=1; launch $((x))", "s.sh:1: ");
    check_refused("A=aaaaaaaaaaaaaaaa; for i in {1..40}; do A=$A$A; done",
                  "longer word");
    check_refused("for i in {1..999999}; do :; done", "more steps");
    check_refused("for i in {1..500}; do for j in {1..500}; do :; done; done",
                  "more steps");
    check_refused("eval 'eval \"$0\"'; x='eval $x'; eval $x", "too deep");
}

/* A text of n parts and one end. */
static void check_long(const char *part, size_t n, const char *why)
{
    fr_buffer text;
    fr_buffer_init(&text);
    for (size_t i = 0; i < n; i++)
        fr_buffer_puts(&text, part);
    check_refused(fr_buffer_text(&text), why);
    fr_buffer_release(&text);
}

static void test_long(void)
{
    check_long("launch a b c d e f g\n", 600000, "longer than a launch script");
    check_long("a;", 1000000, "s.sh:1: more words");
    check_long("a;\n", 100000, "more words");
    check_long("(", 100000, "too deep");
    check_long("$(", 100000, "too deep");
    check_long("${a:-", 100000, "too deep");
    check_long("{ ", 100000, "too deep");
    check_long("if ", 100000, "too deep");
    check_long("[[ ( ", 10000, "s.sh:1: ");
    check_long("((a[", 10000, "s.sh:1: ");
}

CHECK_MAIN({"rows", test_rows}, {"bash", test_bash},
           {"settings", test_settings}, {"nested", test_nested},
           {"branches", test_branches}, {"refused", test_refused},
           {"long", test_long})
