"use strict";
// Keeps an open page up to date, and sends what its buttons ask for. Everything that comes from
// the server as text is set as text; a report comes as HTML, escaped where it was made.
const csrf = document.querySelector('meta[name="csrf"]').content;

const act = async (address, data = "") => {
  const answer = await fetch(address, {
    method: "POST",
    headers: { "X-Paribus-CSRF": csrf, "Content-Type": "text/plain", Accept: "application/json" },
    body: data,
  });
  const type = answer.headers.get("content-type") || "";
  return type.startsWith("application/json") ? answer.json() : { error: await answer.text() };
};

const follow = (live) => {
  const said = document.getElementById("progress");
  const report = document.getElementById("report");
  const [stop, resume] = ["stop", "resume"].map((one) => live.querySelector(`[data-act="${one}"]`));
  const events = new EventSource(live.dataset.events);
  events.addEventListener("progress", (event) => {
    const now = JSON.parse(event.data);
    live.dataset.running = now.running;
    if (said.textContent !== now.text) said.textContent = now.text;
    document.getElementById("now").innerHTML = now.html;
    if (!stop) return;
    stop.hidden = !now.running;
    stop.disabled = now.stopping;
    stop.textContent = now.stopping ? "Stopping ..." : "Stop";
    resume.hidden = now.running || now.code === 0;
  });
  events.addEventListener("report", async (event) => {
    const answer = await fetch("body");
    if (!answer.ok) return;
    const open = [...report.querySelectorAll("details")].map((one) => one.open);
    const [x, y] = [scrollX, scrollY];
    report.innerHTML = await answer.text();
    report.querySelectorAll("details").forEach((one, n) => { one.open = open[n] ?? one.open; });
    if (document.getElementById("figures") && window.vegaEmbed) await drawFigures();
    scrollTo(x, y);
    document.documentElement.dataset.version = JSON.parse(event.data).version;
  });
  events.addEventListener("error", () => {
    if (events.readyState !== EventSource.CLOSED) return;
    said.textContent = "This page is no longer up to date: reload it, or sign in again.";
  });
};

const agreed = () => new Promise((resolve) => {
  const dialog = document.querySelector("dialog");
  dialog.returnValue = "";
  dialog.addEventListener("close", () => resolve(dialog.returnValue === "stop"), { once: true });
  dialog.showModal();
});

// Sends what a button is for; a study that somebody else began is looked at before it is resumed.
// It asks before it stops one.
const press = (button) => {
  button.addEventListener("click", async () => {
    if (button.dataset.act === "stop" && !(await agreed())) return;
    button.disabled = true;
    const answer = await act(button.dataset.to || `act/${button.dataset.act}`);
    button.disabled = button.dataset.act === "stop" && !answer.error;
    const next = answer.error ? answer.see : button.dataset.then;
    document.getElementById("progress").textContent = answer.text || answer.error;
    if (next) location.href = next;
  });
};

// Asks for a part of the page again while somebody looks at it; what did not change stays, and so
// does what is chosen there.
const renew = (part) => {
  let shown = part.innerHTML;
  const again = async () => {
    const answer = await fetch(part.dataset.again).catch(() => null);
    if (answer?.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const text = (page.querySelector("[data-again]") ?? page.body).innerHTML;
      if (text === shown) return;
      const chosen = [...part.querySelectorAll(":checked")].map((one) => one.value);
      part.innerHTML = shown = text;
      part.querySelectorAll("[name=of]").forEach((one) => { one.checked = chosen.includes(one.value); });
      fit();
      more(part);
    } else if (answer) {
      clearInterval(timer);
      part.textContent = "This page is no longer up to date: reload it, or sign in again.";
    }
  };
  const timer = setInterval(() => document.hidden || again(), 1000 * part.dataset.every);
  part.again = again;
  more(part);
};

// Says how many studies are chosen, and disables those that cannot be compared with the first.
const WHY = [
  ["holds the same launches as", (a, b) => a.copy === b.copy],
  ["has another factor than", (a, b) => a.factor !== b.factor],
  ["has another reference than", (a, b) => a.arms[0] !== b.arms[0]],
  ["has no arm in common with", (a, b) => !a.arms.slice(1).some((one) => b.arms.slice(1).includes(one))],
  ["has no benchmark in common with", (a, b) => !a.benchmarks.some((one) => b.benchmarks.includes(one))],
];
const fit = () => {
  const compare = document.getElementById("compare");
  if (!compare) return;
  const boxes = [...document.querySelectorAll("[name=of]")];
  const [first, ...others] = boxes.filter((one) => one.checked);
  const reasons = new Set();
  for (const box of boxes) {
    const [a, b] = [first ?? box, box].map((one) => JSON.parse(one.dataset.fits));
    const why = first && !box.checked && WHY.find(([, differs]) => differs(a, b));
    box.disabled = Boolean(why);
    box.title = why ? `${box.dataset.name} ${why[0]} ${first.dataset.name}` : "";
    if (why) reasons.add(why[0].replace(/ (than|with|as)$/, ""));
  }
  const number = first ? 1 + others.length : 0;
  compare.disabled = number < 2;
  compare.textContent = number < 2 ? "Compare two" : `Compare the ${number} chosen`;
  document.getElementById("reason").textContent = number === 1
    ? `${first.dataset.name} is chosen, choose another${reasons.size ? `; disabled: ${[...reasons].join("; ")}` : ""}`
    : "";
};

// Copies a text, where the browser lets pages do so.
const copy = (button) => {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
};

// Shows more of a long list when its end is scrolled to.
const more = (part) => {
  const link = part.querySelector("#more");
  if (!link) return;
  new IntersectionObserver((seen, watcher) => {
    if (!seen.some((one) => one.isIntersecting)) return;
    watcher.disconnect();
    history.replaceState(null, "", link.search);
    part.again();
  }, { rootMargin: "400px" }).observe(link);
};

// Narrows the list as it is typed.
const narrow = (form) => {
  const part = document.querySelector("[data-again]");
  let timer;
  const ask = () => {
    const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", `?${asked}`);
    part.again();
  };
  form.querySelector("button").hidden = true;
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 150); });
};

const live = document.querySelector("[data-events]");
if (live) follow(live);
document.querySelectorAll("[data-act]").forEach(press);
document.querySelectorAll("[data-copy]").forEach(copy);
document.querySelectorAll("[data-again]").forEach(renew);
document.querySelectorAll(".filters").forEach(narrow);
addEventListener("change", (event) => event.target.name === "of" && fit());
fit();
