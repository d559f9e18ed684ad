#!/usr/bin/env bash
# Prints which installed toolchain builds for wasm32-unknown-unknown: `rustup` or `debian`. Fails if there is none.
#
# rustup's target comes from the toolchain's own server, which not every machine may reach. Debian packages a compiler
# with the sources of its standard library, so that one can be built in place; it is the way that always works there.
# NAMECAST_WASM=rustup|debian insists on one of them.
set -u

debian_packages=(rustc-web cargo-web rust-web-src lld-22)

has_rustup() {
  command -v rustup >/dev/null && rustup target list --installed 2>/dev/null | grep -qx wasm32-unknown-unknown
}

has_debian() {
  command -v dpkg-query >/dev/null || return 1
  local installed
  installed=$(dpkg-query --show --showformat '${db:Status-Status}\n' "${debian_packages[@]}" 2>/dev/null) || return 1
  ! grep -qvx installed <<<"$installed"
}

case ${NAMECAST_WASM:-any} in
  any) if has_rustup; then echo rustup; elif has_debian; then echo debian; else exit 1; fi ;;
  rustup) has_rustup && echo rustup ;;
  debian) has_debian && echo debian ;;
  *) echo "NAMECAST_WASM is '$NAMECAST_WASM'; it may be rustup or debian" >&2; exit 2 ;;
esac
