"""Validates a JSON file against a JSON Schema: the tests' reader, which shares no code with the
writer.

    python3 fairnif_check_validate.py SCHEMA FILE

Exit 0: valid; 1: not, the reasons on stdout; 2: the schema itself is not sound, or something that
is needed is missing.
"""

import json
import sys


def undescribed(node, path=""):
    """Properties, and definitions, that say nothing of themselves."""
    if isinstance(node, dict):
        for group in ("properties", "$defs"):
            for name, value in node.get(group, {}).items():
                if "description" not in value and "$ref" not in value:
                    yield f"{path}/{group}/{name}"
        for name, value in node.items():
            yield from undescribed(value, f"{path}/{name}")


def pairs_once(pairs):
    """JSON readers take the last of two equal keys; a report must have none."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError(f"a key stands twice in {sorted(k for k, _ in pairs)}")
    return result


def main(schema_file, file):
    try:
        from jsonschema import Draft202012Validator, SchemaError
    except ImportError:
        print("the Python module jsonschema is missing (Debian: python3-jsonschema)")
        return 2
    with open(schema_file, encoding="utf-8") as f:
        schema = json.load(f, object_pairs_hook=pairs_once)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        print(f"the schema is not sound: {error.message}")
        return 2
    silent = list(undescribed(schema))
    if silent:
        print("without a description: " + ", ".join(silent))
        return 2
    try:
        with open(file, encoding="utf-8") as f:
            report = json.load(f, object_pairs_hook=pairs_once)
    except ValueError as error:
        print(f"no JSON: {error}")
        return 1
    if isinstance(report, dict) and next(iter(report), None) != "schema_version":
        print("schema_version is not the first key")
        return 1
    errors = list(Draft202012Validator(schema).iter_errors(report))
    for error in errors:
        print("/".join(str(p) for p in error.absolute_path) + ": " + error.message)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
