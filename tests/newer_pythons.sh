#!/usr/bin/env bash
# Runs the default tests on newer Pythons, native and pure, in chroots of newer Debian suites.
#
#   tests/newer_pythons.sh [SUITE ...]      default: trixie (Python 3.13) and forky (3.14)
#
# By hand, as root, on Debian with mmdebstrap installed; it takes some twenty minutes a suite and
# is not part of CI. The mirror is the one of this machine's apt sources, and pip is configured as
# on this machine. CHROOTS (default /var/tmp/pyclient-chroots) keeps the chroots for the next run;
# remove the folder when you are done. The sources are those that git knows, with local changes.
# FROZEN_MIRROR=1 accepts a mirror whose signed lists are older than their date allows.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo 'Run it as root: it makes chroots.' >&2; exit 1; }
command -v mmdebstrap >/dev/null || { echo 'Get it with: apt install mmdebstrap' >&2; exit 1; }

chroots=${CHROOTS:-/var/tmp/pyclient-chroots}
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(REPO_URI)' \
  'Created-By: Packages' "Codename: $codename" 'Component: main' | head -n 1)
[ -n "$mirror" ] || { echo "No apt source for $codename: which mirror to use?" >&2; exit 1; }

make_chroot() { # make_chroot SUITE
  local root=$chroots/$1
  [ -e "$root/.made" ] && return
  rm -rf "$root" && mkdir -p "$chroots"
  mmdebstrap --variant=minbase \
    ${FROZEN_MIRROR:+--aptopt='Acquire::Check-Valid-Until "false"'} \
    --include=python3,python3-dev,python3-venv,gcc,libc6-dev,make,ca-certificates \
    "$1" "$root" "$mirror"
  touch "$root/.made"
}

configure() { # configure SUITE: the network and pip as on this machine, and the sources
  local root=$chroots/$1 file
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt \
    "$HOME/.pip/pip.conf" "$HOME/.config/pip/pip.conf"; do
    [ ! -f "$file" ] || { mkdir -p "$root$(dirname "$file")"; cp -L "$file" "$root$file"; }
  done
  mkdir -p "$root/src" "$root/cache" "$chroots/pip-cache" "$root${PIP_FIND_LINKS:-/opt}"
  find "$root/src" -mindepth 1 -maxdepth 1 -not -name .venv -exec rm -rf {} +
  git ls-files -z | xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' _ |
    tar --null --files-from=- --create | tar --extract --directory="$root/src"
}

inside() { # inside SUITE COMMAND...: its mounts and processes go with it
  local root=$chroots/$1 setting
  local -a settings=()
  shift
  while IFS= read -r setting; do settings+=("$setting"); done < <(env | grep '^PIP_' || true)
  unshare --mount --pid --fork --kill-child bash -c '
    root=$1 cache=$2 links=$3; shift 3
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --bind "$cache" "$root/cache"
    [ ! -d "$links" ] || mount --bind "$links" "$root$links"
    exec chroot "$root" "$@"' _ "$root" "$chroots/pip-cache" "${PIP_FIND_LINKS:-}" \
    env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "${settings[@]}" \
    PIP_CACHE_DIR=/cache PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-}" "$@"
}

[ $# -gt 0 ] || set -- trixie forky
failed=
for suite; do
  make_chroot "$suite"
  configure "$suite"
  echo "=== $suite: $(inside "$suite" python3 --version)"
  inside "$suite" make -C /src setup
  for twin in native python; do
    echo "=== $suite: the default tests, PYCLIENT_IMPL=$twin"
    inside "$suite" env PYCLIENT_IMPL=$twin make -C /src test || failed="$failed $suite/$twin"
  done
done
[ -z "$failed" ] || { echo "Failed:$failed" >&2; exit 1; }
