// Progressive enhancement of the console's pages.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const parts = { month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" };
const thisYear = new Intl.DateTimeFormat(undefined, parts);
const anyYear = new Intl.DateTimeFormat(undefined, { year: "numeric", ...parts });

/** Show times below `root` in the browser's time zone, with UTC on hover. */
function localize(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (time.title || Number.isNaN(moment.valueOf())) continue;
    time.title = `${time.textContent} (shown in ${zone})`;
    const shown = moment.getFullYear() === new Date().getFullYear() ? thisYear : anyYear;
    time.textContent = shown.format(moment).replace(/ (?=[AP]M$)/, "\u00a0");
  }
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

/** Return whether the user is doing something that new content would interrupt. */
function isBusy(main) {
  const active = document.activeElement;
  const isWriting = main.contains(active) && active.matches("input, textarea, select");
  return isPressing || isWriting || (window.getSelection()?.toString() ?? "") !== "";
}

/** Return a key that identifies an element before and after the page is redrawn. */
const likeness = (element) => `${element.tagName} ${element.id} ${element.getAttribute("href")} ${element.textContent}`;

/** Replace the content of a page, and keep open details and the focus. */
function replace(main, html) {
  const open = [...main.querySelectorAll("details[id][open]")].map((element) => element.id);
  const focused = main.contains(document.activeElement) ? document.activeElement : null;
  main.innerHTML = html;
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  localize(main);
  if (!focused) return;
  const all = [...main.querySelectorAll("a, button, summary, [tabindex]")];
  all.find((element) => likeness(element) === likeness(focused))?.focus({ preventScroll: true });
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
  const stale = document.querySelector(".stale");
  let source = null;
  let waiting = null;
  let latest = null;
  let again = null;
  const stop = () => { clearTimeout(again); source?.close(); source = null; };
  const show = () => {
    if (isBusy(main)) { waiting = setTimeout(show, 1000); return; }
    waiting = null;
    if (!isThere(main, latest)) replace(main, latest);
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
    source.addEventListener("gone", () => { stop(); window.location.reload(); });
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
const main = document.getElementById("main");
if (main?.dataset.live) follow(main);

/** "/" moves the focus to the search field. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select")) return;
  event.preventDefault();
  document.getElementById("find")?.focus();
});

/** Scroll a diagram that is wider than the page to its center. */
for (const scroller of document.querySelectorAll(".scroller")) {
  const middle = scroller.querySelector(".middle")?.getBoundingClientRect();
  const frame = scroller.getBoundingClientRect();
  if (middle) scroller.scrollLeft += middle.x + middle.width / 2 - frame.x - frame.width / 2;
}
