#!/bin/sh
# Serve the C device of `tensorplug new acme --c` from an emulated riscv64 processor, at port 7811.
#
# Needs Debian's qemu-user, gcc-riscv64-linux-gnu and libc6-dev-riscv64-cross, and a Python with tensorplug,
# build and hatchling. The folder FOLDER gets Debian's Python and NumPy for riscv64 (25 MB to download).
#
#     extensions/remote/examples/riscv64/serve.sh out/riscv64
set -eu

repository=$(cd "$(dirname "$0")/../../../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
root=$folder/root
site=$folder/site
libraries=$root/usr/lib/riscv64-linux-gnu

# Debian's packages, by an apt of their own, unpacked.
if [ ! -e "$root/usr/bin/python3" ]; then
  mkdir -p "$root/usr/lib" "$root/usr/bin" "$folder/apt/etc/preferences.d" "$folder/apt/lists/partial" "$folder/apt/archives/partial"
  ln -sfn usr/lib "$root/lib"
  touch "$folder/apt/status"
  echo "deb [arch=riscv64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" \
    > "$folder/apt/etc/sources.list"
  cat > "$folder/apt/apt.conf" <<END
Dir::Etc "$folder/apt/etc/";
Dir::Etc::parts "/etc/apt/apt.conf.d";
Dir::State "$folder/apt";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt";
APT::Architecture "riscv64";
APT::Architectures "riscv64";
APT::Install-Recommends "false";
END
  export APT_CONFIG="$folder/apt/apt.conf"
  apt-get update
  apt-get install --yes --download-only \
    python3 python3-numpy python3-cffi python3-pluggy python3-importlib-metadata python3-packaging
  unset APT_CONFIG
  for package in "$folder"/apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
fi

# tensorplug and tensorplug-remote, which are Python alone.
rm -rf "$site" "$folder/wheels" "$folder/tensorplug-acme"
mkdir -p "$site"
for path in core extensions/remote; do
  python -m build --wheel --no-isolation --outdir "$folder/wheels" "$repository/$path"
done
for wheel in "$folder"/wheels/*.whl; do python -m zipfile -e "$wheel" "$site"; done

# The device: its Python as it is, its C by the cross compiler, and the metadata by which it is found.
(cd "$folder" && python -m tensorplug new acme --c)
acme=$folder/tensorplug-acme
cp -r "$acme/src/tensorplug_acme" "$site"
cp "$acme/include/tensorplug.h" "$site/tensorplug_acme"
riscv64-linux-gnu-gcc -std=c11 -O3 -DNDEBUG -D_GNU_SOURCE -fPIC -shared -ffp-contract=off -I"$acme/include" \
  "$acme/src/device.c" "$acme/src/kernels.c" -o "$site/tensorplug_acme/libdevice.so" -lpthread -lm
metadata=$site/tensorplug_acme-0.1.0.dist-info
mkdir "$metadata"
printf 'Metadata-Version: 2.1\nName: tensorplug-acme\nVersion: 0.1.0\n' > "$metadata/METADATA"
printf '[tensorplug.backends]\nacme = tensorplug_acme.plugin\n' > "$metadata/entry_points.txt"

exec qemu-riscv64 -L "$root" \
  -E LD_LIBRARY_PATH="$libraries/blas:$libraries/lapack:$libraries" -E PYTHONPATH="$site" \
  "$root/usr/bin/python3" -c "from tensorplug_remote.command_line import run; run()" \
  serve --backend acme --port 7811 --clients 64
