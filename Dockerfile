# The wheel in one stage, an image that trains in the other.
#   docker build -t gridmill .          (docs/install.md: how to get the small torch build for CPUs)
#   docker run --rm -it -v "$PWD/runs:/data/runs" gridmill train ci
FROM python:3.12-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends make git && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN make wheel PYTHON=python3.12

FROM python:3.12-slim-bookworm
ARG TORCH="torch==2.13.0"
COPY --from=build /src/dist/*.whl /tmp/
RUN pip install --no-cache-dir $TORCH \
 && pip install --no-cache-dir "$(ls /tmp/*.whl)[train,video]" \
 && rm /tmp/*.whl
WORKDIR /data
ENTRYPOINT ["gridmill"]
CMD ["--help"]
