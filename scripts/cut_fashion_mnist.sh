#!/usr/bin/env bash
# The first images of Fashion-MNIST as files of its own form: cut_fashion_mnist.sh TRAIN TEST DIR [SOURCE]
set -euo pipefail
export LC_ALL=C

[ $# = 3 ] || [ $# = 4 ] || { echo "usage: cut_fashion_mnist.sh TRAIN TEST DIR [SOURCE]" >&2; exit 2; }
train=$1 test=$2 to=$3 from=${4:-/usr/share/datasets/fashion-mnist}
[[ "$train" =~ ^[1-9][0-9]*$ && "$test" =~ ^[1-9][0-9]*$ ]] || { echo "cut_fashion_mnist.sh: '$train' and '$test' count images" >&2; exit 2; }
mkdir -p "$to"
whole=$(mktemp)
trap 'rm -f "$whole"' EXIT

# cut NAME COUNT HEADER ITEM: bytes 4 to 7 of the header hold the count, the highest byte first.
cut() {
  local count size=$(($3 + $2 * $4))
  [ -r "$from/$1.gz" ] || { echo "cut_fashion_mnist.sh: no $from/$1.gz (Debian: scripts/packages.sh data)" >&2; exit 1; }
  gzip -dc "$from/$1.gz" > "$whole"
  [ "$(wc -c < "$whole")" -ge "$size" ] || { echo "cut_fashion_mnist.sh: $from/$1.gz has fewer than $2 items" >&2; exit 1; }
  count=$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($2 >> 24 & 255)) $(($2 >> 16 & 255)) $(($2 >> 8 & 255)) $(($2 & 255)))
  { head -c 4 "$whole"; printf '%b' "$count"; head -c "$size" "$whole" | tail -c +9; } | gzip -9n > "$to/$1.gz"
}
for set in "train $train" "t10k $test"; do
  read -r name count <<< "$set"
  cut "$name-images-idx3-ubyte" "$count" 16 784
  cut "$name-labels-idx1-ubyte" "$count" 8 1
done
