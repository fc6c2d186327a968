#!/usr/bin/env bash
# Compiles every kernel for the GPUs of the release and fails on warnings, register spills and stack frames; makes sure
# that each primitive becomes its instruction. Needs nvcc, but no GPU: check_cuda.sh [FILE.cu…]
# NVCC: the compiler; JOBS: files at a time (2).
set -euo pipefail
cd "$(dirname "$0")/.."

nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if [ ! -x "$nvcc" ]; then
  echo "check_cuda.sh: no nvcc here: kernels stay unchecked for GPUs"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c++17 -O3 -I. --Werror all-warnings)
export nvcc work

# One line per kernel and architecture: stack, spilled bytes, registers, architecture, name.
usage() {
  awk '/Compiling entry function/ {
         match($0, /entry function .[^ ]*. for .sm_[0-9a-z]*/)
         split(substr($0, RSTART, RLENGTH), part, "\047"); name = part[2]; arch = part[4]
       }
       /bytes stack frame/ { stack = $1; spill = $5 + $9 }
       /Used [0-9]+ registers/ {
         for (i = 1; i < NF; ++i) if ($i == "Used") registers = $(i + 1)
         print stack, spill, registers, arch, name
       }' "$1"
}

check() {
  local file=$1 log
  log="$work/${file//\//_}"
  local targets=(-gencode "arch=compute_80,code=sm_80" -gencode "arch=compute_89,code=sm_89"
    -gencode "arch=compute_90a,code=sm_90a" -gencode "arch=compute_90,code=compute_90")
  if ! "$nvcc" "${@:2}" "${targets[@]}" -Xptxas -v -fatbin "$file" -o "$log.fatbin" > "$log.log" 2>&1; then
    grep -v '^ptxas info\|bytes stack frame' "$log.log"
    echo "$file: does not compile"
    return 1
  fi
  usage "$log.log" > "$log.usage"
  awk -v file="$file" '
    $1 > 0 || $2 > 0 { printf "%s: %s: %d bytes of stack, %d bytes spilled on %s\n", file, $5, $1, $2, $4; bad = 1 }
    { if ($3 > most) most = $3; names[$5] }
    END {
      if (!bad) printf "%-34s %3d kernels, at most %3d registers, nothing spilled\n", file, length(names), most
      exit bad
    }' "$log.usage" > "$log.text" && status=0 || status=1
  c++filt < "$log.text"
  return "$status"
}
export -f usage check

files=("$@")
[ ${#files[@]} -gt 0 ] || files=(core/cuda/*.cu kernels/cuda/*.cu tests/simt/cases.cu)
# The largest first, so that none is left alone at the end.
mapfile -t files < <(wc -c "${files[@]}" | grep -v ' total$' | sort -rn | awk '{ print $2 }')
printf '%s\0' "${files[@]}" |
  xargs -0 -P "${JOBS:-2}" -I{} bash -c 'check "$@"' check {} "${flags[@]}" || exit 1

# What the primitives are worth depends on these.
"$nvcc" "${flags[@]}" -arch=compute_80 -ptx tests/simt/cases.cu -o "$work/cases.ptx"
missing=0
while read -r instruction; do
  grep -qF "$instruction" "$work/cases.ptx" || { echo "tests/simt/cases.cu: no $instruction in its PTX"; missing=1; }
done <<'END'
ld.global.v4.u32
st.global.v4.u32
cp.async.cg.shared.global
cp.async.ca.shared.global
cp.async.commit_group
cp.async.wait_group
ldmatrix.sync.aligned.m8n8.x1.shared.b16
ldmatrix.sync.aligned.m8n8.x2.shared.b16
ldmatrix.sync.aligned.m8n8.x4.shared.b16
ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16
ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
cvt.f32.f16
cvt.rn.f16.f32
cvt.rn.bf16.f32
cvt.rna.tf32.f32
shfl.sync.idx.b32
shfl.sync.bfly.b32
shfl.sync.down.b32
shfl.sync.up.b32
vote.sync.ballot.b32
atom.global.add.f32
atom.global.add.f64
END
[ "$missing" = 0 ] && echo "every primitive becomes its instruction"
exit "$missing"
