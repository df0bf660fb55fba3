"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Tables sort by what stands in data-v, else by their text; rows without a value stay last.
  const value = (row, column) => {
    const cell = row.cells[column];
    const text = cell ? (cell.dataset.v ?? cell.textContent.trim()) : "";
    if (text === "" || text === "—") return null;
    const number = Number(text === "·" ? 0 : text.replace(/,/g, ""));
    return isNaN(number) ? text : number;
  };
  const sort = (table, heading) => {
    const column = heading.cellIndex;
    const downFirst = heading.hasAttribute("data-down");
    const was = heading.getAttribute("aria-sort");
    const up = was ? was === "descending" : !downFirst;
    all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    [...body.rows]
      .map((row, at) => ({ row, at, v: value(row, column) }))
      .sort((a, b) => {
        if (a.v === null || b.v === null) return (a.v === null) - (b.v === null) || a.at - b.at;
        const order = typeof a.v === "number" && typeof b.v === "number"
          ? a.v - b.v : String(a.v) < String(b.v) ? -1 : String(a.v) > String(b.v) ? 1 : 0;
        return (up ? order : -order) || a.at - b.at;
      })
      .forEach(({ row }) => body.append(row));
  };
  for (const table of all("table[data-sortable]")) {
    for (const heading of all("thead th", table)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(heading.firstChild);
      heading.prepend(button);
      button.addEventListener("click", () => sort(table, heading));
    }
  }

  // The map under the pointer, or the arrow keys, says what its cell is.
  const readout = document.querySelector(".readout");
  const words = ["rejected", "closed", "accepted", "mute", "malformed", "void"];
  const hex = (n) => "0x" + n.toString(16).toUpperCase().padStart(2, "0");
  const named = (n) => hex(n) + (n > 32 && n < 127 ? " ‘" + String.fromCharCode(n) + "’" : n === 32 ? " SP" : n === 9 ? " HTAB" : n === 10 ? " LF" : n === 13 ? " CR" : n === 0 ? " NUL" : "");
  const say = (figure, text) => {
    readout.hidden = false;
    readout.textContent = figure.querySelector("figcaption").firstChild.textContent.trim() + ": " + text;
  };
  const explore = (element, size, show) => {
    let x = 0, y = 0;
    element.addEventListener("pointermove", (event) => {
      const box = element.getBoundingClientRect();
      const clamp = (n) => Math.max(0, Math.min(size - 1, Math.floor(n)));
      x = clamp((event.clientX - box.left) / box.width * size);
      y = clamp((event.clientY - box.top) / box.height * size);
      show(x, y);
    });
    element.addEventListener("pointerleave", () => { readout.hidden = true; });
    element.addEventListener("blur", () => { readout.hidden = true; });
    element.addEventListener("focus", () => show(x, y));
    element.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      x = (x + step[0] + size) % size;
      y = (y + step[1] + size) % size;
      show(x, y);
    });
  };
  for (const map of all("svg[data-cells]")) {
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("width", 1);
    cursor.setAttribute("height", 1);
    explore(map, 16, (x, y) => {
      cursor.setAttribute("x", x);
      cursor.setAttribute("y", y);
      map.append(cursor);
      const middle = new DOMPoint(x + 0.5, y + 0.5);
      const is = (word) => all("path.r-" + word, map).some((path) => path.isPointInFill(middle));
      say(map.closest("figure"), named(y * 16 + x) + " " + (words.find(is) || "not sent"));
    });
  }
  const style = getComputedStyle(document.documentElement);
  for (const holder of all("[data-pairs]")) {
    const picture = holder.querySelector("img");
    const read = (x, y) => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = 256;
      const context = canvas.getContext("2d");
      context.drawImage(picture, 0, 0, 256, 256);
      const [r, g, b, a] = context.getImageData(x, y, 1, 1).data;
      if (!a) return "not sent";
      const colour = "#" + [r, g, b].map((n) => n.toString(16).padStart(2, "0")).join("");
      return words.find((word) => style.getPropertyValue("--" + word).trim() === colour) || "?";
    };
    explore(holder, 256, (x, y) => {
      say(holder.closest("figure"), "% " + named(y) + " " + named(x) + " " + read(x, y));
    });
  }

  // Wire logs can be narrowed to a word.
  const logs = all("details.server");
  if (logs.length > 1) {
    const field = document.createElement("input");
    field.type = "search";
    field.className = "filter";
    field.placeholder = "server, family, octet, reading …";
    field.setAttribute("aria-label", "Show only wire logs that contain");
    logs[0].before(field);
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      for (const log of logs) {
        let found = 0;
        for (const article of all("article", log)) {
          const text = (log.dataset.text + " " + article.textContent).toLowerCase();
          article.hidden = wanted !== "" && !text.includes(wanted);
          found += !article.hidden;
        }
        log.hidden = wanted !== "" && !found;
      }
    });
  }
})();
