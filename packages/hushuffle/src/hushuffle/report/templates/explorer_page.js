// The page: sliders, sentences, charts and the download, all drawn anew when a slider moves.
const KEYS = Object.keys(data.axes);
const COLORS = ["#0072B2", "#D55E00", "#009E73"], DASHES = ["", "7 3", "2 2"];
const SVG = "http://www.w3.org/2000/svg", WIDE = 390, HIGH = 250;
const READABLE = 1000; // a larger factor of odds is words
const ROOM = { left: 64, right: 10, top: 26, bottom: 42 };
const places = Object.fromEntries(KEYS.map(key => [key, data.axes[key].start]));
const byId = id => document.getElementById(id);
const label = key => data.axes[key].labels[places[key]];

// The kind of a figure; between the points of the grid its bracket is wider than a computed one.
const named = found => NAMES[found.kind] + (found.computed ? "" : ", between grid points");

function show(row, found, sentence, unit) {
  const cells = byId(`row-${row}`);
  if (found === null) return;
  cells.querySelector(".sentence").textContent = sentence;
  cells.querySelector(".figure").textContent = written(found, unit);
  const kind = cells.querySelector(".kind");
  kind.className = `kind ${found.kind}`;
  kind.textContent = named(found);
}

function often(found, worst) {
  if (found.kind === "exact") return (worst ? "up to " : "") + percent(found.upper);
  return `at most ${percent(found.upper, true)}`;
}

function sentenceOf(key, found, at) {
  const factor = () => number(Math.exp(found.upper), true);
  const large = Math.exp(found.upper) > READABLE;
  return data.adversaries[key].sentence
    .replace("by at most a factor {factor}", words => (large ? "so much that answers are practically readable" : words))
    .replace("{factor}", factor)
    .replace("{often}", () => often(found, key === "linker"))
    .replace("{blind}", () => percent(1 / at.k))
    .replace("{delta}", () => label("delta"));
}

function summary(found, at) {
  const who = data.reports === 1 ? "people" : "reports";
  const hidden = at.hidden === at.n ? "" : ` A person hides among ${grouped(String(at.hidden))} of them.`;
  const central = found.colluders || found.central;
  const figure = central
    ? `Central epsilon ${written(central, "nats")} (${named(central)}) at delta = ${label("delta")}`
    : "No central figure";
  const errors = found.worst === null ? "" : `; standard error of a share ${number(found.worst.upper)}`;
  return `${grouped(String(at.n))} ${who}, ${grouped(String(at.k))} values, local epsilon ${label("epsilon")}.${hidden} ${figure}${errors}.`;
}

function table() {
  const at = meant(places), found = figures(places);
  byId("summary").textContent = summary(found, at);
  for (const key of Object.keys(data.adversaries)) {
    if (!found[key]) continue;
    show(key, found[key], sentenceOf(key, found[key], at), key === "central" ? "nats" : "");
  }
  if (found.colluders) {
    const remark = at.colluders
      ? ` ${grouped(String(at.colluders))} people collude with the analyst; their answers still count.`
      : " No colluders: as above.";
    show("colluders", found.colluders, sentenceOf("central", found.colluders, at) + remark, "nats");
  }
  const factor = number(Math.exp(found.local.upper), true);
  const changes = Math.exp(found.local.upper) > READABLE
    ? "If the shuffler fails, your answers are practically readable."
    : `Even with your name on it, what you send changes the odds of any conclusion about you by at most a factor ${factor}.`;
  const words = Number.isFinite(found.local.upper)
    ? changes
    : "Your report contains no noise: if the shuffler fails, nothing protects your answer.";
  show("local", found.local, words, "nats");
  show("rare", found.rare, "Standard error of the estimated share of a value that no person holds.", "");
  const even = found.worst !== null && found.worst.upper > 1 / at.k
    ? ` It is larger than an even share (1/${grouped(String(at.k))}): most shares cannot be estimated.` : "";
  show("worst", found.worst, `Standard error of an estimated share, at the worst true share.${even}`, "");
  byId("toml").textContent = toml(places);
}

