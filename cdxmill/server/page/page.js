"use strict";
// The page asks the server's own API, and no other host. It has no state but its address.

const MOST = 5000, ROWS = 200;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const FORM = document.getElementById("search");
const BASE = location.origin + location.pathname.replace(/[^/]*$/, "");
let collections = [], captures = [], shown = [], rows = 0, asked = 0;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

function say(text, isError = false) {
  byId("message").textContent = text;
  byId("message").className = isError ? "error" : "";
}

function count(number, one, many) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

function collection() {
  return collections.find(one => one.id === FORM.c.value) || collections[0];
}

function question() {
  const asked = new URLSearchParams({url: FORM.url.value.trim()});
  if (FORM.match.value !== "exact") asked.set("matchType", FORM.match.value);
  for (const name of ["from", "to"]) if (FORM[name].value) asked.set(name, FORM[name].value);
  return asked;
}

function address(output, more = {}) {
  const asked = question();
  asked.set("output", output);
  for (const [name, value] of Object.entries(more)) asked.set(name, value);
  return `${BASE}${collection().id}/cdx?${asked}`;
}

async function search() {
  const own = ++asked;
  say("Searching ...");
  byId("results").hidden = true;
  let answer, text;
  try {
    answer = await fetch(address("json", {limit: MOST + 1}));
    text = await answer.text();
  } catch (error) {
    if (own === asked) say(`The server did not answer to the end (${error.message}). Try again, or ask for less.`, true);
    return;
  }
  if (own !== asked) return;
  if (!answer.ok) {
    let reason = text;
    try { reason = JSON.parse(text).message; } catch { /* it is text */ }
    say(reason.slice(0, 500), true);
    return;
  }
  captures = text.split("\n").filter(line => line).map(line => JSON.parse(line));
  show();
}

function show() {
  const isCut = captures.length > MOST;
  captures = captures.slice(0, MOST);
  say(captures.length ? "" : "Nothing was found. Try another match, or the address without http://.");
  byId("results").hidden = !captures.length;
  const urls = new Set(captures.map(one => one.urlkey)).size;
  const number = count(captures.length, "capture", "captures");
  byId("count").textContent = `${isCut ? "The first " : ""}${number} of ${count(urls, "URL", "URLs")}`;
  showDownloads();
  showYears();
  byId("calendar").hidden = true;
  choose("", "");
}

function showDownloads() {
  const links = byId("downloads");
  links.replaceChildren("Download all: ");
  for (const output of ["cdxj", "csv", "json"]) {
    links.append(element("a", output.toUpperCase(), {href: address(output), download: `captures.${output}`}), " ");
  }
}

function tally(size, start = "") {
  const found = new Map();
  for (const {timestamp} of captures) {
    if (!timestamp.startsWith(start)) continue;
    const key = timestamp.slice(0, size);
    found.set(key, (found.get(key) || 0) + 1);
  }
  return found;
}

function showYears() {
  const years = tally(4), numbers = [...years.keys()].map(Number).filter(Number.isInteger).sort((a, b) => a - b);
  const most = Math.max(...years.values()), place = byId("years");
  place.replaceChildren();
  if (!numbers.length) return;
  const isLong = numbers.at(-1) - numbers[0] > 100; // then a timestamp is wrong
  for (let year = numbers[0]; year <= numbers.at(-1); year++) {
    if (isLong && !years.has(String(year))) continue;
    const number = years.get(String(year)) || 0;
    const label = `${year}: ${count(number, "capture", "captures")}`;
    const column = element("button", undefined, {type: "button", title: label, "aria-label": label, "aria-pressed": "false"});
    const bar = element("span", undefined, {class: "bar"});
    bar.style.height = `${85 * number / most}%`;
    column.append(bar, element("span", String(year)));
    column.disabled = !number;
    column.addEventListener("click", () => {
      press(place, column);
      showCalendar(String(year));
      choose(String(year), String(year));
    });
    place.append(column);
  }
}

function press(place, button) {
  for (const one of place.querySelectorAll("[aria-pressed]")) one.setAttribute("aria-pressed", String(one === button));
}

function showCalendar(year) {
  const days = tally(8, year), most = Math.max(...days.values()), place = byId("months");
  byId("year").textContent = `Days of ${year} with captures. Choose one to see them alone.`;
  place.replaceChildren();
  MONTHS.forEach((name, month) => {
    const grid = element("div", undefined, {class: "month"});
    grid.append(element("h3", name));
    const first = (new Date(Date.UTC(year, month, 1)).getUTCDay() + 6) % 7;
    for (let empty = 0; empty < first; empty++) grid.append(element("span"));
    const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
    for (let day = 1; day <= last; day++) {
      const key = year + String(month + 1).padStart(2, "0") + String(day).padStart(2, "0");
      grid.append(dayCell(key, day, days.get(key) || 0, most));
    }
    place.append(grid);
  });
  byId("calendar").hidden = false;
}

