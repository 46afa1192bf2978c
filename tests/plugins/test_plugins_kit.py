"""The conformance kit finds each promise broken: a kit that cannot fail is worth nothing."""

import textwrap

import pytest

from gradian_core.errors import UsageError
from gradian_core.testing import BrokenPromise, isolated_registry, promises
from gradian_core.testing.kit import find_plugins

CHECK = '''
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
SEEN = []
def facts(n):
    from gradian_core.audit.samples import rows
    return {"examples": rows(n=n)}
def found(**changes):
    values = dict(id="house.tiny", severity=Severity.LOW, title="few rows", fix="Add rows.")
    return Finding(**{**values, **changes})
@check(severity=Severity.LOW, since="1", trips=lambda: facts(3), clean=lambda: facts(30))
def tiny(examples):
    """Few rows.

    Why it matters: they are few."""
    BODY
@hookimpl
def gradian_checks():
    yield CheckSpec(name="house.tiny", summary="Few rows", factory="%NAME%:tiny", NEEDS)
'''

ENGINE = """
import functools
class Engine:
    calls = 0
    def score_block(self, block, queries, context):
        import numpy as np
        G = np.concatenate([part for _, part in block.chunks()]).astype(float)
        scores = queries @ G.T
        BODY
    def caveats(self, context):
        return CAVEATS
def oracle(gradients, queries, context, settings):
    return queries @ gradients.T
@hookimpl
def gradian_engines():
    yield EngineSpec(name="e", summary="s", factory="%NAME%:Engine", oracle="%NAME%:oracle")
"""

TASK_ENGINE = """
class Engine:
    calls = 0
    def score(self, task):
        import numpy as np
        words = [set(" ".join(t.content for t in e.turns).lower().split()) for e in task.examples]
        asked = [set(f"{i.prompt} {i.reference}".lower().split()) for i in task.items]
        scores = np.array([[len(a & w) / (1 + len(w)) for w in words] for a in asked])
        BODY
    def caveats(self, task):
        return CAVEATS
@hookimpl
def gradian_engines():
    yield EngineSpec(name="t", summary="s", factory="%NAME%:Engine", needs="text")
"""

METRIC = """
class Metric:
    calls = 0
    def score(self, prediction, reference=None):
        BODY
@hookimpl
def gradian_metrics():
    yield MetricSpec(name="m", summary="s", factory="%NAME%:Metric", NEEDS)
"""

SINK = """
from pathlib import Path
class Sink:
    calls = 0
    def write(self, report, folder):
        path = folder / "out.md"
        BODY
        return [path]
@hookimpl
def gradian_sinks():
    yield SinkSpec(name="s", summary="s", factory="%NAME%:Sink")
"""

CLUSTERER = """
from gradian_core.specs import ClustererSpec
class Clusterer:
    calls = 0
    def cluster(self, task):
        import numpy as np
        from gradian_core.protocols import ClusterAssignment
        n = len(task.texts)
        labels, names, method = np.zeros(n, int), {}, "one"
        BODY
        return ClusterAssignment(labels=labels, names=names, method=method)
@hookimpl
def gradian_clusterers():
    yield ClustererSpec(name="c", summary="s", factory="%NAME%:Clusterer")
"""

READER = """
from gradian_core.specs import RunReaderSpec
class Reader:
    def can_read(self, path):
        BODY
    def read(self, path):
        raise NotImplementedError
@hookimpl
def gradian_run_readers():
    yield RunReaderSpec(name="r", summary="s", factory="%NAME%:Reader")
"""

NEEDS = 'needs=("examples",)'
FEW = "if len(examples) < 20: yield found()"


def fill(template, body, **words):
    for key, value in {"CAVEATS": "()", "NEEDS": "", **words}.items():
        template = template.replace(key, value)
    lines = textwrap.dedent(body).strip().splitlines()
    out = []
    for line in template.splitlines():
        if line.strip() == "BODY":
            indent = line[: line.index("BODY")]
            out += [indent + text for text in lines]
        else:
            out.append(line)
    return "\n".join(out)


def check(body=FEW, needs=NEEDS):
    return fill(CHECK, body, NEEDS=needs)


