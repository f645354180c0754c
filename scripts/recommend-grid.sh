#!/bin/sh
# Ten database-like loads on three devices: how far the recommendation is behind the best of
# the exhaustive grid, and what both cost. Prints the table of docs/recommend.md.
#
#   scripts/recommend-grid.sh BLKLAB [THINGS [LOAD...]]
#
# THINGS that are set at once in the grid: 2, unless it says more.
set -eu
blklab=$(realpath "$1")
things=${2:-2}
cd "$(dirname "$0")/.."
shift
[ $# -eq 0 ] || shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# DEVICE SECONDS: as long as a run is, so that it has some thousand calls.
devices="st2000dm006 10
sata-ssd 1
nvme-consumer 300ms"

echo "| load | device | figure | as it is | recommended | best of the grid | ahead by | runs | runs of the grid |"
echo "|---|---|---|---|---|---|---|---|---|"
for file in testdata/recommend/*.fio; do
    load=$(basename "$file" .fio)
    [ $# -eq 0 ] || case " $* " in *" $load "*) ;; *) continue ;; esac
    figure=$(sed -n 's/^# figure: //p' "$file")
    echo "$devices" | while read -r device seconds; do
        sed "s/^runtime=.*/runtime=$seconds/" "$file" >"$work/$load.fio"
        "$blklab" recommend "$work/$load.fio" --device "$device" --fs ext4 --memory 1g \
            --for "$figure" --exhaustive="$things" --output-format json >"$work/answer.json"
        python3 - "$load" "$device" "$work/answer.json" <<'END'
import json, sys
load, device, path = sys.argv[1:]
a = json.load(open(path))
g = a["grid"]
answer = a["tried"][a["answer"]]["what"] if a["answer"] is not None else "leave it"
ahead = f"{(g['ahead'] - 1) * 100:.1f} %"
print(f"| {load} | {device} | {a['goal']} | {a['before']} | {g['answer_text']}: {answer} "
      f"| {g['text']}: {g['what'] or 'leave it'} | {ahead} | {a['runs']} | {g['runs']} |")
END
    done
done