function dayCell(key, day, number, most) {
  if (!number) return element("span", String(day), {class: "day"});
  const date = `${key.slice(0, 4)}-${key.slice(4, 6)}-${key.slice(6)}`;
  const label = `${date}: ${count(number, "capture", "captures")}`;
  const cell = element("button", String(day), {type: "button", class: "day", title: label, "aria-label": label, "aria-pressed": "false"});
  cell.style.setProperty("--amount", String(0.25 + 0.75 * number / most));
  cell.addEventListener("click", () => {
    press(byId("months"), cell);
    choose(key, date);
  });
  return cell;
}

function choose(start, name) {
  shown = captures.filter(one => one.timestamp.startsWith(start));
  const chosen = byId("chosen");
  chosen.hidden = !start;
  if (start) {
    const all = element("button", "Show all", {type: "button"});
    all.addEventListener("click", () => { press(byId("years"), null); byId("calendar").hidden = true; choose("", ""); });
    chosen.replaceChildren(`${name}: ${count(shown.length, "capture", "captures")} `, all);
  }
  rows = 0;
  byId("rows").replaceChildren();
  showRows();
}

function showRows() {
  const place = byId("rows"), replay = collection().replay;
  for (const one of shown.slice(rows, rows + ROWS)) {
    const row = element("tr"), time = element("td"), when = date(one.timestamp);
    time.append(replay ? element("a", when, {href: `${replay}${one.timestamp}/${one.url}`}) : when);
    row.append(time, element("td", one.url), element("td", one.status || ""), element("td", one.mime || ""));
    row.append(element("td", one.length ? Number(one.length).toLocaleString("en") : "", {class: "number"}));
    place.append(row);
  }
  rows += ROWS;
  byId("more").hidden = rows >= shown.length;
}

function date(stamp) {
  if (!/^\d{14}$/.test(stamp)) return stamp;
  const day = `${stamp.slice(0, 4)}-${stamp.slice(4, 6)}-${stamp.slice(6, 8)}`;
  const time = `${stamp.slice(8, 10)}:${stamp.slice(10, 12)}:${stamp.slice(12)}`;
  const known = new Date(`${day}T${time}Z`); // of 31 February it is invalid, or 2 March
  return Number.isNaN(known.getTime()) || known.getUTCDate() !== Number(stamp.slice(6, 8)) ? stamp : `${day} ${time}`;
}

function showExamples() {
  const place = byId("examples"), name = collection().id;
  const url = encodeURIComponent(FORM.url.value.trim() || "http://example.com/");
  const examples = [
    ["pywb and Common Crawl: a line of JSON for each capture", `${name}/cdx?url=${url}&output=json`],
    ["all URLs of a host, a page of the answer", `${name}-index?url=${url}&matchType=host&output=json&page=0`],
    ["the Wayback Machine's CDX server", `${name}/cdx/search/cdx?url=${url}&limit=-5&output=json`],
    ["OutbackCDX", `${name}?url=${url}`],
    ["the capture nearest to a time", `${name}/available?url=${url}&timestamp=2014`],
  ];
  if (collection().replay) examples.push(["Memento: a timemap", `${name}/timemap/link/${decodeURIComponent(url)}`]);
  place.replaceChildren();
  for (const [about, path] of examples) {
    const line = `curl '${BASE}${path.replaceAll("'", "%27")}'`, value = element("dd");
    const copy = element("button", "Copy", {type: "button", "aria-label": `Copy: ${about}`});
    copy.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(line); copy.textContent = "Copied"; } catch { copy.textContent = "Select it"; }
    });
    value.append(element("code", line), copy);
    place.append(element("dt", about), value);
  }
}

function fill() {
  const given = new URLSearchParams(location.search);
  for (const name of ["c", "url", "match", "from", "to"]) {
    const value = given.get(name);
    if (value !== null && name in FORM.elements) FORM.elements[name].value = value;
  }
  if (!FORM.match.value) FORM.match.value = "exact";
  if (!FORM.c.value && collections.length) FORM.c.value = collections[0].id;
}

function visit() {
  fill();
  showExamples();
  if (FORM.url.value) search(); else { byId("results").hidden = true; say(""); }
}

async function start() {
  try {
    collections = await (await fetch("collinfo.json")).json();
  } catch {
    say("The server did not answer. Load this page again.", true);
    return;
  }
  FORM.c.replaceChildren(...collections.map(one => element("option", one.name, {value: one.id})));
  byId("collections").hidden = collections.length < 2;
  const reports = collections.filter(one => one.report);
  byId("reports").hidden = !reports.length;
  for (const one of reports) byId("reports").append(" ", element("a", `report of ${one.name}`, {href: one.report}));
  FORM.addEventListener("submit", event => {
    event.preventDefault();
    const given = new URLSearchParams();
    for (const [name, value] of new FormData(FORM)) {
      if (value && !(name === "match" && value === "exact") && !(name === "c" && collections.length < 2)) given.set(name, value);
    }
    history.pushState(null, "", `?${given}`);
    showExamples();
    search();
  });
  window.addEventListener("popstate", visit);
  byId("more").addEventListener("click", showRows);
  visit();
}

start();
