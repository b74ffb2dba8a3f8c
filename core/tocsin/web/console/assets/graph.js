// Moving the nodes of a neighborhood, and hiding what was first seen later.

const svg = document.querySelector("svg.neighbors");
const tools = document.querySelector(".graph-tools");
const CLICK = 4; // pixels that a pointer may move in a click
const TICKS = 300;
const MARGIN = 16;
const WIDER = 3; // boxes are wider than high, so that the layout is too

/** Return the diagram as nodes and links that d3-force can move. */
function readDiagram() {
  const nodes = [...svg.querySelectorAll("g.node")].map((element) => {
    const { e: x, f: y } = element.transform.baseVal.consolidate().matrix;
    const box = element.querySelector(":scope > rect:last-of-type");
    const [width, height] = [box.width.baseVal.value, box.height.baseVal.value];
    return { element, width, height, x: x + width / 2, y: y + height / 2, isMiddle: element.matches(".middle") };
  });
  const labels = new Map([...svg.querySelectorAll(".words text")].map((text) => [text.dataset.line, text]));
  const links = [...svg.querySelectorAll(".lines path")].map((path, place) => ({
    path,
    label: labels.get(String(place)),
    source: nodes[path.dataset.source],
    target: nodes[path.dataset.target],
    firstSeen: path.dataset.firstSeen,
  }));
  return { nodes, links };
}

/** Return the point at which the line from the center of a box to a point leaves the box. */
function findBorder(box, to) {
  const [across, down] = [to.x - box.x, to.y - box.y];
  const part = Math.min(box.width / 2 / (Math.abs(across) || 1e-9), box.height / 2 / (Math.abs(down) || 1e-9), 1);
  return { x: box.x + across * part, y: box.y + down * part };
}

function drawLink(link) {
  const [begin, end] = [findBorder(link.source, link.target), findBorder(link.target, link.source)];
  link.path.setAttribute("d", `M${begin.x},${begin.y}L${end.x},${end.y}`);
  link.label?.setAttribute("x", (begin.x + end.x) / 2);
  link.label?.setAttribute("y", (begin.y + end.y) / 2 + 3);
}

function placeNode(node) {
  node.element.setAttribute("transform", `translate(${node.x - node.width / 2} ${node.y - node.height / 2})`);
}

const diagram = readDiagram();
const initial = {
  view: svg.getAttribute("viewBox").split(" "),
  nodes: diagram.nodes.map(({ element, x, y }) => ({ x, y, transform: element.getAttribute("transform") })),
  links: diagram.links.map(({ path, label }) => [path.getAttribute("d"), label?.getAttribute("x"), label?.getAttribute("y")]),
};

function drawAll() {
  diagram.nodes.forEach(placeNode);
  diagram.links.forEach(drawLink);
}

function resize(left, top, width, height) {
  svg.setAttribute("viewBox", `${left} ${top} ${width} ${height}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
}

/** Let the whole diagram fit the drawing. */
function fitView() {
  const left = Math.min(...diagram.nodes.map((node) => node.x - node.width / 2)) - MARGIN;
  const top = Math.min(...diagram.nodes.map((node) => node.y - node.height / 2)) - MARGIN;
  const right = Math.max(...diagram.nodes.map((node) => node.x + node.width / 2)) + MARGIN;
  const bottom = Math.max(...diagram.nodes.map((node) => node.y + node.height / 2)) + MARGIN;
  resize(left, top, right - left, bottom - top);
}

/** Arrange the nodes by their relations. */
function arrange() {
  const { d3 } = globalThis;
  const points = diagram.nodes.map(({ x, y }) => ({ x: x / WIDER, y }));
  const places = new Map(diagram.nodes.map((node, place) => [node, place]));
  const links = diagram.links.map((link) => ({ source: places.get(link.source), target: places.get(link.target) }));
  d3.forceSimulation(points)
    .force("link", d3.forceLink(links).distance(90))
    .force("charge", d3.forceManyBody().strength(-250))
    .force("collide", d3.forceCollide(42))
    .force("x", d3.forceX().strength(0.05))
    .force("y", d3.forceY().strength(0.08))
    .stop()
    .tick(TICKS);
  points.forEach(({ x, y }, place) => Object.assign(diagram.nodes[place], { x: x * WIDER, y }));
  drawAll();
  fitView();
}

function restore() {
  diagram.nodes.forEach((node, place) => {
    const { x, y, transform } = initial.nodes[place];
    Object.assign(node, { x, y });
    node.element.setAttribute("transform", transform);
  });
  diagram.links.forEach(({ path, label }, place) => {
    const [d, x, y] = initial.links[place];
    path.setAttribute("d", d);
    label?.setAttribute("x", x);
    label?.setAttribute("y", y);
  });
  resize(...initial.view);
}

/** Return the position of a pointer in units of the diagram. */
function locate(event) {
  return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
}

function enableDragging(node) {
  const { element } = node;
  let begun;
  let isMoved = false;
  element.addEventListener("dragstart", (event) => event.preventDefault()); // of the link
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return; // a touch scrolls
    const point = locate(event);
    begun = { id: event.pointerId, left: event.clientX, top: event.clientY, x: node.x - point.x, y: node.y - point.y };
    isMoved = false;
  });
  element.addEventListener("pointermove", (event) => {
    if (begun?.id !== event.pointerId) return;
    isMoved ||= Math.hypot(event.clientX - begun.left, event.clientY - begun.top) > CLICK;
    if (!isMoved) return;
    element.setPointerCapture(event.pointerId);
    const point = locate(event);
    node.x = point.x + begun.x;
    node.y = point.y + begun.y;
    placeNode(node);
    diagram.links.filter(({ source, target }) => source === node || target === node).forEach(drawLink);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    element.addEventListener(end, () => {
      begun = undefined;
    });
  }
  element.parentElement.addEventListener("click", (event) => {
    if (isMoved && event.detail) event.preventDefault(); // the end of a movement, not a click
    isMoved = false;
  });
}

/** Hide the relations first seen after a time, and the nodes that they alone lead to. */
function showUntil(time) {
  const shown = new Set(diagram.nodes.filter((node) => node.isMiddle));
  for (const { path, label, source, target, firstSeen } of diagram.links) {
    const isLater = firstSeen > time;
    path.classList.toggle("later", isLater);
    label?.classList.toggle("later", isLater);
    if (!isLater) shown.add(source).add(target);
  }
  const joined = new Set(diagram.links.flatMap(({ source, target }) => [source, target]));
  for (const node of diagram.nodes) {
    const box = node.element.closest("a") ?? node.element; // a link to nothing visible would still take the focus
    box.classList.toggle("later", joined.has(node) && !shown.has(node));
  }
}

function enableSlider(slider, output) {
  const times = [...new Set(diagram.links.map(({ firstSeen }) => firstSeen))].sort();
  if (times.length < 2) return;
  slider.max = times.length - 1;
  slider.value = slider.max;
  const update = () => {
    const time = times[slider.value];
    output.textContent = slider.value === slider.max ? "all" : new Date(time).toLocaleString();
    slider.setAttribute("aria-valuetext", output.textContent);
    showUntil(time);
  };
  slider.addEventListener("input", update);
  update();
  slider.closest("label").hidden = false;
}

if (tools) {
  diagram.nodes.forEach(enableDragging);
  tools.querySelector("[data-do=arrange]").addEventListener("click", arrange);
  tools.querySelector("[data-do=restore]").addEventListener("click", restore);
  enableSlider(tools.querySelector("input"), tools.querySelector("output"));
  tools.hidden = false;
}
