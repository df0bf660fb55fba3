"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Tables sort by what stands in data-v, else by their text, verdicts by how bad they are; rows
  // without a value stay last, and the heading of a group first.
  const worst = ["fail", "unstable", "void", "warn", "contested", "pass", "n/a", "not fired"];
  const value = (row, column) => {
    const cell = row.cells[column];
    const text = cell ? (cell.dataset.v ?? cell.textContent.trim()) : "";
    if (text === "" || text === "—") return null;
    if (worst.includes(text)) return worst.indexOf(text);
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
    const bodies = table.dataset.sortable === "all" ? [...table.tBodies] : [table.tBodies[0]];
    for (const body of bodies) {
      [...body.rows]
        .filter((row) => !row.classList.contains("group"))
        .map((row, at) => ({ row, at, v: value(row, column) }))
        .sort((a, b) => {
          if (a.v === null || b.v === null) return (a.v === null) - (b.v === null) || a.at - b.at;
          const order = typeof a.v === "number" && typeof b.v === "number"
            ? a.v - b.v : String(a.v) < String(b.v) ? -1 : String(a.v) > String(b.v) ? 1 : 0;
          return (up ? order : -order) || a.at - b.at;
        })
        .forEach(({ row }) => body.append(row));
    }
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

  // Requirements and wire logs can be filtered by words; all words must be there.
  const narrow = (before, name, hint, apply) => {
    if (!before) return;
    const field = document.createElement("input");
    field.type = "search";
    field.className = "filter";
    field.placeholder = hint;
    field.setAttribute("aria-label", name);
    before.before(field);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      apply((text) => words.every((word) => text.toLowerCase().includes(word)));
    });
  };
  const told = (element) => [...element.cells].map((cell) => cell.textContent).join(" ");
  const rows = all(".matrix tbody tr:not(.group)").map((row) => {
    const link = row.querySelector("a");
    const cases = link && document.getElementById(link.hash.slice(1)).closest("details");
    return { row, cases, text: told(row) + (cases ? cases.textContent : "") };
  });
  narrow(document.querySelector("#requirements .scroll"), "Show only requirements that contain",
    "title, clause, case, must, fail …", (fits) => {
      for (const { row, cases, text } of rows) {
        row.hidden = !fits(text);
        if (cases) cases.hidden = row.hidden;
      }
      for (const group of all(".matrix .group")) {
        group.hidden = ![...group.parentElement.rows].some((row) => row !== group && !row.hidden);
      }
    });
  const logs = all("details.taken");
  narrow(logs[0], "Show only wire logs that contain", "server, byte, accepted …", (fits) => {
    for (const log of logs) {
      const articles = all("article", log);
      for (const article of articles) article.hidden = !fits(article.textContent);
      log.hidden = articles.every((article) => article.hidden);
    }
  });
})();
