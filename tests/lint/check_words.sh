#!/bin/bash
# check_words.sh: the pages of `clean` say things
# in the field's words.  Each row of `banned` is a pattern (of Perl's regular
# expressions, in lower case, whole words) and the word to write; each row of
# `allowed` is a phrase that the pattern does not mean, with the reason.  Code,
# examples and links are not looked at.
set -u
cd "$(dirname "$0")/../.." || exit 1
# Pages that are clean; a page is added once it is.
clean=(README.md)

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
        @banned = map { [split /\t/] } split /\n/, $ENV{BANNED};
        @allowed = map { (split /\t/)[0] } split /\n/, $ENV{ALLOWED};
    }
    chomp;
    my ($name, $text) = split /\t/, $_, 2;
    $text =~ s/`[^`]*`//g;                        # code
    $text =~ s/\]\([^)]*\)/]/g;                   # targets of links
    $text =~ s/\Q$_\E//gi for @allowed;
    for my $sentence ($text =~ /[^.?!:;|]+[.?!:;|]?/g) {
        for (@banned) {
            my ($pattern, $instead) = @$_;
            next if $sentence !~ /(?<![\w-])($pattern)(?![\w-])/i;
            my $found = $1;
            # In capitals it is the name of an argument.
            next if $found eq uc $found;
            next if $pattern =~ /^what/ and $sentence =~ /\?$/;
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

bad=0
for page in "${clean[@]}"; do
    paragraphs "$page" | check || bad=1
done
exit $bad
