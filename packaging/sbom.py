"""Prints what the program is made of, as a CycloneDX document, from cargo's own metadata.

Usage: packaging/sbom.py TARGET
"""

import json
import subprocess
import sys


def metadata(target):
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def linked(found, root):
    """What is built into a package: its dependencies, but not those of its tests."""
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    edges, todo = {}, [root]
    while todo:
        package = todo.pop()
        if package not in edges:
            edges[package] = [
                dependency["pkg"]
                for dependency in nodes[package]["deps"]
                if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
            ]
            todo += edges[package]
    return edges


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package):
    return {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
        # Some write `MIT/Apache-2.0`, an old form of `OR`.
        "licenses": [{"expression": (package["license"] or "NOASSERTION").replace("/", " OR ")}],
    }


def main():
    found = metadata(sys.argv[1])
    packages = {package["id"]: package for package in found["packages"]}
    root = next(i for i in found["workspace_members"] if packages[i]["name"] == "whosup")
    edges = linked(found, root)
    program = component(packages[root]) | {"type": "application"}
    by_name = sorted((i for i in edges if i != root), key=lambda i: reference(packages[i]))
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program},
        "components": [component(packages[i]) for i in by_name],
        "dependencies": [
            {
                "ref": reference(packages[i]),
                "dependsOn": sorted(reference(packages[needed]) for needed in edges[i]),
            }
            for i in [root, *by_name]
        ],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


main()
