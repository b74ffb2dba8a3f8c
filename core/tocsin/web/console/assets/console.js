// Progressive enhancement of the console's pages.

/** The name of the browser's time zone, once it is known. */
let zone = "";
/** A time in UTC as the server writes it. */
const stamp = /\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z\b| UTC\b)/g;
/** Parts of a page in which the server writes sentences with times. */
const sentences = ".report, .notice, .reason, #coverage";
const verbatim = "time, pre, code, svg, textarea, script";

const parse = (utc) => new Date(utc.replace(" UTC", "Z").replace(" ", "T"));
const isTime = (utc) => !Number.isNaN(parse(utc).valueOf());
const format = (moment) => moment.toISOString().slice(0, 19).replace("T", " ");
const toUtc = (moment) => `${format(moment)} UTC`;

/** Return a time in the browser's time zone, in the server's form. */
const show = (moment) => format(new Date(moment - moment.getTimezoneOffset() * 60_000));

/** Show an element's time in the browser's time zone, with UTC on hover. */
function localizeTime(time) {
  const moment = new Date(time.dateTime);
  if (time.title || Number.isNaN(moment.valueOf())) return;
  time.title = time.textContent;
  time.textContent = show(moment);
}

/** Name the browser's time zone in the labels of fields and axes below `root`. */
function nameZone(root) {
  for (const label of root.querySelectorAll(".zone")) label.textContent = label.textContent.replace("UTC", zone);
}

/** Mark the times in the sentences below `root` as such. */
function markTimes(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent?.closest(sentences) && !parent.closest(verbatim)) found.push(walker.currentNode);
  }
  for (const text of found) {
    const times = [...text.data.matchAll(stamp)].filter(([utc]) => isTime(utc));
    for (const { 0: utc, index } of times.reverse()) {
      const rest = text.splitText(index);
      const time = document.createElement("time");
      time.dateTime = parse(utc).toISOString();
      time.textContent = utc;
      rest.data = rest.data.slice(utc.length);
      rest.before(time);
    }
  }
}

/** Show the axis of a timeline in the browser's time zone, with UTC on hover. */
function localizeAxis(timeline) {
  let before = "";
  for (const tick of timeline.querySelectorAll(".time[data-at]")) {
    const moment = new Date(tick.dataset.at);
    const [today, time] = show(moment).split(" ");
    tick.textContent = moment.getSeconds() ? time : time.slice(0, 5);
    tick.nextElementSibling.textContent = "begins" in tick.dataset || today !== before ? today : "";
    before = today;
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = toUtc(moment);
    tick.append(title);
  }
}

/** Show a field's time in the browser's time zone. Its attribute `value` stays in UTC, which is sent. */
function localizeField(field) {
  const moment = new Date(`${field.defaultValue}Z`);
  if (!Number.isNaN(moment.valueOf())) field.value = show(moment).replace(" ", "T");
  field.dataset.shown = field.value;
  field.title = readField(field);
  field.addEventListener("input", () => { field.title = readField(field); });
}

/** Return the time of a field in UTC, as the server reads and shows it. */
function readField(field) {
  if (field.value === field.dataset.shown) return field.defaultValue && `${field.defaultValue.replace("T", " ")} UTC`;
  const moment = new Date(field.value);
  return Number.isNaN(moment.valueOf()) ? "" : toUtc(moment);
}

document.addEventListener("formdata", (event) => {
  for (const field of event.target.querySelectorAll("input[data-utc]")) {
    event.formData.set(field.name, readField(field).replace(" UTC", "Z").replace(" ", "T"));
  }
});

/** Show all times below `root` in the browser's time zone, with UTC on hover. */
function localize(root) {
  markTimes(root);
  root.querySelectorAll("time[datetime]").forEach(localizeTime);
  root.querySelectorAll("svg.timeline").forEach(localizeAxis);
  root.querySelectorAll("input[data-utc]").forEach(localizeField);
  const both = (text) => text.replace(stamp, (utc) => isTime(utc) ? `${show(parse(utc))} (${utc})` : utc);
  for (const label of root.querySelectorAll("svg :is(title, desc)")) {
    if (!label.closest("text")) label.textContent = both(label.textContent);
  }
  for (const drawing of root.querySelectorAll("svg[aria-label]")) {
    drawing.setAttribute("aria-label", both(drawing.getAttribute("aria-label")));
  }
  if (zone) nameZone(root);
}

/** Ask for confirmation before an action that cannot be undone. */
document.addEventListener("submit", (event) => {
  const sure = event.target.dataset.sure;
  if (sure && !window.confirm(sure)) event.preventDefault();
});

/** Submit each form once, even on a double click; reload a page that comes from the back/forward cache. */
const sent = new WeakSet();
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post" || event.defaultPrevented) return;
  // A test of settings opens a tab, and its form can still be saved
  if (event.submitter?.formTarget === "_blank") return;
  if (sent.has(event.target)) event.preventDefault();
  sent.add(event.target);
});
window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });

/** Copy the text of the element that a button names. */
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
});

/** While a button is pressed, it must not be replaced. */
let isPressing = false;
document.addEventListener("pointerdown", () => { isPressing = true; });
for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, () => setTimeout(() => { isPressing = false; }));
}

/** Return whether the user has changed a field. */
function isEdited(field) {
  if (field.type === "checkbox") return field.checked !== field.defaultChecked;
  if (!field.options) return field.value !== (field.dataset.shown ?? field.defaultValue);
  const initial = [...field.options].find((option) => option.defaultSelected) ?? field.options[0];
  return !initial.selected;
}

