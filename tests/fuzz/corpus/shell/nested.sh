x="y[x]"; y=1; launch $((x)) ${a[a[a[1]]]} $((a[a[b]]=1))
while [ $1 ]; do case $2 in a|$X) eval "$3";; esac; done
cat <<-E <<'F'
	$(echo ${A:-$(<f)})
	E
$A
F
