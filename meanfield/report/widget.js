// Frame with a page, whose place is that of the model: what the page moves to goes to Python, and back.
export default {
  render({model, el}) {
    const frame = document.createElement("iframe"), keys = ["panel", "time", "parameters"];
    let receiving = false;
    Object.assign(frame, {srcdoc: model.get("page"), sandbox: "allow-scripts", style: "width: 100%; height: 44rem; border: 0"});
    const receive = event => {
      if (event.source !== frame.contentWindow) return;
      receiving = true;
      keys.forEach(key => model.set(key, event.data[key]));
      receiving = false;
      model.save_changes();
    };
    const send = () => receiving || frame.contentWindow.postMessage(Object.fromEntries(keys.map(key => [key, model.get(key)])), "*");
    addEventListener("message", receive);
    ["change:time", "change:parameters"].forEach(change => model.on(change, send));
    el.append(frame);
    return () => removeEventListener("message", receive);
  },
};
