# msadapter on a CPU. From the root of the repository:
#
#     docker build --file docker/cpu.Dockerfile --tag msadapter:cpu .
#     docker run --rm --volume "$PWD:/work" msadapter:cpu train.py
FROM python:3.11-slim-bookworm

# The C++ compiler stays in the image: kernels are compiled for the processor that they run on, at the first import there.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 user

COPY . /opt/msadapter
RUN pip install --no-cache-dir "/opt/msadapter[megatron,dist,hf,toolkit]" \
    && pip install --no-cache-dir --no-deps --requirement /opt/msadapter/megatron_ms/training/requirements-hf.txt \
    && rm -rf /opt/msadapter

USER 1000
# On another processor than that of the machine which builds the image, the first import compiles once more: keep ~/.cache in a volume.
RUN python -m msadapter build
WORKDIR /work
ENTRYPOINT ["python", "-m", "msadapter"]
CMD ["doctor"]
