  // Charts: maps and trees side by side, profiles and rings over each other. What is known at some times stays until the next.
  const latest = (frames, frame) => { while (frame > 0 && !frames[frame]) frame -= 1; return frame; };
  const tint = share => `color-mix(in oklab, var(--${share < 0 ? "orange" : "accent"}) ${(100 * Math.min(Math.abs(share), 1)).toFixed(0)}%, var(--zero))`;
  const numbersOf = (parts, name = "frames") => parts.flatMap(part => (part[name] || []).flatMap(each => each || [])).filter(each => each != null);

  // Largest value that is drawn: narrow peaks at some times would hide what there is at most times.
  function ceiling(peaks) {
    const sorted = peaks.filter(Number.isFinite).sort((a, b) => a - b);
    return Math.min(sorted[sorted.length - 1], 2 * sorted[sorted.length >> 1]) || 1;
  }

  // Cells of all parts, in colours of one scale; what lies under the pointer is read off.
  function coloured(panels, panel, times, {signed, high, small}, drawCells) {
    const figure = framed(panels, panel.title), row = figure.appendChild(document.createElement("div"));
    figure.classList.toggle("whole", panel.parts.length > 1 && !small);
    row.className = small ? "parts small" : "parts";
    const draw = panel.parts.map(part => {
      const box = row.appendChild(document.createElement("div")), head = keyOf(box), {cells, name} = drawCells(box, part);
      const fills = [];
      let held = null;
      cells.forEach((cell, k) => {
        cell.addEventListener("pointerenter", () => { read.textContent = `${part.label}: ${name(k)} ${shown(held && held[k])}`; });
      });
      return frame => {
        const at = latest(part.frames, frame);
        held = part.frames[at];
        head.textContent = part.label + (at === frame || !held ? "" : `, at t = ${shown(times[at])}`);
        cells.forEach((cell, k) => {
          const fill = held && held[k] != null ? tint(held[k] / high) : "var(--line)";
          if (fills[k] !== fill) cell.style.fill = fills[k] = fill; // most cells of a plane stay empty
        });
      };
    });
    const scale = keyOf(figure), read = scale.appendChild(document.createElement("span")), bar = document.createElement("i");
    bar.style.background = `linear-gradient(90deg in oklab, ${signed ? tint(-1) + "," : ""}${tint(0)},${tint(1)})`;
    scale.prepend(signed ? shown(-high) : "0", bar, shown(high));
    return frame => draw.forEach(each => each(frame));
  }

  function map(panels, panel, times) {
    const numbers = numbersOf(panel.parts), planar = panel.parts.some(part => part.x);
    const high = planar ? ceiling(panel.parts.flatMap(part => part.frames.filter(Boolean).map(each => Math.max(...each)))) : Math.max(...numbers.map(Math.abs), 0) || 1;
    return coloured(panels, panel, times, {signed: numbers.some(each => each < 0), high, small: !planar}, (box, part) => {
      const [rows, columns] = part.shape, count = n => Array.from({length: n + 1}, (_, k) => k + 0.5);
      const xs = part.x || count(columns), ys = part.y || count(rows);
      const [width, start] = planar ? [W, left] : [160, 38], height = width - start - right + top + bottom;
      const x = scale(xs[0], xs[columns], start, width - right), y = scale(ys[0], ys[rows], ...(planar ? [height - bottom, top] : [top, height - bottom]));
      const svg = axes(box, `${panel.title}, ${part.label}`, x, y, part.xlabel, {width, height, ylabel: part.ylabel, whole: !planar});
      const group = element("g", {class: planar ? "plane" : "grid-cells"}, svg);
      const cells = Array.from({length: rows * columns}, (_, k) => {
        const [i, j] = [Math.floor(k / columns), k % columns], [y0, y1] = [y(ys[i]), y(ys[i + 1])];
        return element("rect", {x: x(xs[j]), y: Math.min(y0, y1), width: x(xs[j + 1]) - x(xs[j]), height: Math.abs(y1 - y0)}, group);
      });
      const middle = (edges, k) => shown((edges[k] + edges[k + 1]) / 2);
      return {cells, name: k => `${part.ylabel} ${middle(ys, Math.floor(k / columns))}, ${part.xlabel} ${middle(xs, k % columns)}:`};
    });
  }

  // Charts of which those of one tab are shown, with a button for each.
  function tabbed(panels, panel, times) {
    const names = [...new Set(panel.parts.map(part => part.tab))], row = document.createElement("div");
    let figure = framed(panels, panel.title), draw = null, current = 0;
    row.className = "tabs";
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", panel.title);
    const buttons = names.map(name => {
      const button = row.appendChild(document.createElement("button"));
      Object.assign(button, {type: "button", textContent: name});
      button.addEventListener("click", () => { pick(name); draw(current); button.focus(); });
      return button;
    });
    function pick(name) {
      chosen[panel.title] = name;
      const made = document.createDocumentFragment();
      draw = kinds[panel.kind](made, {...panel, parts: panel.parts.filter(part => part.tab === name)}, times);
      made.firstChild.firstChild.after(row);
      figure.replaceWith(made.firstChild);
      figure = row.parentNode;
      buttons.forEach(button => button.setAttribute("aria-pressed", button.textContent === name));
    }
    pick(names.includes(chosen[panel.title]) ? chosen[panel.title] : names[names.length >> 1]);
    return frame => { current = frame; draw(frame); };
  }

  // A tree from its root down, nodes of a latent side by side or, where there is no room, in rows.
  function tree(panels, panel, times) {
    return coloured(panels, panel, times, {signed: true, high: 1}, (box, part) => {
      const levels = part.levels, nodes = part.shape[1], gap = 74, cells = [], names = [];
      const svg = element("svg", {viewBox: `0 0 ${W} ${gap * levels.length}`, role: "img", "aria-label": `${panel.title}, ${part.label}`}, box);
      const edges = element("g", {class: "tick"}, svg), place = (level, k) => [W * (k + 0.5) / levels[level], gap * (level + 0.5)];
      let latent = 0;
      levels.forEach((count, level) => {
        for (let k = 0; k < count; k += 1, latent += 1) {
          const [x, y] = place(level, k), slot = 0.9 * W / count, size = Math.min(22, slot / Math.min(nodes, 4) - 1);
          const rows = Math.ceil(nodes / Math.floor(slot / (size + 1) + 1e-9)), columns = Math.ceil(nodes / rows);
          if (level) {
            const [x0, y0] = place(level - 1, Math.floor(k * levels[level - 1] / count));
            element("line", {x1: x, y1: y, x2: x0, y2: y0}, edges);
          }
          for (let node = 0; node < nodes; node += 1) {
            const wide = Math.min(columns, nodes - columns * Math.floor(node / columns));
            cells.push(element("rect", {class: "node", rx: size / 2, width: size, height: size, x: x + (node % columns - wide / 2) * (size + 1), y: y + (Math.floor(node / columns) - rows / 2) * (size + 1)}, svg));
            names.push(`${latent ? "latent " + latent : "root"}, node ${node + 1}:`);
          }
        }
      });
      return {cells, name: k => names[k]};
    });
  }

  // Curves over eigenvalues: of the limit where it has its nodes, of runs with the intervals of their scatter.
  function profile(panels, panel) {
    const all = panel.parts.flatMap(part => part.x), wide = Math.min(...all) > 0 && Math.max(...all) > 30 * Math.min(...all);
    const at = wide ? Math.log10 : each => each, places = all.map(at), margin = 0.04 * (Math.max(...places) - Math.min(...places));
    const ends = panel.parts.flatMap(part => part.half ? part.frames.flatMap((each, k) => each ? each.flatMap((value, i) => [value - part.half[k][i], value + part.half[k][i]]) : []) : numbersOf([part]));
    const low = Math.min(...ends), high = Math.max(...ends), room = 0.06 * (high - low) || 0.05 * Math.abs(high) || 1;
    const x = scale(Math.min(...places) - margin, Math.max(...places) + margin, left, W - right), y = scale(low - room, high + room, H - bottom, top);
    const figure = framed(panels, panel.title), label = panel.parts[0].xlabel, svg = axes(figure, panel.title, x, y, wide ? `log10 of the ${label}` : label), key = keyOf(figure);
    panel.parts[0].curves.forEach((name, k) => { if (name) entry(key, colours[k % 6], name); });
    if (panel.parts.some(part => part.half)) key.append("bars: SGD, 95 % of its scatter");
    const draw = panel.parts.map(part => {
      const paths = part.curves.map((_, k) => ["curve", "points"].map(name => element("path", {class: name, stroke: colours[k % 6], "stroke-dasharray": name === "curve" ? dashes[k % 4] : ""}, svg)));
      const xs = part.x.map(each => x(at(each)));
      return frame => {
        const k = part.half && !part.frames[frame] ? -1 : frame, values = part.frames[k] || [], count = xs.length;
        paths.forEach(([curve, points], c) => {
          const ys = values.slice(c * count, (c + 1) * count), known = ys.map((_, i) => i).filter(i => ys[i] != null), half = part.half ? part.half[frame] : null;
          curve.setAttribute("d", half || !known.length ? "" : "M" + known.map(i => `${xs[i].toFixed(1)} ${y(ys[i]).toFixed(1)}`).join("L"));
          points.setAttribute("d", known.map(i => `M${xs[i].toFixed(1)} ${y(ys[i]).toFixed(1)}h0` + (half ? `M${xs[i].toFixed(1)} ${y(ys[i] - half[c * count + i]).toFixed(1)}L${xs[i].toFixed(1)} ${y(ys[i] + half[c * count + i]).toFixed(1)}` : "")).join(""));
        });
      };
    });
    return frame => draw.forEach(each => each(frame));
  }

  // A density around the circle: a line of the limit, bars of all runs, and inside dots, the filters of one run.
  function ring(panels, panel) {
    const height = 300, inner = 62, middle = [W / 2, height / 2], high = ceiling(panel.parts.filter(part => part.x).flatMap(part => part.frames.filter(Boolean).map(each => Math.max(...each))));
    const figure = framed(panels, panel.title), svg = element("svg", {viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": panel.title}, figure), key = keyOf(figure);
    const at = (angle, radius) => `${(middle[0] + radius * Math.cos(angle)).toFixed(1)} ${(middle[1] - radius * Math.sin(angle)).toFixed(1)}`;
    const round = `M${at(0, inner)}A${inner} ${inner} 0 1 1 ${at(Math.PI, inner)}A${inner} ${inner} 0 1 1 ${at(0, inner)}Z`;
    element("path", {class: "frame", d: round}, svg);
    ["0", "π/2", "π", "−π/2"].forEach((name, k) => {
      const [x, y] = at(k * Math.PI / 2, 22).split(" ");
      element("text", {x, y: Number(y) + 4, "text-anchor": "middle"}, svg).textContent = name;
    });
    const draw = panel.parts.map(part => {
      const kind = part.bars ? "bars" : part.x ? "law" : "dots", drawn = element("path", {class: kind, "fill-rule": "evenodd"}, svg);
      entry(key, {bars: "color-mix(in srgb, var(--accent) 45%, var(--card))", law: "var(--text)", dots: "var(--orange)"}[kind], part.label);
      return frame => {
        const values = part.frames[frame];
        if (!values) return drawn.setAttribute("d", "");
        if (!part.x) return drawn.setAttribute("d", values.filter(each => each != null).map(each => `M${at(each, inner - 9)}h0`).join(""));
        const edge = values.map((each, k) => {
          const radius = inner + 80 * Math.min(each / high, 1), ends = [part.x[k], part.x[k + 1]];
          return part.bars ? ends.map(end => at(end, radius)).join("L") : at((ends[0] + ends[1]) / 2, radius);
        });
        drawn.setAttribute("d", `M${edge.join("L")}Z` + (part.bars ? round : ""));
      };
    });
    return frame => draw.forEach(each => each(frame));
  }
