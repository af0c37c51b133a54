# syntax=docker/dockerfile:1.7
# One image for every part: web, worker, scheduler, migrate. See docs/deployment.md.
FROM python:3.13-slim-bookworm

ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    CURATE_DATA_DIR=/data

RUN useradd --system --uid 10001 --home-dir /data --create-home curate && python -m venv /opt/venv
WORKDIR /srv/curate-board

# First what changes rarely: the locked packages.
COPY requirements-build.lock requirements.lock ./
RUN pip install --only-binary :all: --require-hashes -r requirements-build.lock \
 && pip install --only-binary :all: --require-hashes -r requirements.lock

COPY . .
RUN pip install --no-deps --no-index --no-build-isolation --editable .

# NAME_FILE=/run/secrets/name instead of NAME=value, for secrets that an orchestrator mounts.
COPY --chmod=755 <<'EOF' /usr/local/bin/entrypoint
#!/bin/sh
set -eu
for name in CURATE_SECRET_KEY CURATE_DATABASE_URL CURATE_REDIS_URL CURATE_SMTP_URL; do
    file=$(printenv "${name}_FILE") || continue
    if printenv "$name" >/dev/null; then
        echo "set $name or ${name}_FILE, not both" >&2
        exit 2
    fi
    value=$(cat "$file") || exit 2
    export "$name=$value"
    unset "${name}_FILE"
done
exec curate "$@"
EOF

USER curate
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["/usr/local/bin/entrypoint"]
CMD ["web", "--host", "0.0.0.0", "--port", "8000"]
