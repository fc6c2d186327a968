# The stages of gpu_check.sh, which sources this file: stage_NAME, run in the order below, says figures by `figure` and faults by
# `wrong` (and `failed_test`). $gyre, $device, $small, $configs, $data, $out, $work, $log and program() are given.
# shellcheck shell=bash disable=SC2154

check_stages=(runtime primitives kernels products operations planes models updates amp)
train_stages=(demo rotations bf16 fp16 to_gpu to_cpu repeat speed)

# stage_limit NAME: seconds after which a stage hangs.
stage_limit() {
  case "$1:$small" in
    demo:0) echo 150 ;;
    rotations:0) echo 240 ;; # with the demo before it
    *:0) echo 90 ;;
    *) echo 300 ;; # a loaded machine without a GPU
  esac
}

# tests PROGRAM FILTER…: runs tests, and those that fail once more, each in a process of its own: after a fault on the GPU nothing
# else works in a process.
tests() {
  local path filter code name alone=0 count
  path=$(program "$1") || { wrong "no program $1"; return; }
  filter=$(IFS=:; echo "${*:2}")
  GYRE_TEST_DEVICE=$device "$path" --gtest_color=no --gtest_filter="$filter"
  code=$?
  [ "$code" != 77 ] || { wrong "$1 found no device"; return; }
  # One line per test; one that began and did not end took the program with it.
  awk '/^\[ RUN      \]/ { name = $4 } /^\[       OK \]/ { print "ok", $4; name = "" }
       /^\[  SKIPPED \] .* \(/ { print "skipped", $4; name = "" } /^\[  FAILED  \] .*\(.* ms\)$/ { sub(/,$/, "", $4); print "failed", $4; name = "" }
       END { if (name != "") print "failed", name }' "$log" | sort -u > "$work/$stage.tests"
  count=$(grep -c '^ok' "$work/$stage.tests")
  figure tests "$count"
  grep -q '^skipped' "$work/$stage.tests" && figure skipped "$(grep -c '^skipped' "$work/$stage.tests")"
  if grep -q '^failed' "$work/$stage.tests"; then
    while read -r _ name; do
      failed_test "$name"
      [ "$device" = cuda ] && [ "$alone" -lt 8 ] || continue
      GYRE_TEST_DEVICE=$device timeout -k 2 20 "$path" --gtest_color=no --gtest_filter="$name" > "$work/alone.log" 2>&1 ||
        { echo "$name fails alone, too:"; tail -n 30 "$work/alone.log"; alone=$((alone + 1)); }
    done < <(grep '^failed' "$work/$stage.tests")
    figure failed "$(grep -c '^failed' "$work/$stage.tests")"
    wrong "failed: $(sed -n 's/^failed //p' "$work/$stage.tests" | head -n 5 | paste -sd ' ')"
  elif [ "$count" = 0 ]; then
    wrong "$1 has no test for $filter"
  elif [ "$code" != 0 ]; then
    wrong "$1 ended with exit code $code"
  fi
}
# Tests of CUDA's memory and streams have no CPU form; what the others do there is said by what is left.
on_cuda() { [ "$device" = cuda ]; }
simt_program() { on_cuda && [ "$emulated" != true ] && echo test_simt_gpu || echo test_simt; }

stage_runtime() {
  if on_cuda; then
    tests test_cuda "${runtime_suites[@]}"
  else
    "$gyre" devices && figure threads "$(member threads "$work/devices.json")"
  fi
}
runtime_suites=('CudaMemory.*' 'CudaRuntime.*' 'CudaUpload.*' 'CudaDevices.*' 'CudaTensor.*' 'CudaGemm.*')
product_suites=('CudaMatmul.*' 'CudaLinear.*')
stage_primitives() { tests "$(simt_program)" '*' '-*Kernels.*'; }
stage_kernels() { tests "$(simt_program)" '*Kernels.*'; }
stage_products() { tests test_cuda "${product_suites[@]}"; }
stage_operations() {
  tests test_cuda '*' "-$(IFS=:; echo "${runtime_suites[*]}:${product_suites[*]}"):CudaEqLinear.*"
}
stage_planes() { tests test_cuda 'CudaEqLinear.*'; }
stage_models() { tests test_cuda_models '*'; }
stage_updates() { tests test_cuda_train '*' '-Amp*'; }
stage_amp() {
  if on_cuda; then tests test_cuda_train 'Amp*'; else figure left_out "the CPU computes in f32 and f64"; fi
}

# train NAME OPTION…: the demo's model on a sixth of its images, into $out/runs/NAME; at small sizes a tenth of the model.
train() {
  local sizes=(--set data.holdout=1000)
  [ "$small" = 0 ] || sizes=(--set data.holdout=200 --set data.limit_test=200 --set model.width=32 --set model.depth=1 --set model.heads=2)
  "$gyre" train "$configs/fashion_mnist/eq_vit.yaml" --out "$out/runs/$1" --set "data.path=$data" --set train.log_every=50 \
    "${sizes[@]}" "${@:2}"
}
# A part of the one schedule of 2000 updates that the stages below share.
part() { train "$1" --set train.updates=2000 --json "${@:2}"; }
finite() { [[ "$1" =~ ^-?[0-9][-+.0-9e]*$ ]]; }
# near WHAT A B LIMIT: relative to B.
near() {
  local difference
  if ! finite "$2" || ! finite "$3"; then wrong "$1: ${2:-nothing} and ${3:-nothing}"; return; fi
  difference=$(awk -v a="$2" -v b="$3" 'BEGIN { d = (a - b) / (b == 0 ? 1 : b); printf "%.2e", d < 0 ? -d : d }')
  figure "$1" "$difference"
  awk -v d="$difference" -v limit="$4" 'BEGIN { exit !(d + 0 <= limit + 0) }' || wrong "$1: $2 and $3 differ by $difference"
}
# at_least WHAT VALUE LIMIT
at_least() { finite "$2" && awk -v a="$2" -v b="$3" 'BEGIN { exit !(a + 0 >= b + 0) }' || wrong "$1 is ${2:-missing}, wanted at least $3"; }

stage_demo() {
  local length=train.time_budget=1m least=75 result=$out/runs/demo/result.json memory
  [ "$small" = 0 ] || { length=train.updates=50 least=13; }
  train demo --device "$device" --set "$length" || { wrong "training failed"; return; }
  "$gyre" eval "$out/runs/demo" --device "$device" --json > "$work/demo.json" || { wrong "eval failed"; return; }
  "$gyre" eval "$out/runs/demo" --device cpu --json > "$work/demo_cpu.json" || { wrong "eval on the CPU failed"; return; }
  figure top1 "$(member top1 "$work/demo.json")"
  figure images_per_s "$(member images_per_s "$result")"
  figure memory_mb "$(member peak_memory_mb "$result")"
  memory=$(member peak_device_memory_mb "$result")
  case "$memory" in '' | null) ;; *) figure device_memory_mb "$memory" ;; esac
  at_least top1 "$(member top1 "$work/demo.json")" "$least"
  near loss_against_cpu "$(member loss "$work/demo.json")" "$(member loss "$work/demo_cpu.json")" 1e-3
}

