"use strict";
// Draws each figure with the colours of the page: text and axes inherit the current colour, so one
// drawing serves light, dark and paper. `ast` interprets expressions instead of compiling them,
// which the content security policy would forbid. The workbench draws again when a study goes on.
const drawFigures = async () => {
  const specs = JSON.parse(document.getElementById("figures").textContent);
  const soft = { labelColor: "currentColor", titleColor: "currentColor" };
  const line = "#8a8f98";
  const config = {
    background: null,
    mark: { aria: false }, // the element around a figure describes it as a whole
    font: getComputedStyle(document.body).fontFamily,
    view: { stroke: null },
    axis: {
      ...soft, aria: false, titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12,
      domainColor: line, tickColor: line, gridColor: line, gridOpacity: 0.3,
    },
    legend: { ...soft, aria: false, labelFontSize: 12, symbolSize: 70 },
  };
  for (const [number, spec] of specs.entries()) {
    const place = document.getElementById(`figure-${number}`);
    place.replaceChildren();
    const fitted = { ...spec, width: "container", autosize: { type: "fit-x", contains: "padding" } };
    await vegaEmbed(place, fitted, {
      config, mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
      tooltip: { theme: "custom" },
    });
  }
  document.documentElement.dataset.drawn = String(specs.length);
};
addEventListener("change", (event) => {
  if (event.target.matches("select.jump")) location.hash = event.target.value;
});
drawFigures();
