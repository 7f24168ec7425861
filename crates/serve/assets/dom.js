// Makes and updates elements. Text is only set as text: nothing from an agent is parsed as HTML or
// used as an address.

/// Makes an element. `fields` are its properties, attributes with `aria-`, `data-` or `role`,
/// and listeners with `on`.
export function element(name, fields = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (key in made && !key.includes("-")) made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

/// Makes an SVG element.
export function drawn(name, fields = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(fields)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/// Sets a text only if it differs, so that a selection stays.
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/// Sets texts with a separator. No text changes the direction of those after it.
export function setTexts(target, texts, separator) {
  const shown = JSON.stringify(texts);
  if (target.dataset.texts === shown) return;
  target.dataset.texts = shown;
  target.replaceChildren(...texts.flatMap((text, at) => [at ? separator : "", element("bdi", {}, text)]));
}

export function setAttribute(target, name, value) {
  if (value === null || value === undefined) target.removeAttribute(name);
  else if (target.getAttribute(name) !== value) target.setAttribute(name, value);
}

/// Puts children in order. Existing elements stay in the document, so that focus, selection and
/// scroll position stay too.
export function setChildren(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const child of children) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}

/// A button that copies a text and confirms it.
export function copyButton(label, text, fields = {}) {
  const button = element("button", { type: "button", class: "copy", ...fields }, label);
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    await copy(typeof text === "function" ? text() : text, button, label);
  });
  return button;
}

async function copy(text, button, label) {
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    said = copyBySelection(text) ? "Copied" : "Cannot copy here";
  }
  announce(`${said}: ${text}`);
  button.textContent = said;
  button.dataset.said = "";
  setTimeout(() => {
    delete button.dataset.said;
    button.textContent = label || button.dataset.label;
  }, 1500);
}

/// For pages without access to the clipboard (no TLS, not this machine).
function copyBySelection(text) {
  const area = element("textarea", { class: "hidden", value: text });
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

/// Announces a message to screen readers.
export function announce(text) {
  setText(document.getElementById("announce"), text);
}
