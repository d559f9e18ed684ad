#!/usr/bin/env bash
# Makes target/package/namecast_VERSION_ARCHITECTURE.deb, and the same files as .tar.xz, from a binary that is built already.
#
#   packaging/package.sh [BINARY]        target/release/namecast without it
set -euo pipefail
cd "$(dirname "$0")/.."

# Debian 12's.
MAX_GLIBC=2.36
# All that the binary may be linked with: the C library, and what unwinds the stack.
LIBRARIES='^(libc|libm|libgcc_s|ld-linux-[a-z0-9-]+)\.so\.[0-9]+$'

fail() { printf '[package] %s\n' "$*" >&2; exit 1; }

binary=${1:-target/release/namecast}
[ -x "$binary" ] || fail "no $binary: run 'make build' first"
for tool in objdump strip dpkg-deb gzip xz; do
  command -v "$tool" >/dev/null || fail "no $tool: run 'apt-get install binutils dpkg xz-utils' as root"
done

libraries=$(objdump -p "$binary" | awk '$1 == "NEEDED" { print $2 }')
foreign=$(grep -vE "$LIBRARIES" <<<"$libraries" || true)
[ -z "$foreign" ] || fail "the binary is linked with more than the C library: $foreign"
glibc=$(objdump -T "$binary" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d _ -f 2)
newest=$(printf '%s\n' "$glibc" "$MAX_GLIBC" | sort -V | tail -n 1)
[ "$newest" = "$MAX_GLIBC" ] || fail "the binary needs glibc $glibc: build it on Debian 12, which has $MAX_GLIBC"

version=$("$binary" --version | cut -d ' ' -f 2)
architecture=$(dpkg --print-architecture)
out=target/package
name=namecast_${version}_${architecture}
tree=$out/$name
rm -rf "$tree"
mkdir -p "$tree"/{usr/bin,usr/lib/systemd/system,usr/share/doc/namecast,etc/namecast,DEBIAN}
install -m 755 "$binary" "$tree/usr/bin/namecast"
strip "$tree/usr/bin/namecast"
# The same commit makes the same pages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
# A page that is not in the binary is served to nobody.
grep -aq '<title>Namecast' "$tree/usr/bin/namecast" || fail "the page is not in $binary: run 'make build', which builds the page before it"
"$binary" generate "$tree/usr/share"
mv "$tree/usr/share/zsh/site-functions" "$tree/usr/share/zsh/vendor-completions"
gzip -9n "$tree"/usr/share/man/man1/*
# The service serves applications of all users, as NFD does.
"$binary" forwarder --print-config |
  sed -e 's|^# unix = .*|unix = ["/run/namecast/forwarder.sock", "/run/nfd/nfd.sock"]|' -e 's|^# unix-mode = |unix-mode = |' \
    >"$tree/etc/namecast/forwarder.toml"
grep -q '^unix-mode = "0666"' "$tree/etc/namecast/forwarder.toml" || fail "the default configuration has no line '# unix-mode = \"0666\"'"
install -m 644 packaging/systemd/namecast-forwarder.service "$tree/usr/lib/systemd/system/"
install -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE packaging/grafana/namecast.json "$tree/usr/share/doc/namecast/"
tar -C "$tree" --owner=0 --group=0 -cJf "$out/$name.tar.xz" etc usr

cat >"$tree/DEBIAN/control" <<END
Package: namecast
Version: $version
Architecture: $architecture
Maintainer: The Namecast developers <namecast@users.noreply.github.com>
Depends: libc6 (>= $glibc), libgcc-s1
Recommends: ffmpeg, libsrt1.5-gnutls | libsrt1.5-openssl
Section: net
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f 1)
Homepage: https://github.com/namecast/namecast
Description: real-time streams by name, over Named Data Networking
 Publishes, forwards, watches and archives live video, sound and data by name.
 One program: a node that others connect to, with a page for browsers.
END
echo /etc/namecast/forwarder.toml >"$tree/DEBIAN/conffiles"
install -m 755 packaging/deb/postinst packaging/deb/prerm packaging/deb/postrm "$tree/DEBIAN/"
dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/$name.deb" >/dev/null
rm -rf "$tree"
printf '[package] glibc %s or later\n' "$glibc"
(cd "$out" && sha256sum "$name.deb" "$name.tar.xz" >"$name.sha256" && du -h "$name.deb" "$name.tar.xz")
