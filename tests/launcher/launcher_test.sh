#!/usr/bin/env bash
# The launcher, in a project of stand-ins: apt-get, cmake, ctest and the program only write down how they were called.
# Usage: launcher_test.sh LAUNCHER
set -euo pipefail

launcher=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

check() { # check WHAT CONDITION...
  if "${@:2}"; then
    printf 'ok      %s\n' "$1"
  else
    printf 'FAILED  %s\n' "$1"
    failures=$((failures + 1))
  fi
}
contains() { [[ $1 == *"$2"* ]]; }
lacks() { [[ $1 != *"$2"* ]]; }

# A stand-in NAME whose script is standard input.
stand_in() {
  { printf '#!/usr/bin/env bash\n' && cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

# A fresh project, in a folder with a space, and a PATH with nothing but the stand-ins and what the launcher uses.
start() {
  rm -rf "${work:?}"/*
  project="$work/a project"
  mkdir -p "$work/bin" "$project"/{core,moe,experiments,tests,configs}
  touch "$project/CMakeLists.txt" "$project/CMakePresets.json" "$project/core/a.cpp"
  cp "$launcher" "$project/moelab"
  local tool
  for tool in bash env cat chmod cp date dirname find flock grep id kill mkdir mv nproc python3 readlink rm sleep tail touch uname; do
    ln -s "$(command -v "$tool")" "$work/bin/$tool"
  done
  for tool in c++ ninja groff h5dump ncdump; do stand_in "$tool" </dev/null; done
  export CALLS=$work/calls
  : >"$CALLS"
  # Configuring writes what ninja would need; building writes the program. The build folder is after -B or --build.
  stand_in cmake <<'STAND_IN'
echo "cmake $*" >>"$CALLS"
[[ -z ${FAIL_BUILD:-} ]] || { echo "a.cpp:1: error: no such luck"; exit 1; }
while [[ $1 != -B && $1 != --build ]]; do shift; done
mkdir -p "$2"
if [[ $1 == -B ]]; then
  touch "$2/build.ninja"
  echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"$2/CMakeCache.txt"
else
  cp "$(dirname "$0")/program" "$2/moelab"
fi
STAND_IN
  stand_in program <<'STAND_IN'
echo "program $*" >>"$CALLS"
case $1 in
  packages) [[ -e ${TEXT:-/} ]] || echo some-corpus ;;
  run) echo "result in $PWD" ;;
  schema) echo "{\"schema\": \"$*\"}" ;;
  fail) exit 42 ;;
  wait) trap 'echo interrupted >>"$CALLS"; exit 130' INT; for _ in {1..100}; do sleep 0.1; done ;;
esac
STAND_IN
  stand_in apt-get <<'STAND_IN'
echo "apt-get $* frontend=$DEBIAN_FRONTEND" >>"$CALLS"
[[ -z ${FAIL_APT:-} ]] || { echo "E: no network" >&2; exit 100; }
[[ $1 != install ]] || touch "${TEXT:-/dev/null}"
[[ $* != *ninja* ]] || cp "$(dirname "$0")/c++" "$(dirname "$0")/ninja"
STAND_IN
  stand_in ctest <<'STAND_IN'
echo "ctest $*" >>"$CALLS"
echo "100% tests passed"
STAND_IN
}

# moelab ARGUMENTS...: calls the launcher from another folder; sets status, out and err.
moelab() {
  status=0
  out=$(cd "$work" && PATH=$work/bin "$project/moelab" "$@" 2>"$work/err" </dev/null) || status=$?
  err=$(<"$work/err")
}
calls() { cat "$CALLS"; }

start
moelab run my.yaml seed=3 "two words"
check "builds and runs at the first call" test "$status" = 0
check "results alone go to standard output" test "$out" = "result in $work"
check "configures the release preset" contains "$(calls)" "cmake --preset release"
check "builds the program only" contains "$(calls)" "--target moelab"
check "arguments arrive as they are" contains "$(calls)" "program run my.yaml seed=3 two words"
check "writes the schema that configs name" contains "$(<"$project/configs/corpus.schema.json")" "schema --corpus"
check "says that it builds" contains "$err" "building"
: >"$CALLS"
moelab run my.yaml
check "a second call goes straight to the program" lacks "$(calls)" "cmake"
check "a second call says nothing of its own" test -z "$err"
moelab fail
check "the program's status is the launcher's" test "$status" = 42
sleep 0.01 && touch "$project/core/a.cpp"
moelab version
check "a newer source is built" contains "$(calls)" "cmake --build"
check "a newer source is not configured again" lacks "$(calls)" "cmake --preset"
: >"$CALLS"
sleep 0.01 && touch "$project/CMakePresets.json"
moelab version
check "new presets are configured" contains "$(calls)" "cmake --preset release"
: >"$CALLS"
moelab version
check "and once only" lacks "$(calls)" "cmake"
echo another machine >"$project/build/release/built.program"
moelab version
check "another machine builds anew" contains "$(calls)" "--clean-first"

moelab_pid_test() {
  : >"$CALLS"
  (cd "$work" && PATH=$work/bin exec "$project/moelab" wait) &
  local pid=$! status=0
  until grep -q "program wait" "$CALLS"; do sleep 0.05; done
  kill -INT "$pid"
  wait "$pid" || status=$?
  [[ $status == 130 ]] && grep -q interrupted "$CALLS"
}
set -m # so that the background job takes interrupts
check "signals reach the program" moelab_pid_test
set +m

start
rm "$work/bin/ninja"
moelab version
check "names what is missing" contains "$err" "missing packages: ninja-build"
check "installs without asking where there is no terminal" contains "$(calls)" "apt-get install -y --no-install-recommends ninja-build frontend=noninteractive"
check "updates the lists first" contains "$(calls)" "apt-get update"
check "and then runs" contains "$(calls)" "program version"

start
rm "$work/bin/ninja"
FAIL_APT=1 moelab version
check "a failed installation stops" test "$status" = 1
check "a failed installation shows why" contains "$err" "E: no network"

start
rm "$work/bin/ninja" "$work/bin/apt-get"
moelab version
check "without apt-get it stops" test "$status" = 1
check "without apt-get it names what is missing" contains "$err" "ninja-build"
check "without apt-get it builds nothing" lacks "$(calls)" "cmake"

start
FAIL_BUILD=1 moelab version
check "a failed build stops" test "$status" = 1
check "a failed build shows the end of its log" contains "$err" "a.cpp:1: error: no such luck"
moelab version
check "after a failed build the next call builds" test "$status" = 0

start
TEXT=$work/text moelab run my.yaml
check "installs the text of an experiment" contains "$(calls)" "apt-get install -y --no-install-recommends some-corpus"
: >"$CALLS"
TEXT=$work/text moelab run my.yaml
check "text that is there is not installed" lacks "$(calls)" "apt-get"
: >"$CALLS"
TEXT=$work/text moelab -q run my.yaml seed=3
check "options may stand before the command" contains "$(calls)" "program packages run my.yaml seed=3"
check "and arrive as they are" contains "$(calls)" "program -q run my.yaml seed=3"

start
moelab test -L unit
check "tests build everything" lacks "$(calls)" "--target"
check "tests get the arguments" contains "$(calls)" "ctest --test-dir $project/build/release --output-on-failure --no-tests=error"
check "tests get the arguments at the end" contains "$(calls)" "-L unit"
check "the tests' summary closes the output" test "$out" = "100% tests passed"
check "a package that cannot be had is told of" contains "$err" "there is no package chromium here"
check "and not asked for" lacks "$(calls)" "apt-get"

start
stand_in apt-cache <<<'true'
FAIL_APT=1 moelab test
check "packages of single tests are installed where there are any" contains "$(calls)" "apt-get install -y --no-install-recommends chromium"
check "tests run without them where that fails" test "$out" = "100% tests passed"

start
moelab version
mv "$project" "$work/moved"
project=$work/moved
: >"$CALLS"
touch "$project/core/a.cpp"
moelab version
check "a moved project is configured again" contains "$(calls)" "cmake --preset release"
ln -s "$project/moelab" "$work/bin/link"
status=0
(cd / && PATH=$work/bin "$work/bin/link" version) || status=$?
check "works through a link" test "$status" = 0

printf '%d failures\n' "$failures"
[[ $failures == 0 ]]
