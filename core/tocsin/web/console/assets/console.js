// What pages do beyond what they show without scripts.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const parts = { month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" };
const thisYear = new Intl.DateTimeFormat(undefined, parts);
const anyYear = new Intl.DateTimeFormat(undefined, { year: "numeric", ...parts });

/** Put the moments below `root` into the zone of whoever looks, with UTC on hover. */
function localize(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (time.title || Number.isNaN(moment.valueOf())) continue;
    time.title = `${time.textContent} (shown in ${zone})`;
    const shown = moment.getFullYear() === new Date().getFullYear() ? thisYear : anyYear;
    time.textContent = shown.format(moment).replace(/ (?=[AP]M$)/, "\u00a0");
  }
}

/** Ask before a form does what cannot be taken back. */
document.addEventListener("submit", (event) => {
  const sure = event.target.dataset.sure;
  if (sure && !window.confirm(sure)) event.preventDefault();
});

/** What a double click would send twice is sent once; a page that was kept is brought anew. */
const sent = new WeakSet();
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post" || event.defaultPrevented) return;
  if (sent.has(event.target)) event.preventDefault();
  sent.add(event.target);
});
window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });

/** Copy what stands in the element that a button names. */
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
});

/** Between pressing a button and what follows, the button must not be replaced. */
let isPressing = false;
document.addEventListener("pointerdown", () => { isPressing = true; });
for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, () => setTimeout(() => { isPressing = false; }));
}

/** Whether somebody is about to do something that new content would take from them. */
function isBusy(main) {
  const active = document.activeElement;
  const isWriting = main.contains(active) && active.matches("input, textarea, select");
  return isPressing || isWriting || (window.getSelection()?.toString() ?? "") !== "";
}

/** What tells an element from the others of a page, before and after that is drawn anew. */
const likeness = (it) => `${it.tagName} ${it.id} ${it.getAttribute("href")} ${it.textContent}`;

/** Replace what a page shows; what was unfolded and what had the focus stay so. */
function replace(main, html) {
  const open = [...main.querySelectorAll("details[id][open]")].map((it) => it.id);
  const focused = main.contains(document.activeElement) ? document.activeElement : null;
  main.innerHTML = html;
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  localize(main);
  if (!focused) return;
  const all = [...main.querySelectorAll("a, button, summary, [tabindex]")];
  all.find((it) => likeness(it) === likeness(focused))?.focus({ preventScroll: true });
}

/** Whether a page shows what was sent already. */
function isThere(main, html) {
  const sent = document.createElement("template");
  sent.innerHTML = html;
  localize(sent.content);
  return sent.innerHTML.trim() === main.innerHTML.trim();
}

/**
 * Keep a page up to date by server-sent events, while it is looked at: a browser holds six
 * connections to a host at most, and pages in the background would use them up.
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
    // What has come to its end changes no more
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
      // Of itself a browser asks again only where it was answered before
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

/** "/" goes to the search, as elsewhere. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select")) return;
  event.preventDefault();
  document.getElementById("find")?.focus();
});

/** A drawing that is wider than the page begins with what stands in its middle. */
for (const scroller of document.querySelectorAll(".scroller")) {
  const middle = scroller.querySelector(".middle")?.getBoundingClientRect();
  const frame = scroller.getBoundingClientRect();
  if (middle) scroller.scrollLeft += middle.x + middle.width / 2 - frame.x - frame.width / 2;
}
