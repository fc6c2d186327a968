#!/usr/bin/env bash
# Proves on a machine with a GPU that gyre computes there what it computes on the CPU. Runs from a build tree and, without any
# tools, from the bundle of make_bundle.sh. The stages stand in gpu_check_stages.sh; docs/gpu_check.md says more.
set -uo pipefail
export LC_ALL=C GYRE_TUNE=none
unset CDPATH
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source=scripts/gpu_check_stages.sh
source "$here/gpu_check_stages.sh" || exit 1

usage() {
  cat <<'TEXT'
usage: gpu_check.sh [--only WHICH[,…]] [--device cuda|cpu] [--out DIR] [--small] [--limit N]
                    [--build DIR] [--cuda-libs DIR]

Compares every operation, gradient and model on the GPU with the CPU, trains the demo's model there for a minute, and takes runs
from the CPU to the GPU and back: under four minutes. Prints a table, writes DIR/gpu_check.json and a log of each stage.

  --only WHICH      check (correctness), train (training), or names of stages (default: everything)
  --device DEVICE   cuda, or cpu: the same stages at small sizes, which proves this script where there is no GPU (default: cuda)
  --out DIR         where results go; an earlier check there is replaced (default: ./gpu_check)
  --small           a few updates in place of a minute of training, as --device cpu does
  --limit N         seconds after which a stage hangs (default: 90, the demo 150; 300 at small sizes)
  --build DIR       build tree to check; not in a bundle (default: build/release of the source tree)
  --cuda-libs DIR   where libcublasLt.so.13 lies; pip's wheels have it in site-packages/nvidia/cu13/lib (default: looked for)

Exit codes: 0 all is right, 1 something is wrong, 2 wrong use, 3 no GPU.
TEXT
}
wrong_use() { echo "gpu_check.sh: $1 (see gpu_check.sh --help)" >&2; exit 2; }

only=all device=cuda out=gpu_check small=0 limit='' build='' cuda_libs=''
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --small) small=1; shift ;;
    --only | --device | --out | --limit | --build | --cuda-libs)
      [ $# -ge 2 ] && [ -n "$2" ] || wrong_use "$1 needs a value"
      name=${1#--}; declare "${name//-/_}=$2"; shift 2 ;;
    *) wrong_use "unknown option '$1'" ;;
  esac
done
case "$device" in cuda) ;; cpu) small=1; export GYRE_PIN=0 ;; *) wrong_use "--device is cuda or cpu, not '$device'" ;; esac
[[ "$limit" =~ ^([1-9][0-9]{0,5})?$ ]] || wrong_use "--limit is a number of seconds, not '$limit'"
[ -z "$cuda_libs" ] || [ -e "$cuda_libs/libcublasLt.so.13" ] || wrong_use "--cuda-libs: $cuda_libs has no libcublasLt.so.13"
stages=()
# Each stage once.
add() {
  local one
  for one in "$@"; do
    case " ${stages[*]} " in *" $one "*) ;; *) stages+=("$one") ;; esac
  done
}
IFS=, read -ra words <<< "$only"
for word in "${words[@]}"; do
  case "$word" in
    all) add "${check_stages[@]}" "${train_stages[@]}" ;;
    check) add "${check_stages[@]}" ;;
    train) add "${train_stages[@]}" ;;
    *)
      case " ${check_stages[*]} ${train_stages[*]} " in
        *" ${word// /_} "*) add "$word" ;;
        *) wrong_use "--only: '$word' is not check, train or one of ${check_stages[*]} ${train_stages[*]}" ;;
      esac ;;
  esac
done

# Where things lie: in the bundle, or in a source tree and its build.
if [ -x "$here/bin/gyre" ]; then
  [ -z "$build" ] || wrong_use "--build means nothing in a bundle"
  folders=("$here/bin") configs=$here/configs data=$here/data/fashion_mnist
  commit=$(sed -n 's/^commit //p' "$here/VERSION")
else
  build=${build:-$here/../build/release}
  folders=("$build" "$build/tests" "$build/tests/simt" "$build/tests/simt/gpu") configs=$here/../configs data=''
  commit=$(git -C "$here" rev-parse HEAD 2> /dev/null) &&
    [ -n "$(git -C "$here" status --porcelain --untracked-files=no 2> /dev/null)" ] && commit+=" with changes"
