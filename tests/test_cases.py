"""What people report as a seed that does not work: a cell repeats, or is told why not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from IPython.core.interactiveshell import InteractiveShell
from shells import Notebook, loaded, started

pytestmark = pytest.mark.filterwarnings(  # said by JAX and by Python, once threads run
    "ignore:os.fork:RuntimeWarning", "ignore:This process:DeprecationWarning"
)


@dataclass(frozen=True)
class Case:
    """A notebook in three cells.

    Attributes
    ----------
    above, cell, between
        What runs once, what is run again, and what runs between the two runs.
    said
        What the likeliest cause says, as a pattern for all of it.
    evidence
        A pattern for a sentence below it.
    edited
        The cell's text in the second run, if it is another.
    """

    above: str
    cell: str
    said: str
    evidence: str = ""
    between: str = ""
    edited: str = ""


TORCH = """
import torch
from torch import nn
torch.manual_seed(0)
X = torch.linspace(-1, 1, 24).view(8, 3)
y = X.sum(1, keepdim=True)
"""
TRAIN = """
torch.manual_seed(1)
losses = []
for _ in range(3):
    loss = (net(X) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""

DIFFER = {
    # -- entropy ---------------------------------------------------------------------------------
    "a generator without a seed": Case(
        "import numpy as np",
        "np.random.seed(0)\nnoise = np.random.default_rng().normal(size=3)",
        r"np\.random\.default_rng\(\) without a seed \(line 3\)",
        r"line 3, noise = .*: np\.random\.default_rng\(\) once, which no seed controls",
    ),
    "a RandomState without a seed, in a function": Case(
        "import numpy as np\ndef jitter(x):\n    return x + np.random.RandomState().rand()",
        "values = [jitter(k) for k in range(4)]",
        r"np\.random\.RandomState\(\) without a seed \(line 2 in jitter\)",
        r"np\.random\.RandomState\(\) 4 times by way of jitter",
    ),
    "a seed of None": Case(
        "import random\ndef begin(seed=None):\n    random.seed(seed)",
        "begin()\nvalue = random.random()",
        r"random\.seed\(\) without a seed \(line 2 in begin\)",
    ),
    "torch.seed": Case(
        "import torch",
        "torch.seed()\nweights = torch.rand(2)",
        r"torch\.seed\(\) without a seed \(line 2\)",
    ),
    "a unique name as a key": Case(
        "import uuid, zlib",
        "key = uuid.uuid4().bytes\nsalted = [zlib.crc32(key + c) for c in (b'a', b'b')]",
        r"uuid\.uuid4\(\) without a seed \(line 2\)",
    ),
    "secrets": Case(
        "import secrets",
        "token = [secrets.choice(range(1000)) for _ in range(5)]",
        r"secrets\.choice\(\) without a seed \(line 2\)",
        r"secrets\.choice\(\) 5 times",
    ),
    # -- seeds -----------------------------------------------------------------------------------
    "the clock as a seed, by way of variables": Case(
        "import time, numpy as np",
        "now = time.time_ns()\nseed = now % 2**32\nnp.random.seed(seed)\nx = np.random.rand()",
        r"a seed is made of the clock \(line 4\)",
        r"line 4: np\.random\.seed\(seed\) takes its seed from the clock",
    ),
    "the clock as a seed, in a function": Case(
        "import datetime, torch\n"
        "def fresh():\n"
        "    torch.manual_seed(int(datetime.datetime.now().timestamp() * 1e6))",
        "fresh()\nx = torch.rand(1)",
        r"a seed is made of the clock \(line 2 of fresh\)",
    ),
    "a seed that counts": Case(
        "import random\ntrial = 0",
        "random.seed(100 + trial)\ntrial += 1\nx = random.random()",
        r"trial is 1, was 0",
    ),
    # -- variables -------------------------------------------------------------------------------
    "weights that go on": Case(
        TORCH + "net = nn.Linear(3, 1)\noptimizer = torch.optim.SGD(net.parameters(), 0.1)",
        TRAIN,
        r"net was not what run 1 met",
        r"net \(Linear\): other values in \.weight, \.bias",
    ),
    "an optimizer that remembers": Case(
        TORCH + "net = nn.Linear(3, 1)\nfirst = {k: v.clone() for k, v in net.state_dict().items()}"
        "\noptimizer = torch.optim.Adam(net.parameters(), 0.1)",
        "net.load_state_dict(first)\n" + TRAIN,
        r"net and optimizer were not what run 1 met",
        r"optimizer \(Adam\): .*state\[0\]",
    ),
    "running statistics": Case(
        TORCH + "norm = nn.BatchNorm1d(3)",
        "norm.train()\nnorm(torch.randn(4, 3))\nnorm.eval()\nout = norm(X).detach()",
        r"norm was not what run 1 met",
        r"running_mean",
    ),
    "eval left on": Case(
        TORCH + "net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5))",
        "out = net(X).detach()",
        r"net was not what run 1 met",
        r"net \(Sequential\): eval mode, was train mode",
        between="net.eval()",
    ),
    "a schedule": Case(
        "import torch\nw = torch.nn.Parameter(torch.ones(2))\n"
        "optimizer = torch.optim.SGD([w], 1.0)\n"
        "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)",
        "optimizer.step()\nschedule.step()\nrate = optimizer.param_groups[0]['lr']",
        r"optimizer and schedule were not what run 1 met",
        r"lr'?\] 0\.5, was 1\.0",
    ),
    "a list shuffled in place": Case(
        "import random\ncards = list(range(20))",
        "random.seed(0)\nrandom.shuffle(cards)\nhand = cards[:3]",
        r"cards was not what run 1 met",
        r"cards \(list\): the same items in another order",
    ),
    "a buffer that fills": Case(
        "import collections, random\nbuffer = collections.deque(maxlen=50)",
        "random.seed(0)\nbuffer.extend(random.random() for _ in range(9))\n"
        "batch = random.sample(list(buffer), 3)",
        r"buffer was not what run 1 met",
        r"buffer \(deque\): 9 items, were 0",
    ),
    "columns changed in place": Case(
        "import pandas as pd\ntable = pd.DataFrame({'x': [1.0, 2.0, 4.0], 'k': [0, 1, 2]})",
        "table['x'] = table['x'] / 2\ntotal = float(table['x'].sum())",
        r"table was not what run 1 met",
        r"table \(DataFrame\): other values in \['x'\]",
    ),
    "an estimator that starts warm": Case(
        "import numpy as np\nfrom sklearn.linear_model import SGDClassifier\n"
        "X = np.random.RandomState(0).rand(30, 2)\ny = (X[:, 0] > 0.5).astype(int)\n"
        "model = SGDClassifier(random_state=0)",
        "slopes = model.partial_fit(X, y, classes=[0, 1]).coef_.copy()",
        r"model was not what run 1 met",
        r"model \(SGDClassifier\): \.n_features_in_, .* are new",
    ),
    "an iterator that is further on": Case(
        "seeds = iter([5, 6, 7, 8])\nimport random",
        "number = next(seeds)\nx = random.Random(number).random()",
        r"seeds was not what run 1 met",
        r"further on: 3 of 4 items are left, were 4",
    ),
    "a batch from a loader's iterator": Case(
        "import torch\nfrom torch.utils.data import DataLoader\n"
        "batches = iter(DataLoader(torch.arange(40), 4, shuffle=True))",
        "torch.manual_seed(0)\nbatch = next(batches).tolist()",
        r"batches was not what run 1 met",
        r"batch 1, was 0",
    ),
    "a file read further": Case(
        "import io\nfile = io.StringIO('a\\nb\\nc\\n')",
        "line = file.readline()",
        r"file was not what run 1 met",
        r"position 2, was 0",
    ),
    "a counter of a class": Case(
        "class Layer:\n    made = 0\n    def __init__(self):\n        Layer.made += 1\n"
        "        self.name = f'layer{Layer.made}'",
        "names = [Layer().name for _ in range(2)]",
        r"Layer kept something from an earlier call",
        r"\.made 2, was 0",
    ),
    "a counter in a closure": Case(
        "def counting():\n    count = 0\n    def draw():\n        nonlocal count\n"
        "        count += 1\n        return count * 1.5\n    return draw\ndraw = counting()",
        "values = draw(), draw()",
        r"draw kept something from an earlier call",
        r"its count 2, was 0",
    ),
    "a counter behind two functions": Case(
        "calls = 0\ndef tick():\n    global calls\n    calls += 1\n    return calls\n"
        "def work():\n    return tick() * 10",
        "value = work()",
        r"calls is 1, was 0",
    ),
    "a default argument that grows": Case(
        "import random\ndef pick(x, seen=[]):\n    seen.append(x)\n    return random.choice(seen)",
        "random.seed(0)\npicked = [pick(k) for k in range(6)]",
        r"pick kept something from an earlier call",
        r"\(seen\) 6 items, were 0",
    ),
    "a cache that skips the draws": Case(
        "import functools, random\n@functools.cache\ndef weights(n):\n"
        "    return tuple(random.random() for _ in range(n))",
        "first = weights(3)\nlater = random.random()",
        r"weights kept something from an earlier call",
        r"cache entries 1, was 0",
    ),
    "a flag for a validation pass": Case(
        "import torch\nfrom torch.utils.data import DataLoader\nvalidate = False\n"
        "train, check = DataLoader(torch.arange(9), shuffle=True), DataLoader(torch.arange(2))",
        "order = []\nfor _ in range(2):\n    order += [int(b) for b in train]\n"
        "    if validate: list(check)",
        r"validate is True, was False",
        between="validate = True",
    ),
    # -- code ------------------------------------------------------------------------------------
    "an edited cell": Case(
        "import random",
        "rate = 0.1\nx = random.random() * rate",
        r"the cell's code was changed",
        r"now rate = 0\.2 \(was rate = 0\.1\)",
        edited="rate = 0.2\nx = random.random() * rate",
    ),
    "an edited function": Case(
        "import random\ndef noise():\n    return random.random()",
        "x = noise()",
        r"noise was changed",
        r"noise: now return 2 \* random\.random\(\)",
        between="def noise():\n    return 2 * random.random()",
    ),
    "an import that seeds": Case(
        "import random, sys, importlib.abc, importlib.machinery\n"
        "class Found(importlib.abc.MetaPathFinder, importlib.abc.Loader):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'seeding_plugin':\n"
        "            return importlib.machinery.ModuleSpec(name, self)\n"
        "    def create_module(self, spec): return None\n"
        "    def exec_module(self, module):\n"
        "        exec('import random; random.seed(7)', vars(module))\n"
        "sys.meta_path.insert(0, Found())",
        "import seeding_plugin\nx = random.random()",
        r"python was re-seeded by the import of seeding_plugin \(line 2\) in run 1 only",
    ),
    # -- arithmetic ------------------------------------------------------------------------------
    "another precision": Case(
        "import torch",
        "torch.manual_seed(0)\nx = torch.randn(16)",
        r"default dtype: torch\.float64 now, torch\.float32 before",
        between="torch.set_default_dtype(torch.float64)",
    ),
    "a deadline": Case(
        "import random, time",
        "n, stop = 0, time.perf_counter() + 0.02\nwhile time.perf_counter() < stop:\n"
        "    n += 1\n    x = random.random()",
        r"the clock decides how many steps run \(line 3\)",
    ),
    # -- what a rewind does not reach ------------------------------------------------------------
    "workers that live on": Case(
        "import torch\nfrom torch.utils.data import DataLoader, Dataset\n"
        "class Noise(Dataset):\n    def __len__(self): return 4\n"
        "    def __getitem__(self, k): return torch.rand(1)\n"
        "loader = DataLoader(Noise(), num_workers=1, persistent_workers=True)",
        "torch.manual_seed(0)\nvalues = [float(v) for v in loader]",
        r"loader keeps persistent workers, which a rewind does not reach",
    ),
    "a pool of processes": Case(
        "import concurrent.futures, multiprocessing, random\n"
        "def draw(k): return random.random()\n"
        "pool = concurrent.futures.ProcessPoolExecutor(\n"
        "    1, mp_context=multiprocessing.get_context('fork'))",
        "random.seed(0)\nvalues = list(pool.map(draw, range(3)))",
        r"worker processes were at work, and no rewind reaches their generators or their order",
        r"pool holds worker processes",
    ),
}

# Whatever runs between the two, each of these gives the same again.
ALIKE = {
    "draws elsewhere": ("import numpy as np", "x = np.random.rand(3)", "np.random.rand(7)"),
    "a peek into a loader": (
        (
            "import torch\nfrom torch.utils.data import DataLoader\n"
            "loader = DataLoader(torch.arange(12), 4, shuffle=True)"
        ),
        "order = [b.tolist() for b in loader]",
        "next(iter(loader))",
    ),
    "a kept normal": ("import random; random.gauss(0, 1)", "x = random.gauss(0, 1)", ""),
    "a generator in an object's list": (
        (
            "import numpy as np\nclass Sim:\n    parts = None\nsim = Sim()\n"
            "sim.parts = {'a': [np.random.default_rng(2)]}"
        ),
        "x = sim.parts['a'][0].random()",
        "sim.parts['a'][0].random()",
    ),
    "a generator in a closure": (
        (
            "import numpy as np\ndef make(seed):\n    rng = np.random.default_rng(seed)\n"
            "    return lambda: rng.random()\ndraw = make(1)"
        ),
        "x = draw()",
        "draw()",
    ),
    "a generator as a default": (
        "import numpy as np\ndef noise(n, rng=np.random.default_rng(0)): return rng.random(n)",
        "x = noise(2)",
        "noise(3)",
    ),
    "a shared RandomState": (
        (
            "import numpy as np\nfrom sklearn.model_selection import KFold\n"
            "folds = KFold(3, shuffle=True, random_state=np.random.RandomState(0))"
        ),
        "parts = [test.tolist() for _, test in folds.split(range(12))]",
        "list(folds.split(range(12)))",
    ),
    "a frozen distribution": (
        "from scipy import stats\nlaw = stats.gamma(2.0); law.random_state = 3",
        "x = law.rvs(2)",
        "law.rvs(5)",
    ),
    "an estimator without a seed": (
        (
            "import numpy as np\nfrom sklearn.linear_model import SGDClassifier\n"
            "X = np.random.RandomState(0).rand(30, 2); y = (X[:, 0] > 0.5).astype(int)"
        ),
        "slopes = SGDClassifier(max_iter=5, tol=None).fit(X, y).coef_",
        "np.random.rand()",
    ),
    "switches that decide nothing here": (
        "import numpy as np, torch",
        "x, z = np.random.rand(3), torch.rand(2)",
        "torch.use_deterministic_algorithms(True, warn_only=True)",
    ),
    "another variable": ("import random; n = 1", "x = random.random()", "n = 2"),
}


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with started() as shell:
        yield shell


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    import torch

    with loaded(shell) as notebook:
        yield notebook
        for name in ("loader", "pool"):  # their processes end with the test
            notebook.ns.pop(name, None)
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(False)


def run_again(notebook: Notebook, above: str, cell: str, between: str, edited: str) -> str:
    notebook.ok(f"%seed 3\n{above}")
    notebook.ok(f"%%rngcheckpoint train\n{cell}")
    if between:
        notebook.ok(between)
    return notebook.ok(f"%%rngcheckpoint train\n{edited or cell}").out


@pytest.mark.parametrize("case", DIFFER.values(), ids=DIFFER.keys())
def test_the_cause_is_named_first(notebook: Notebook, case: Case) -> None:
    report = run_again(notebook, case.above, case.cell, case.between, case.edited)
    assert re.search(rf"; why: {case.said}(; \d more in %rng why)?$", report, re.MULTILINE), report
    answer = repr(notebook.ok("%rng why").value)
    assert re.search(rf"^ 1\. {case.said}$", answer, re.MULTILINE), answer
    if case.evidence:
        assert re.search(rf"^      .*{case.evidence}", answer, re.MULTILINE), answer
    assert re.search(r"^    try: .", answer, re.MULTILINE), answer


@pytest.mark.parametrize(("above", "cell", "between"), ALIKE.values(), ids=ALIKE.keys())
def test_what_is_rewound_is_the_same_and_accuses_nobody(
    notebook: Notebook, above: str, cell: str, between: str
) -> None:
    report = run_again(notebook, above, cell, between, "")
    assert "differ" not in report
    assert "why:" not in report
    assert "nothing differs, nothing to explain" in repr(notebook.ok("%rng why").value)


REMEDIES = {
    "weights that go on": "net,optimizer",
    "running statistics": "norm",
    "a list shuffled in place": "cards",
    "a buffer that fills": "buffer",
    "columns changed in place": "table",
    "an estimator that starts warm": "model",
    "a counter behind two functions": "calls",
    "a flag for a validation pass": "validate",
}


@pytest.mark.parametrize(("key", "names"), REMEDIES.items(), ids=REMEDIES.keys())
def test_with_makes_the_runs_the_same(notebook: Notebook, key: str, names: str) -> None:
    case = DIFFER[key]
    notebook.ok(f"%seed 3\n{case.above}")
    cell = f"%%rngcheckpoint train --with {names}\n{case.cell}"
    notebook.ok(cell)
    if case.between:
        notebook.ok(case.between)
    report = notebook.ok(cell).out
    assert "differ" not in report
    assert "part at step" not in report
    assert "why:" not in report


def test_pinned_entropy_makes_the_runs_the_same(notebook: Notebook) -> None:
    notebook.ok("%seed 3 --pin-entropy\nimport numpy as np")
    cell = "%%rngcheckpoint train\nx = np.random.default_rng().random()"
    notebook.ok(cell)
    first = notebook.ns["x"]
    report = notebook.ok(cell).out
    assert notebook.ns["x"] == first
    assert "why:" not in report


def test_a_run_that_ended_by_an_error_is_said_of_the_next(notebook: Notebook) -> None:
    notebook.ok("%seed 3\nimport random\nbad = False")
    cell = "%%rngcheckpoint train\nx = [random.random()]\nif bad: raise KeyError('a')"
    notebook.ok(cell)
    notebook.ok("bad = True")
    report = notebook.run(cell)
    assert isinstance(report.error, KeyError)
    answer = repr(notebook.ok("%rng why train").value)
    assert " 1. run 2 ended by KeyError: 'a', run 1 went to its end" in answer
