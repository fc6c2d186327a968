#!/usr/bin/env bash
# From a clean clone to three trained models and how they take turned images, in about fifteen minutes on two cores.
# A second run finds the models trained and shows the tables again.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/demo.sh [--out DIR] [--seed N] [--budget TIME]

Installs the Debian packages that are missing, builds gyre, and trains three small vision transformers on Fashion-MNIST for the
same time each: EQ-ViT, a ViT of equal width, and that ViT with random quarter turns as augmentation. Then all test images are
turned by 0, 90, 180 and 270 degrees.

  --out DIR      where the runs go (default: runs/demo)
  --seed N       seed of everything random (default: 0)
  --budget TIME  training time of each model (default: 3m40s)
TEXT
}
out=runs/demo seed=0 budget=3m40s
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --out | --seed | --budget)
      [ $# -ge 2 ] || { echo "demo.sh: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"; shift 2 ;;
    *) echo "demo.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
  esac
done

scripts/packages.sh build data
cmake --preset release -DGYRE_TESTS=OFF -DGYRE_EXAMPLES=OFF > /dev/null
echo "building gyre"
cmake --build --preset release --target gyre_program | tail -n 1
gyre=build/release/gyre

train() {
  echo
  echo "=== $1: $2"
  "$gyre" train "configs/fashion_mnist/$1.yaml" --out "$out/$1" --resume auto \
    --set "train.time_budget=$budget" --set "train.seed=$seed"
}
measure() { "$gyre" eval "$out/$1" --rotations > "$out/$1/rotations.txt"; }

train eq_vit "equivariant, a quarter of the layer parameters"
measure eq_vit
echo
cat "$out/eq_vit/rotations.txt"
train vit "standard, equal width"
measure vit
train vit_turns "standard, equal width, random quarter turns as augmentation"
measure vit_turns

# Rows "90°  85.01 %  0.4321 …" of each table, side by side.
echo
echo "=== test accuracy after $budget of training each"
printf '%-12s %9s %9s %9s %9s   %s\n' model 0° 90° 180° 270° "worst turn"
for model in eq_vit vit vit_turns; do
  awk -v model="$model" '/°/ { top[++n] = $2; if (n == 1 || $2 < worst) worst = $2 }
    END { printf "%-11s", model; for (i = 1; i <= n; ++i) printf " %7.2f %%", top[i]; printf "   %.2f %%\n", worst }' \
    "$out/$model/rotations.txt"
done
