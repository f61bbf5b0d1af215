#!/usr/bin/env bash
# What must hold before a version is tagged: the wheel installs into an empty environment and works there, the sdist
# contains what its tests need, and version and changelog agree. `make release-check` runs it (about ten minutes).
#
#   SHARE=1   take the dependencies from the environment of this repository instead of installing them again: quicker
#   FULL=1    run all tests of the sdist, not only the quick ones
#   PYTHON=python3.12   another Python for the new environment
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1

say() { printf '\n== %s\n' "$*"; }

say "Version and changelog"
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/ltds/__init__.py)
case $version in *dev*) echo "warning: the version is $version. For a release set it in src/ltds/__init__.py." ;; esac
if grep -q "^## ${version%.dev*}" CHANGELOG.md; then
  for part in Added Changed Fixed Numerics; do grep -q "^### $part" CHANGELOG.md || { echo "CHANGELOG.md has no '### $part'"; exit 1; }; done
else
  echo "CHANGELOG.md has no section '## ${version%.dev*}'"; exit 1
fi
echo "ltds $version"

say "Wheel and sdist"
"$python" -m venv "$work/build"
"$work/build/bin/pip" install --quiet --disable-pip-version-check --constraint constraints.txt hatchling
"$work/build/bin/python" -m hatchling build -d "$work/dist"
ls -l "$work/dist"
wheel=$(ls "$work"/dist/*.whl)
"$python" - "$wheel" <<'PY'
import sys, zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
wrong = [name for name in names if not name.startswith(("ltds/", "ltds-"))]
assert not wrong, f"the wheel contains {wrong[:3]}"
for needed in ("ltds/py.typed", "ltds/cli/main.py"):
    assert needed in names, f"the wheel lacks {needed}"
print(len(names), "files in the wheel")
PY

say "An empty environment"
"$python" -m venv "$work/user"
if [ -n "${SHARE:-}" ]; then
  "$work/user/bin/pip" install --quiet --disable-pip-version-check --no-deps "$wheel"
  # After its own packages, so that its ltds is the one from the wheel; the editable install is a .pth file, not read here.
  shared=$("$root/.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  echo "$shared" > "$("$work/user/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/shared.pth"
else
  "$work/user/bin/pip" install --quiet --disable-pip-version-check --constraint constraints.txt "$wheel"
fi
mkdir "$work/here" && cd "$work/here"
"$work/user/bin/ltds" --version
"$work/user/bin/python" -c 'import ltds, pathlib, sys; assert pathlib.Path(ltds.__file__).is_relative_to(sys.prefix), ltds.__file__'
"$work/user/bin/ltds" doctor
"$work/user/bin/ltds" methods > methods.txt && wc -l methods.txt
"$work/user/bin/ltds" data build bestiary --set test_per_pair=2 --set val_per_pair=1 --out data/bestiary
"$work/user/bin/ltds" -q train data/bestiary --method ltds --held-out woodblock --out runs/ltds \
  --set schedule.epochs=1 --set schedule.steps_per_epoch=4
"$work/user/bin/ltds" -q report runs --out report.html
"$work/user/bin/ltds" -q predict runs/ltds data/bestiary/images/test/woodblock/zebra --out labels.csv
if [ -z "${SHARE:-}" ]; then
  rm -rf data && "$work/user/bin/ltds" -q demo --out runs/demo --set schedule.epochs=1 --set schedule.steps_per_epoch=4
fi

say "Tests of the sdist"
cd "$work" && tar xzf dist/*.tar.gz && cd "$work"/ltds-*/
tests="tests/architecture tests/unit/core tests/unit/losses tests/properties"
[ -n "${FULL:-}" ] && tests=tests
if [ -n "${SHARE:-}" ]; then run="$root/.venv/bin/python"; else
  "$work/user/bin/pip" install --quiet --disable-pip-version-check --constraint constraints.txt '.[test]'
  run="$work/user/bin/python"
fi
PYTHONPATH="$PWD/src" "$run" -m pytest -q -x $tests

say "ltds $version can be tagged: git tag -a v${version%.dev*}"
