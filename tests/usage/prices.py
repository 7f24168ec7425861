#!/usr/bin/env python3
"""Make crates/core/src/sources/usage/prices.toml from the table of prices in litellm.

    pip download litellm --no-deps
    python3 tests/usage/prices.py litellm-*.whl > crates/core/src/sources/usage/prices.toml

The table is `model_prices_and_context_window` as the wheel has it. Only models that agents
talk to are taken, each under the name that agents write; of two providers of one name the
first below counts.
"""

import datetime
import json
import re
import sys
import zipfile

TABLE = "litellm/model_prices_and_context_window_backup.json"
PROVIDERS = ["anthropic", "openai", "gemini", "xai", "moonshot", "mistral", "deepseek", "dashscope",
             "zai", "minimax"]
MODES = {"chat", "responses", "completion"}
# What prices.toml calls the kinds, and how litellm begins their names.
KINDS = [("input", "input_cost_per_token"), ("cached_input", "cache_read_input_token_cost"),
         ("cache_write", "cache_creation_input_token_cost"),
         ("cache_write_1h", "cache_creation_input_token_cost_above_1hr"),
         ("output", "output_cost_per_token")]


def per_million(amount):
    """A price per token as one per million tokens, without what floats add."""
    return float(f"{amount * 1e6:.6g}")


def prices(fields, suffix=""):
    found = {}
    for kind, name in KINDS:
        amount = fields.get(name + suffix)
        if isinstance(amount, (int, float)):
            found[kind] = per_million(amount)
    return found


def tiers(fields):
    """Prices of requests above so many thousand tokens of input."""
    found = {}
    for name in fields:
        tier = re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", name)
        if tier:
            found[int(tier[1])] = prices(fields, f"_above_{tier[1]}k_tokens")
    for tier in fields.get("tiered_pricing", []):
        start = tier.get("range", [0])[0]
        if start > 0:
            found[int(start) // 1000] = prices(tier)
    return found


def of_model(fields):
    base = prices(fields)
    for tier in fields.get("tiered_pricing", []):
        if tier.get("range", [1])[0] == 0:
            base = prices(tier)
    return base, tiers(fields)


def table(models):
    found = {}
    for provider in PROVIDERS:
        for name, fields in sorted(models.items()):
            if fields.get("litellm_provider") != provider or fields.get("mode") not in MODES:
                continue
            base, above = of_model(fields)
            short = name.removeprefix(provider + "/")
            # A model for nothing is mostly one whose price is not known.
            if short in found or "/" in short or short.startswith("ft:"):
                continue
            if base.get("input", 0) > 0 and base.get("output", 0) > 0:
                found[short] = (base, above)
    return found


def main(wheel):
    version = re.search(r"litellm-([^-]+)-", wheel)[1]
    with zipfile.ZipFile(wheel) as archive:
        models = json.loads(archive.read(TABLE))
    found = table(models)
    print("# Prices in USD per million tokens, by model. Made by tests/usage/prices.py; do not edit.")
    print(f'source = "litellm {version} (PyPI), model_prices_and_context_window"')
    # The wheel has no date of its own: this is when the table was taken from it.
    print(f'date = "{datetime.date.today().isoformat()}"')
    for name, (base, above) in sorted(found.items()):
        print(f"\n[model.{json.dumps(name)}]")
        for kind, amount in base.items():
            print(f"{kind} = {amount}")
        for tier, amounts in sorted(above.items()):
            if amounts:
                print(f"[model.{json.dumps(name)}.above.{tier}]")
                for kind, amount in amounts.items():
                    print(f"{kind} = {amount}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