fi
program() {
  local folder
  for folder in "${folders[@]}"; do
    [ -f "$folder/$1" ] && [ -x "$folder/$1" ] && { echo "$folder/$1"; return; }
  done
  echo "gpu_check.sh: no program $1 in ${folders[*]}" >&2
  return 1
}
gyre=$(program gyre) || exit 1
case "$out" in /*) ;; *) out=$PWD/$out ;; esac
# Only what a check writes is replaced.
if [ -e "$out" ]; then
  [ -d "$out" ] || wrong_use "--out: $out is no folder"
  others=$(ls -A "$out" | grep -vxE 'gpu_check\.json|\.lock|logs|work|runs' | head -n 3 | paste -sd ' ')
  [ -z "$others" ] || wrong_use "--out: $out holds other things than a check: $others"
fi
mkdir -p "$out" && : >> "$out/.lock" && exec 9< "$out/.lock" || exit 1
flock -n 9 || { echo "gpu_check.sh: another check runs in $out" >&2; exit 1; }
rm -rf "$out/gpu_check.json" "$out/logs" "$out/work" "$out/runs" && mkdir "$out/logs" "$out/work" || exit 1
out=$(cd "$out" && pwd) logs=$out/logs work=$out/work
echo '{"ok": false, "reason": "the check did not end"}' > "$out/gpu_check.json" || exit 1

find_cuda_libs() {
  [ -n "$cuda_libs" ] && { echo "$cuda_libs"; return; }
  local folder
  for folder in ${CUDA_HOME:+"$CUDA_HOME/lib64"} ${VIRTUAL_ENV:+"$VIRTUAL_ENV"/lib/python3*/site-packages/nvidia/*/lib} \
    /usr/local/cuda/lib64 /usr/local/cuda-*/lib64 /usr/lib/x86_64-linux-gnu \
    /usr/{local/,}lib/python3*/{site,dist}-packages/nvidia/*/lib /opt/*/{,.venv/}lib/python3*/site-packages/nvidia/*/lib \
    ${HOME:+"$HOME"/.local/lib/python3*/site-packages/nvidia/*/lib}; do
    [ -e "$folder/libcublasLt.so.13" ] && { echo "$folder"; return; }
  done
}
if [ "$device" = cuda ]; then
  cuda_libs=$(find_cuda_libs)
  [ -z "$cuda_libs" ] || export LD_LIBRARY_PATH="$cuda_libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

# JSON without tools: text in quotes; a member of what gyre printed, by its key alone; null for nothing.
json_text() {
  [ -n "$1" ] || { printf null; return; }
  printf '"'
  printf '%s' "$1" | tr '\200-\377' '?' | tr -d '\000-\010\013-\037' |
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\t/\\t/g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
  printf '"'
}
member() { sed -n 's/.*"'"$1"'": *"\{0,1\}\([^",}]*\).*/\1/p' "${2:-/dev/stdin}" | head -n 1; }

# For stages: a result in the table, why the stage is wrong, and a test that failed.
figure() {
  local value=$2
  case "$value" in
    *[!-+0-9.e]* | *[!0-9]) ;;
    *.*) value=$(awk -v x="$value" 'BEGIN { printf((x >= 1000) ? "%.0f" : "%.4g", x) }') ;;
  esac
  printf '%s %s\n' "$1" "$value" >> "$work/$stage.figures"
}
wrong() { printf '%s\n' "$1" >> "$work/$stage.reason"; return 1; }
failed_test() { printf '%s\n' "$1" >> "$work/$stage.failed"; }

# run_stage NAME: in a process group of its own, ended at its limit.
run_stage() {
  local begin=$SECONDS longest pid spoken=0
  stage=$1
  start=$(date +%s.%N)
  longest=${limit:-$(stage_limit "$stage")}
  log=$logs/$stage.log
  printf '%-12s …\n' "$stage"
  set -m
  ("stage_$stage") > "$log" 2>&1 < /dev/null 9<&- &
  pid=$!
  set +m
  running=$pid
  while kill -0 "$pid" 2> /dev/null; do
    sleep 0.2
    if [ $((SECONDS - begin)) -ge "$longest" ]; then
      wrong "hung: ended after $longest s"
      kill -TERM -- "-$pid" 2> /dev/null; sleep 1; kill -KILL -- "-$pid" 2> /dev/null
      break
    elif [ $((SECONDS - begin - spoken)) -ge 10 ]; then
      spoken=$((SECONDS - begin))
      printf '%-12s … %3d s  %s\n' "$stage" "$spoken" "$(tail -n 1 "$log" | tr -d '\r' | cut -c1-100)"
    fi
  done
  wait "$pid" 2> /dev/null
  local code=$?
  running=''
  [ "$code" = 0 ] || [ -s "$work/$stage.reason" ] || wrong "ended with exit code $code"
  result=ok
  [ ! -s "$work/$stage.reason" ] || { result=WRONG; bad=1; }
  finish_stage
}

# What a stage that is wrong said: the beginnings of its failures, then its end.
said() {
  local lines
  lines=$(awk '/: Failure$/ && shown < 8 { left = 8; ++shown } left-- > 0' "$log")
  [ -z "$lines" ] || printf '%s\n...\n' "$lines"
  tail -n "$([ -z "$lines" ] && echo 20 || echo 5)" "$log"
}

