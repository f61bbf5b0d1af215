#!/usr/bin/env bash
# What a new user does, on a fresh copy: clone, make demo, make test, make docs, the tutorial on a folder of images, every
# command of the documentation. Takes an hour or more on two cores.
#
#   benchmarks/fresh_machine.sh                     # images are drawn
#   PHOTOS=~/photos HELD_OUT=sketch benchmarks/fresh_machine.sh      # a real folder, photos/<domain>/<class>/*
#   STEPS="clone demo tutorial" benchmarks/fresh_machine.sh          # only some of the steps
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
work=${WORK:-$(mktemp -d)}
steps=${STEPS:-clone demo test docs tutorial commands}
echo "Working in $work (kept, so that you can look at it)"

started=$SECONDS
step() {
  case " $steps " in *" $1 "*) ;; *) return 1 ;; esac
  printf '\n== %s (after %d s)\n' "$1" $((SECONDS - started))
}

if step clone; then git clone --quiet "$source" "$work/ltds"; fi
cd "$work/ltds"
if step demo; then make demo; fi
if step test; then make test; fi
if step docs; then make docs && test -s site/index.html; fi
ltds=$work/ltds/.venv/bin/ltds
if step tutorial; then
  "$ltds" --version && "$ltds" doctor
  mkdir -p "$work/tutorial" && cd "$work/tutorial"
  if [ -n "${PHOTOS:-}" ]; then ln -sfn "$PHOTOS" photos; else
    "$work/ltds/.venv/bin/python" - <<'PY'
import sys
sys.path.insert(0, "../ltds/benchmarks")
from pathlib import Path
from run_docs import prepare
prepare(Path("."), "own-data.md")
PY
  fi
  "$ltds" data check photos --out check.html || true # exit code 1: it found something to say
  "$ltds" train photos --estimate full --budget "${BUDGET:-5m}" --out runs/photos
  "$ltds" report runs/photos --out report.html
  find -L photos -type f | sed -n 1,5p | "$ltds" predict runs/photos/final - --out labels.csv
  "$ltds" export runs/photos/final --out models/photos
  "$ltds" predict models/photos photos --out again.csv
  head -n 3 labels.csv again.csv
fi
if step commands; then
  cd "$work/ltds"
  .venv/bin/python benchmarks/run_docs.py --work "$work/docs"
fi
printf '\nAll steps passed in %d s: %s\n' $((SECONDS - started)) "$steps"
