# crossfill serve, as an ordinary user, with the model read-only at /model and corrected sentences in /teaching:
#
#     docker build --build-arg TORCH_INDEX=ADDRESS_OF_TORCHS_CPU_BUILDS --tag crossfill .
#     docker build --build-arg DEVICE=cuda --tag crossfill:cuda .
FROM python:3.12-slim
ARG DEVICE=cpu
ARG TORCH_INDEX
WORKDIR /source
COPY lock.txt ./
RUN pip install --no-cache-dir ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$(grep -o 'torch==.*' lock.txt)" \
    && python -c "import torch; assert '$DEVICE' == 'cuda' or not torch.version.cuda, 'give TORCH_INDEX, or DEVICE=cuda'"
COPY pyproject.toml README.md LICENSE ./
COPY configs ./configs
COPY src ./src
COPY tools/build_backend.py ./tools/build_backend.py
RUN grep -oE '[A-Za-z0-9_.-]+==[^ ;]+' lock.txt > pins.txt \
    && pip install --no-cache-dir --constraint pins.txt '.[datasets,inception,web]' \
    && useradd --create-home --uid 1000 crossfill \
    && install --directory --owner crossfill /model /teaching
USER crossfill
WORKDIR /home/crossfill
ENV CROSSFILL_CACHE=/tmp/crossfill HF_HOME=/tmp/huggingface HF_HUB_OFFLINE=1
VOLUME /teaching
EXPOSE 8000
HEALTHCHECK --start-period=60s --interval=30s --timeout=5s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/api/health', timeout=4)"]
ENTRYPOINT ["crossfill"]
CMD ["serve", "/model", "--host", "0.0.0.0", "--teach", "/teaching"]
