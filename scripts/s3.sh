#!/usr/bin/env bash
# Runs the archive against a real S3 server on this machine: two archives of one bucket, a crash, an outage.
#
#   scripts/s3.sh [PORT]          5005, and the next one for the relay that takes the server away
#
# The server is moto, which comes from PyPI into target/s3 unless `moto_server` is there already.
set -euo pipefail
cd "$(dirname "$0")/.."

port=${1:-5005}
place=${CARGO_TARGET_DIR:-target}/s3

if ! server=$(command -v moto_server); then
  server=$place/bin/moto_server
  [ -x "$server" ] || { python3 -m venv "$place" && "$place/bin/pip" install --quiet 'moto[server]>=5,<6'; }
fi

# Built first, so that the server waits for nothing.
cargo test --locked --package namecast-archive --features s3 --no-run

mkdir -p "$place"
"$server" --host 127.0.0.1 --port "$port" >"$place/server.log" 2>&1 &
trap 'kill $!' EXIT
bucket="http://127.0.0.1:$port/namecast"
curl --silent --fail --output /dev/null --retry 30 --retry-connrefused --retry-delay 1 --request PUT "$bucket"

export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1 AWS_ALLOW_HTTP=true
export AWS_ENDPOINT=http://127.0.0.1:$((port + 1))
export NAMECAST_S3_SERVER=127.0.0.1:$port NAMECAST_S3_BUCKET=s3://namecast/cams
cargo test --locked --package namecast-archive --features s3 -- --ignored s3
