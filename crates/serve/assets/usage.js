// What sessions used today, counted on first view.

import { ask } from "./connection.js";
import { element, setChildren, setText } from "./dom.js";
import { model, nameOf } from "./model.js";
import { tokens } from "./words.js";

const ROWS_MAX = 20;

/// Counts since midnight, and shows the result.
export async function loadUsage(place, by) {
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  try {
    show(place, by, await ask(`api/v1/usage?by=${by}&since=${encodeURIComponent(midnight.toISOString())}`));
  } catch (error) {
    setChildren(place, [element("p", { class: "failed" }, error.message)]);
  }
}

function show(place, by, { rows, total, without_price: withoutPrice }) {
  if (rows.length === 0) {
    setChildren(place, [element("p", { class: "none" }, "No tokens were counted today.")]);
    return;
  }
  const head = element("tr", {}, ...[by === "session" ? "Session" : "Model", "Input", "Cached", "Output", "Cost"].map((name) => element("th", { scope: "col" }, name)));
  const shown = rows.slice(0, ROWS_MAX).map((row) => line(nameIn(row, by), row));
  if (rows.length > ROWS_MAX) shown.push(element("tr", {}, element("td", { colSpan: 5, class: "none" }, `${rows.length - ROWS_MAX} more`)));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...shown), element("tfoot", {}, line("Total", total)));
  const notes = withoutPrice.length ? [element("p", { class: "warning" }, `No price is known of ${withoutPrice.join(", ")}: the cost is without them.`)] : [];
  setChildren(place, [table, ...notes]);
}

function line(name, row) {
  const counts = [row.input_tokens + row.cache_write_tokens, row.cached_input_tokens, row.output_tokens].map(tokens);
  const label = element("th", { scope: "row" });
  setText(label, name);
  return element("tr", {}, label, ...[...counts, cost(row)].map((text) => element("td", {}, text)));
}

/// The cost; a lower bound if a model has no price.
function cost({ cost, tokens_without_price: withoutPrice }) {
  if (!cost) return "no price";
  const amount = new Intl.NumberFormat("en", { style: "currency", currency: cost.currency }).format(cost.amount);
  return withoutPrice ? `${amount} and more` : amount;
}

function nameIn(row, by) {
  const name = row[by] ?? "unknown";
  if (by !== "session") return name;
  const session = [...model.sessions.values()].find(({ agent, session_id: id }) => `${agent}:${id}` === name);
  return session ? nameOf(session) : name;
}
