#!/usr/bin/env bash
# Proves every exact model at full size under every group it is built for: about twenty minutes and 8 GB on two cores.
# verify.sh [NAME…]: only these models.
set -euo pipefail
cd "$(dirname "$0")/.."
gyre=${GYRE:-build/release/gyre}

models=("$@")
[ $# -gt 0 ] || models=(eq_vit_{t,s,b,l,h} eq_swin_{t,s,b,l,h})
failed=0
for model in "${models[@]}"; do
  case "$model" in eq_swin*) groups="c4 d4" ;; *) groups="c2 mirror c4 d4" ;; esac
  for group in $groups; do
    verdict=pass
    "$gyre" verify "$model" --set "model.group=$group" --json > /dev/null || verdict=FAIL failed=1
    printf '%-10s %-7s %s\n' "$model" "$group" "$verdict"
  done
done
exit "$failed"
