#!/bin/sh
# Ten database-like loads on three devices: how far the recommendation is behind the best of
# the exhaustive grid, and what both cost. Prints the table of docs/recommend.md.
#
#   scripts/recommend-grid.sh BLKLAB [THINGS [LOAD...]]
#
# THINGS that are set at once in the grid: 2, unless it says more. The grid's best does not
# depend on the search: with GRIDS=FILE, an earlier table, the grid of a pair that is there
# is not run again, and its columns are taken from it as long as the pair has the same value
# as it is. Else that pair's grid is run.
set -eu
blklab=$(realpath "$1")
things=${2:-2}
grids=${GRIDS:+$(realpath "$GRIDS")}
cd "$(dirname "$0")/.."
shift
[ $# -eq 0 ] || shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# DEVICE SECONDS: as long as a run is, so that it has some thousand calls.
devices="st2000dm006 10
sata-ssd 1
nvme-consumer 300ms"

cat >"$work/row.py" <<'END'
"""A row of the table: LOAD DEVICE ANSWER [EARLIER]; with an earlier table status 3 if it has
no grid for the pair."""
import json, re, sys

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds(text):
    number, unit = re.match(r"([\d.]+) (\w+)", text).groups()
    return float(number) * UNITS[unit]


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


load, device, path, *earlier = sys.argv[1:]
a = json.load(open(path))
answer = a["tried"][a["answer"]]["what"] if a["answer"] is not None else "leave it"
if earlier:
    rows = (cells(line) for line in open(earlier[0]) if line.startswith(f"| {load} | {device} |"))
    row = next((row for row in rows if row[3] == a["before"]), None)
    if row is None:
        sys.exit(3)
    best, grid_runs = row[5], row[8]
    after = a["tried"][a["answer"]]["value"] if a["answer"] is not None else a["before"]
    ahead = seconds(after) / seconds(best)
else:
    g = a["grid"]
    best, grid_runs = f"{g['text']}: {g['what'] or 'leave it'}", g["runs"]
    after, ahead = g["answer_text"], g["ahead"]
print(f"| {load} | {device} | {a['goal']} | {a['before']} | {after}: {answer} "
      f"| {best} | {(ahead - 1) * 100:.1f} % | {a['runs']} | {grid_runs} |", flush=True)
END

# LOAD DEVICE FIGURE [MORE]: a recommendation, in answer.json.
recommend() {
    load=$1 device=$2 figure=$3
    shift 3
    "$blklab" recommend "$work/$load.fio" --device "$device" --fs ext4 --memory 1g \
        --for "$figure" --output-format json "$@" >"$work/answer.json"
}

echo "| load | device | figure | as it is | recommended | best of the grid | ahead by | runs | of the grid |"
echo "|---|---|---|---|---|---|---|---|---|"
for file in testdata/recommend/*.fio; do
    load=$(basename "$file" .fio)
    [ $# -eq 0 ] || case " $* " in *" $load "*) ;; *) continue ;; esac
    figure=$(sed -n 's/^# figure: //p' "$file")
    echo "$devices" | while read -r device seconds; do
        sed "s/^runtime=.*/runtime=$seconds/" "$file" >"$work/$load.fio"
        if [ -n "$grids" ]; then
            recommend "$load" "$device" "$figure"
            python3 "$work/row.py" "$load" "$device" "$work/answer.json" "$grids" && continue
            [ $? -eq 3 ] || exit 1
        fi
        recommend "$load" "$device" "$figure" --exhaustive="$things"
        python3 "$work/row.py" "$load" "$device" "$work/answer.json"
    done
done
