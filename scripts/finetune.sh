#!/usr/bin/env bash
# Fine-tuning against training from scratch at equal steps, on Fashion-MNIST: about two minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/finetune.sh [--gyre PROGRAM] [--out DIR] [--seed N] [--pretrain N] [--updates N]

Trains the EQ-ViT of configs/fashion_mnist/eq_vit.yaml on ten classes at 32 pixels, fine-tunes it to five classes and to 48 pixels,
trains the same two from scratch for as many updates, and prints the test accuracies.

  --gyre PROGRAM  (default: build/release/gyre)
  --out DIR       where the runs go (default: runs/finetune)
  --seed N        seed of everything random (default: 0)
  --pretrain N    updates of the first training (default: 5000)
  --updates N     updates of each of the others (default: 300)
TEXT
}
gyre=build/release/gyre out=runs/finetune seed=0 pretrain=5000 updates=300
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --gyre | --out | --seed | --pretrain | --updates)
      [ $# -ge 2 ] || { echo "finetune.sh: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"; shift 2 ;;
    *) echo "finetune.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
  esac
done

configs=configs/fashion_mnist
# NAME COMMAND… CONFIG with the options that all runs share; prints the test accuracy.
run() {
  local name=$1; shift
  "$gyre" "$@" --out "$out/$name" --resume auto --set "train.seed=$seed" --json |
    sed -n '/"test"/,/}/s/.*"top1": *\([0-9.]*\).*/\1/p'
}
ten=$(run ten_classes train "$configs/eq_vit.yaml" --set "train.updates=$pretrain")
printf 'first training: %d updates, 10 classes at 32 px: %.2f %%\n\n' "$pretrain" "$ten"
printf '%-18s %12s %14s   (test top-1 after %d updates)\n' task fine-tuned "from scratch" "$updates"
for task in five_classes 48_pixels; do
  config="$configs/finetune_$task.yaml"
  tuned=$(run "$task" finetune "$out/ten_classes" "$config" --set "train.updates=$updates")
  # The model section that fine-tuning takes from the checkpoint.
  scratch=$(run "${task}_from_scratch" train "$config" --set "train.updates=$updates" --set finetune.layer_decay=1 \
    --set model.patch_size=8 --set model.width=96 --set model.depth=3 --set model.heads=4 --set optimizer.learning_rate=2e-3)
  printf '%-18s %10.2f %% %12.2f %%\n' "$task" "$tuned" "$scratch"
done
