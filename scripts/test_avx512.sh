#!/usr/bin/env bash
# The native tests with AVX-512 instructions on a machine that has none: Bochs emulates an Ice Lake that boots a Debian
# kernel and runs native_tests in it. Says that the kernels are right, not how fast they are.
# Arguments, if any, are parts of the names of tests to run instead: scripts/test_avx512.sh observe_avx512 isa_
set -euo pipefail
cd "$(dirname "$0")/.."
# All that may meet such a kernel; drawing maps does not, and takes longer than the rest.
[ $# -gt 0 ] || set -- isa_ observe_ learn_ prospector_ grid_ batch_
limit=${GRIDMILL_AVX512_SECONDS:-3600}
packages="bochs bochs-term bochsbios vgabios isolinux syslinux-common xorriso cpio"
missing=$(for name in $packages; do
  dpkg-query -W -f '${Status}\n' "$name" 2> /dev/null | grep -q ' installed$' || printf ' %s' "$name"
done)
if [ -n "$missing" ]; then
  echo "AVX-512 tests need Debian packages that are missing; as root:"
  echo "  apt-get install --no-install-recommends$missing"
  exit 2
fi
cmake=.venv/bin/cmake out=build/avx512
mkdir -p $out/iso
$cmake --preset release > /dev/null
$cmake --build --preset release | tail -n 1

# ---- the kernel: downloaded once, unpacked, not installed
if [ ! -e $out/iso/linux ]; then
  image=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ {print $2; exit}')
  [ -n "$image" ] || { echo "no linux-image-cloud-amd64 is known here; as root: apt-get update"; exit 2; }
  (cd $out && apt-get download "$image" 2>&1 | grep '^E:' >&2 || true)
  dpkg -x $out/"$image"_*.deb $out/kernel
  cp $out/kernel/boot/vmlinuz-* $out/iso/linux
fi

# ---- the disc: the kernel, native_tests with its libraries, what starts it
rm -rf $out/root && mkdir -p $out/root
g++ -std=c++20 -O1 -static -Wall -Wextra -Werror scripts/test_avx512_init.cpp -o $out/root/init
strip build/release/native_tests -o $out/root/native_tests
ldd build/release/native_tests | grep -o '/[^ ]*' | xargs cp --parents -L -t $out/root
(cd $out/root && find . | cpio --quiet -o -H newc | gzip -1) > $out/iso/initrd
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 $out/iso/
# Without pku, xsaves, xsavec: the sizes Bochs 2.7 tells of their states are not those Linux expects, which then does
# without AVX. Without fsrm: Bochs starts with fast strings off, and Linux 6.1 copies wrongly with one but not the other.
without=pku,xsaves,xsavec,fsrm
cat > $out/iso/isolinux.cfg << END
DEFAULT tests
LABEL tests
LINUX linux
APPEND initrd=initrd console=ttyS0,115200 quiet mitigations=off panic=-1 reboot=t clearcpuid=$without GRIDMILL_ISA=avx512 -- $*
END
xorriso -as mkisofs -quiet -o $out/disc.iso -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 \
  -boot-info-table $out/iso 2> $out/xorriso.txt || { cat $out/xorriso.txt; exit 1; }

# ---- the machine: its screen is a terminal nobody looks at, its serial line a file
cat > $out/bochsrc << 'END'
cpu: model=corei7_icelake_u, count=1, ips=100000000, reset_on_triple_fault=0
memory: guest=512, host=512
romimage: file=$BXSHARE/BIOS-bochs-latest
vgaromimage: file=$BXSHARE/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=disc.iso, status=inserted
boot: cdrom
display_library: term
com1: enabled=1, mode=file, dev=serial.txt
clock: sync=none
mouse: enabled=0
log: bochs.txt
panic: action=fatal
END
echo continue > $out/debugger  # Debian's Bochs starts in its debugger
rm -f $out/serial.txt
echo "native tests on an emulated CPU with AVX-512: some minutes; $out/serial.txt shows how it goes"
(cd $out && TERM=xterm timeout "$limit" script -qec "bochs-bin -q -f bochsrc -rc debugger" screen.txt) \
  < /dev/null > /dev/null 2>&1 || true
tr -d '\r' < $out/serial.txt > $out/result.txt
grep -v '^\[ ' $out/result.txt || true  # without what the kernel says
if ! grep -q '^native_tests: exit code 0$' $out/result.txt; then
  echo "the AVX-512 tests failed or did not end within $limit s (GRIDMILL_AVX512_SECONDS): $out/result.txt, $out/bochs.txt"
  exit 1
fi
