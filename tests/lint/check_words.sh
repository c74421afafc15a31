#!/bin/bash
# check_words.sh: the pages and the help of all commands and terms say
# things in the field's words.  Each row of `banned` is a pattern (a regular
# expression of Perl's for whole words) and the word to write instead; each row
# of `allowed` is a phrase to which a pattern does not apply, with the reason.
# Code, examples and the targets of links are skipped.  No comment in the folders
# of `clean` begins with a noun clause ("What a rank keeps.", "Of one layer.").
set -u
cd "$(dirname "$0")/../.." || exit 1
pages=(README.md CONTRIBUTING.md docs/*.md)
# Folders whose comments are sentences.
clean=(api bench calibrate cli core cost_models frameworks interop kernels plan
    program reliability report runtime sim simgrid spec tests tuner)
forerun=${BUILD:-build}/forerun

banned=$(
    cat <<'ROWS'
what(?! ?-?if\b)	name the thing; a question ("what does it cost?") may begin with it
who|whom|whoever	name the subject: the user, the command, the rank
those	repeat the noun
beside	overlapped with, next to, in addition to
apart	separate, separately
alike	identical, the same
tell|tells|told|telling	report, pass, give, distinguish
usual|usually	default, by default, mostly
(?:has|have|is|are|be) none	does not exist, has no ...
(?:come|comes|coming) to	is, results in
at hand	available
(?:go|goes|going|went) on	continue
in the middle	median, typically
a way	name it: a combination, an option
one place	a function, a file
ROWS
)
# PHRASE<TAB>REASON
allowed=$(
    cat <<'ROWS'
engineers who choose	a relative clause that follows its noun
planners who buy	a relative clause that follows its noun
ROWS
)

# Reads NAME<TAB>TEXT lines and prints those that break a row.
check() {
    BANNED=$banned ALLOWED=$allowed perl -CSDA -ne '
    BEGIN {
        for (split /\n/, $ENV{BANNED}) {
            my ($pattern, $instead) = split /\t/;
            my $is_what = $pattern =~ /^what/;
            push @banned,
                [qr/(?<![\w-])($pattern)(?![\w-])/i, $instead, $is_what];
        }
        @allowed = map { (split /\t/)[0] } split /\n/, $ENV{ALLOWED};
    }
    chomp;
    my ($name, $text) = split /\t/, $_, 2;
    $text =~ s/`[^`]*`//g;                        # code
    $text =~ s/\]\([^)]*\)/]/g;                   # targets of links
    $text =~ s/\Q$_\E//gi for @allowed;
    for my $sentence ($text =~ /[^.?!:;|]+[.?!:;|]?/g) {
        for (@banned) {
            my ($pattern, $instead, $is_what) = @$_;
            next if $sentence !~ $pattern;
            my $found = $1;
            # In capitals it is the name of an argument.
            next if $found eq uc $found;
            next if $is_what and $sentence =~ /\?$/;
            $sentence =~ s/^\s+|\s+$//g;
            print "$name: \"$found\" (write: $instead): $sentence\n";
            $bad = 1;
        }
    }
    END { exit($bad ? 1 : 0) }'
}

# A paragraph of a page a line, with the page and the line where it begins;
# examples (indented or fenced) and comments are left out, a row of a table is
# a paragraph.
paragraphs() {
    awk '
    function flush() {
        if (text != "")
            printf "%s:%d\t%s\n", FILENAME, start, text
        text = ""
    }
    /^```/ { is_code = !is_code; flush(); next }
    is_code || /^    / && text == "" || /^<!--/ { next }
    /^[ \t]*$/ { flush(); next }
    /^(#|[|]|[-*] |[0-9]+[.] )/ { flush() }
    {
        if (text == "")
            start = FNR
        line = $0
        gsub(/[ \t]+/, " ", line)
        text = text " " line
    }
    /^#/ || /^[|]/ { flush() }
    END { flush() }' "$1"
}

# The help of each command, a paragraph a line: its description and the text of
# each option; not its examples.
help_of() { # COMMAND
    "$forerun" "$1" --help=all | awk -v name="forerun $1 --help" '
    function flush() {
        if (text != "")
            printf "%s\t%s\n", name, text
        text = ""
    }
    /^Examples:/ { exit }
    /^Usage:/ { next }
    /^ *$/ { flush(); next }
    /^  +(-., )?--(\[no-\])?[a-z]/ { flush() }
    {
        sub(/^ +/, "")
        # An option and its argument are names.
        sub(/^(-., )?--(\[no-\])?[a-z-]+( [^ ]+)?( |$)/, "&: ")
        text = text " " $0
    }
    END { flush() }'
}

# The explanation of a term, without the line of related options.
term() { # TERM
    "$forerun" help "$1" | sed '/^See /,$d' | tr '\n' ' ' |
        sed "s/^/forerun help $1\t/; s/$/\n/"
}

# The first words of comments that are noun clauses: a pronoun or "of" never
# begins a comment, "when" only with a comma and a main clause behind it.
check_comments() {
    # shellcheck disable=SC2016
    git ls-files "${clean[@]}" |
        grep -E '\.(c|h|inc|cu|cuh|cc)$' | xargs perl -CSD -0777 -ne '
        while (/"(?:\\.|[^"\\])*"|\x27(?:\\.|[^\x27\\])\x27|(\/\*.*?\*\/)/sg) {
            my ($comment, $before) = ($1, $-[0]);
            next if !defined $comment;
            $comment =~ s/\n\s*\*(?!\/) ?/ /g;
            my ($first) = $comment =~ m{^/\*+\s*(.*?)(?:[.:;] |\s*\*/|$)}s;
            next if $first !~ /^(What|Of|Those|Who|Whom|Whose|Whoever|Where|
                How|Which|When(?!\b[^.]*,))\b/x;
            my $line = 1 + (substr($_, 0, $before) =~ tr/\n//);
            print "$ARGV:$line: a comment begins with \"$1\" (write a sentence ",
                "with a subject and a verb): $first\n";
            $bad = 1;
        }
        END { exit($bad ? 1 : 0) }'
}

bad=0
check_comments || bad=1
for page in "${pages[@]}"; do
    paragraphs "$page"
done | check || bad=1
[ -x "$forerun" ] || {
    echo "$forerun is not built: its help was not checked"
    exit $((bad ? 1 : 77))
}
"$forerun" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' |
    while read -r command; do help_of "$command"; done | check || bad=1
for term in $("$forerun" help terms | sed -n '/^  /s/,//gp'); do
    term "$term"
done | check || bad=1
exit $bad
