#!/bin/sh
# A run that is interrupted, killed or short of time leaves a whole file that the same command continues.
# Needs a GPU: exits 77 without one.
measure=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
file=$folder/r.csv

"$measure" -o "$file" --only add --minutes 0.05
status=$?
[ $status -eq 0 ] || exit $status  # 77 passes through
rows=$(wc -l < "$file")

"$measure" -o "$file" --only add --only relu &
run=$!
sleep 3
kill -TERM $run 2>/dev/null
wait $run
status=$?
if [ $status -ne 143 ] && [ $status -ne 0 ]; then echo "interrupted: exit code $status"; exit 1; fi
[ "$(wc -l < "$file")" -ge "$rows" ] || { echo "rows were lost"; exit 1; }

"$measure" -o "$file" --only softmax &
run=$!
sleep 3
kill -KILL $run 2>/dev/null
wait $run
printf 'half a row' >> "$file"
"$measure" -o "$file" --only add || exit 1
grep -q 'half a row' "$file" && { echo "the unfinished line is still there"; exit 1; }
[ -z "$(sort "$file" | cut -d, -f1-35 | uniq -d | head -1)" ] || { echo "a point was measured twice"; exit 1; }
echo "interrupted and continued: $(wc -l < "$file") lines"
