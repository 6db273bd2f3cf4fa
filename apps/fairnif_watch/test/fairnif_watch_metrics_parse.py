"""Reads metrics with Prometheus's own parser: name, type and labels of each sample, one a line.

Fails where the text is not of the format 0.0.4, a family comes twice, or a series does.
"""
import sys

from prometheus_client.parser import text_string_to_metric_families

families, series = set(), set()
with open(sys.argv[1], encoding="utf-8", newline="") as file:
    for family in text_string_to_metric_families(file.read()):
        assert family.name not in families, family.name
        assert family.documentation, family.name
        assert family.type in ("gauge", "counter", "histogram"), family
        families.add(family.name)
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in series, key
            series.add(key)
            print(family.type, sample.name, sample.labels.get("function", "").encode("unicode_escape").decode(), sample.value, sep="\t")
