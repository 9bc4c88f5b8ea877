"use strict";
// The form writes the study file; whoever edits the file itself has the last say. Each state of it
// is checked by the loader of `paribus run`.
{
  const one = (id) => document.getElementById(id);
  const [text, said, output] = ["text", "said", "output"].map(one);
  const later = (wait, call) => {
    let timer;
    return () => { clearTimeout(timer); timer = setTimeout(call, wait); };
  };
  const show = (shown) => { output.hidden = false; output.textContent = shown; };

  // The field that a key of the study file stands for.
  const fieldOf = (key) => {
    const [part, name] = key.split(".");
    if (part === "plan") return ["margin", "blocks", "budget"].includes(name) ? one(name) : null;
    if (part !== "arms") return ["question", "factor", "name"].includes(key) ? one(key) : null;
    const arm = ["a", "b"].find((each) => `${key}.`.startsWith(`arms.${one(`arm-${each}`).value}.`));
    if (!arm) return null;
    if (key === `arms.${one(`arm-${arm}`).value}`) return one(`arm-${arm}`);
    return [one(`choice-${arm}`), one(`value-${arm}`)].find((field) => !field.hidden);
  };
  const mark = (faults) => {
    document.querySelectorAll(".fault").forEach((old) => old.remove());
    document.querySelectorAll("[aria-invalid]").forEach((old) => {
      old.removeAttribute("aria-invalid");
      old.removeAttribute("aria-describedby");
    });
    for (const [key, why] of Object.entries(faults || {})) {
      const field = fieldOf(key);
      if (!field) continue;
      const note = document.createElement("small");
      note.className = "fault";
      note.id = `fault-${field.id}`;
      note.textContent = why;
      field.after(note);
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", note.id);
    }
  };
  const refuse = (answer) => {
    said.textContent = answer.problems || answer.error;
    said.className = "box warnings";
    one("start").disabled = one("estimate").disabled = true;
    mark(answer.faults);
  };
  // Two arms, in as many blocks as there are at most.
  const minutes = () => {
    const chosen = [...document.querySelectorAll('[name="benchmark"]:checked')];
    const seconds = chosen.reduce((sum, box) => sum + Number(box.dataset.s), 0);
    return Math.max(1, Math.round((seconds * 2 * (parseInt(one("blocks").value, 10) || 60)) / 60));
  };
  let own = false;
  const check = later(300, async () => {
    const answer = await act("check", text.value);
    const long = own ? "" : `; up to about ${minutes()} min`;
    if (!answer.summary) { refuse(answer); return; }
    said.textContent = answer.summary + long;
    said.className = "";
    one("start").disabled = one("estimate").disabled = false;
    mark({});
  });
  const count = () => {
    for (const part of document.querySelectorAll("fieldset > details")) {
      const chosen = part.querySelectorAll(":checked").length;
      part.querySelector(".chosen").textContent = chosen ? `${chosen} chosen` : "";
    }
  };
  const write = later(150, async () => {
    const value = (id) => one(id).value;
    const answer = await act("text", JSON.stringify({
      question: value("question"),
      factor: value("factor"),
      arms: ["a", "b"].map((key) => ({ name: value(`arm-${key}`), value: value(`value-${key}`) })),
      benchmarks: [...document.querySelectorAll('[name="benchmark"]:checked')].map((b) => b.value),
      margin: value("margin"), blocks: value("blocks"), budget: value("budget"),
    }));
    own = false;
    count();
    if (!answer.text) { refuse(answer); return; }
    text.value = answer.text;
    check();
  });
  const offer = () => {
    const { a, b, here, closed } = one("factor").selectedOptions[0].dataset;
    const values = here ? here.split(", ") : [];
    const options = () => values.map((value) => new Option(value, value));
    one("values").replaceChildren(...options());
    for (const [key, value] of [["a", a], ["b", b]]) {
      const [field, choice] = [one(`value-${key}`), one(`choice-${key}`)];
      field.value = value;
      choice.replaceChildren(...options());
      choice.value = value;
      choice.hidden = closed !== "true";
      field.hidden = !choice.hidden;
    }
    one("here").textContent = here && closed !== "true" ? `On this machine: ${here}` : "";
  };

  one("fields").addEventListener("input", async (event) => {
    const choice = /^choice-(.)$/.exec(event.target.id);
    if (choice) one(`value-${choice[1]}`).value = event.target.value;
    if (event.target.id === "factor") offer();
    if (event.target.id === "template" && event.target.value) {
      const answer = await act("template", event.target.value);
      text.value = answer.text || answer.error;
      one("name").value = event.target.value;
      own = true;
      check();
    } else write();
  });
  one("fields").addEventListener("submit", (event) => event.preventDefault());
  document.querySelectorAll("[data-preset]").forEach((card) => card.addEventListener("click", () => {
    const names = card.dataset.preset.split(",");
    document.querySelectorAll('[name="benchmark"]').forEach((box) => { box.checked = names.includes(box.value); });
    write();
  }));
  text.addEventListener("input", () => { own = true; check(); });
  one("download").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = `data:text/plain;charset=utf-8,${encodeURIComponent(text.value)}`;
    link.download = `${one("name").value}.toml`;
    link.click();
  });
  one("estimate").addEventListener("click", async () => {
    one("estimate").disabled = true;
    show("making pilot launches ...");
    const answer = await act(`estimate?name=${encodeURIComponent(one("name").value)}`, text.value);
    show(answer.text || answer.error);
    one("estimate").disabled = false;
  });
  one("start").addEventListener("click", async () => {
    one("start").disabled = true;
    const answer = await act(`start?name=${encodeURIComponent(one("name").value)}`, text.value);
    if (answer.error) { refuse(answer); one("start").disabled = false; return; }
    for (;;) {
      const now = await act("started", answer.name);
      if (now.id) { location.href = `../studies/${now.id}/`; return; }
      show(now.log || "preparing");
      if (now.ended) { one("start").disabled = false; return; }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  });
  offer();
  write();
}
