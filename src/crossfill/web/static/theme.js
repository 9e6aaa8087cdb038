// Before the page is drawn: the theme that was chosen last, or the system's.
"use strict";
const THEMES = ["auto", "light", "dark"];

function chosenTheme() {
  try {
    const kept = localStorage.getItem("theme");
    return THEMES.includes(kept) ? kept : "auto";
  } catch {
    return "auto";
  }
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  if (button) button.textContent = `Theme: ${theme}`;
}

applyTheme(chosenTheme());
document.addEventListener("DOMContentLoaded", () => {
  applyTheme(chosenTheme());
  document.getElementById("theme")?.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
    try {
      localStorage.setItem("theme", next);
    } catch { /* it holds for this visit */ }
    applyTheme(next);
  });
});