BROKEN = {
    "plugin:p:loads": {
        "nothing": "@hookimpl\ndef gradian_engines(): return ()",
        "cannot load": "import surely_missing",
        "half": '@hookimpl\ndef gradian_sinks():\n yield SinkSpec(name="s", summary="s", '
        'factory="m:C", requires=("surely_missing",))',
    },
    "plugin:p:light": {
        "heavy": "import numpy\n" + check(),
        "chatty": "print('hello')\n" + check(),
    },
    "engine:e:resolves": {
        "no module": '@hookimpl\ndef gradian_engines(): yield EngineSpec(name="e", summary="s", '
        'factory="surely_missing:C")',
        "no such protocol": "class E: pass\n@hookimpl\ndef gradian_engines(): yield "
        'EngineSpec(name="e", summary="s", factory="%NAME%:E")',
        "options without default": "from pydantic import BaseModel\nclass O(BaseModel):\n x: int\n"
        '@hookimpl\ndef gradian_engines(): yield EngineSpec(name="e", summary="s", '
        'factory="m:C", config="%NAME%:O")',
    },
    "engine:e:summary": {
        "long": '@hookimpl\ndef gradian_engines(): yield EngineSpec(name="e", '
        'summary="s" * 101, factory="m:C")',
    },
    "check:house.tiny:needs": {"undeclared": check(needs="")},
    "check:house.tiny:page": {
        "another summary": check().replace("Few rows.", "Many rows."),
        "one line": check().replace("Why it matters: they are few.", ""),
    },
    "check:house.tiny:trips": {
        "never": check("if False: yield"),
        "always": check("yield found()"),
    },
    "check:house.tiny:findings": {
        "another id": check("if len(examples) < 20: yield found(id='house.other')"),
        "worse": check("if len(examples) < 20: yield found(severity=Severity.HIGH)"),
        "no advice": check("if len(examples) < 20: yield found(fix='')"),
        "two lines": check("if len(examples) < 20: yield found(title='a\\nb')"),
        "no JSON": check("if len(examples) < 20: yield found(evidence={'x': {1, 2}})"),
        "nan": check("if len(examples) < 20: yield found(evidence={'x': float('nan')})"),
        "text": check("if len(examples) < 20: yield 'few'"),
    },
    "check:house.tiny:deterministic": {
        "counts": check("SEEN.append(1)\nif len(examples) < 20: yield found(title=str(len(SEEN)))")
    },
    "check:house.tiny:pure": {
        "writes": check("examples.turns.setflags(write=True)\nexamples.turns[0] += 1\n" + FEW)
    },
    "check:house.tiny:one_row": {"needs two": check("_ = examples.ids[1]\n" + FEW)},
    "engine:e:shape": {
        "transposed": fill(ENGINE, "return scores.T"),
        "nan": fill(ENGINE, "return scores * np.nan"),
        "integers": fill(ENGINE, "return (scores * 100).astype(int)"),
    },
    "engine:e:deterministic": {
        "noise": fill(ENGINE, "return scores + np.random.default_rng().normal(size=scores.shape)"),
        "remembers": fill(ENGINE, "Engine.calls += 1\nreturn scores * Engine.calls"),
    },
    "engine:e:sign": {"negated": fill(ENGINE, "return -scores")},
    "engine:e:permutation": {"by place": fill(ENGINE, "return scores * (1 + np.arange(block.n))")},
    "engine:e:pieces": {
        "by piece": fill(ENGINE, "return scores * len(next(iter(block.chunks()))[1])")
    },
    "engine:e:queries": {"shares": fill(ENGINE, "return scores / abs(queries).sum()")},
    "engine:e:edges": {
        "divides": fill(ENGINE, "return scores / np.sqrt(block.squared_norms)"),
        "needs two": fill(ENGINE, "return scores / np.ptp(scores, axis=1, keepdims=True)"),
    },
    "engine:e:caveats": {"one text": fill(ENGINE, "return scores", CAVEATS="'Beware.'")},
    "engine:e:linear": {"signs": fill(ENGINE, "return np.sign(queries) @ G.T")},
    "engine:e:oracle": {"half": fill(ENGINE, "return scores / 2")},
    "engine:t:shape": {
        "transposed": fill(TASK_ENGINE, "return scores.T"),
        "nan": fill(TASK_ENGINE, "return scores * np.nan"),
        "integers": fill(TASK_ENGINE, "return (scores > 0).astype(int)"),
        "caveat": fill(TASK_ENGINE, "return scores", CAVEATS="['']"),
    },
    "engine:t:deterministic": {
        "remembers": fill(TASK_ENGINE, "Engine.calls += 1\nreturn scores * Engine.calls")
    },
    "engine:t:like": {
        "negated": fill(TASK_ENGINE, "return -scores"),
        "flat": fill(TASK_ENGINE, "return scores * 0.0"),
    },
    "engine:t:permutation": {"by place": fill(TASK_ENGINE, "return scores + np.arange(task.n)")},
    "engine:t:edges": {"one row": fill(TASK_ENGINE, "return scores / np.ptp(scores)")},
    "metric:m:range": {
        "percent": fill(METRIC, "return 100.0"),
        "nan": fill(METRIC, "return float('nan')"),
        "text": fill(METRIC, "return 'good'"),
        "moody": fill(METRIC, "Metric.calls += 1\nreturn 1.0 / Metric.calls"),
        "judges nothing": fill(METRIC, "raise ValueError('no')"),
    },
    "metric:m:best": {"unlike": fill(METRIC, "return float(prediction != reference)")},
    "metric:m:hostile": {
        "index": fill(METRIC, "_ = prediction[0]\nreturn float(prediction == reference)"),
        "silent": fill(METRIC, "if not reference: raise ValueError\nreturn 1.0"),
    },
    "metric:m:likelihood": {
        "loss": fill(METRIC, "return -prediction.mean()", NEEDS='needs="likelihood"'),
        "infinite": fill(METRIC, "return float('inf')", NEEDS='needs="likelihood"'),
    },
    "sink:s:inside": {
        "beside": fill(SINK, "path.write_text('x')\n(folder.parent / 'y').write_text('y')"),
        "cwd": fill(SINK, "path.write_text('x')\nPath('y').write_text('y')"),
        "silent": fill(SINK, "path.write_text('x')\n(folder / 'y').write_text('y')"),
        "nothing": fill(SINK, "pass"),
        "own path": fill(SINK, "path.write_text(str(folder))"),
    },
    "sink:s:bytes": {"counts": fill(SINK, "Sink.calls += 1\npath.write_text(str(Sink.calls))")},
    "sink:s:hostile": {
        "raw": fill(SINK, "path.write_bytes(chr(10).join(report.notes).encode())"),
        "tags": fill(SINK, "path.write_text(report.notes[-1] if len(report.notes) > 6 else '')"),
        "latin": fill(SINK, "path.write_bytes(b'\\xff')"),
        "prints": fill(SINK, "path.write_text('x')\nprint(*report.notes)"),
    },
    "clusterer:c:labels": {
        "short": fill(CLUSTERER, "labels = labels[1:]"),
        "floats": fill(CLUSTERER, "labels = labels + 0.5"),
        "below": fill(CLUSTERER, "labels = labels - 2"),
        "stranger": fill(CLUSTERER, "names = {7: 'seven'}"),
        "no method": fill(CLUSTERER, "method = ''"),
    },
    "clusterer:c:deterministic": {
        "counts": fill(CLUSTERER, "Clusterer.calls += 1\nlabels = labels + Clusterer.calls")
    },
    "clusterer:c:edges": {"needs two": fill(CLUSTERER, "_ = task.texts[1]")},
    "run_reader:r:modest": {
        "all": fill(READER, "return True"),
        "truthy": fill(READER, "return None"),
        "crash": fill(READER, "return bool(list(path.iterdir()))"),
    },
}