function element(name, attributes, parent, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

// Round numbers between two others: 1, 2, 5 times powers of ten on a logarithmic axis, even steps on a linear one.
function ticks(low, high, log, most) {
  if (!log) {
    const raw = (high - low) / most, unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find(times => times * unit >= raw) * unit, found = [];
    for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-9); i++) found.push(Number((i * step).toPrecision(6)));
    return found;
  }
  for (const digits of [[1, 2, 5], [1, 3], [1]]) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1; power++)
      for (const times of digits) {
        const value = Number(`${times}e${power}`);
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) found.push(value);
      }
    if (found.length <= most || digits.length === 1) {
      const every = Math.ceil(found.length / most);
      return found.filter((_, place) => place % every === 0);
    }
  }
  return [];
}

const short = value => (value === 0 || (value >= 1e-4 && value < 1e6) ? grouped(String(Number(value.toPrecision(6)))) : Number(value.toPrecision(6)).toExponential().replace("+", "")).replace(/(\.\d*),/g, "$1");

// One chart: `series` are {name, at(place on the axis) -> figure or null}, drawn as bands, lines and computed dots.
function chart(spec) {
  const axis = data.axes[spec.axis], stops = axis.stops;
  const drawn = spec.series.map(one => ({ name: one.name, figures: stops.map((_, place) => one.at({ ...places, [spec.axis]: place })) }));
  const ends = drawn.flatMap(one => one.figures).filter(found => found && Number.isFinite(found.upper));
  const lows = ends.map(found => (found.lower > 0 ? found.lower : found.upper)).filter(value => value > 0);
  if (!lows.length) return null;
  let low = Math.min(...lows), high = Math.max(...ends.map(found => found.upper));
  if (spec.log) { low /= 1.25; high *= 1.25; } else { const more = (high - low || high) * 0.06; low = Math.max(0, low - more); high = Math.min(1, high + more); }
  const across = value => ROOM.left + ((WIDE - ROOM.left - ROOM.right) * Math.log(value / stops[0])) / Math.log(stops.at(-1) / stops[0]);
  const flat = value => (spec.log ? Math.log(value) : value);
  const up = value => HIGH - ROOM.bottom - ((HIGH - ROOM.bottom - ROOM.top) * (flat(Math.min(Math.max(value, low), high)) - flat(low))) / (flat(high) - flat(low));

  const holder = document.createElement("figure");
  const title = document.createElement("h3");
  title.textContent = spec.title;
  const key = document.createElement("ul");
  key.className = "key";
  key.setAttribute("aria-label", "Key");
  const svg = element("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "chart", role: "img" }, holder);
  element("text", { x: 4, y: 14, class: "name" }, svg, spec.y);
  for (const value of ticks(low, high, spec.log, 6)) {
    element("line", { x1: ROOM.left, x2: WIDE - ROOM.right, y1: up(value), y2: up(value), class: "grid" }, svg);
    element("text", { x: ROOM.left - 6, y: up(value) + 4, "text-anchor": "end" }, svg, short(value));
  }
  element("line", { x1: ROOM.left, x2: WIDE - ROOM.right, y1: HIGH - ROOM.bottom, y2: HIGH - ROOM.bottom, class: "axis" }, svg);
  for (const value of ticks(stops[0], stops.at(-1), true, spec.axis === "n" ? 4 : 5))
    element("text", { x: across(value), y: HIGH - ROOM.bottom + 17, "text-anchor": "middle" }, svg, short(value));
  element("text", { x: (ROOM.left + WIDE) / 2, y: HIGH - 6, "text-anchor": "middle", class: "name" }, svg, spec.x);
  const here = across(stops[places[spec.axis]]);
  element("line", { x1: here, x2: here, y1: ROOM.top, y2: HIGH - ROOM.bottom, class: "here" }, svg);
  drawn.forEach((one, row) => {
    const points = one.figures.map((found, place) => found && Number.isFinite(found.upper) && { x: across(stops[place]), found }).filter(Boolean);
    const place = (x, y) => `${x.toFixed(1)},${y.toFixed(1)}`;
    const tops = points.map(point => place(point.x, up(point.found.upper)));
    const bottoms = points.map(point => place(point.x, up(point.found.lower))).reverse();
    element("polygon", { points: [...tops, ...bottoms].join(" "), fill: COLORS[row], class: "band" }, svg);
    element("polyline", { points: tops.join(" "), fill: "none", stroke: COLORS[row], "stroke-width": 2, "stroke-dasharray": DASHES[row] || "none" }, svg);
    for (const point of points)
      if (point.found.computed && !spec.plain) element("circle", { cx: point.x, cy: up(point.found.upper), r: 2.6, fill: COLORS[row] }, svg);
    const item = document.createElement("li");
    const swatch = element("svg", { viewBox: "0 0 32 12", "aria-hidden": "true" }, item);
    element("line", { x1: 0, y1: 6, x2: 32, y2: 6, stroke: COLORS[row], "stroke-width": 3, "stroke-dasharray": DASHES[row] || "none" }, swatch);
    item.append(one.name);
    key.append(item);
  });
  svg.setAttribute("aria-label", `${spec.title}: ${drawn.map(one => `${one.name} ${written(one.figures[places[spec.axis]] || { kind: "exact", upper: 0 })}`).join(", ")} where the sliders stand.`);
  const caption = document.createElement("figcaption");
  const open = drawn.some(one => one.figures.some(found => found && found.upper === Infinity));
  caption.textContent = spec.caption + (open ? " Where there is no line, no finite bound is proven." : "");
  holder.prepend(title, key);
  holder.append(caption);
  return holder;
}

function charts() {
  const of = key => stand => figures(stand)[key];
  const several = key => data.axes[key].stops.length > 1;
  const colluding = data.axes.colluders.stops[places.colluders] > 0;
  const privacy = [{ name: "release", at: of("central") }, ...(colluding ? [{ name: "release, with colluders", at: of("colluders") }] : []), ...(Number.isFinite(meant(places).device[2]) ? [{ name: "unshuffled", at: of("local") }] : [])];
  const who = data.reports === 1 ? "people" : "reports of all people";
  const central = data.adversaries.central.points.length > 0, guessed = data.adversaries.strong.derived || data.adversaries.strong.points.length > 0;
  const estimated = devices.values().next().value[4] !== null;
  const device = "local epsilon of one report (nats)", nats = "epsilon (nats)";
  const by = data.perPerson ? "dummies" : several("epsilon") ? "epsilon" : "n", additional = "additional messages of each person";
  const against = { n: ["number of people", who], epsilon: ["noise on each device", device], dummies: ["number of additional messages", additional] };
  const specs = [
    central && { title: "Privacy against the number of people", axis: "n", x: who, y: nats, log: true, series: privacy,
      caption: `Epsilon at delta = ${label("delta")} falls as the number of people grows; smaller is more private.` },
    central && several("epsilon") && { title: "Privacy against the noise on each device", axis: "epsilon", x: device, y: nats, log: true, series: privacy,
      caption: `Epsilon at delta = ${label("delta")} grows with the local epsilon (less noise), for this number of people.` },
    central && data.perPerson && { title: "Privacy against the number of additional messages", axis: "dummies", x: additional, y: nats, log: true, series: privacy,
      caption: `Epsilon at delta = ${label("delta")} falls as people send more messages.` },
    guessed && { title: "Guessing against the number of people", axis: "n", x: who, y: "probability of a right guess", log: false,
      series: data.adversaries.strong.derived ? [{ name: "any adversary, all reports", at: of("strong") }]
        : [{ name: "knows no answer", at: of("uninformed") }, { name: "knows all other answers", at: of("strong") }],
      caption: `Without the release a guess is right ${percent(1 / meant(places).k)} of the time.` },
    estimated && { title: `Accuracy against the ${against[by][0]}`, axis: by, x: against[by][1], y: "standard error of a share", log: true, plain: true,
      series: [{ name: "a rare value", at: of("rare") }, { name: "the worst share", at: of("worst") }],
      caption: "Predicted standard error of an estimated share." },
  ];
  byId("pictures").replaceChildren(...specs.filter(Boolean).map(chart).filter(Boolean));
}

function draw() {
  for (const key of KEYS) {
    byId(`${key}-value`).textContent = label(key);
    const slider = byId(key);
    if (slider) { slider.value = places[key]; slider.setAttribute("aria-valuetext", label(key)); }
  }
  table();
  charts();
}

for (const key of KEYS) {
  const slider = byId(key);
  if (slider) slider.addEventListener("input", () => { places[key] = Number(slider.value); draw(); });
}
byId("reset").addEventListener("click", () => {
  for (const key of KEYS) places[key] = data.axes[key].start;
  draw();
});
byId("download").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([toml(places)], { type: "application/toml" }));
  link.download = "specification.toml";
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
draw();
