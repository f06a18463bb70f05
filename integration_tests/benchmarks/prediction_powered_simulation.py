"""How often the interval of `prediction_powered` holds the true mean: docs/evidence/data/prediction_powered.json.

    python -m integration_tests.benchmarks.prediction_powered_simulation [--runs 2000]

30 or 100 labelled questions and 300 with a model's verdict alone, whether each finds its evidence (true mean 0.7). A
verdict is right with a probability, and errs towards "found". Questions are independent, or five share a document that
is easy or hard.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from chunkcore.evaluation.resampling import prediction_powered

DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data" / "prediction_powered.json"
MEAN = 0.7


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    rows = []
    for labelled, shared in ((30, 1), (100, 1), (100, 5)):
        for right in (0.5, 0.8, 0.9, 0.95):
            generator = np.random.default_rng(0)
            held, worths, widths = 0, [], []
            for _ in range(runs):
                documents = np.arange(labelled + 300) // shared
                easy = generator.beta(7, 3, documents.max() + 1)
                if shared == 1:
                    easy[:] = MEAN
                found = (generator.random(len(documents)) < easy[documents]).astype(float)
                is_right = generator.random(len(documents)) < right
                verdict = np.where(is_right, found, 1.0 * (generator.random(len(documents)) < 0.9))
                names = [str(number) for number in documents]
                powered = prediction_powered(
                    found[:labelled],
                    verdict[:labelled],
                    verdict[labelled:],
                    documents=names[:labelled] if shared > 1 else None,
                    more_documents=names[labelled:] if shared > 1 else None,
                )
                held += powered.low <= MEAN <= powered.high
                worths.append(powered.worth)
                widths.append(powered.high - powered.low)
            rows.append(
                {
                    "labels": labelled,
                    "verdicts": 300,
                    "questions_a_document": shared,
                    "verdicts_right": right,
                    "holds": round(100 * held / runs, 1),
                    "worth": round(float(np.median(worths))),
                    "width": round(float(np.mean(widths)), 3),
                }
            )
            print(rows[-1], flush=True)
    DATA.write_text(json.dumps({"runs": runs, "rows": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
