"""Cells that repeat: nobody is accused, whatever they call, print, store and write."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from shells import Notebook, loaded, started

pytestmark = pytest.mark.filterwarnings(  # said by JAX and by Python, once threads run
    "ignore:os.fork:RuntimeWarning", "ignore:This process:DeprecationWarning"
)

DIGITS = """
import numpy as np
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
X, y = X[:120], y[:120]
"""
NET = """
import torch
from torch import nn
X = torch.linspace(-1, 1, 60).view(20, 3)
y = X.sum(1, keepdim=True)
"""

# Each is (what runs once, the cell).
CELLS = {
    "a training loop that prints its time": (
        NET,
        """
import time
begun = time.time()
net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
history = []
for epoch in range(3):
    for rows in torch.randperm(len(X)).split(5):
        loss = nn.functional.mse_loss(net(X[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    history.append(loss.item())
    print(f"epoch {epoch}: {history[-1]:.4f} ({time.time() - begun:.3f} s)")
elapsed = time.time() - begun
""",
    ),
    "a training loop that begins a net of the notebook anew": (
        NET
        + """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden, self.out = nn.Linear(3, width), nn.Linear(width, 1)
        self.norm = nn.BatchNorm1d(width)
    def forward(self, x):
        return self.out(torch.relu(self.norm(self.hidden(x))))
def train(net, steps):
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    for _ in range(steps):
        loss = (net(X) - y).pow(2).mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
    return loss.item()
""",
        """
net = Net(6)
final = train(net, 4)
net.eval()
with torch.no_grad():
    guesses = net(X)
""",
    ),
    "a loader with two workers": (
        """
import torch
from torch.utils.data import DataLoader, Dataset
class Noisy(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, k):
        return k + torch.rand(1)
""",
        """
torch.manual_seed(1)
loader = DataLoader(Noisy(), batch_size=2, shuffle=True, num_workers=2)
batches = [batch.flatten().tolist() for batch in loader]
""",
    ),
    "a loop over a loader that was made above": (
        (
            "import torch\nfrom torch.utils.data import DataLoader\n"
            "loader = DataLoader(torch.arange(12), 4, shuffle=True)"
        ),
        "seen = [batch.tolist() for _ in range(2) for batch in loader]",
    ),
    "a checkpoint saved and read again": (
        NET,
        """
import copy, io
net = nn.Linear(3, 2)
best = copy.deepcopy(net.state_dict())
file = io.BytesIO()
torch.save(net.state_dict(), file)
file.seek(0)
other = nn.Linear(3, 2)
other.load_state_dict(torch.load(file, weights_only=True))
equal = torch.equal(other.weight, net.weight)
""",
    ),
    "a progress bar": (
        "import random\nfrom tqdm import tqdm",
        """
import sys
total = 0.0
for step in tqdm(range(5), desc="steps", file=sys.stdout):
    total += random.random()
""",
    ),
    "a progress bar in a variable": (
        "import io, random\nfrom tqdm.auto import trange",
        """
bar = trange(4, file=io.StringIO())
drawn = []
for step in bar:
    drawn.append(random.random())
    bar.set_postfix(last=drawn[-1])
""",
    ),
    "logging": (
        """
import logging, io, random
stream = io.StringIO()
log = logging.getLogger("innocent")
log.addHandler(logging.StreamHandler(stream))
log.setLevel("INFO")
""",
        """
def work(n):
    log.info("begun with %d", n)
    return [random.random() for _ in range(n)]
drawn = work(3)
log.info("ended with %s", drawn)
""",
    ),
    "a data frame from random columns": (
        "import numpy as np, pandas as pd",
        """
frame = pd.DataFrame({"x": np.random.rand(20), "group": np.random.choice(list("abc"), 20)})
frame["z"] = (frame["x"] - frame["x"].mean()) / frame["x"].std()
means = frame.groupby("group")["z"].agg(["mean", "size"])
wide = frame.pivot_table(index="group", values="x")
some = frame.sample(5, random_state=1).sort_values("x")
frame.describe()
""",
    ),
    "a data frame that is written and read": (
        (
            "import pandas as pd, tempfile, pathlib\n"
            "path = pathlib.Path(tempfile.mkdtemp()) / 'table.csv'\n"
            "pd.DataFrame({'x': range(10)}).to_csv(path, index=False)"
        ),
        """
frame = pd.read_csv(path)
frame["square"] = frame.x ** 2
drawn = frame.sample(3)
frame[["x"]].to_csv(path, index=False)
""",
    ),
    "a forest with two jobs": (
        DIGITS,
        """
from sklearn.ensemble import RandomForestClassifier
forest = RandomForestClassifier(6, n_jobs=2, random_state=0).fit(X, y)
score = forest.score(X, y)
""",
    ),
    "a forest from the global generator": (
        DIGITS,
        """
from sklearn.ensemble import RandomForestClassifier
forest = RandomForestClassifier(5).fit(X, y)
forest.predict_proba(X[:3])
""",
    ),
    "a grid search": (
        DIGITS,
        """
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, KFold
search = GridSearchCV(
    SGDClassifier(random_state=0, max_iter=20, tol=None), {"alpha": [0.001, 0.01]},
    cv=KFold(2, shuffle=True, random_state=0),
).fit(X, y)
best, score = search.best_params_, search.best_score_
""",
    ),
    "clusters": (
        DIGITS,
        """
from sklearn.cluster import KMeans
labels = KMeans(4, n_init=2, random_state=3).fit_predict(X)
""",
    ),
    "a split and a pipeline": (
        DIGITS,
        """
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
train_X, test_X, train_y, test_y = train_test_split(X, y, test_size=0.3, random_state=5)
pipe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=50, tol=0.01))
pipe.fit(train_X, train_y)
score = pipe.score(test_X, test_y)
cross_val_score(pipe, X, y, cv=2)
""",
    ),
    "a figure": (
        (
            "import io, matplotlib\nmatplotlib.use('Agg')\n"
            "import matplotlib.pyplot as plt, numpy as np"
        ),
        """
fig, ax = plt.subplots()
points = np.random.randn(2, 50)
ax.scatter(*points)
ax.hist(points[0], bins=8)
ax.set_title("points")
picture = io.BytesIO()
fig.savefig(picture, format="png", metadata={"Software": None})
plt.close(fig)
""",
    ),
    "temporary files": (
        "import os, random, shutil, tempfile",
        """
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "numbers.txt"), "w") as file:
        file.write("\\n".join(str(random.random()) for _ in range(4)))
    with open(os.path.join(folder, "numbers.txt")) as file:
        numbers = [float(line) for line in file]
