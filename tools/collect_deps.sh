#!/usr/bin/env bash
# Collects in .deps/ packages that a machine without network may lack: CLI11, nlohmann-json,
# OpenSSL, xxHash and libfabric headers, and the static SSL, Crypto and Boost.Context libraries.
# Boost's headers are not included, because they are large and more common.
# Copy .deps/ there; ./run build and tools/gpu_check.sh pass it on to CMake.
set -euo pipefail
cd "$(dirname "$0")/.."
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# libboost-context-dev stands for the distribution's version, such as ...1.74-dev.
context=$(apt-cache depends libboost-context-dev | grep -o 'libboost-context[0-9.]*-dev' | tail -1)
(cd "$temporary" && apt-get download -q -o APT::Sandbox::User="$(id -un)" \
  libcli11-dev nlohmann-json3-dev libssl-dev libxxhash-dev libfabric-dev "$context")
for package in "$temporary"/*.deb; do dpkg -x "$package" "$temporary/root"; done

rm -rf .deps
mkdir -p .deps/{include,lib,share}
cp -r "$temporary"/root/usr/include/{CLI,nlohmann,rdma} .deps/include
cp -r "$temporary"/root/usr/include/openssl .deps/include
cp "$temporary"/root/usr/include/xx*.h .deps/include
find "$temporary/root/usr/include" -path '*-linux-gnu*/openssl/*.h' -exec cp {} .deps/include/openssl \;
cp -r "$temporary"/root/usr/share/cmake .deps/share # find_package works with this prefix
find "$temporary/root/usr/lib" -name libboost_context.a -exec cp {} .deps/lib \;
find "$temporary/root/usr/lib" \( -name libssl.a -o -name libcrypto.a \) -exec cp {} .deps/lib \;
du -h --max-depth=2 .deps
