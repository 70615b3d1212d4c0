"""What a cell's text gives away, from hand-written cells: each kind of sign, and what is none."""

from __future__ import annotations

import pytest

from nbseed.signs import ADDRESS, CLOCK, ENTROPY, HASH, PROCESS, Sign, Signs, signs


def texts(found):
    return [sign.text for sign in found]


# -- seeds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("random.seed(time.time())", CLOCK),
        ("rng = np.random.default_rng(int(time.time_ns()) % 2**32)", CLOCK),
        ("from time import time\ntorch.manual_seed(int(time()))", CLOCK),
        ("s = int(datetime.now().timestamp())\nt = s + 1\nseed_everything(t)", CLOCK),
        ("model = Forest(random_state=int(time.time()))", CLOCK),
        ("set_seed(seed=(now := time.time()))", CLOCK),
        ("random.seed(os.getpid())", PROCESS),
        ("torch.manual_seed(id(model))", ADDRESS),
        ("random.seed(hash('train'))", HASH),
        ("random.seed(hash((1, name)))", HASH),
        ("random.seed(hash(f'{1}'))", HASH),
        ("key = jax.random.PRNGKey(uuid.uuid4().int)", ENTROPY),
        ("np.random.seed(int.from_bytes(os.urandom(4), 'big'))", ENTROPY),
        ("def f():\n    for x in y:\n        if x:\n            random.seed(time.time())", CLOCK),
    ],
)
def test_a_seed_that_is_another_one_in_each_run_is_seen(cell, kind):
    (found,) = signs(cell).seeds
    assert found.kind == kind
    assert found.line == cell.count("\n") + 1


@pytest.mark.parametrize(
    "cell",
    [
        "random.seed(3)",
        "seed = 3\nnp.random.seed(seed)",
        "random.seed(hash(3))",
        "random.seed(hash((1, 2.5)))",
        "random.seed(hash(-1))",
        "random.seed(row.id())",
        "random.seed(frame.hash(x))",
        "took = time.time()\nrandom.seed(3)",
        "fit(x, started=time.time())",
        "time.time().seed(3)",
        "# random.seed(time.time())",
        "'random.seed(time.time())'",
        "def seed(n=time): return n",
    ],
)
def test_a_seed_that_stays_is_no_sign(cell):
    assert signs(cell).seeds == ()


def test_a_seed_without_an_argument_is_one_of_its_own():
    found = signs("random.seed()\nrng.seed(3)\nnp.random.seed(seed=None)\nx.seed")
    assert found.reseeds == (Sign(1, "random.seed()"),)
    assert found.seeds == ()


def test_a_sign_says_where_and_what_in_sixty_characters():
    cell = "\n\nrandom.seed(\n    time.time() + len('" + "a" * 100 + "')\n)"
    (found,) = signs(cell).seeds
    assert (found.line, len(found.text), found.kind) == (3, 60, CLOCK)
    assert found.text.startswith("random.seed(time.time() + len('aaa")
    assert found.text.endswith("aaa...")


def test_the_lines_of_calls_tell_what_goes_into_them():
    found = signs("s = os.getpid()\nf(1)\ng(s)\nh(x=time.time())\nk(\n    time.time(),\n)")
    assert found.lines == {3: PROCESS, 4: CLOCK, 5: CLOCK}


# -- what variables are made of --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "derived"),
    [
        ("x = 3", {}),
        ("x = f(time.time())", {"x": Sign(1, "f(time.time())", CLOCK)}),
        ("x: float = f(id(y))", {"x": Sign(1, "f(id(y))", ADDRESS)}),
        ("x: float", {}),
        ("x = []\nx.append(f(os.getpid()))", {"x": Sign(2, "f(os.getpid())", PROCESS)}),
        ("x = [3]\nx.append(f(4))", {}),
        (
            "y = x * 2\nx = time.time()",
            {"x": Sign(2, "time.time()", CLOCK), "y": Sign(1, "x * 2", CLOCK)},
        ),
        ("x = row.id()", {}),
        ("x.y = time.time()", {}),
    ],
)
def test_what_goes_into_a_variable_beside_the_cells_own_data(cell, derived):
    assert signs(cell).derived == derived


@pytest.mark.parametrize(
    ("cell", "measures"),
    [
        ("a = time.time()", {"a"}),
        ("a = round(time.time() - b, 2)\nb = time.time()", {"a", "b"}),
        ("a = []\na.append(time.time())", {"a"}),
        ("a = 0.0\na += time.time()", {"a"}),
        ("a = float('inf')\na = time.time()", {"a"}),
        ("a = list()\na.append(time.time())", {"a"}),
        ("a = b = time.time()", {"a", "b"}),
        ("run_id = uuid.uuid4()", {"run_id"}),
        ("noise = os.urandom(4)", set()),
        ("elapsed = f(x)", {"elapsed"}),
        ("for epoch_time in x: pass", {"epoch_time"}),
        ("a = f(x) * time.time()", set()),
        ("times_two = timeseries = sometimes = 2", {"times_two"}),
        ("a = 3", set()),
    ],
)
def test_variables_that_hold_measured_times(cell, measures):
    assert signs(cell).measures == measures


@pytest.mark.parametrize(
    "cell",
    [
        "x = time.time()\nx = model(y)",
        "x = model(y)\nx += time.time()",
        "x = []\nx.append(time.time())\nx.append(model(y))",
        "x = []\nx.append(time.time())\nx.append(model(time.time()))",
        "x, y = model(z), time.time()\nx = time.time()",
        "x = time.time()\nif y:\n    x = z",
    ],
)
def test_a_variable_that_also_holds_a_result_is_no_measured_time(cell):
    assert "x" not in signs(cell).measures