with tempfile.NamedTemporaryFile("w+") as scratch:
    scratch.write("x" * 10)
    size = scratch.tell()
del folder, scratch
""",
    ),
    "json": (
        "import json, random",
        """
text = json.dumps({"drawn": [random.random() for _ in range(3)], "name": "a"}, indent=1)
back = json.loads(text)
""",
    ),
    "a child process": (
        "import random, subprocess, sys",
        """
out = subprocess.run([sys.executable, "-S", "-c", "print(6 * 7)"], capture_output=True, text=True)
answer = int(out.stdout), random.random()
""",
    ),
    "threads that do not draw": (
        "import random, threading\nfrom concurrent.futures import ThreadPoolExecutor",
        """
drawn = [random.random() for _ in range(6)]
squares = {}
def square(k):
    squares[k] = drawn[k] ** 2
threads = [threading.Thread(target=square, args=(k,)) for k in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
squares = dict(sorted(squares.items()))
with ThreadPoolExecutor(2) as pool:
    halves = list(pool.map(lambda v: v / 2, drawn))
del threads, pool, thread
""",
    ),
    "a name for the run that is only printed": (
        "import random, uuid, datetime",
        """
print(f"run {uuid.uuid4()} on {datetime.datetime.now():%H:%M:%S.%f}")
value = random.random()
""",
    ),
    "measured times in variables": (
        "import datetime, time, random",
        """
t0 = time.perf_counter()
now = datetime.datetime.now().isoformat()
started_at = time.time()
times = []
for _ in range(3):
    tic = time.perf_counter()
    value = random.random()
    times.append(time.perf_counter() - tic)
duration = time.perf_counter() - t0
stamp = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")
print(f"{value:.3f} in {duration:.3g} s at {stamp}, since {started_at}")
""",
    ),
    "a list of results that grows": (
        "import random\nresults = []",
        "value = random.random()\nresults.append(value)\nprint(len(results), 'results')",
    ),
    "data classes": (
        "import random\nfrom dataclasses import dataclass, field",
        """
@dataclass
class Config:
    rate: float = 0.1
    sizes: list = field(default_factory=lambda: [1, 2])
config = Config(rate=random.random())
configs = [Config(k) for k in range(3)]
""",
    ),
    "functions of the cell": (
        "import functools, random",
        """
def noisy(x, scale=2.0):
    return x + scale * random.random()
@functools.lru_cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
double = lambda x: 2 * x
half = functools.partial(noisy, scale=0.5)
values = [noisy(1), double(2), fibonacci(12), half(3)]
""",
    ),
    "classes of the cell": (
        "import random",
        """
from abc import ABC, abstractmethod
class Shape(ABC):
    made = 0
    def __init__(self, size):
        Shape.made += 1
        self.size = size
    @property
    @abstractmethod
    def area(self): ...
class Square(Shape):
    @property
    def area(self):
        return self.size ** 2
shapes = [Square(random.random()) for _ in range(3)]
areas = [shape.area for shape in shapes]
""",
    ),
    "imports in the cell": (
        "",
        """
import colorsys, fractions, statistics
import numpy as np
from collections import Counter, defaultdict
drawn = np.random.randint(0, 5, 30).tolist()
counts, groups = Counter(drawn), defaultdict(list)
for k in drawn: groups[k % 2].append(k)
middle = statistics.median(drawn), fractions.Fraction(1, 3)
""",
    ),
    "digests": (
        "import hashlib, numpy as np",
        """
block = np.random.rand(100)
digest = hashlib.sha256(block.tobytes()).hexdigest()
part = int(digest[:8], 16) % 10
""",
    ),
    "a seed from a digest": (
        "import hashlib, numpy as np",
        """
seed = int(hashlib.md5(b"experiment").hexdigest()[:8], 16)
rng = np.random.default_rng(seed)
drawn = rng.random(3)
""",
    ),
    "sets of numbers": (
        "import random",
        """
seen = {random.randrange(50) for _ in range(20)}
order = list(seen | set(range(5)))
total = sum(k for k in seen)
""",
    ),
    "a graph": (
        "import networkx as nx",
        """
graph = nx.gnp_random_graph(12, 0.4, seed=4)
other = nx.barabasi_albert_graph(10, 2)
places = nx.spring_layout(graph, seed=2, iterations=5)
paths = dict(nx.all_pairs_shortest_path_length(graph))
""",
    ),
    "optimisation": (
        "import numpy as np, scipy.optimize, scipy.stats",
        """
found = scipy.optimize.minimize(lambda p: ((p - 1) ** 2).sum(), np.random.rand(2))
fit = scipy.optimize.curve_fit(lambda x, a: a * x, np.arange(5.0), np.arange(5.0) * 2)[0]
sample = scipy.stats.norm.rvs(size=4, random_state=1)
sample2 = scipy.stats.gamma(2.0).rvs(3)
p_value = scipy.stats.ttest_1samp(sample, 0).pvalue
""",
    ),
    "parallel jobs without draws": (
        "import math, random\nfrom joblib import Parallel, delayed",
        """
drawn = [random.random() for _ in range(4)]
roots = Parallel(n_jobs=2, prefer="threads")(delayed(math.sqrt)(v) for v in drawn)
""",
    ),
    "await": (
        "import asyncio, random",
        """
async def drawn(k):
    await asyncio.sleep(0)
    return random.random()
first = await drawn(1)
rest = await asyncio.gather(*(drawn(k) for k in range(4)))
""",
    ),
    "generators and iterators of the cell": (
        "import itertools, random",
        """
stream = (random.random() for _ in itertools.count())
firsts = [next(stream) for _ in range(3)]
ids = itertools.count()
pairs = list(zip(ids, firsts))
del stream, ids
""",
    ),
    "generators of the notebook": (
        (
            "import random, numpy as np, torch\n"
            "rng, own = np.random.default_rng(1), random.Random(2)\n"
            "stream = torch.Generator().manual_seed(3)\n"
            "def noise(n): return rng.normal(size=n) + own.random()"
        ),
        "values = noise(3), torch.rand(2, generator=stream), rng.spawn(1)[0].random()",
    ),
    "a flag for the clock that decides nothing": (
        "import time, random",
        """
begun = time.monotonic()
best = 9.0
for step in range(5):
    best = min(best, random.random())
    if time.monotonic() - begun > 1e9:
        print("slow")
""",
    ),
    "memory that is filled": (
        "import numpy as np, torch",
        """
table = np.empty((3, 2))
for k in range(3): table[k] = np.random.rand(2)
weights = torch.empty(4, 2)
torch.nn.init.xavier_uniform_(weights)
out = torch.empty(3).normal_()
""",
    ),
    "text and regular expressions": (
        "import random, re, textwrap",
        """
words = re.findall(r"\\w+", "the cat sat on the mat")
random.shuffle(words)
text = textwrap.fill(" ".join(words), 10)
counts = {word: words.count(word) for word in sorted(set(words))}
""",
    ),
    "a database in memory": (
        "import random, sqlite3",
        """
with sqlite3.connect(":memory:") as base:
    base.execute("create table t (x real)")
    base.executemany("insert into t values (?)", [(random.random(),) for _ in range(3)])
    rows = base.execute("select x from t order by x").fetchall()
base.close()
del base
""",
    ),
    "a value that is shown": (
        "import numpy as np, pandas as pd",
        "pd.Series(np.random.rand(3), name='x')",
    ),
    "an object that is shown": ("class Thing: pass", "Thing()"),
    "not a number": (
        "import numpy as np",
        "x = np.random.rand(3)\nx[1] = np.nan\nlosses = [float('nan'), x[0]]\nfloat('nan')",
    ),
    "a cell that draws nothing": ("", "a, b = 1, [2]\nprint(a)"),
}


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with started() as shell:
        yield shell


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    with loaded(shell) as notebook:
        yield notebook


@pytest.mark.parametrize(("before", "cell"), CELLS.values(), ids=CELLS.keys())
def test_a_cell_that_repeats_accuses_nobody(notebook: Notebook, before: str, cell: str) -> None:
    notebook.ok(f"%seed 3\n{before}")
    notebook.ok(f"%%rngcheckpoint innocent\n{cell}")
    for number in (2, 3):
        report = notebook.ok(f"%%rngcheckpoint innocent\n{cell}").out
        assert f"innocent, run {number}: rewound to " in report
        assert "why:" not in report
        assert "differ" not in report
        answer = repr(notebook.ok("%rng why").value)
        assert f"run {number} beside run 1: nothing differs, nothing to explain" in answer


def test_the_same_cells_are_accused_once_something_differs(notebook: Notebook) -> None:
    """The test above can fail: a cell that does not repeat has none of what it asks for."""
    notebook.ok("%seed 3\ncount = 0")
    notebook.ok("%%rngcheckpoint guilty\ncount += 1")
    report = notebook.ok("%%rngcheckpoint guilty\ncount += 1").out
    assert "why: count is 1, was 0" in report
    assert "nothing differs" not in repr(notebook.ok("%rng why").value)
