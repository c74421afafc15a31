A=1; B="x y"; C='q $A'
python $A "$B" $B "$C" '$A' \$A "a\"b" a\ b "a\
b"
python ${Z1:-def} "${Z2:-a b}" ${Z3:=set} $Z3 ${A:+alt} "${B:+"in q"}" x${Z4:+no}y
D=(1 "2 3" 4); D+=(5 "6 7"); D[7]=eight
python "${D[@]}" ${#D[@]} ${D[1]} "${D[1]}" "${D[*]}" "pre${D[@]}post" ${D[-1]} ${!D[@]} "${D[@]:1:2}"
E=(); python "${E[@]}" e ${#E[@]}
declare -A M=([a]=1 [b]="two words"); M[c]=3
python ${M[a]} "${M[b]}" ${M[c]} ${#M[@]}
F=path/to/file.tar.gz
python ${F##*/} ${F%.*} ${F%%.*} ${F#*/} ${F/to/from} ${F//t/T} ${F/#path/P} ${F/%gz/GZ} ${#F} ${F:2:4} ${F: -2} ${F^^} ${F^} ${F:0:-3}
python $((2*3+4)) $((1<<4)) $((7/2)) $((-7/2)) $((7%3)) $((2**10)) $((A==1)) $((A>0&&0)) $((A?5:6)) $(( (A+1)*3 )) $((0x1f)) $((!A)) $((~0)) $((A+=4)) $A $((A++)) $A $((--A)) $((2**3**2)) $((1,2)) $((10-3-2))
(( A > 3 )) && python big; (( A < 3 )) || python notsmall
if (( A == 5 )); then python five; elif (( A == 4 )); then python four; else python else; fi
for i in 1 2 3; do python loop $i; done
for i in $(seq 2 2 6); do python seq $i; done
for ((i=0;i<3;i++)); do [ $i -eq 1 ] && continue; python c $i; done
i=0; while [ $i -lt 5 ]; do i=$((i+1)); if [ $i = 3 ]; then break; fi; python w $i; done
until [[ $i -ge 5 ]]; do ((i++)); done; python until $i
case $F in *.zip) python zip;; *.tar.gz|*.tgz) python tar;; *) python other;; esac
case "7B" in 7[AB]) python seven ;; esac
case x in x) python fall ;& y) python through ;; z) python no;; esac
f() { local v=$1; shift; python f $v "$@" $#; v=9; return 3; }
v=1; f a "b c" d; python $? $v
function g { python g "$1" "${2:-none}"; }; g one; g one two
eval "python eval \"a b\" '\$A' $A"
cmd="python cmd --x '([0]*1+[1]*3)'"; eval $cmd; $cmd
set -- p "q r" s; python "$@" $# "$2"; shift; python "$*" $1 ${@:2}
while [ $# -gt 0 ]; do case "$1" in q*) python Q "$1"; shift;; s) python S; shift;; *) shift;; esac; done
X=`echo back \`echo tick\``; python "$X" $(echo a; echo b) "$(echo a; echo b)"
python $(basename /a/b/c.json .json) $(dirname /a/b/c) $(dirname x) $(expr 3 \* 4) $(echo "3*4" | bc)
cat <<EOT >t.json
{"a": $A, "b": "$(echo in)"}
EOT
python "$(cat t.json)" "$(<t.json)"
cat >t2.json <<'EOT'
{"a": $A}
EOT
python "$(cat t2.json)"
rm -f t.json t2.json
IFS=',' read -ra L <<< "1,2,3"; python "${L[@]}" ${#L[@]} a,b
read x y <<< "one two three"; python "$x" "$y"
python {1..3} x{a,b}y {a..c} '{1..3}' "{a,b}" a{1,2}{3,4}
[[ abc == a* ]] && python m1; [[ abc == "a*" ]] || python m2; [[ abc =~ ^a.c$ ]] && python m3
[[ -z "" && -n x || 1 -gt 2 ]] && python m4; [[ ! ( 1 == 2 ) ]] && python m5
[ "a" = "a" -a 1 -lt 2 ] && python m6; [ ! -z x ] && python m7; test 1 -eq 1 && python m8
if ! [ 1 = 2 ]; then python neg; fi
{ python grp; } ; ( A=77; python sub $A ); python after $A
echo hi | while read l; do python piped $l; done
true && python t || python e; false && python t || python e2
U=abc; V=U; python ${!V} "${V}_x" $V$U ${V}x
python "a'b" 'a"b' a'b'c"d"e $'t\tn' "x\\y" "\$A" "\n"
ARGS="
  --one 1 \
  --two 2
"
ARGS="$ARGS --three 3"; ARGS+=" --four"
python $ARGS
OPTS=( # comment's here
  --a 1 # other "comment
  --b "2 3"
)
python ${OPTS[@]} -- "${OPTS[@]}"
if [ "$A" -gt 100 ]; then
 python no
elif [[ "$U" == abc ]]; then python yes
fi
unset U; python "[${U}]" "${U-unset}" "${U:-empty}"; U=; python "${U-unset}" "${U:-empty}"
python a;python b # comment
python c \
  d
N=4; (( N *= 2, M2 = N + 1 )); python $N $M2; let N+=1; python $N; let "K = N * 2"; python $K
arr=(a b c); for x in "${arr[@]}"; do for y in 1 2; do [[ $x$y == b2 ]] && break 2; python $x$y; done; done
python "$(printf '%s-%d' a 5)" "$(echo -n x)"
a=1 b=2; python $a$b; export c=3 d="4 5"; python $c "$d"
python ${arr[@]/#/p-} "${arr[@]^^}"
h() { echo "ret $1"; }; python "$(h 1)" $(h 2)
[ -n "$a" ] && { python n1; python n2; }
time python timed
python $(( $(echo 3) + ${#arr[@]} ))
str="a:b:c"; python ${str%%:*} ${str##*:} ${str//:/ } "${str//:/ }" "${str/:*/}"
python $(echo 0,1,2,3 | tr ',' '\n' | wc -l) $(echo 0,1,2 | awk -F, '{print NF}') $(echo a,b,c | cut -d, -f2)
