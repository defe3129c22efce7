"use strict";

/* The law, as in looped/scaling/law.py; a test holds the two together. */
function lawLoss(law, phi, recurrences, nOnce, nRec, tokens) {
  const size = nOnce + Math.pow(recurrences, phi) * nRec;
  return law.E + law.A * Math.pow(size, -law.alpha) + law.B * Math.pow(tokens, -law.beta);
}

/* With a minus that is no hyphen. */
function decimal(value, digits) {
  return value.toFixed(digits).replace("-", "\u2212");
}

/* Large numbers, as in looped/scaling/quantity.py. */
function quantity(value) {
  const [digits, exponent] = value.toExponential(2).split("e");
  const power = Number(exponent);
  if (power >= 15 || power < -3) {
    const superscript = [...String(power)]
      .map((sign) => (sign === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[sign]))
      .join("");
    const mantissa = String(Number(digits));
    return (mantissa === "1" ? "" : `${mantissa}\u00d7`) + `10${superscript}`;
  }
  const step = Math.max(Math.floor(power / 3), 0);
  return Number((value / Math.pow(1000, step)).toPrecision(3)) + ["", "k", "M", "G", "T"][step];
}

/* ---- the interactive figure ------------------------------------------------------------------ */

const SVG = "http://www.w3.org/2000/svg";
const LABELS = 52; // pixels to the right of the axes, for the names of the curves
const NEAR = 0.05; // of log10: how close to a measured budget the slider shows its runs

function svgElement(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

/* Sizes and predicted losses of one recurrence count, tokens being what the budget leaves. */
function curveOf(recipe, recurrences, phi, level) {
  const family = recipe.families[recurrences];
  return family.n_once.map((nOnce, i) => {
    const nRec = family.n_rec[i];
    const tokens = recipe.by === "flops" ? level / family.flops_per_token[i] : level;
    return [nOnce + nRec, lawLoss(recipe.law, phi, Number(recurrences), nOnce, nRec, tokens)];
  });
}

/* Root mean square of measured minus predicted loss over all runs, nats. */
function rmsResidual(recipe, phi) {
  const runs = recipe.runs;
  let sum = 0;
  for (let i = 0; i < runs.loss.length; i++) {
    const predicted = lawLoss(recipe.law, phi, runs.recurrences[i], runs.n_once[i], runs.n_rec[i], runs.tokens[i]);
    sum += (runs.loss[i] - predicted) ** 2;
  }
  return Math.sqrt(sum / runs.loss.length);
}

/* Axes that hold everything measured, so that they stay still while the curves move. */
function limitsOf(recipe) {
  const sizes = recipe.runs.n_once.map((nOnce, i) => nOnce + recipe.runs.n_rec[i]);
  const low = Math.min(...recipe.runs.loss);
  const high = Math.max(...recipe.runs.loss);
  const margin = 0.06 * (high - low) || 0.1;
  return { x: [Math.min(...sizes) / 1.1, Math.max(...sizes) * 1.35], y: [low - margin, high + margin] };
}

function niceTicks(low, high, count) {
  const rough = (high - low) / count;
  const scale = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((factor) => factor * scale).find((candidate) => candidate >= rough);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(k * step);
  return { ticks, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

function logTicks(low, high, most) {
  let ticks = [];
  for (const factors of [[1], [1, 3], [1, 2, 5]]) {
    const found = [];
    for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); decade++) {
      for (const factor of factors) {
        const tick = factor * Math.pow(10, decade);
        if (tick >= low && tick <= high) found.push(tick);
      }
    }
    if (found.length > most && ticks.length >= 2) break;
    ticks = found;
  }
  return ticks;
}

function starPath(x, y, radius) {
  let path = "";
  for (let k = 0; k < 10; k++) {
    const reach = k % 2 ? 0.42 * radius : radius;
    const angle = (Math.PI * k) / 5 - Math.PI / 2;
    path += `${k ? "L" : "M"}${(x + reach * Math.cos(angle)).toFixed(1)},${(y + reach * Math.sin(angle)).toFixed(1)}`;
  }
  return `${path}Z`;
}

/* Labels of curves, kept a distance apart: first pushed down, then up from the floor. */
function spread(labels, distance, floor) {
  labels.sort((a, b) => a.y - b.y);
  for (let i = 1; i < labels.length; i++) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + distance);
  let lowest = floor;
  for (let i = labels.length - 1; i >= 0; i--) {
    labels[i].y = Math.min(labels[i].y, lowest);
    lowest = labels[i].y - distance;
  }
}