def test_what_is_made_of_such_a_variable_is_none_either():
    assert signs("x = time.time()\nx = model(z)\ny = x + 1").measures == frozenset()


@pytest.mark.parametrize(
    ("cell", "timed"),
    [
        ("d['took'] = time.time() - 3", {"took"}),
        ("d = {'took': time.time(), 'loss': f(x), **more}", {"took"}),
        ("d = dict(took=time.time(), loss=f(x), **more)", {"took"}),
        ("d[3] = time.time()", set()),
        ("d[key] = time.time()", set()),
        ("d['loss'] = f(time.time())", set()),
        ("d.dict(took=time.time())", set()),
    ],
)
def test_keys_under_which_measured_times_are_kept(cell, timed):
    assert signs(cell).timed == timed


# -- clocks, memory, orders ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("while time.time() < end: step()", ["time.time() < end"]),
        ("t = time.time()\nwhile t < 3: step()", ["t < 3"]),
        ("while x:\n    if time.time() > y:\n        log()\n        break", ["time.time() > y"]),
        ("def f():\n    if monotonic() > end: return", ["monotonic() > end"]),
        ("if time.time() > end: log()", []),
        ("while step < 3: took = time.time()", []),
        ("study.optimize(f, timeout=60)", ["timeout=60"]),
        ("study.optimize(f, timeout=None)", []),
        ("study.optimize(f, n_trials=60)", []),
        ("automl.fit(x, time_budget=b, max_time=2)", ["time_budget=b", "max_time=2"]),
    ],
)
def test_what_ends_by_the_clock(cell, found):
    assert texts(signs(cell).clocks) == found


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("x = np.empty(3)", ["np.empty(3)"]),
        ("x = torch.empty(size=(3,))", ["torch.empty(size=(3,))"]),
        ("x = y.new_empty(3) + 1", ["y.new_empty(3)"]),
        ("x = torch.empty_like(y)", ["torch.empty_like(y)"]),
        ("x = torch.empty(3).normal_()", []),
        ("x = nn.init.normal_(torch.empty(3))", []),
        ("x = np.zeros(3)", []),
        ("x = empty(3)", []),
        ("x = frame.empty", []),
        ("while not queue.empty(): work()", []),
    ],
)
def test_memory_that_nobody_has_filled(cell, found):
    assert texts(signs(cell).unfilled) == found


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("for x in set(y): f(x)", ["set(y)"]),
        ("a = {1, 2}\nfor x in a: f(x)", ["a"]),
        ("a = frozenset(x)\nb = a | c\nd = list(b)", ["list(b)"]),
        ("x = [f(y) for y in {z for z in w} - seen]", ["{z for z in w} - seen"]),
        ("for i, x in enumerate(set(y)): f(x)", ["enumerate(set(y))"]),
        ("for x in sorted(set(y)): f(x)", []),
        ("n = len(set(y))", []),
        ("if x in set(y): f(x)", []),
        ("for x in {1: 2}: f(x)", []),
        ("for x in y.set(): f(x)", []),
    ],
)
def test_orders_of_sets(cell, found):
    assert texts(signs(cell).sets) == found


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("for f in os.listdir(d): use(f)", ["os.listdir(d)"]),
        ("files = [f for f in Path(d).rglob('*')]", ["Path(d).rglob('*')"]),
        ("files = glob('*.csv')", ["glob('*.csv')"]),
        ("files = sorted(glob('*.csv'))", []),
        ("files = sorted([f for f in os.listdir(d)], key=len)", []),
        ("n = len(os.listdir(d))", []),
        ("f(os.listdir)", []),
    ],
)
def test_orders_of_folders(cell, found):
    assert texts(signs(cell).folders) == found


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("sorted(x, key=id)", ["sorted(x, key=id)"]),
        ("x.sort(key=hash)", ["x.sort(key=hash)"]),
        ("min(x, key=id)", ["min(x, key=id)"]),
        ("sorted(x, key=len)", []),
        ("sorted(x, key=row.id)", []),
        ("f(x, key=id)", []),
    ],
)
def test_sortings_by_address(cell, found):
    assert texts(signs(cell).by_address) == found


# -- texts that are no cells -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# a remark",
        "random.seed(time.time()",
        "random.seed(time.time())\n  x",
        "%%bash\nls",
        "random.seed(time.time())\0",
        "random.seed(time.time()) # \ud800",
        "1" * 5000,
        "(" * 500,
        "not " * 100_000 + "time.time()",
        "-" * 100_000 + "1",
        "x = [" * 300,
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_a_text_that_is_no_python_gives_nothing_away(text):
    assert signs(text) == Signs()


def test_a_deep_expression_ends_neither_the_reading_nor_the_kernel():
    chain = "x = " + " + ".join(["time.time()"] * 3000)
    assert signs(chain).seeds == ()
    assert signs("random.seed(time.time())").seeds != ()


def test_names_in_other_scripts_are_names():
    found = signs("größe = os.getpid()\nrandom.seed(größe)")
    assert found.seeds == (Sign(2, "random.seed(größe)", PROCESS),)
    assert found.derived["größe"].kind == PROCESS


def test_the_same_text_is_read_once():
    assert signs("random.seed(time.time())  # once") is signs("random.seed(time.time())  # once")
