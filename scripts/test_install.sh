#!/usr/bin/env bash
# Installs the release build into a temporary prefix and builds and runs the example against it by find_package.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install build/release --prefix "$prefix/gyre" > /dev/null
mkdir "$prefix/project"
cp examples/custom_network.cpp "$prefix/project/"
cat > "$prefix/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(custom_network LANGUAGES CXX)
find_package(gyre REQUIRED)
add_executable(custom_network custom_network.cpp)
target_link_libraries(custom_network PRIVATE gyre::gyre)
CMAKE
cmake -G Ninja -S "$prefix/project" -B "$prefix/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix/gyre" > /dev/null
cmake --build "$prefix/build" > /dev/null
"$prefix/build/custom_network"
"$prefix/gyre/bin/gyre" --version
echo "the installed package works"