stage_rotations() {
  local change
  [ -e "$out/runs/demo/result.json" ] || stage_demo > "$log.demo" 2>&1
  "$gyre" eval "$out/runs/demo" --rotations --device "$device" --json > "$work/rotations.json" ||
    { wrong "eval --rotations failed"; return; }
  cat "$work/rotations.json"
  change=$(sed -n 's/.*"max_logit_change": *\([-+.0-9e]*\).*/\1/p' "$work/rotations.json" | sort -g | tail -n 1)
  figure max_logit_change "$change"
  [ "$(grep -c '"degrees"' "$work/rotations.json")" = 4 ] || wrong "not four turns"
  at_least "1e-4 - max_logit_change" "$(awk -v a="$change" 'BEGIN { print 1e-4 - a }')" 0
}

amp_training() {
  local last
  if ! on_cuda; then
    # The CPU has no mixed precision and must say so.
    if part "$1" --device cpu --set "train.amp=$1" --max-steps 1; then wrong "trained with $1 on the CPU"; return; fi
    grep -q 'gyre: error:.*amp' "$log" || wrong "no clear refusal"
    figure refused yes
    return
  fi
  last=$([ "$small" = 1 ] && echo 10 || echo 600)
  part "$1" --device "$device" --set "train.amp=$1" --max-steps "$last" > "$work/$1.json" || { wrong "training failed"; return; }
  [ -e "$work/f32.json" ] || part f32 --device "$device" --max-steps "$last" > "$work/f32.json" ||
    { wrong "training in f32 failed"; return; }
  figure loss "$(member loss "$work/$1.json")"
  figure images_per_s "$(member images_per_s "$work/$1.json")"
  figure images_per_s_f32 "$(member images_per_s "$work/f32.json")"
  near loss_against_f32 "$(member loss "$work/$1.json")" "$(member loss "$work/f32.json")" 0.2
}
stage_bf16() { amp_training bf16; }
stage_fp16() { amp_training fp16; }