/** Return whether a page has input that is not submitted. */
export const hasInput = (main) => [...main.querySelectorAll("input:not(.select-all), textarea, select")].some(isEdited);

/** Return whether the user is doing something that new content would interrupt. */
function isBusy(main) {
  const active = document.activeElement;
  const isWriting = main.contains(active) && active.matches("input, textarea, select") || hasInput(main);
  // These pages keep everything where it is while rows are selected, or their top is out of sight
  const isAtWork = main.querySelector(".worklist [type=checkbox]:checked")
    || main.querySelector(".worklist, .workbench") && window.scrollY > 200;
  return isPressing || isWriting || isAtWork || (window.getSelection()?.toString() ?? "") !== "";
}

/** Return a key that identifies an element before and after the page is redrawn. */
const likeness = (element) => [
  element.tagName, element.closest("[id]").id, element.getAttribute("href"), element.form?.action,
  element.getAttribute("aria-label"), element.textContent,
].join(" ");

/** Replace the content of a page, and keep open details and the focus. */
function replace(main, html) {
  const open = [...main.querySelectorAll("details[id][open]")].map((element) => element.id);
  const focused = main.contains(document.activeElement) ? likeness(document.activeElement) : null;
  main.innerHTML = html;
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  localize(main);
  if (focused === null) return;
  const all = [...main.querySelectorAll("a, button, summary, [tabindex]")];
  all.find((element) => likeness(element) === focused)?.focus({ preventScroll: true });
}

/** Return whether a page already shows the content that was sent. */
function isThere(main, html) {
  const sent = document.createElement("template");
  sent.innerHTML = html;
  localize(sent.content);
  return sent.innerHTML.trim() === main.innerHTML.trim();
}

/**
 * Keep a visible page up to date by server-sent events. Browsers allow six connections for each
 * host, so pages in the background disconnect.
 */
function follow(main) {
  const [stale, changed] = document.querySelectorAll(".stale");
  let source = null;
  let waiting = null;
  let latest = null;
  let drawn = null;
  let again = null;
  const stop = () => { clearTimeout(again); source?.close(); source = null; };
  // Details that the user opened are no change of the page
  const isShown = () => {
    if (isThere(main, latest)) drawn = latest;
    return latest === drawn;
  };
  const show = () => {
    const isHeld = isBusy(main);
    waiting = isHeld ? setTimeout(show, 1000) : null;
    if (changed) changed.hidden = !isHeld || isShown();
    if (isHeld) return;
    if (!isShown()) replace(main, latest);
    drawn = latest;
    // A settled page does not change again
    if (!main.querySelector("[data-settled]")) return;
    stop();
    document.removeEventListener("visibilitychange", look);
  };
  const start = () => {
    stop();
    source = new EventSource(main.dataset.live);
    source.addEventListener("shown", (event) => {
      stale.hidden = true;
      latest = JSON.parse(event.data);
      if (waiting === null) show();
    });
    source.addEventListener("gone", () => {
      stop();
      if (changed && hasInput(main)) changed.hidden = false; else window.location.reload();
    });
    source.addEventListener("error", () => {
      stale.hidden = false;
      // A browser reconnects by itself only if it was connected before
      if (source?.readyState === EventSource.CLOSED) again = setTimeout(start, 15_000);
    });
  };
  const look = () => { if (document.hidden) stop(); else start(); };
  document.addEventListener("visibilitychange", look);
  look();
}

const menu = document.querySelector("details.menu");
if (menu && window.matchMedia("(max-width: 60rem)").matches) menu.open = false;
menu?.classList.add("ready");

localize(document);
// After the first paint: the first use of `Intl` takes longer than the rest of this script
requestAnimationFrame(() => setTimeout(() => {
  zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  nameZone(document);
  const clock = document.querySelector(".clock");
  if (!clock || zone === "UTC") return;
  clock.textContent = `Times are in your time zone (${zone}). Hover over a time to see it in UTC.`;
}));
const main = document.getElementById("main");
if (main?.dataset.live) follow(main);

/** Remove the result of an action from the address, so that no reload, bookmark or shared link repeats it. */
function forgetResult() {
  const address = new URL(window.location);
  if (!address.searchParams.has("message")) return;
  for (const name of ["message", "updated", "unchanged", "retried"]) address.searchParams.delete(name);
  history.replaceState(null, "", address);
}
forgetResult();

/** Fill in the code of a link, and remove it from the address. */
function fillCode() {
  const field = document.querySelector('form[action^="/sign-in/"] input[name="code"]');
  if (!field || !window.location.hash) return;
  field.value = window.location.hash.slice(1);
  history.replaceState(null, "", window.location.pathname);
  field.form.querySelector("button").focus();
}
fillCode();
window.addEventListener("hashchange", fillCode);

/** "/" moves the focus to the search field. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select")) return;
  event.preventDefault();
  document.getElementById("find")?.focus();
});

/** Select or clear all incidents of the list. */
document.addEventListener("change", (event) => {
  if (!event.target.matches(".select-all")) return;
  const boxes = event.target.closest("table").tBodies[0].querySelectorAll("[type=checkbox]");
  for (const box of boxes) box.checked = event.target.checked;
});

/** Scroll a diagram that is wider than the page to its center. */
for (const scroller of document.querySelectorAll(".scroller")) {
  const middle = scroller.querySelector(".middle")?.getBoundingClientRect();
  const frame = scroller.getBoundingClientRect();
  if (middle) scroller.scrollLeft += middle.x + middle.width / 2 - frame.x - frame.width / 2;
}
