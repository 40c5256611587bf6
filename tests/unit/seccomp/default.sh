# Run by bash under the default profile, in an empty directory.
set -euo pipefail
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1

git init -q repo && cd repo
git config user.email a@b && git config user.name x
echo hi > f && git add f && git commit -qm x && git gc -q && git clone -q . ../clone
[ "$(git log --oneline | wc -l)" = 1 ]
cd ..

printf '#include <stdio.h>\nint main(void){puts("built");}\n' > a.c
printf 'a: a.c\n\tgcc -O2 -o a a.c\n' > Makefile
make -s -j2 --output-sync a && [ "$(./a)" = built ]
perl -e 'exit 3 unless fork; wait; select(undef, undef, undef, 0.01); print "perl\n"' > /dev/null

cp a b && cp -a repo copy && mv b c && ln c d && ln -s c e && ls -laR . > /dev/null
rm -rf copy d e
mkdir -p x/y && touch -d 2020-01-01 x/y/z && chmod 700 x && chown "$(id -u)" x
mkdir -m 1777 x/sticky && tar czpf t.tgz x && rm -r x && tar xzpf t.tgz && cp -pR x z
[ "$(stat -c %a z z/sticky | paste -sd,)" = 700,1777 ]
if chmod u+s a 2> /dev/null || install -m 2755 a s 2> /dev/null; then exit 9; fi
find x -type f | grep -q z && install -m 644 a.c g
dd if=/dev/zero of=zero bs=1k count=10 status=none && truncate -s 5 zero && stat zero > /dev/null
mkfifo p && (echo through > p &) && [ "$(cat p)" = through ]
! timeout 1 sleep 60
(for i in 1 2 3; do echo $i & done; wait) | sort --parallel=2 | paste -sd, | grep -qx 1,2,3
flock zero true
setsid true; nohup true 2> /dev/null; nice true
awk 'BEGIN { "echo sub" | getline x; exit x != "sub" }'
sed -i s/hi/ho/ repo/f && grep -q ho repo/f
trap 'got=1' USR1; kill -USR1 $$; [ "$got" = 1 ]
coproc cat; echo x >&"${COPROC[1]}"; read -r y <&"${COPROC[0]}"; [ "$y" = x ]
python3 -c 'import os; p, c = os.openpty(); os.ttyname(c)'
sha256sum a > sums && sha256sum -c --quiet sums
seq 2 | xargs -P2 -n1 echo > /dev/null
df . > /dev/null; du -s . > /dev/null; id > /dev/null; uname -a > /dev/null
echo all ok