function drawExplorer(holder, recipe, colours, phi, level) {
  const width = Math.max(holder.clientWidth, 280);
  const height = Math.min(Math.max(Math.round(0.62 * width), 300), 440);
  const box = { left: 52, right: width - LABELS, top: 10, bottom: height - 44 };
  const limits = limitsOf(recipe);
  const x = (size) =>
    box.left + ((box.right - box.left) * Math.log(size / limits.x[0])) / Math.log(limits.x[1] / limits.x[0]);
  const y = (loss) =>
    box.bottom - ((box.bottom - box.top) * (loss - limits.y[0])) / (limits.y[1] - limits.y[0]);

  const svg = svgElement("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": "explore-heading", "aria-describedby": "explore-reading",
  });
  const clip = svgElement("clipPath", { id: "explore-clip" }, svg);
  svgElement("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }, clip);

  const losses = niceTicks(limits.y[0], limits.y[1], 5);
  for (const tick of losses.ticks) {
    svgElement("line", { class: "grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }, svg);
    svgElement("text", { x: box.left - 8, y: y(tick) + 4, "text-anchor": "end" }, svg).textContent = decimal(tick, losses.digits);
  }
  for (const tick of logTicks(limits.x[0], limits.x[1], width < 500 ? 5 : 8)) {
    svgElement("line", { class: "grid", x1: x(tick), x2: x(tick), y1: box.top, y2: box.bottom }, svg);
    svgElement("text", { x: x(tick), y: box.bottom + 18, "text-anchor": "middle" }, svg).textContent = quantity(tick);
  }
  svgElement("path", { class: "axis", d: `M${box.left},${box.top}V${box.bottom}H${box.right}` }, svg);
  svgElement("text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, svg).textContent =
    "unique parameters";
  svgElement("text", { transform: `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, svg).textContent =
    "loss (nats per token)";

  const plot = svgElement("g", { "clip-path": "url(#explore-clip)" }, svg);
  const near = (other) => other !== null && Math.abs(Math.log10(other / level)) < NEAR;
  recipe.runs.loss.forEach((loss, i) => {
    if (!near(recipe.runs.level[i])) return;
    const size = recipe.runs.n_once[i] + recipe.runs.n_rec[i];
    svgElement("circle", {
      class: "run", cx: x(size), cy: y(loss), r: 3.5, fill: colours[recipe.runs.recurrences[i]],
    }, plot);
  });
  const labels = [];
  for (const recurrences of Object.keys(recipe.families)) {
    const points = curveOf(recipe, recurrences, phi, level);
    const path = points.map(([size, loss], i) => `${i ? "L" : "M"}${x(size).toFixed(2)},${y(loss).toFixed(2)}`);
    svgElement("path", {
      class: "curve", "data-r": recurrences, stroke: colours[recurrences], d: path.join(""),
    }, plot);
    const best = points.reduce((lowest, point, i) => (point[1] < points[lowest][1] ? i : lowest), 0);
    if (best > 0 && best < points.length - 1) {
      svgElement("circle", {
        class: "optimum", cx: x(points[best][0]), cy: y(points[best][1]), r: 4, stroke: colours[recurrences],
      }, plot);
    }
    const inside = points.filter(([, loss]) => loss >= limits.y[0] && loss <= limits.y[1]);
    if (inside.length) {
      const [size, loss] = inside[inside.length - 1];
      labels.push({ y: y(loss) + 4, end: [x(size), y(loss)], text: `r = ${recurrences}`, colour: colours[recurrences] });
    }
  }
  for (const minimum of recipe.minima) {
    const colour = colours[minimum.recurrences];
    svgElement("path", {
      ...(near(minimum.level) ? { class: "minimum", fill: colour } : { class: "elsewhere", stroke: colour }),
      d: starPath(x(minimum.n_total), y(minimum.loss), 8),
    }, plot);
  }
  spread(labels, 17, box.bottom);
  for (const label of labels) {
    /* A thin line leads from the end of the curve to its name, which stands clear of every curve. */
    svgElement("path", {
      class: "leader", stroke: label.colour, d: `M${label.end.join(",")}L${box.right + 4},${label.y - 4}`,
    }, svg);
    const text = svgElement("text", { class: "name", x: box.right + 8, y: label.y, fill: label.colour }, svg);
    text.textContent = label.text;
  }
  holder.replaceChildren(svg);
}

function startExplorer() {
  const source = document.getElementById("explorer-data");
  if (!source) return;
  const { recipes, colours } = JSON.parse(source.textContent);
  const find = (id) => document.getElementById(id);
  const [choice, phiSlider, levelSlider] = ["explore-recipe", "explore-phi", "explore-level"].map(find);
  let recipe;

  /* The slider counts steps from the fitted value, so that step 0 is that value exactly. */
  const phiNow = () => recipe.law.phi + Number(phiSlider.value) * recipe.phi.step;
  const levelNow = () => Math.pow(10, Number(levelSlider.value));

  function draw() {
    const phi = phiNow();
    const level = levelNow();
    const unit = recipe.by === "flops" ? "FLOPs" : "tokens";
    const atFit = Number(phiSlider.value) === 0;
    find("explore-phi-value").textContent = decimal(phi, 2) + (atFit ? " (the fit)" : "");
    find("explore-level-value").textContent = `${quantity(level)} ${unit}`;
    phiSlider.setAttribute("aria-valuetext", find("explore-phi-value").textContent);
    levelSlider.setAttribute("aria-valuetext", find("explore-level-value").textContent);
    drawExplorer(find("explore-drawing"), recipe, colours, phi, level);
    const residual = rmsResidual(recipe, phi);
    const fitted = rmsResidual(recipe, recipe.law.phi);
    let reading = recipe.example
      ? `With \u03c6 = ${decimal(phi, 2)}, ${recipe.example} recurrences count as ${Math.pow(recipe.example, phi).toFixed(2)} blocks. `
      : "";
    reading += `The law misses the ${recipe.runs.loss.length} runs by ${residual.toFixed(4)} nats (root mean square)`;
    reading += atFit ? "." : `; at the fit, \u03c6 = ${decimal(recipe.law.phi, 2)}, by ${fitted.toFixed(4)}.`;
    if (!recipe.identifiable) reading += " These runs cannot tell \u03c6: even the best fit is not to be believed.";
    find("explore-reading").textContent = reading;
  }

  function choose() {
    recipe = recipes[choice.value];
    phiSlider.min = -recipe.phi.below;
    phiSlider.max = recipe.phi.above;
    phiSlider.step = 1;
    const levels = recipe.levels.map(Math.log10);
    levelSlider.min = levels[0];
    levelSlider.max = levels[levels.length - 1];
    levelSlider.step = "any";
    levelSlider.disabled = levels.length < 2;
    find("explore-level-label").textContent = recipe.by === "flops" ? "Training compute" : "Training tokens";
    for (const words of document.querySelectorAll("#explorer .mode")) words.hidden = words.dataset.by !== recipe.by;
    find("explore-levels").replaceChildren(...levels.map((value) => new Option("", value)));
    reset();
  }

  function reset() {
    phiSlider.value = 0;
    levelSlider.value = Math.log10(recipe.levels[Math.floor(recipe.levels.length / 2)]);
    draw();
  }

  choice.replaceChildren(...Object.keys(recipes).map((name) => new Option(name)));
  find("explore-recipe-control").hidden = Object.keys(recipes).length < 2;
  find("explorer").hidden = false;
  choice.addEventListener("change", choose);
  phiSlider.addEventListener("input", draw);
  levelSlider.addEventListener("input", draw);
  find("explore-reset").addEventListener("click", reset);
  new ResizeObserver(draw).observe(find("explore-drawing"));
  choose();
}

/* ---- sortable tables ------------------------------------------------------------------------- */

function compareCells(a, b) {
  const [first, second] = [a, b].map((cell) => cell.dataset.value);
  if (first !== undefined && second !== undefined) return Number(first) - Number(second);
  return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
}

/* Rows in a new order; cells without a value stay last whichever way. */
function sortTable(table, column, descending) {
  const body = table.tBodies[0];
  const cell = (row) => row.cells[column];
  const empty = (row) => cell(row).textContent.trim() === "";
  const rows = [...body.rows].sort((a, b) => {
    if (empty(a) || empty(b)) return empty(a) - empty(b);
    return (descending ? -1 : 1) * compareCells(cell(a), cell(b));
  });
  body.append(...rows);
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortTable(table, column, descending);
    });
  });
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
startExplorer();
