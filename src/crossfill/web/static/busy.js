// While the server is asked: programs are told at once, people after a moment, so that quick answers do not flicker.
import { byId } from "./dom.js";

const PATIENCE = 150; // milliseconds
let timer = null;

export function busy(told) {
  clearTimeout(timer);
  for (const id of ["tag", "taggings"]) byId(id).setAttribute("aria-busy", "true");
  timer = setTimeout(() => {
    byId("main").classList.add("waiting");
    byId("status").textContent = told;
  }, PATIENCE);
}

export function idle() {
  clearTimeout(timer);
  for (const id of ["tag", "taggings"]) byId(id).removeAttribute("aria-busy");
  byId("main").classList.remove("waiting");
}