# moved FROM TO: half on one device, the rest on the other, against all on the CPU.
moved() {
  local half=20 all=40 name=$1_to_$2_by_$stage
  [ -e "$work/cpu_all.json" ] || part cpu_all --device cpu --max-steps "$all" > "$work/cpu_all.json" ||
    { wrong "training on the CPU failed"; return; }
  part "$name" --device "$1" --max-steps "$half" || { wrong "training on $1 failed"; return; }
  part "$name" --device "$2" --resume auto --max-steps "$all" > "$work/$name.json" || { wrong "resuming on $2 failed"; return; }
  figure updates "$(member steps "$work/$name.json")"
  [ "$(member steps "$work/$name.json")" = "$all" ] || wrong "not $all updates"
  near loss_against_cpu "$(member loss "$work/$name.json")" "$(member loss "$work/cpu_all.json")" 1e-2
}
stage_to_gpu() { moved cpu "$device"; }
stage_to_cpu() { moved "$device" cpu; }

stage_repeat() {
  local name
  for name in first second; do
    part "$name" --device "$device" --set train.deterministic=true --max-steps "$([ "$small" = 1 ] && echo 15 || echo 100)" || { wrong "training failed"; return; }
  done
  cmp "$out/runs/first/checkpoints/last/model.safetensors" "$out/runs/second/checkpoints/last/model.safetensors" ||
    { wrong "two runs differ"; return; }
  figure same_bits yes
}

# Training steps of EQ-ViT-S and its twins, which nothing but the model differs from; figures alone, no judgement.
stage_speed() {
  local sizes=(--model eq_vit_s --image-size 224 --batch 32 --rounds 3 --seconds 0.7) amp impl
  [ "$small" = 0 ] || sizes=(--model eq_vit --image-size 16 --batch 2 --rounds 1 --seconds 0.01 --set model.depth=1 --set model.width=32
    --set model.heads=2 --set model.patch_size=8)
  for amp in off bf16; do
    [ "$amp" = off ] || on_cuda || continue
    [ "$amp" = off ] || sizes+=(--set "train.amp=$amp")
    "$gyre" bench train "${sizes[@]}" --device "$device" --json > "$work/speed_$amp.json" ||
      { wrong "bench train failed with train.amp=$amp"; return; }
    cat "$work/speed_$amp.json"
    for impl in standard naive flash; do
      at_least "images_per_s of $impl" "$(sed -n '/"impl": "'$impl'"/,$p' "$work/speed_$amp.json" | member images_per_s)" 0.001
      figure "${impl}_$amp" "$(sed -n '/"impl": "'$impl'"/,$p' "$work/speed_$amp.json" | member images_per_s)"
    done
  done
}
