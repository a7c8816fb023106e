"""Car and Wine in the online protocol of Lambrou et al. (2012), through the real commands.

For each data set and seed: `online-svm push` and `online-svm worker`; every payload is compared
byte for byte with the encoded answers of `OnlinePredictor` in process, and the intervals (with
--svc, which takes a minute or two a stream) with counts of scikit-learn's SVC refitted at each
step. Prints accuracy against mean lower and upper probability, and `paper_p`.

python scripts/paper_protocol.py [--seeds 12] [--svc] [--data-dir DIR]
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock, ValidityReport
from online_svm.types import Floats
from scripts.bench.svc_reference import svc_intervals
from workers.broker import embedded
from workers.broker.store import Store
from workers.message.encode import encode_block, encode_report
from workers.push.datasets import Dataset, load

SIGMA = 0.6
GAMMA = 1.0 / (2.0 * SIGMA**2)
METRICS_EVERY = 100
_PUSH_SECONDS, _STOP_SECONDS = 600.0, 60.0


def main() -> None:
    """Run the streams that the arguments ask for."""
    options = _arguments()
    for name in ("car", "wine"):
        data = load(name, options.data_dir)
        p_values = [_run(name, data, seed, options) for seed in range(options.seeds)]
        print(f"{name}: paper_p mean {np.mean(p_values):.3f}, from {min(p_values):.3f} to "
              f"{max(p_values):.3f} over {len(p_values)} seeds")  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--svc", action="store_true", help="compare with scikit-learn's SVC")
    parser.add_argument("--data-dir", type=Path)
    return parser.parse_args()


def _run(name: str, data: Dataset, seed: int, options: argparse.Namespace) -> float:
    order = np.random.default_rng(seed).permutation(len(data.y))
    X, y = data.X[order], np.asarray(data.y)[order].astype(str)
    out, met, last, intervals = _in_process(X, y)
    sent_out, sent_met = _through_redis(name, seed, np.unique(y), len(y), options.data_dir)
    same = "identical" if (sent_out, sent_met) == (out, met) else "DIFFERENT"
    venn = last["venn"]["predicted"]
    line = (
        f"{name} seed {seed}: {len(out)} answers and {len(met)} reports {same} bytes; accuracy "
        f"{venn['accuracy']:.3f} in [{venn['lower']:.3f}, {venn['upper']:.3f}], "
        f"paper_p {venn['paper_p']:.3f}"
    )
    if options.svc:
        close = np.isclose(intervals, svc_intervals(X, y, GAMMA), rtol=0, atol=1e-15)
        line += f"; intervals as from SVC at {close.all(axis=(1, 2)).mean():.2%} of steps"
    print(line, flush=True)
    if same != "identical":
        sys.exit(1)
    return float(venn["paper_p"])


def _in_process(
    X: Floats, y: NDArray[np.str_]
) -> tuple[list[bytes], list[bytes], dict[str, dict[str, dict[str, float]]], Floats]:
    """Return the payloads of `out` and `met`, the last report, and the intervals."""
    config = PredictorConfig.paper(
        tuple(np.unique(y)), gamma=GAMMA, metrics_every=METRICS_EVERY, features=X.shape[1]
    )
    out: list[bytes] = []
    met: list[bytes] = []
    intervals: list[Floats] = []
    for answer in OnlinePredictor(config).step_many(X, y.tolist()):
        if isinstance(answer, ValidityReport):
            met.append(encode_report(answer, len(out) - 1))
            continue
        assert isinstance(answer, PredictionBlock)  # no monitors, no alarms
        seqs = range(len(out), len(out) + len(answer))
        out += encode_block(answer, seqs, [None] * len(answer))
        intervals.append(_intervals(answer, len(np.unique(y))))
    return out, met, orjson.loads(met[-1]), np.concatenate(intervals)


def _intervals(block: PredictionBlock, n_classes: int) -> Floats:
    if block.status == "warming":
        return np.tile([0.0, 1.0], (len(block), n_classes, 1))
    return np.stack([block.venn_lower, block.venn_upper], axis=2)


def _through_redis(
    name: str, seed: int, classes: NDArray[np.str_], count: int, data_dir: Path | None
) -> tuple[list[bytes], list[bytes]]:
    """Push the shuffled set and answer it with the real commands; return the payloads."""
    with embedded.temporary() as server, Store(server.url, name) as store:
        where = [] if data_dir is None else ["--data-dir", str(data_dir)]
        _command("push", name, name, "--shuffle", str(seed), "--redis", server.url, *where).wait(
            _PUSH_SECONDS
        )
        worker = _command(
            *("worker", name, "--redis", server.url, "--quiet", "--keep-input"),
            *("--classes", ",".join(classes), "--sigma", str(SIGMA), "--scale", "none"),
            *("--split", "oldest", "--window", "none", "--refit-every", "1", "--refit-lag", "0"),
            *("--metrics-every", str(METRICS_EVERY), "--features", str(_width(name))),
        )
        while store.length(store.keys.out) < count and worker.poll() is None:
            time.sleep(0.1)
        worker.terminate()
        worker.wait(_STOP_SECONDS)
        return _payloads(store, store.keys.out), _payloads(store, store.keys.met)


def _width(name: str) -> int:
    return {"car": 6, "wine": 11}[name]


def _command(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "workers.cli", *arguments])


def _payloads(store: Store, key: str) -> list[bytes]:
    return [entry[1][1] for page in store.pages(key, b"0-0") for entry in page]


if __name__ == "__main__":
    main()
