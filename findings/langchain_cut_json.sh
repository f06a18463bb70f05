#!/usr/bin/env bash
# Guess: a parser refuses a reply that ends within a number, since the model ran out of tokens: it is no JSON.
# Seen: langchain-core 1.8.3's JsonOutputParser and PydanticOutputParser close it where it ends: a dose of 125 is 12,
#       and a list of sources with a default is empty. Its parser of tool calls, llama-index-core 0.14.25 and
#       haystack-ai 3.4.1 refuse the same reply.
# Why it matters: an answer's numbers are wrong and its sources are missing, and nothing tells.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet langchain-core==1.8.3 llama-index-core==0.14.25 haystack-ai==3.4.1
HAYSTACK_TELEMETRY_ENABLED=False venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from haystack.components.validators import JsonSchemaValidator
from haystack.dataclasses import ChatMessage
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputToolsParser
from llama_index.core.output_parsers import PydanticOutputParser as LlamaParser
from pydantic import BaseModel


class Answer(BaseModel):
    text: str
    dose_mg: int
    sources: list[int] = []


whole = '{"text": "Once a day.", "dose_mg": 125, "sources": [3, 17]}'
cut = whole[: whole.index("5,")]


def parsed(parser, message):
    try:
        answer = (FakeListChatModel(responses=[""]) | (lambda _: message) | parser).invoke("?")
    except (OutputParserException, ValueError):
        return "refused"
    return answer.model_dump() if isinstance(answer, Answer) else answer


call = {"id": "1", "type": "function", "function": {"name": "Answer", "arguments": cut}}
validator = JsonSchemaValidator(json_schema=Answer.model_json_schema())
seen = {
    "json": parsed(JsonOutputParser(), cut),
    "pydantic": parsed(PydanticOutputParser(pydantic_object=Answer), cut),
    "tools": parsed(JsonOutputToolsParser(), AIMessage("", additional_kwargs={"tool_calls": [call]})),
    "llama-index": parsed(LlamaParser(Answer).parse, cut),
    "haystack": list(validator.run([ChatMessage.from_assistant(cut)])),
}
print({name: version(name) for name in ("langchain-core", "llama-index-core", "haystack-ai")}, cut, seen)
assert seen["json"] == {"text": "Once a day.", "dose_mg": 12}, "changed"
assert seen["pydantic"] == {"text": "Once a day.", "dose_mg": 12, "sources": []}, "changed"
assert [seen["tools"], seen["llama-index"], seen["haystack"]] == ["refused", "refused", ["validation_error"]], "changed"
PYTHON