# Adds the stage to the table and to the JSON.
finish_stage() {
  local seconds figures='' json='' key value name names=''
  seconds=$(date +%s.%N | awk -v start="$start" '{ printf "%.1f", $1 - start }')
  while read -r key value; do
    figures+="$key $value  "
    case "$value" in
      *[!-+0-9.e]* | '') value=$(json_text "$value") ;;
    esac
    json+="${json:+, }\"$key\": $value"
  done < <(cat "$work/$stage.figures" 2> /dev/null)
  while read -r name; do names+="${names:+, }$(json_text "$name")"; done < <(cat "$work/$stage.failed" 2> /dev/null)
  printf '%-12s %-6s %7s  %s\n' "$stage" "$result" "$seconds" "$figures" >> "$work/table"
  [ "$result" = ok ] || sed 's/^/               /' "$work/$stage.reason" >> "$work/table"
  tail -n 1 "$work/table" | sed "s/^               /$stage: /"
  {
    [ ! -s "$work/stages.json" ] || printf ',\n'
    printf '    {"stage": "%s", "ok": %s, "seconds": %s, "figures": {%s}, "failed": [%s]' \
      "$stage" "$([ "$result" = ok ] && echo true || echo false)" "$seconds" "$json" "$names"
    [ "$result" = ok ] || printf ',\n     "reason": %s,\n     "tail": %s' \
      "$(json_text "$(cat "$work/$stage.reason")")" "$(json_text "$(said | cut -c1-300)")"
    printf '}'
  } >> "$work/stages.json"
}

# write_json OK NO_GPU_REASON
write_json() {
  local devices=$work/devices.json driver
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2> /dev/null | head -n 1)
  [ -n "$driver" ] || driver=$(sed -n 's/.*Kernel Module[^0-9]*\([0-9.]*\).*/\1/p' /proc/driver/nvidia/version 2> /dev/null)
  {
    printf '{\n  "version": %s,\n  "commit": %s,\n  "date": "%s",\n' "$(json_text "$version")" "$(json_text "$commit")" \
      "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    printf '  "device": "%s",\n  "small": %s,\n' "$device" "$([ "$small" = 1 ] && echo true || echo false)"
    printf '  "machine": {"cpu": %s, "threads": %s, "gpu": %s, "memory_mb": %s, "capability": %s, "driver": %s,\n' \
      "$(json_text "$(sed -n '/"cpu"/,/}/p' "$devices" | member name)")" "$(member threads "$devices")" \
      "$(json_text "$gpu")" "$(member memory_mb "$devices" | grep . || echo null)" \
      "$(json_text "$(member capability "$devices")")" "$(json_text "$driver")"
    printf '              "cuda_of_driver": %s, "cuda_of_build": %s, "cuda_libs": %s},\n' \
      "$(json_text "$(sed -n '/"cuda"/,$p' "$devices" | member driver | sed 's/^null$//')")" \
      "$(json_text "$(member runtime "$devices" | sed 's/^null$//')")" "$(json_text "$cuda_libs")"
    printf '  "ok": %s,\n  "no_gpu": %s,\n  "seconds": %s,\n  "stages": [\n' "$1" "$(json_text "$2")" "$SECONDS"
    cat "$work/stages.json" 2> /dev/null
    printf '\n  ]\n}\n'
  } > "$out/gpu_check.json"
}

running='' bad=0 SECONDS=0
interrupted() {
  [ -z "$running" ] || { kill -TERM -- "-$running"; sleep 1; kill -KILL -- "-$running"; } 2> /dev/null
  echo "gpu_check.sh: interrupted" >&2
  exit 130
}
trap interrupted INT TERM HUP
version=$("$gyre" --version) || { echo "gpu_check.sh: $gyre does not start" >&2; exit 1; }
"$gyre" devices --json > "$work/devices.json" || exit 1
gpu=$(sed -n '/"devices"/,$p' "$work/devices.json" | member name)
emulated=$(member emulated "$work/devices.json")
if [ "$device" = cuda ] && [ "$(member available "$work/devices.json")" != true ]; then
  reason=$(sed -n 's/.*"reason": "\(.*\)",$/\1/p' "$work/devices.json" | sed -e 's/\\"/"/g' -e 's/\\\\/\\/g')
  write_json false "$reason"
  echo "no GPU: $reason"
  exit 3
fi
echo "$version${commit:+, commit $commit}"
"$gyre" devices | sed 's/^/  /'
[ "$device" = cpu ] || [ "$emulated" = true ] || echo "  cuBLAS  ${cuda_libs:-in no usual place: --cuda-libs DIR names another}"
if [ -z "$data" ]; then
  data=$work/data
  "$here/cut_fashion_mnist.sh" 10000 2000 "$data" || exit 1
fi
for each in "${stages[@]}"; do run_stage "$each"; done
echo
printf '%-12s %-6s %7s  %s\n' stage result seconds figures
cat "$work/table"
write_json "$([ "$bad" = 0 ] && echo true || echo false)" ''
echo
if [ "$bad" = 0 ]; then
  echo "all is right, in $SECONDS s: $out/gpu_check.json"
else
  echo "something is WRONG: see $out/gpu_check.json and $logs"
fi
exit "$bad"