@pytest.fixture
def load(site):
    return lambda source: isolated_registry(p=site.module(source))


@pytest.mark.parametrize(
    ("promise", "case"), [(promise, case) for promise in BROKEN for case in BROKEN[promise]]
)
def test_a_broken_promise_is_found(load, promise, case):
    found = {p.id: p for p in promises("p", registry=load(BROKEN[promise][case]))}
    with pytest.raises(BrokenPromise) as caught:
        found[promise].keep()
    assert str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        check(),
        fill(ENGINE, "return scores"),
        fill(TASK_ENGINE, "_ = task.gradients().row_norms, task.tokens\nreturn scores"),
        fill(METRIC, "return float(prediction == reference)"),
        fill(METRIC, "return float(prediction.mean())", NEEDS='needs="likelihood"'),
        fill(SINK, "path.write_text('x')"),
        fill(CLUSTERER, "pass"),
        fill(READER, "return (path / 'run.json').is_file()"),
    ],
)
def test_honest_plugins_keep_them_all(load, source):
    found = promises("p", registry=load(source))
    assert len(found) > 4
    assert len({promise.id for promise in found}) == len(found)
    for promise in found:
        assert promise.says
        promise.keep()


def test_every_promise_can_be_broken(load):
    """Each promise of the kit has a plugin above that breaks it."""
    sources = [
        check(),
        fill(ENGINE, "return scores"),
        fill(TASK_ENGINE, "return scores"),
        fill(METRIC, "return 1.0"),
        fill(METRIC, "return 1.0", NEEDS='needs="likelihood"'),
        fill(SINK, "pass"),
        fill(CLUSTERER, "pass"),
        fill(READER, "pass"),
    ]
    kit = {promise.id for source in sources for promise in promises("p", registry=load(source))}
    general = {name for name in kit if name.endswith((":resolves", ":summary"))}
    assert kit - general == set(BROKEN) - {"engine:e:resolves", "engine:e:summary"}


def test_linearity_is_not_asked_of_those_that_do_not_claim_it(load):
    source = fill(ENGINE, "return np.sign(queries) @ G.T").replace(
        'oracle="%NAME%:oracle"', "linear=False"
    )
    found = promises("p", registry=load(source))
    assert not [p.id for p in found if p.id.endswith((":linear", ":oracle"))]
    for promise in found:
        promise.keep()


def test_ctrl_c_passes(load):
    found = {p.id: p for p in promises("p", registry=load(check("raise KeyboardInterrupt")))}
    with pytest.raises(KeyboardInterrupt):
        found["check:house.tiny:trips"].keep()


def test_an_unknown_name(load):
    with pytest.raises(UsageError, match="no plugin 'q'"):
        find_plugins(load(check()), "q")


def test_by_distribution(load):
    assert [record.name for record in find_plugins(load(check()), "Isolated")] == ["p"]
