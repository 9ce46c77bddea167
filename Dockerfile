# The service in a container. Linted by `./check`, and never built where that runs: no Docker engine is there.
FROM rust:1.95-slim-bookworm AS build
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --locked --release -p debora-cli

FROM debian:bookworm-slim
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/debora debora \
    && install -d -m 0700 -o debora -g debora /var/lib/debora
COPY --from=build /src/target/release/debora /usr/bin/debora
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/debora/
# By number, which a host can tell from root.
USER 10001
VOLUME /var/lib/debora
# Reached from outside, so it starts only once there is an API key: docs/service.md, In a container.
ENV DEBORA_STORE=/var/lib/debora/debora.db DEBORA_LISTEN=0.0.0.0:8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=20s CMD ["debora", "ready"]
ENTRYPOINT ["debora"]
CMD ["serve"]
