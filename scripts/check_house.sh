#!/usr/bin/env bash
# House rules that a compiler does not see: no room includes one above it, and no source exceeds 500 lines.
set -eu
cd "$(dirname "$0")/.."

# Each room with the rooms that it may include.
declare -A below=(
  [core]="core"
  [kernels]="kernels core"
  [autograd]="autograd kernels core"
  [layers]="layers autograd kernels core"
  [models]="models layers autograd kernels core"
  [data]="data core"
  [train]="train models layers autograd kernels core data"
  [bench]="bench train models layers autograd kernels core data"
)
failed=0
for room in "${!below[@]}"; do
  while IFS=: read -r file line text; do
    target=$(sed -E 's/.*"([a-z_]+)\/.*/\1/' <<< "$text")
    # The program (train/cli) stands on the roof and may call bench.
    case "$file" in train/cli/*) allowed="${below[$room]} bench" ;; *) allowed=${below[$room]} ;; esac
    case " $allowed " in
      *" $target "*) ;;
      *) echo "$file:$line: room $room includes $target, which is not below it"; failed=1 ;;
    esac
  done < <(grep -rnE '^#include "[a-z_]+/' --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh' "$room" || true)
done
while read -r lines file; do
  if [ "$file" != total ] && [ "$lines" -gt 500 ]; then
    echo "$file: $lines lines, more than 500"
    failed=1
  fi
done < <(find core kernels autograd layers models data train bench tests examples scripts cmake \
           -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.sh' -o -name '*.py' -o -name '*.cmake' \) -exec wc -l {} +)
[ "$failed" = 0 ] && echo "house rules hold"
exit "$failed"
