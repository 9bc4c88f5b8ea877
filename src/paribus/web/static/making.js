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

  const check = later(300, async () => {
    const answer = await act("check", text.value);
    said.textContent = answer.problems || answer.error || answer.summary;
    said.className = answer.summary ? "" : "box warnings";
    one("start").disabled = one("estimate").disabled = !answer.summary;
  });
  const write = later(150, async () => {
    const value = (id) => one(id).value;
    const answer = await act("text", JSON.stringify({
      question: value("question"),
      factor: value("factor"),
      arms: ["a", "b"].map((key) => ({ name: value(`arm-${key}`), value: value(`value-${key}`) })),
      benchmarks: [...document.querySelectorAll('[name="benchmark"]:checked')].map((b) => b.value),
      margin: value("margin"), blocks: value("blocks"), budget: value("budget"),
    }));
    if (answer.text) text.value = answer.text;
    else said.textContent = answer.error;
    check();
  });

  one("fields").addEventListener("input", async (event) => {
    if (event.target.id === "factor") {
      const { a, b, here } = event.target.selectedOptions[0].dataset;
      one("value-a").value = a;
      one("value-b").value = b;
      one("here").textContent = here ? `On this machine: ${here}` : "";
    }
    if (event.target.id === "template" && event.target.value) {
      const answer = await act("template", event.target.value);
      text.value = answer.text || answer.error;
      one("name").value = event.target.value;
      check();
    } else write();
  });
  one("fields").addEventListener("submit", (event) => event.preventDefault());
  text.addEventListener("input", check);
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
    if (answer.error) { show(answer.error); one("start").disabled = false; return; }
    for (;;) {
      const now = await act("started", answer.name);
      if (now.id) { location.href = `../studies/${now.id}/`; return; }
      show(now.log || "preparing");
      if (now.ended) { one("start").disabled = false; return; }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  });
  write();
}
