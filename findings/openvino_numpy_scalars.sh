#!/usr/bin/env bash
# Guess: an operator between a float32 node and numpy.float32(1) gives a float32 node.
# Seen: openvino 2026.4.1 makes an int64 constant of the scalar, and the operator is refused for unlike types;
#       a NumPy array without dimensions, and constant(numpy.float32(1)), are float32.
# Why it matters: a model that is built by hand fails at a constant whose type was said.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet openvino==2026.4.1 numpy==2.4.6
venv/bin/python - <<'PYTHON'
import numpy as np
import openvino
from openvino import opset13 as op

node = op.parameter([-1], np.float32)
try:
    scalar = str(node - np.float32(1))
except RuntimeError as error:
    scalar = "int64" if ":i64[]" in str(error) else str(error)
array = (node - np.array(1, dtype=np.float32)).get_element_type().type_name
constant = op.constant(np.float32(1)).get_element_type().type_name
print("openvino", openvino.__version__, "scalar:", scalar, "array:", array, "constant:", constant)
assert (scalar, array, constant) == ("int64", "f32", "f32"), "changed"
PYTHON
