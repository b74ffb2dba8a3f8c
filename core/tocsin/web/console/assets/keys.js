// Keyboard shortcuts of the incident list and of the pages of its incidents.

/** The path of the incident that the page shows, undefined on the list. */
const incident = window.location.pathname.match(/^\/incidents\/\d+/)?.[0];

const listRows = () => [...document.querySelectorAll(".worklist tbody tr")];
const link = (row) => row?.querySelector("th a");

/** Return the incidents of the list that was used last in this tab, and which of them was. */
const recall = () => JSON.parse(sessionStorage.getItem("list")) ?? { paths: [], at: "" };
const remember = (paths, at) => sessionStorage.setItem("list", JSON.stringify({ paths, at }));

function rememberRow({ target }) {
  const row = target.closest(".worklist tbody tr");
  if (row) remember(listRows().map((each) => link(each).pathname), link(row).pathname);
}
document.addEventListener("focusin", rememberRow);
document.addEventListener("click", rememberRow);
if (recall().paths.includes(incident)) remember(recall().paths, incident);

/** Return the incidents after the one that was used last, or those before it, nearest first. */
function listNext(isForward) {
  const { paths, at } = recall();
  const index = paths.indexOf(at);
  return isForward ? paths.slice(index + 1) : paths.slice(0, Math.max(index, 0)).reverse();
}

const findRow = (rows) => rows.findIndex((row) => row.contains(document.activeElement));

/** Move to the next or previous row. After a triage, continue from the row that was used last. */
function move(isForward) {
  const rows = listRows();
  const index = findRow(rows);
  const isResumed = document.activeElement.matches(".notice");
  const next = isResumed && listNext(isForward).map((path) => rows.find((row) => link(row).pathname === path)).find(Boolean);
  link(next || rows[index < 0 ? 0 : index + (isForward ? 1 : -1)])?.focus();
}

async function open(isForward) {
  const [path] = listNext(isForward);
  // The address with its version, from which the page has loaded this module
  const { hasInput } = await import(document.querySelector('script[src*="/console.js"]').src);
  const isLosing = hasInput(document.getElementById("main"));
  if (!path || isLosing && !window.confirm("Discard the input that you have not submitted?")) return;
  window.location.assign(path);
}

function select() {
  const rows = listRows();
  rows[findRow(rows)]?.querySelector("[type=checkbox]")?.click();
}

/** Acknowledge the incident, or the selected rows, or the row that has the focus if none is selected. */
function acknowledge() {
  const isSelected = () => document.querySelector(".worklist tbody :checked");
  if (!incident && !isSelected()) select();
  const button = incident ? "#triage form:has([name=acknowledged][value=true]) button" : ".selection [name=acknowledged]";
  if (incident || isSelected()) document.querySelector(button)?.click();
}

const focus = (name) => document.querySelector(`:is(.selection, #triage) [name=${name}]:not([type=hidden])`)?.focus();
const keys = {
  j: () => incident ? open(true) : move(true),
  k: () => incident ? open(false) : move(false),
  x: select,
  y: acknowledge,
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

/** Escape closes the list of keys, and leads out of the fields: in the list, to the selected incident. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  document.querySelector("details.keys")?.removeAttribute("open");
  if (event.target.closest(".selection")) document.querySelector(".worklist tr:has(:checked) th a")?.focus();
  if (event.target.closest("#triage")) event.target.blur();
});
