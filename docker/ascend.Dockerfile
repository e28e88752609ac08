# msadapter on Ascend. NEVER BUILT AND NEVER RUN: no machine of this project has an NPU. From the root of the repository:
#
#     docker build --file docker/ascend.Dockerfile --tag msadapter:ascend .
#     docker run --rm --device /dev/davinci0 --device /dev/davinci_manager --device /dev/devmm_svm --device /dev/hisi_hdc \
#         --volume /usr/local/Ascend/driver:/usr/local/Ascend/driver:ro --volume "$PWD:/work" msadapter:ascend train.py
#
# The driver belongs to the machine and is mounted. CANN must be a version that MindSpore accepts (docs/versions.md), for your card.
ARG CANN=8.5.0-910b-openeuler24.03-py3.11
FROM quay.io/ascend/cann:${CANN}

# hadolint ignore=DL3041
RUN dnf install --assumeyes gcc-c++ && dnf clean all && useradd --create-home --uid 1000 user

COPY . /opt/msadapter
RUN pip install --no-cache-dir "/opt/msadapter[megatron,hf,toolkit]" \
    && pip install --no-cache-dir --no-deps --requirement /opt/msadapter/megatron_ms/training/requirements-hf.txt \
    && rm -rf /opt/msadapter

USER 1000
ENV MSADAPTER_DEVICE=ascend
WORKDIR /work
# CANN's variables come from its own file, which a container's entry point has to source.
ENTRYPOINT ["/bin/bash", "-c", "source /usr/local/Ascend/ascend-toolkit/set_env.sh && exec python -m msadapter \"$@\"", "msadapter"]
CMD ["doctor"]
