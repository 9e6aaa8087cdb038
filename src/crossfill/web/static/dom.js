// Elements in few words.

/** An element: properties whose names have a dash or are `role` become attributes, `vars` custom CSS properties. */
export function h(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

/** The same in SVG, where all properties are attributes. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export const byId = id => document.getElementById(id);

function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key === "vars") for (const [name, number] of Object.entries(value)) element.style.setProperty(name, number);
    else if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (key.includes("-") || ["role", "for", "lang", "dir", "scope", "colspan"].includes(key)) element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

/** Let the arrow keys move among elements of which one at a time can be reached by Tab. */
export function rove(elements, next) {
  const list = [...elements];
  for (const element of list) {
    element.addEventListener("keydown", event => {
      const target = next(event, element, list);
      if (!target) return;
      event.preventDefault();
      target.focus();
    });
    element.addEventListener("focus", () => {
      for (const other of list) other.tabIndex = other === element ? 0 : -1;
    });
  }
}

/** Bring an element into sight, from its top on, if not all of it is. */
export function reveal(element) {
  const { top, bottom } = element.getBoundingClientRect();
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (top < 0 || bottom > innerHeight) element.scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
}

/** Let a button be used or not; it keeps the focus, which disabled ones lose. */
export const enable = (button, yes) => button.setAttribute("aria-disabled", String(!yes));

export const percent = (value, digits = 0) => `${(100 * value).toFixed(digits)}\u00a0%`;
