// Keyboard shortcuts of the incident list.

const listRows = () => [...document.querySelectorAll(".worklist tbody tr")];
const link = (row) => row?.querySelector("th a");

/** Remember in this tab the incidents of the list, and which of them was used last. */
function remember({ target }) {
  const row = target.closest(".worklist tbody tr");
  if (!row) return;
  const list = { paths: listRows().map((each) => link(each).pathname), at: link(row).pathname };
  sessionStorage.setItem("list", JSON.stringify(list));
}
document.addEventListener("focusin", remember);
document.addEventListener("click", remember);

/** Return the incidents after the one that was used last, or those before it, nearest first. */
function listNext(isForward) {
  const { paths, at } = JSON.parse(sessionStorage.getItem("list")) ?? { paths: [], at: "" };
  const index = paths.indexOf(at);
  return isForward ? paths.slice(index + 1) : paths.slice(0, Math.max(index, 0)).reverse();
}

/** Move to the next or previous row. After a triage, continue from the row that was used last. */
function move(isForward) {
  const rows = listRows();
  const index = rows.findIndex((row) => row.contains(document.activeElement));
  const isResumed = document.activeElement.matches(".notice");
  const next = isResumed && listNext(isForward).map((path) => rows.find((row) => link(row).pathname === path)).find(Boolean);
  link(next || rows[index < 0 ? 0 : index + (isForward ? 1 : -1)])?.focus();
}

const focus = (name) => document.querySelector(`.selection [name=${name}]`)?.focus();
const keys = {
  j: () => move(true),
  k: () => move(false),
  x: () => listRows().find((row) => row.contains(document.activeElement))?.querySelector("[type=checkbox]")?.click(),
  a: () => focus("assignee"),
  e: () => focus("disposition"),
  "?": () => document.querySelector("details.keys")?.toggleAttribute("open"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select")) return;
  event.preventDefault();
  keys[event.key]();
});

/** Escape closes the list of keys, and leads from the fields back to the selected incident. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  document.querySelector("details.keys")?.removeAttribute("open");
  if (event.target.closest(".selection")) document.querySelector(".worklist tr:has(:checked) th a")?.focus();
});
